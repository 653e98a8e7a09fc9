/**
 * The conversation. It scrolls to the newest item while the user is at the end, and stays in place otherwise. Of a long
 * conversation only the last items are drawn; more appear as the user scrolls up.
 */
import type { JSX, RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { showHidden } from "../../hiddenCharacters";
import { CHANGE_LABELS, END_REASON_LABELS, compactionLabel } from "../../labels";
import type { CallState, Uncertain } from "../../protocol";
import type { OutgoingPrompt } from "../../store/outbox";
import type { ActiveSession, Item, Question, State } from "../../store/state";
import { isOpen, sessionName } from "../../store/state";
import { CallCard, FileRow, SaveFirst, SeenFileRow } from "./callCard";
import { postToExtension } from "./extensionHost";
import { Icon } from "./icons";
import { MessageItem, UserText } from "./message";
import { QuestionCard } from "./questionCard";
import { Welcome } from "./welcome";

const ITEMS_DRAWN = 80;
const ITEMS_ADDED = 160;
const AT_END_PX = 40;

interface Props {
  readonly state: State;
  readonly isPractice: boolean;
}

export function Conversation({ state, isPractice }: Props): JSX.Element {
  const { active, connection } = state;
  const [drawnCount, setDrawnCount] = useState(ITEMS_DRAWN);
  const items = active?.items ?? [];
  const drawn = items.slice(-drawnCount);
  const sending = state.outbox.filter((prompt) => isBeingSent(prompt, active));
  const questions = state.questions.filter((question) => question.sessionId === active?.session.sessionId);
  const effects = useMemo(() => effectsByAttempt(active), [active?.snapshot]);
  const drawMore = (): void => {
    if (drawnCount < items.length) setDrawnCount(drawnCount + ITEMS_ADDED);
  };
  const { scroller, onScroll } = useScrolling(drawn[0]?.id, drawMore);

  if (state.restoring !== undefined) {
    return (
      <main class="conversation" aria-label="Conversation">
        <div class="working" role="status">
          <span class="spinner" /> Restoring the conversation…
        </div>
      </main>
    );
  }
  if (active === undefined && sending.length === 0) {
    return <Welcome isConnected={connection.state === "ready"} isPractice={isPractice} />;
  }
  const isWaitingForModel =
    active?.session.busy === true && connection.state === "ready" && !questions.some(isOpen) && !isCallRunning(items);
  return (
    <main class="conversation" ref={scroller} onScroll={onScroll} tabIndex={0} aria-label="Conversation">
      {active?.more === true && drawnCount >= items.length && (
        <button type="button" class="link earlier" onClick={() => postToExtension({ kind: "showEarlier" })}>
          Show earlier messages
        </button>
      )}
      <div role="log" aria-live="polite" aria-relevant="additions">
        {drawn.map((item) => (
          <ConversationItem
            key={item.id}
            item={item}
            effects={effects}
            canSendAgain={item === items.at(-1) && active?.session.busy === false && sending.length === 0}
          />
        ))}
      </div>
      {sending.map(({ clientMessageId, text, attachments, inDoubt }) => (
        <UserText
          key={clientMessageId}
          text={text}
          attachments={attachments}
          delivery={inDoubt ? "Checking whether the server got this…" : "Sending…"}
        />
      ))}
      {questions.map((question) => (
        <QuestionCard
          key={question.askId}
          question={question}
          callState={callStateOf(items, question)}
          effects={active?.snapshot.calls ?? []}
          nameOfSession={(sessionId) => quotedSessionName(state, sessionId)}
        />
      ))}
      {isWaitingForModel && (
        <div class="working" role="status">
          <span class="spinner" /> <span class="sr-only">Working</span>
        </div>
      )}
    </main>
  );
}

/** Keeps the end visible, or the item that the user reads when older items appear above it. */
function useScrolling(
  firstId: string | undefined,
  drawMore: () => void,
): { readonly scroller: RefObject<HTMLDivElement>; readonly onScroll: () => void } {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const before = useRef<{ readonly firstId: string | undefined; readonly height: number }>({
    firstId: undefined,
    height: 0,
  });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    if (isAtEnd.current) element.scrollTop = element.scrollHeight;
    else if (before.current.firstId !== firstId) {
      element.scrollTop += Math.max(0, element.scrollHeight - before.current.height);
    }
    before.current = { firstId, height: element.scrollHeight };
  });
  const onScroll = (): void => {
    const element = scroller.current;
    if (element === null) return;
    isAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < AT_END_PX;
    if (element.scrollTop <= AT_END_PX) drawMore();
  };
  return { scroller, onScroll };
}

// --- items --------------------------------------------------------------------------------------------------------

interface ItemProps {
  readonly item: Item;
  readonly effects: ReadonlyMap<string, Uncertain>;
  /** it is the last item, and nothing runs */
  readonly canSendAgain: boolean;
}

function ConversationItem({ item, effects, canSendAgain }: ItemProps): JSX.Element | null {
  switch (item.kind) {
    case "message":
      return <MessageItem message={item} />;
    case "call": {
      const { attemptId } = item.call;
      return (
        <>
          <CallCard call={item.call} uncertain={attemptId === undefined ? undefined : effects.get(attemptId)} />
          <SaveFirst call={item.call} />
        </>
      );
    }
    case "note":
      return <Note item={item} />;
    case "compaction":
      return <Compaction item={item} />;
    case "cutOff":
      return <CutOffNote item={item} />;
    case "ended":
      return <TurnEnd item={item} canSendAgain={canSendAgain} />;
  }
}

function Note({ item }: { readonly item: Extract<Item, { kind: "note" }> }): JSX.Element {
  return (
    <div class={`note ${item.level}`} role="note">
      <Icon name={item.level === "warning" ? "warning" : "search"} />
      <span>
        {showHidden(item.text)}
        {item.text.includes("secret store") && (
          <>
            {" "}
            <button type="button" class="link" onClick={() => postToExtension({ kind: "setApiKey" })}>
              Set the key…
            </button>
          </>
        )}
      </span>
    </div>
  );
}

/** What stands in the place of everything above it, for the model; it opens on a click. */
function Compaction({ item }: { readonly item: Extract<Item, { kind: "compaction" }> }): JSX.Element {
  return (
    <details class="compaction">
      <summary>{compactionLabel(item.note)}</summary>
      <div class="compaction-text">{showHidden(item.text)}</div>
    </details>
  );
}

function CutOffNote({ item }: { readonly item: Extract<Item, { kind: "cutOff" }> }): JSX.Element {
  const { resend } = item;
  return (
    <div class="note warning" role="note">
      <Icon name="warning" />
      <span>
        {resend === undefined
          ? "The server ended during this turn."
          : "The server ended before it started on this. Nothing ran. "}
        {resend !== undefined && (
          <button type="button" class="link" onClick={() => postToExtension({ kind: "send", ...resend })}>
            Ask again
          </button>
        )}
      </span>
    </div>
  );
}

interface TurnEndProps {
  readonly item: Extract<Item, { kind: "ended" }>;
  readonly canSendAgain: boolean;
}

/**
 * The end of a turn: why it ended, unless it is done, and which files it changed. Of a failed request the warning
 * before it says why, so the end has only the way to try again.
 */
function TurnEnd({ item, canSendAgain }: TurnEndProps): JSX.Element | null {
  const { reason = "done", changed, unclaimed, during, protectedNames, turnId, failed } = item;
  const isDone = reason === "done";
  const hasNothingToSay = isDone || (failed !== undefined && !canSendAgain);
  if (hasNothingToSay && [changed, unclaimed, during, protectedNames].every((one) => one.length === 0)) return null;
  const isWarning = !isDone || unclaimed.length > 0 || protectedNames.length > 0;
  return (
    <section class={`turn-end${isWarning ? " warning" : ""}`} aria-label="End of the turn">
      {!isDone && failed === undefined && <div class="turn-end-reason">{END_REASON_LABELS[reason]}.</div>}
      {failed !== undefined && canSendAgain && (
        <button type="button" class="link" onClick={() => postToExtension({ kind: "sendAgain", turnId, text: failed })}>
          Try again
        </button>
      )}
      {changed.length > 0 && (
        <>
          <div class="turn-end-title">
            {changed.length === 1 ? "1 file changed" : `${changed.length} files changed`}
          </div>
          {changed.map(({ path, change, from }) => (
            <FileRow
              key={path}
              turnId={turnId}
              path={path}
              change={from === undefined ? CHANGE_LABELS[change] : `moved from ${from}`}
            />
          ))}
        </>
      )}
      {during.length > 0 && (
        <details class="changed-during">
          <summary class="turn-end-title">
            {during.length === 1 ? "1 file" : `${during.length} files`} changed while a command ran
          </summary>
          {during.map(({ path, change, callId }) => (
            <SeenFileRow key={`${callId} ${path}`} path={path} change={CHANGE_LABELS[change]} />
          ))}
        </details>
      )}
      {protectedNames.map((path) => (
        <div class="note warning" key={path}>
          <Icon name="warning" />
          <span>
            After a command, the protected name <b>{path}</b> is new or changed. Programs may run what is in it.
          </span>
        </div>
      ))}
      {unclaimed.map((path) => (
        <div class="note warning" key={path}>
          <Icon name="warning" />
          <span>
            The answer says that it wrote <b>{path}</b>, but this turn did not write it.
          </span>
        </div>
      ))}
    </section>
  );
}

// --- projections of the state ---------------------------------------------------------------------------------------

function isBeingSent({ sessionId, stage }: OutgoingPrompt, active: ActiveSession | undefined): boolean {
  return sessionId === active?.session.sessionId && (stage === "notSent" || stage === "maybeDelivered");
}

/** A running call shows a spinner of its own. */
function isCallRunning(items: readonly Item[]): boolean {
  const last = items.at(-1);
  return last?.kind === "call" && last.call.state === "running";
}

function quotedSessionName({ sessions }: State, sessionId: string): string {
  const session = sessions.find((one) => one.sessionId === sessionId);
  return session === undefined ? "another session" : `“${sessionName(session)}”`;
}

function effectsByAttempt(active: ActiveSession | undefined): ReadonlyMap<string, Uncertain> {
  return new Map((active?.snapshot.calls ?? []).map((one) => [one.attemptId, one]));
}

/** The state of the call that the question is about. */
function callStateOf(items: readonly Item[], { about }: Question): CallState | undefined {
  if (about.kind !== "permission") return undefined;
  const item = items.find((one) => one.id === about.request.callId);
  return item?.kind === "call" ? item.call.state : undefined;
}
