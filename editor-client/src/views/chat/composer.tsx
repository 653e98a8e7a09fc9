/**
 * The composer: the message box with its draft, attachments and completions, and the bar with mode, model, usage, stop
 * and send.
 *
 * Enter sends, or queues while a turn runs; Ctrl+Enter or ⌘+Enter steers that turn. Shift+Enter breaks the line, Escape
 * closes the completions or stops the turn. The draft is stored a moment after the user types, and at once when the box
 * loses the focus. A draft from the extension replaces the content.
 */
import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { MODE_HINTS, MODE_LABELS, UNTRUSTED_FOLDER } from "../../labels";
import type { Attachment, Mode } from "../../protocol";
import { withAttachment } from "../../store/attachments";
import type { Draft } from "../../store/drafts";
import type { FromWebview } from "../webviewMessages";
import { EMPTY_DRAFT } from "../../store/drafts";
import type { ActiveSession, ConnectionStatus } from "../../store/state";
import { AttachmentChips } from "./attachmentChips";
import type { Completion, Word } from "./completions";
import { completionsFor, isSlashCommand, wordAt } from "./completions";
import { postToExtension } from "./extensionHost";
import { Icon } from "./icons";
import { UsageMeter } from "./usageMeter";

const DRAFT_DELAY_MS = 250;
const BOX_HEIGHT_MAX_PX = 220;
const MODES: readonly Mode[] = ["plan", "ask", "edits", "auto"];

/** What the extension gives the composer. */
export interface ComposerInput {
  /** replaces the content of the box whenever the stamp is new */
  readonly draft: { readonly value: Draft; readonly stamp: number };
  readonly completions: { readonly request: number; readonly paths: readonly string[] };
  readonly attachment: Attachment | undefined;
}

interface Props {
  readonly active: ActiveSession | undefined;
  readonly connection: ConnectionStatus;
  readonly trusted: boolean;
  readonly provider: string;
  readonly input: ComposerInput;
  readonly onAttached: () => void;
  readonly textArea: RefObject<HTMLTextAreaElement>;
  readonly send: RefObject<() => void>;
}

export function Composer(props: Props): JSX.Element {
  const { active, connection, trusted, provider, input, onAttached, textArea } = props;
  const { draft, latestDraft, setDraft, storeDraft } = useDraft(input.draft, active?.session.sessionId);
  const { text, attachments } = draft;
  const [cursor, setCursor] = useState(0);
  const [selected, setSelected] = useState(0);
  const [dismissedWord, setDismissedWord] = useState("");
  const word = wordAt(text, cursor);
  const fileRequest = useFileRequest(word);
  const isBusy = active?.session.busy === true;
  const canSend = connection.state === "ready" && text.trim() !== "" && active?.session.readOnly === undefined;

  const canSteer = canSend && isBusy && active.turnId !== undefined && isSteer(draft);

  useEffect(() => setCursor(input.draft.value.text.length), [input.draft.stamp]);
  useEffect(() => {
    if (input.attachment === undefined) return;
    attach(input.attachment);
    onAttached();
  }, [input.attachment]);
  useEffect(() => growToContent(textArea.current), [text]);

  const edit = (value: string, newCursor: number): void => {
    setDraft((before) => ({ ...before, text: value }));
    setCursor(newCursor);
    setSelected(0);
    storeDraft("soon");
  };
  const nextCursor = useRef<number>();
  const replaceWord = (replacement: string): void => {
    edit(`${text.slice(0, word.start)}${replacement}${text.slice(cursor)}`, word.start + replacement.length);
    nextCursor.current = word.start + replacement.length;
  };
  // In the same drawing as the text: what the user types before the next one would go to the wrong place.
  useLayoutEffect(() => {
    if (nextCursor.current === undefined) return;
    textArea.current?.focus();
    textArea.current?.setSelectionRange(nextCursor.current, nextCursor.current);
    nextCursor.current = undefined;
  });
  function attach(attachment: Attachment): void {
    setDraft((before) => ({ ...before, attachments: withAttachment(before.attachments, attachment) }));
    storeDraft("now");
  }
  const detach = (attachment: Attachment): void => {
    setDraft((before) => ({ ...before, attachments: before.attachments.filter((one) => one !== attachment) }));
    storeDraft("now");
  };
  const post = (message: FromWebview): void => {
    storeDraft("never");
    postToExtension(message);
    setDraft(() => EMPTY_DRAFT);
    setCursor(0);
  };
  const send = (): void => {
    if (canSend) post({ kind: "send", ...latestDraft() });
  };
  const steer = (): void => {
    if (canSteer) post({ kind: "steer", text: latestDraft().text });
  };
  props.send.current = send;

  const paths = input.completions.request === fileRequest ? input.completions.paths : [];
  const completions =
    word.text === dismissedWord ? [] : completionsFor(word.text, text, paths, { replaceWord, attach });
  const selectedIndex = Math.min(selected, completions.length - 1);

  /** True: the key was for the list of completions. */
  const handleCompletionKey = (key: string): boolean => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[key] ?? 0;
    if (step !== 0) {
      setSelected((selected + step + completions.length) % completions.length);
      return true;
    }
    // Enter sends a complete slash command, although longer ones begin with it.
    const isComplete = word.text.startsWith("/") && isSlashCommand(text);
    if (key === "Tab" || (key === "Enter" && !isComplete)) {
      completions[selectedIndex]?.accept();
      return true;
    }
    if (key === "Escape") setDismissedWord(word.text);
    return key === "Escape";
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (completions.length > 0 && handleCompletionKey(event.key)) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (canSteer && (event.ctrlKey || event.metaKey)) steer();
      else send();
    } else if (event.key === "Escape" && isBusy) {
      postToExtension({ kind: "stop" });
    }
  };

  return (
    <div class="composer">
      {completions.length > 0 && <CompletionList completions={completions} selectedIndex={selectedIndex} />}
      <div class="box">
        <AttachmentChips attachments={attachments} remove={detach} />
        <textarea
          ref={textArea}
          rows={1}
          value={text}
          placeholder={placeholderText(connection, active)}
          aria-label="Message to Steadyhand"
          aria-controls={completions.length > 0 ? "completions" : undefined}
          aria-activedescendant={completions.length > 0 ? `completion-${selectedIndex}` : undefined}
          onInput={(event) => edit(event.currentTarget.value, event.currentTarget.selectionStart)}
          onKeyUp={(event) => setCursor(event.currentTarget.selectionStart)}
          onClick={(event) => setCursor(event.currentTarget.selectionStart)}
          onBlur={() => storeDraft("now")}
          onKeyDown={onKeyDown}
        />
        <div class="composer-bar">
          <ModePicker mode={active?.session.mode ?? "ask"} trusted={trusted} connection={connection} />
          <button
            type="button"
            class="subtle model"
            onClick={() => postToExtension({ kind: "chooseModel" })}
            title="Choose the model of this session"
          >
            {modelName(active, provider)}
          </button>
          <span class="composer-actions">
            {active?.usage !== undefined && <UsageMeter usage={active.usage} />}
            {isBusy && (
              <button
                type="button"
                class="round stop"
                onClick={() => postToExtension({ kind: "stop" })}
                aria-label="Stop the turn"
                title="Stop the turn (Escape)"
              >
                <Icon name="stop" />
              </button>
            )}
            {canSteer && <SteerButton steer={steer} />}
            {(!isBusy || text.trim() !== "") && <SendButton isBusy={isBusy} canSend={canSend} send={send} />}
          </span>
        </div>
      </div>
    </div>
  );
}

// --- parts ----------------------------------------------------------------------------------------------------------

interface CompletionListProps {
  readonly completions: readonly Completion[];
  readonly selectedIndex: number;
}

function CompletionList({ completions, selectedIndex }: CompletionListProps): JSX.Element {
  return (
    <ul class="completions" role="listbox" id="completions" aria-label="Completions">
      {completions.map(({ label, hint, accept }, index) => (
        <li
          key={label}
          id={`completion-${index}`}
          role="option"
          aria-selected={index === selectedIndex}
          class={index === selectedIndex ? "selected" : ""}
          onMouseDown={(event) => {
            event.preventDefault(); // the box keeps the focus
            accept();
          }}
        >
          <span>{label}</span>
          <span class="faint">{hint}</span>
        </li>
      ))}
    </ul>
  );
}

interface ModePickerProps {
  readonly mode: Mode;
  readonly trusted: boolean;
  readonly connection: ConnectionStatus;
}

function ModePicker({ mode, trusted, connection }: ModePickerProps): JSX.Element {
  return (
    <label class="picker" title={trusted ? `Mode: ${MODE_HINTS[mode]}` : UNTRUSTED_FOLDER}>
      <span class="sr-only">Mode</span>
      <select
        value={trusted ? mode : "plan"}
        disabled={connection.state !== "ready" || !trusted}
        onChange={(event) => postToExtension({ kind: "setMode", mode: event.currentTarget.value as Mode })}
      >
        {MODES.map((one) => (
          <option key={one} value={one} title={MODE_HINTS[one]}>
            {MODE_LABELS[one]}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SendButtonProps {
  readonly isBusy: boolean;
  readonly canSend: boolean;
  readonly send: () => void;
}

function SendButton({ isBusy, canSend, send }: SendButtonProps): JSX.Element {
  const label = isBusy ? "Add to the queue" : "Send";
  return (
    <button
      type="button"
      class="round send"
      disabled={!canSend}
      onClick={send}
      aria-label={label}
      title={`${label} (Enter)`}
    >
      <Icon name="send" />
    </button>
  );
}

/** Beside the button for the queue: the text goes to the turn that runs. */
function SteerButton({ steer }: { readonly steer: () => void }): JSX.Element {
  return (
    <button
      type="button"
      class="subtle"
      onClick={steer}
      title="Send it to the running turn, which reads it with its next step (Ctrl+Enter)"
    >
      Steer
    </button>
  );
}

/** A turn takes text alone: no attachments and no slash command. */
function isSteer({ text, attachments }: Draft): boolean {
  return attachments.length === 0 && !text.startsWith("/");
}

// --- state ----------------------------------------------------------------------------------------------------------

interface DraftState {
  /** as it is drawn */
  readonly draft: Draft;
  /** with the changes that are not drawn yet */
  readonly latestDraft: () => Draft;
  readonly setDraft: (change: (before: Draft) => Draft) => void;
  /** `soon`: after a pause in typing; `never`: the draft was sent */
  readonly storeDraft: (when: "now" | "soon" | "never") => void;
}

function useDraft(input: ComposerInput["draft"], sessionId: string | undefined): DraftState {
  const [draft, drawDraft] = useState(input.value);
  /** has a change at once; `draft` has it with the next drawing */
  const latest = useRef(input.value);
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const setDraft = (change: (before: Draft) => Draft): void => {
    latest.current = change(latest.current);
    drawDraft(latest.current);
  };
  const storeDraft = (when: "now" | "soon" | "never"): void => {
    clearTimeout(timer.current);
    const value = latest.current; // another session may be active when the timer fires
    const store = (): void => postToExtension({ kind: "draft", sessionId, draft: value });
    if (when === "soon") timer.current = setTimeout(store, DRAFT_DELAY_MS);
    if (when === "now") store();
  };
  useEffect(() => setDraft(() => input.value), [input.stamp]);
  return { draft, latestDraft: () => latest.current, setDraft, storeDraft };
}

/** Ask the extension for files when the word after `@` changes; the number of the newest request. */
function useFileRequest(word: Word): number {
  const request = useRef(0);
  const query = word.text.startsWith("@") ? word.text.slice(1) : undefined;
  useEffect(() => {
    if (query === undefined) return;
    request.current += 1;
    postToExtension({ kind: "completeFile", request: request.current, query });
  }, [query]);
  return request.current;
}

function growToContent(area: HTMLTextAreaElement | null): void {
  if (area === null) return;
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, BOX_HEIGHT_MAX_PX)}px`;
}

function modelName(active: ActiveSession | undefined, newSessionProvider: string): string {
  const { provider, name } = active?.session.model ?? { provider: newSessionProvider, name: newSessionProvider };
  return provider === "practice" ? "practice" : name;
}

function placeholderText(connection: ConnectionStatus, active: ActiveSession | undefined): string {
  if (connection.state !== "ready") return "Not connected. Your text is kept.";
  if (active?.session.readOnly !== undefined) return "This session is read-only";
  return active?.session.busy === true ? "Queue a message, or steer the turn…" : "Ask, / for commands, @ for context";
}
