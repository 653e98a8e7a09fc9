/**
 * The box: draft, attachments, completion of @file, @selection, @problems and slash commands, send and stop.
 *
 * Enter sends, Shift+Enter breaks the line, Escape stops the turn or closes the list. The draft is kept a moment after
 * typing and at once when the page goes; what the extension puts into the box replaces it.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JSX, RefObject } from "preact";
import type { Draft } from "../../attachments";
import { EMPTY_DRAFT, withAttachment } from "../../attachments";
import type { Attachment, Mode, Usage } from "../../protocol";
import type { Bound, Link } from "../../store";
import { UNTRUSTED } from "../../words";
import { Chips } from "./chips";
import { tell } from "./host";
import { Icon } from "./icons";

const draft_ms = 250;
const MODES: readonly { readonly mode: Mode; readonly label: string; readonly hint: string }[] = [
  { mode: "plan", label: "Plan", hint: "Reads only; changes nothing." },
  { mode: "ask", label: "Ask", hint: "Asks before each change." },
  { mode: "edits", label: "Edits", hint: "File edits in the folder pass; the rest asks." },
  { mode: "auto", label: "Auto", hint: "Everything passes but protected paths." },
];
const SLASH: readonly { readonly name: string; readonly hint: string }[] = [
  { name: "/help", hint: "the commands" },
  { name: "/recovery", hint: "list uncertain effects" },
  { name: "/recovery inspect", hint: "look at one now" },
  { name: "/recovery confirm", hint: "accept what was found" },
  { name: "/recovery reject", hint: "not to be repeated" },
  { name: "/recovery waive", hint: "go on without knowing" },
  { name: "/stop", hint: "stop the turn" },
];

interface Choice {
  readonly label: string;
  readonly hint: string;
  readonly pick: () => void;
}

export interface Incoming {
  readonly box: { readonly draft: Draft; readonly at: number };
  readonly completions: { readonly asked: number; readonly paths: readonly string[] };
  readonly attachment: Attachment | undefined;
}

interface Props {
  readonly bound: Bound | undefined;
  readonly link: Link;
  readonly trusted: boolean;
  readonly provider: string;
  readonly incoming: Incoming;
  readonly attachmentTaken: () => void;
  readonly box: RefObject<HTMLTextAreaElement>;
  readonly sendNow: RefObject<() => void>;
}

export function Composer({ bound, link, trusted, provider, incoming, attachmentTaken, box, sendNow }: Props): JSX.Element {
  const [{ text, attachments }, setDraft] = useState(incoming.box.draft);
  const latest = useRef(incoming.box.draft);
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  const [closedFor, setClosedFor] = useState("");
  const sessionId = bound?.session.sessionId;
  const keeping = useRef<ReturnType<typeof setTimeout>>();
  const word = wordAt(text, caret);
  const asked = useAsked(word);

  useEffect(() => {
    hold(incoming.box.draft);
    setCaret(incoming.box.draft.text.length);
  }, [incoming.box.at]);
  useEffect(() => {
    if (incoming.attachment === undefined) return;
    attach(incoming.attachment);
    attachmentTaken();
  }, [incoming.attachment]);
  useEffect(() => {
    const area = box.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 220)}px`;
  }, [text]);

  /** `latest` has it at once, the drawn state with the next drawing. */
  function hold(draft: Draft): void {
    latest.current = draft;
    setDraft(draft);
  }
  const keep = (soon: boolean): void => {
    clearTimeout(keeping.current);
    const draft = latest.current; // of this session: another one may be bound when the moment is over
    const now = (): void => tell({ kind: "draft", sessionId, draft });
    if (soon) keeping.current = setTimeout(now, draft_ms);
    else now();
  };
  const edit = (value: string, at: number): void => {
    hold({ ...latest.current, text: value });
    setCaret(at);
    setChosen(0);
    keep(true);
  };
  const goesTo = useRef<number>();
  const replaceWord = (by: string): void => {
    const value = `${text.slice(0, word.start)}${by}${text.slice(caret)}`;
    edit(value, word.start + by.length);
    goesTo.current = word.start + by.length;
  };
  // With the text itself, not a frame later: whatever is typed meanwhile would land elsewhere.
  useLayoutEffect(() => {
    if (goesTo.current === undefined) return;
    box.current?.focus();
    box.current?.setSelectionRange(goesTo.current, goesTo.current);
    goesTo.current = undefined;
  });
  function attach(attachment: Attachment): void {
    hold({ ...latest.current, attachments: withAttachment(latest.current.attachments, attachment) });
    keep(false);
  }
  const detach = (attachment: Attachment): void => {
    hold({ ...latest.current, attachments: latest.current.attachments.filter((one) => one !== attachment) });
    keep(false);
  };
  const choices = word.text === closedFor ? [] : choicesFor(word.text, text, incoming.completions.asked === asked ? incoming.completions.paths : [], replaceWord, attach);
  const can = link.state === "ready" && text.trim() !== "" && bound?.session.readOnly === undefined;
  const send = (): void => {
    if (!can) return;
    clearTimeout(keeping.current);
    tell({ kind: "send", ...latest.current });
    hold(EMPTY_DRAFT);
    setCaret(0);
  };
  sendNow.current = send;

  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (choices.length > 0) {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (step !== 0) {
        event.preventDefault();
        setChosen((chosen + step + choices.length) % choices.length);
        return;
      }
      if (event.key === "Tab" || (event.key === "Enter" && !(word.text.startsWith("/") && SLASH.some((one) => one.name === text)))) {
        event.preventDefault();
        choices[Math.min(chosen, choices.length - 1)]?.pick();
        return;
      }
      if (event.key === "Escape") {
        event.preventDefault();
        setClosedFor(word.text);
        return;
      }
    }
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape" && bound?.session.busy === true) {
      tell({ kind: "stop" });
    }
  };

  const busy = bound?.session.busy === true;
  return (
    <div class="composer">
      {choices.length > 0 && (
        <ul class="choices" role="listbox" id="choices" aria-label="Completions">
          {choices.map((choice, at) => (
            <li
              key={choice.label}
              id={`choice-${at}`}
              role="option"
              aria-selected={at === chosen}
              class={at === chosen ? "chosen" : ""}
              onMouseDown={(event) => {
                event.preventDefault();
                choice.pick();
              }}
            >
              <span>{choice.label}</span>
              <span class="faint">{choice.hint}</span>
            </li>
          ))}
        </ul>
      )}
      <div class="box">
        <Chips attachments={attachments} remove={detach} />
        <textarea
          ref={box}
          rows={1}
          value={text}
          placeholder={placeholder(link, bound, busy)}
          aria-label="Message to Steadyhand"
          aria-controls={choices.length > 0 ? "choices" : undefined}
          aria-activedescendant={choices.length > 0 ? `choice-${chosen}` : undefined}
          onInput={(event) => edit(event.currentTarget.value, event.currentTarget.selectionStart)}
          onKeyUp={(event) => setCaret(event.currentTarget.selectionStart)}
          onClick={(event) => setCaret(event.currentTarget.selectionStart)}
          onBlur={() => keep(false)}
          onKeyDown={onKeyDown}
        />
        <div class="bar">
          <label class="picker" title={trusted ? (MODES.find((one) => one.mode === bound?.session.mode)?.hint ?? "What passes without asking") : UNTRUSTED}>
            <span class="sr-only">Mode</span>
            <select value={trusted ? (bound?.session.mode ?? "ask") : "plan"} disabled={link.state !== "ready" || !trusted} onChange={(event) => tell({ kind: "mode", mode: event.currentTarget.value as Mode })}>
              {MODES.map(({ mode, label, hint }) => (
                <option key={mode} value={mode} title={hint}>
                  {label}
                </option>
              ))}
            </select>
          </label>
          <button type="button" class="quiet model" onClick={() => tell({ kind: "model" })} title="Which model answers">
            {modelName(bound, provider)}
          </button>
          <span class="fill" />
          {bound?.usage !== undefined && <Meter usage={bound.usage} />}
          {busy && (
            <button type="button" class="round stop" onClick={() => tell({ kind: "stop" })} aria-label="Stop the turn" title="Stop (Escape)">
              <Icon name="stop" />
            </button>
          )}
          {(!busy || text.trim() !== "") && (
            <button type="button" class="round send" disabled={!can} onClick={send} aria-label={busy ? "Put into the queue" : "Send"} title={busy ? "Put into the queue (Enter)" : "Send (Enter)"}>
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
    </div>
  );
}

function Meter({ usage }: { readonly usage: Usage }): JSX.Element | null {
  const { context, window, cost, billed } = usage;
  if (context === 0 && cost === undefined && billed.output === 0) return null;
  const share = window === undefined ? undefined : Math.min(1, context / window);
  const parts = [
    window === undefined ? `${context.toLocaleString()} tokens in the last request` : `${context.toLocaleString()} of ${window.toLocaleString()} tokens in the last request`,
    `${billed.input.toLocaleString()} sent, ${billed.output.toLocaleString()} received in all`,
    ...(usage.complete ? [] : ["some requests gave no numbers"]),
  ];
  return (
    <span class="meter" title={parts.join("; ")} role="img" aria-label={parts.join("; ")}>
      {share === undefined ? short(context) : <progress max={1} value={share} />}
      {cost !== undefined && <span>{`${cost.amount} ${cost.currency}${usage.complete ? "" : "+"}`}</span>}
    </span>
  );
}

function short(count: number): string {
  return count < 1_000 ? `${count} tokens` : `${(count / 1_000).toFixed(count < 10_000 ? 1 : 0)}k tokens`;
}

function modelName(bound: Bound | undefined, otherwise: string): string {
  const { provider, name } = bound?.session.model ?? { provider: otherwise, name: otherwise };
  return provider === "practice" ? "practice" : name;
}

function placeholder(link: Link, bound: Bound | undefined, busy: boolean): string {
  if (link.state !== "ready") return "Not connected; what you type is kept";
  if (bound?.session.readOnly !== undefined) return "This session can only be read";
  return busy ? "Goes into the queue" : "Ask, or / for commands, @ for context";
}

interface Word {
  readonly text: string;
  readonly start: number;
}

function wordAt(text: string, caret: number): Word {
  const start = Math.max(text.lastIndexOf(" ", caret - 1), text.lastIndexOf("\n", caret - 1)) + 1;
  const slash = text.startsWith("/") && !text.slice(0, caret).includes("\n");
  return slash ? { text: text.slice(0, caret), start: 0 } : { text: text.slice(start, caret), start };
}

/** Asks the extension for files whenever the word after @ changes; the number of the asking. */
function useAsked(word: Word): number {
  const number = useRef(0);
  const query = word.text.startsWith("@") ? word.text.slice(1) : undefined;
  useEffect(() => {
    if (query === undefined) return;
    number.current += 1;
    tell({ kind: "complete", asked: number.current, query });
  }, [query]);
  return number.current;
}

function choicesFor(word: string, text: string, paths: readonly string[], replace: (by: string) => void, attach: (attachment: Attachment) => void): readonly Choice[] {
  if (word.startsWith("/") && text.startsWith("/")) {
    return SLASH.filter((one) => one.name.startsWith(word) && one.name !== word).map((one) => ({ label: one.name, hint: one.hint, pick: () => replace(one.name) }));
  }
  if (!word.startsWith("@")) return [];
  const query = word.slice(1).toLowerCase();
  const special: readonly Choice[] = [
    {
      label: "@selection",
      hint: "what is selected in the editor",
      pick: () => {
        replace("");
        tell({ kind: "attachSelection" });
      },
    },
    {
      label: "@problems",
      hint: "what the editor reports",
      pick: () => {
        replace("");
        tell({ kind: "attachProblems" });
      },
    },
  ];
  const files = paths.slice(0, 8).map((path) => ({
    label: `@${path}`,
    hint: "file",
    pick: () => {
      replace(`@${path} `);
      attach({ kind: "file", path });
    },
  }));
  return [...special.filter((one) => one.label.slice(1).startsWith(query)), ...files];
}
