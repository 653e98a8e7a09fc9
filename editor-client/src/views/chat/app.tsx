/**
 * The whole chat over one view. The conversation follows its end while the user is at the end, and stays where it is
 * otherwise; of a long one only the last items are drawn, more as the user scrolls up.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Uncertain } from "../../protocol";
import type { Bound, Item, View } from "../../store";
import { sessionName } from "../../store";
import { CHANGE, REASON } from "../../words";
import { CallItem, FileRow, SaveFirst } from "./call";
import type { Incoming } from "./composer";
import { Composer } from "./composer";
import { Head } from "./head";
import { tell } from "./host";
import { Icon } from "./icons";
import { MessageItem, UserText } from "./message";
import { QuestionCard } from "./question";
import { DoubtStrip, LinkStrip, PlanStrip, QueueStrip, SessionStrip, TrustStrip } from "./strips";

const items_drawn = 80;
const items_more = 160;
const at_end_px = 40;

const EXAMPLES: readonly string[] = ['write notes.md with "# Notes\\n\\n- tea\\n"', "append - coffee to notes.md", "run ls -l"];

export interface Doing {
  readonly what: "focus" | "send" | "sessions";
  readonly at: number;
}

interface Props {
  readonly view: View;
  readonly trusted: boolean;
  /** of the model that answers in a session that is not made yet */
  readonly provider: string;
  readonly incoming: Incoming;
  readonly doing: Doing | undefined;
  readonly attachmentTaken: () => void;
}

export function App({ view, trusted, provider, incoming, doing, attachmentTaken }: Props): JSX.Element {
  const [sessionsOpen, setSessionsOpen] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const sendNow = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (doing?.what === "focus") box.current?.focus();
    if (doing?.what === "send") sendNow.current();
    if (doing?.what === "sessions") setSessionsOpen(true);
  }, [doing]);
  const { bound } = view;
  return (
    <div class="app">
      <Head view={view} open={sessionsOpen} setOpen={setSessionsOpen} />
      <LinkStrip view={view} />
      {!trusted && <TrustStrip />}
      {bound !== undefined && <SessionStrip bound={bound} />}
      <Conversation key={bound?.session.sessionId ?? ""} view={view} practice={provider === "practice"} />
      <footer>
        <DoubtStrip view={view} />
        {bound !== undefined && <PlanStrip plan={bound.plan} />}
        {bound !== undefined && <QueueStrip queue={bound.queue} />}
        <Composer bound={bound} link={view.link} trusted={trusted} provider={provider} incoming={incoming} attachmentTaken={attachmentTaken} box={box} sendNow={sendNow} />
      </footer>
    </div>
  );
}

function Conversation({ view, practice }: { readonly view: View; readonly practice: boolean }): JSX.Element {
  const { bound } = view;
  const [drawn, setDrawn] = useState(items_drawn);
  const scroller = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef<{ readonly first: string | undefined; readonly height: number }>({ first: undefined, height: 0 });
  const items = bound?.items ?? [];
  const shown = items.slice(-drawn);
  const sending = view.outbox.filter((prompt) => prompt.sessionId === bound?.session.sessionId && prompt.stage !== "accepted" && prompt.stage !== "done");
  const questions = view.questions.filter((question) => question.sessionId === bound?.session.sessionId);
  const uncertain = useMemo(() => byAttempt(bound), [bound?.snapshot]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const first = shown[0]?.id;
    if (atEnd.current) element.scrollTop = element.scrollHeight;
    // What was read stays where it is when older items come before it.
    else if (before.current.first !== first) element.scrollTop += Math.max(0, element.scrollHeight - before.current.height);
    before.current = { first, height: element.scrollHeight };
  });
  const onScroll = (): void => {
    const element = scroller.current;
    if (element === null) return;
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < at_end_px;
    if (element.scrollTop <= at_end_px && drawn < items.length) setDrawn(drawn + items_more);
  };

  if (view.restoring !== undefined) {
    return (
      <main class="conversation" aria-label="Conversation">
        <div class="working" role="status">
          <span class="spinner" /> Restoring the conversation…
        </div>
      </main>
    );
  }
  if (bound === undefined && sending.length === 0) return <Welcome view={view} practice={practice} />;
  return (
    <main class="conversation" ref={scroller} onScroll={onScroll} tabIndex={0} aria-label="Conversation">
      {bound?.more === true && drawn >= items.length && (
        <button type="button" class="link earlier" onClick={() => tell({ kind: "earlier" })}>
          Show earlier messages
        </button>
      )}
      <div role="log" aria-live="polite" aria-relevant="additions">
        {shown.map((item) => (
          <OneItem key={item.id} item={item} uncertain={uncertain} />
        ))}
      </div>
      {sending.map((prompt) => (
        <UserText key={prompt.clientMessageId} text={prompt.text} attachments={prompt.attachments} state={prompt.doubtful ? "Was it delivered? Asking the server…" : "Sending…"} />
      ))}
      {questions.map((question) => (
        <QuestionCard key={question.askId} question={question} call={callState(items, question)} uncertain={bound?.snapshot.calls ?? []} sessionOf={(sessionId) => nameOf(view, sessionId)} />
      ))}
      {bound?.session.busy === true && questions.every((question) => question.gone !== undefined) && view.link.state === "ready" && !running(items) && (
        <div class="working" role="status">
          <span class="spinner" /> <span class="sr-only">At work</span>
        </div>
      )}
    </main>
  );
}

function OneItem({ item, uncertain }: { readonly item: Item; readonly uncertain: ReadonlyMap<string, Uncertain> }): JSX.Element | null {
  switch (item.kind) {
    case "message":
      return <MessageItem said={item} />;
    case "call":
      return (
        <>
          <CallItem call={item.call} uncertain={item.call.attemptId === undefined ? undefined : uncertain.get(item.call.attemptId)} />
          <SaveFirst call={item.call} />
        </>
      );
    case "note":
      return (
        <div class={`note ${item.level}`} role="note">
          <Icon name={item.level === "warning" ? "warning" : "look"} />
          <span>
            {item.text}
            {item.text.includes("secret store") && (
              <>
                {" "}
                <button type="button" class="link" onClick={() => tell({ kind: "setKey" })}>
                  Set the key…
                </button>
              </>
            )}
          </span>
        </div>
      );
    case "cutOff":
      return <CutOff item={item} />;
    case "ended":
      return <EndCard item={item} />;
  }
}

function CutOff({ item }: { readonly item: Extract<Item, { kind: "cutOff" }> }): JSX.Element {
  const { again } = item;
  return (
    <div class="note warning" role="note">
      <Icon name="warning" />
      <span>
        {again === undefined ? "The server ended in the middle of this turn." : "The server ended before it began with this. Nothing was run. "}
        {again !== undefined && (
          <button type="button" class="link" onClick={() => tell({ kind: "send", text: again.text, attachments: again.attachments })}>
            Ask again
          </button>
        )}
      </span>
    </div>
  );
}

function EndCard({ item }: { readonly item: Extract<Item, { kind: "ended" }> }): JSX.Element | null {
  const quiet = item.reason === undefined || item.reason === "done";
  if (quiet && item.changed.length === 0 && item.unclaimed.length === 0) return null;
  return (
    <section class={`ended ${quiet ? "" : "loud"}`} aria-label="End of the turn">
      {!quiet && <div class="ended-reason">{REASON[item.reason]}.</div>}
      {item.changed.length > 0 && (
        <>
          <div class="ended-head">{item.changed.length === 1 ? "1 file really changed" : `${item.changed.length} files really changed`}</div>
          {item.changed.map((file) => (
            <FileRow key={file.path} turnId={item.turnId} path={file.path} what={file.from === undefined ? CHANGE[file.change] : `moved from ${file.from}`} />
          ))}
        </>
      )}
      {item.unclaimed.map((path) => (
        <div class="note warning" key={path}>
          <Icon name="warning" />
          <span>
            The answer speaks of <b>{path}</b> as written; nothing wrote it in this turn.
          </span>
        </div>
      ))}
    </section>
  );
}

function Welcome({ view, practice }: { readonly view: View; readonly practice: boolean }): JSX.Element {
  return (
    <main class="conversation welcome" tabIndex={0} aria-label="Conversation">
      <h1>What shall be done?</h1>
      <p>Every effect on your files is written down before it happens. If something is cut off half way, you will be told, and asked.</p>
      {practice && (
        <>
          <p class="faint">The practice model needs no key and no network. It is no language model: it knows a few sentences and does just what they say. Try:</p>
          <div class="examples">
            {EXAMPLES.map((text) => (
              <button type="button" key={text} class="example" disabled={view.link.state !== "ready"} onClick={() => tell({ kind: "send", text, attachments: [] })}>
                {text}
              </button>
            ))}
          </div>
        </>
      )}
    </main>
  );
}

/** A call that runs turns a wheel of its own. */
function running(items: readonly Item[]): boolean {
  const last = items.at(-1);
  return last?.kind === "call" && last.call.state === "running";
}

function nameOf(view: View, sessionId: string): string {
  const session = view.sessions.find((one) => one.sessionId === sessionId);
  return session === undefined ? "another session" : `“${sessionName(session)}”`;
}

function byAttempt(bound: Bound | undefined): ReadonlyMap<string, Uncertain> {
  return new Map((bound?.snapshot.calls ?? []).map((one) => [one.attemptId, one]));
}

function callState(items: readonly Item[], question: View["questions"][number]): Extract<Item, { kind: "call" }>["call"]["state"] | undefined {
  if (question.about.kind !== "permission") return undefined;
  const { callId } = question.about.asked;
  const item = items.find((one) => one.id === callId);
  return item?.kind === "call" ? item.call.state : undefined;
}
