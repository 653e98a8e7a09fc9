/**
 * What is on screen, and how it changes: a pure fold of what the server and the user did.
 *
 * The extension folds the truth and sends each happening on; the chat folds the same happenings with this same
 * function, so a reload needs one whole `View` and nothing else. What speaks of another session or epoch than the
 * bound one returns the very same view: late answers change nothing on screen (row A9). Events are numbered within
 * an epoch; a doubled one is dropped, a gap is told by `missed`, and the extension asks for what is lacking (D3).
 */
import type {
  Attachment,
  Call,
  ChangedPath,
  Event,
  Message,
  PermissionAskParams,
  PlanItem,
  Queued,
  Reason,
  Session,
  SessionOpenResult,
  Snapshot,
  TurnEvent,
  Uncertain,
  Usage,
  UserAskParams,
} from "./protocol";
import type { Draft } from "./attachments";
import type { Outgoing } from "./outbox";

/** How the connection to the server stands. */
export type Link =
  | { readonly state: "starting"; readonly text: string }
  | { readonly state: "ready" }
  | { readonly state: "silent"; readonly text: string }
  | { readonly state: "lost"; readonly text: string }
  | { readonly state: "stopped"; readonly text: string };

export type Item =
  | {
      readonly kind: "message";
      readonly id: string;
      readonly turnId: string;
      readonly role: Message["role"];
      readonly text: string;
      readonly reasoning: string;
      readonly live: boolean;
      /** shown, then asked for again: it counts for nothing, and is gone when the session is opened anew */
      readonly withdrawn?: true;
      readonly attachments?: readonly Attachment[];
      readonly clientMessageId?: string;
    }
  | { readonly kind: "call"; readonly id: string; readonly turnId: string; readonly call: Call }
  | { readonly kind: "note"; readonly id: string; readonly turnId: string; readonly level: "notice" | "warning"; readonly text: string }
  /** The server ended in the middle of this turn. `again`: its prompt, where nothing of it was begun. */
  | { readonly kind: "cutOff"; readonly id: string; readonly turnId: string; readonly again?: { readonly text: string; readonly attachments: readonly Attachment[] } }
  | {
      readonly kind: "ended";
      readonly id: string;
      readonly turnId: string;
      /** absent where only the journal's calls are known */
      readonly reason?: Reason;
      readonly changed: readonly ChangedPath[];
      readonly unclaimed: readonly string[];
    };

/** A question of the server to the user. `gone`: it needs no answer any more, and why. */
export interface Question {
  readonly askId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly about: { readonly kind: "permission"; readonly asked: PermissionAskParams } | { readonly kind: "user"; readonly asked: UserAskParams };
  readonly gone?: string;
}

export interface Bound {
  readonly session: Session;
  readonly items: readonly Item[];
  readonly more: boolean;
  readonly queue: readonly Queued[];
  readonly snapshot: Snapshot;
  readonly plan: readonly PlanItem[];
  readonly usage?: Usage;
  readonly damaged: number;
  /** number of the last event; undefined: the next one is taken as it comes */
  readonly number?: number;
  /** the turn that runs now */
  readonly turnId?: string;
}

export interface View {
  readonly link: Link;
  readonly sessions: readonly Session[];
  readonly bound?: Bound;
  /** a session that has a history is being read, and is not bound yet */
  readonly restoring?: string;
  readonly outbox: readonly Outgoing[];
  readonly questions: readonly Question[];
  readonly uncertain: readonly Uncertain[];
  readonly settled: readonly Uncertain[];
}

export type Happened =
  | { readonly kind: "linked"; readonly link: Link }
  | { readonly kind: "listed"; readonly sessions: readonly Session[] }
  | { readonly kind: "opened"; readonly opened: SessionOpenResult; readonly events: readonly TurnEvent[]; readonly number?: number }
  | { readonly kind: "unbound" }
  /** absent: it came to nothing */
  | { readonly kind: "restoring"; readonly sessionId?: string }
  | { readonly kind: "turn"; readonly told: TurnEvent }
  | { readonly kind: "session"; readonly session: Session }
  | { readonly kind: "queue"; readonly sessionId: string; readonly queue: readonly Queued[] }
  | { readonly kind: "snapshot"; readonly snapshot: Snapshot }
  | { readonly kind: "cutOff"; readonly sessionId: string; readonly turnId: string }
  | { readonly kind: "usage"; readonly sessionId: string; readonly usage: Usage }
  | { readonly kind: "uncertain"; readonly uncertain: readonly Uncertain[]; readonly settled: readonly Uncertain[] }
  | { readonly kind: "outbox"; readonly outbox: readonly Outgoing[] }
  | { readonly kind: "asked"; readonly question: Question }
  | { readonly kind: "questionGone"; readonly askId: string; readonly why?: string };

export const EMPTY: View = {
  link: { state: "starting", text: "Starting…" },
  sessions: [],
  outbox: [],
  questions: [],
  uncertain: [],
  settled: [],
};

/** Questions that need no answer stay visible until so many newer ones came. */
const questionsGoneMax = 3;

export function reduce(view: View, happened: Happened): View {
  switch (happened.kind) {
    case "linked":
      return { ...view, link: happened.link };
    case "listed":
      return { ...view, sessions: happened.sessions };
    case "opened":
      return { ...without(withSession(view, happened.opened.session), "restoring"), bound: bound(happened) };
    case "unbound":
      return without(without(view, "bound"), "restoring");
    case "restoring":
      return happened.sessionId !== undefined && hasHistory(view, happened.sessionId)
        ? { ...view, restoring: happened.sessionId }
        : without(view, "restoring");
    case "turn":
      return withBound(view, happened.told.sessionId, (found) => afterEvent(found, happened.told, view));
    case "session":
      return withBound(withSession(view, happened.session), happened.session.sessionId, (found) => afterSession(found, happened.session));
    case "queue":
      return withBound(view, happened.sessionId, (found) => ({ ...found, queue: happened.queue }));
    case "snapshot":
      return withBound(view, happened.snapshot.sessionId, (found) => afterSnapshot(found, happened.snapshot));
    case "cutOff":
      return withBound(view, happened.sessionId, (found) => afterCutOff(found, happened.turnId));
    case "usage":
      return withBound(view, happened.sessionId, (found) => ({ ...found, usage: happened.usage }));
    case "uncertain":
      return { ...view, uncertain: happened.uncertain, settled: happened.settled };
    case "outbox":
      return { ...view, outbox: happened.outbox };
    case "asked":
      return { ...view, questions: [...view.questions.filter((one) => one.askId !== happened.question.askId), happened.question] };
    case "questionGone":
      return { ...view, questions: questionsAfter(view.questions, happened.askId, happened.why) };
  }
}

/** Whether an event of the bound session and epoch came with a gap before it. */
export function missed(view: View, told: TurnEvent): boolean {
  const found = view.bound;
  return (
    found?.session.sessionId === told.sessionId &&
    found.session.epoch === told.epoch &&
    found.number !== undefined &&
    told.number > found.number + 1
  );
}

/** A prompt that was sent or waits, by its id. One that waits may have been edited since it was sent. */
export function promptOf(view: View, clientMessageId: string): Draft | undefined {
  const found =
    view.outbox.find((prompt) => prompt.clientMessageId === clientMessageId) ??
    view.bound?.queue.find((prompt) => prompt.clientMessageId === clientMessageId);
  return found === undefined ? undefined : { text: found.text, attachments: found.attachments ?? [] };
}

/** How a session is called in a list. */
export function sessionName(session: Session): string {
  return session.title.trim() === "" ? "New session" : session.title;
}

function withBound(view: View, sessionId: string, change: (found: Bound) => Bound): View {
  if (view.bound?.session.sessionId !== sessionId) return view;
  const after = change(view.bound);
  return after === view.bound ? view : { ...view, bound: after };
}

/** Whether anything was said in it yet: a session without a word is opened, not restored (row S5). */
function hasHistory(view: View, sessionId: string): boolean {
  const session = view.sessions.find((one) => one.sessionId === sessionId);
  return session !== undefined && session.updated !== session.created;
}

function without(view: View, key: "bound" | "restoring"): View {
  const { [key]: _, ...rest } = view;
  return rest;
}

function withSession(view: View, session: Session): View {
  const known = view.sessions.some((one) => one.sessionId === session.sessionId);
  const sessions = known
    ? view.sessions.map((one) => (one.sessionId === session.sessionId ? session : one))
    : [session, ...view.sessions];
  return { ...view, sessions };
}

function afterSession(found: Bound, session: Session): Bound {
  // A new epoch means that the session was taken up anew: what is shown is read again by the extension.
  const after = { ...found, session };
  if (session.busy) return after;
  const { turnId: _, ...idle } = after;
  return idle;
}

/** Said once, after the last item of that turn, while nothing newer came. */
function afterCutOff(found: Bound, turnId: string): Bound {
  const id = `${turnId}-cut-off`;
  if (found.turnId !== undefined || found.items.at(-1)?.turnId !== turnId || found.items.some((item) => item.id === id)) return found;
  const mine = found.items.filter((item) => item.turnId === turnId);
  const [prompt] = mine;
  const untouched = mine.length === 1 && prompt?.kind === "message" && prompt.role === "user";
  return { ...found, items: [...found.items, { kind: "cutOff", id, turnId, ...(untouched ? { again: { text: prompt.text, attachments: prompt.attachments ?? [] } } : {}) }] };
}

/** A call learns from the snapshot how its effect was settled: a settlement outside a turn tells no event. */
function afterSnapshot(found: Bound, snapshot: Snapshot): Bound {
  const settled = new Map(snapshot.settled.map((one) => [one.attemptId, one.settled]));
  const items = found.items.map((item) => {
    if (item.kind !== "call" || item.call.settled !== undefined) return item;
    const how = item.call.attemptId === undefined ? undefined : settled.get(item.call.attemptId);
    return how === undefined ? item : { ...item, call: { ...item.call, settled: how } };
  });
  return { ...found, snapshot, items };
}

function questionsAfter(questions: readonly Question[], askId: string, why: string | undefined): readonly Question[] {
  if (why === undefined) return questions.filter((one) => one.askId !== askId);
  const marked = questions.map((one) => (one.askId === askId ? { ...one, gone: why } : one));
  const surplus = marked.filter((one) => one.gone !== undefined).slice(0, -questionsGoneMax);
  return marked.filter((one) => !surplus.includes(one));
}

// --- opening --------------------------------------------------------------------------------------------------

function bound(happened: Extract<Happened, { kind: "opened" }>): Bound {
  const { session, messages, more, snapshot, queue, damaged } = happened.opened;
  const running = session.busy ? happened.events.at(-1)?.turnId : undefined;
  const start: Bound = {
    session,
    items: withEnds(messages.flatMap(itemsOf), running),
    more,
    queue,
    snapshot,
    plan: [],
    damaged,
    ...(happened.number === undefined ? {} : { number: happened.number }),
    ...(running === undefined ? {} : { turnId: running }),
  };
  // The journal holds whole messages alone: the one that is being written is in the events.
  const known = new Set(start.items.map((item) => item.id));
  return happened.events
    .filter((told) => told.turnId === running)
    .reduce((after, told) => afterOpeningEvent(after, told.event, told.turnId, known), start);
}

function afterOpeningEvent(found: Bound, event: Event, turnId: string, known: ReadonlySet<string>): Bound {
  if ((event.kind === "text" || event.kind === "reasoning") && known.has(event.messageId)) return found;
  if (event.kind === "began" || event.kind === "ended") return found;
  return applied(found, event, turnId, `${turnId}-opening-${found.items.length}`, undefined);
}

function itemsOf(message: Message): Item[] {
  const calls: Item[] = (message.calls ?? []).map((call) => ({ kind: "call", id: call.callId, turnId: call.turnId, call }));
  if (message.text === "" && (message.reasoning ?? "") === "") return calls;
  const said: Item = {
    kind: "message",
    id: message.messageId,
    turnId: message.turnId,
    role: message.role,
    text: message.text,
    reasoning: message.reasoning ?? "",
    live: false,
    ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
    ...(message.clientMessageId === undefined ? {} : { clientMessageId: message.clientMessageId }),
  };
  return [said, ...calls];
}

/** An end after each turn that changed files, made from its calls: the journal keeps no such card. */
function withEnds(items: readonly Item[], running: string | undefined): readonly Item[] {
  const after: Item[] = [];
  items.forEach((item, at) => {
    after.push(item);
    if (items[at + 1]?.turnId === item.turnId || item.turnId === running) return;
    const changed = changedBy(items.filter((one) => one.turnId === item.turnId));
    if (changed.length > 0) after.push({ kind: "ended", id: `${item.turnId}-ended-${at}`, turnId: item.turnId, changed, unclaimed: [] });
  });
  return after;
}

function changedBy(items: readonly Item[]): readonly ChangedPath[] {
  const byPath = new Map<string, ChangedPath>();
  for (const item of items) {
    for (const file of item.kind === "call" ? (item.call.files ?? []) : []) {
      const earlier = byPath.get(file.path);
      const change = earlier?.change === "created" && file.change === "modified" ? "created" : file.change;
      byPath.set(file.path, { path: file.path, change, ...(file.from === undefined ? {} : { from: file.from }) });
    }
  }
  return [...byPath.values()];
}

// --- events ---------------------------------------------------------------------------------------------------

function afterEvent(found: Bound, told: TurnEvent, view: View): Bound {
  if (found.session.epoch !== told.epoch) return found;
  if (found.number !== undefined && told.number <= found.number) return found;
  const id = `${told.turnId}-${told.number}`;
  return { ...applied(found, told.event, told.turnId, id, view), number: told.number };
}

function applied(found: Bound, event: Event, turnId: string, id: string, view: View | undefined): Bound {
  switch (event.kind) {
    case "began":
      return began(found, event.clientMessageId, turnId, view);
    case "text":
    case "reasoning":
      return { ...found, turnId, items: grown(found.items, event, turnId) };
    case "call":
      return { ...found, items: upserted(found.items, event.call) };
    case "plan":
      return { ...found, plan: event.items };
    case "usage":
      return { ...found, usage: event.usage };
    case "warning":
      return { ...found, items: [...withdrawn(found.items, event.code, turnId), note(event, turnId, id)] };
    case "notice":
      return { ...found, items: [...found.items, note(event, turnId, id)] };
    case "ended":
      return ended(found, event, turnId, id);
  }
}

function began(found: Bound, clientMessageId: string, turnId: string, view: View | undefined): Bound {
  const known = found.items.some((item) => item.kind === "message" && item.clientMessageId === clientMessageId);
  const prompt = view === undefined ? undefined : promptOf(view, clientMessageId);
  if (known || prompt === undefined) return { ...found, turnId, plan: [] };
  const sent: Item = { kind: "message", id: clientMessageId, turnId, role: "user", ...prompt, reasoning: "", live: false, clientMessageId };
  return { ...found, turnId, plan: [], items: [...found.items, sent] };
}

function grown(items: readonly Item[], event: Extract<Event, { kind: "text" | "reasoning" }>, turnId: string): readonly Item[] {
  const at = items.findLastIndex((item) => item.id === event.messageId);
  const before = items[at];
  if (before?.kind !== "message") {
    const text = event.kind === "text" ? event.delta : "";
    const reasoning = event.kind === "reasoning" ? event.delta : "";
    return [...items, { kind: "message", id: event.messageId, turnId, role: "assistant", text, reasoning, live: true }];
  }
  const after: Item =
    event.kind === "text"
      ? { ...before, text: before.text + event.delta, live: true }
      : { ...before, reasoning: before.reasoning + event.delta, live: true };
  return items.with(at, after);
}

function note(event: Extract<Event, { kind: "warning" | "notice" }>, turnId: string, id: string): Item {
  return { kind: "note", id, turnId, level: event.kind, text: event.text };
}

/** The model is asked again: what was being shown of its answer is withdrawn (row T6). */
function withdrawn(items: readonly Item[], code: string, turnId: string): readonly Item[] {
  if (code !== "askedAgain" && code !== "withoutReasoning") return items;
  return items.map((item) =>
    item.kind === "message" && item.live && item.turnId === turnId ? { ...item, live: false, withdrawn: true } : item,
  );
}

function upserted(items: readonly Item[], call: Call): readonly Item[] {
  const item: Item = { kind: "call", id: call.callId, turnId: call.turnId, call };
  const at = items.findLastIndex((one) => one.id === call.callId);
  if (at >= 0) return items.with(at, item);
  return [...items.map((one) => settledLive(one, call.turnId)), item];
}

function ended(found: Bound, event: Extract<Event, { kind: "ended" }>, turnId: string, id: string): Bound {
  const items = found.items.map((item) => settledLive(item, turnId));
  const end: Item = { kind: "ended", id, turnId, reason: event.reason, changed: event.changed, unclaimed: event.unclaimed ?? [] };
  const { turnId: running, ...rest } = found;
  return { ...rest, items: [...items, end], ...(running === undefined || running === turnId ? {} : { turnId: running }) };
}

/** A message stops growing when something follows it in its turn. */
function settledLive(item: Item, turnId: string): Item {
  return item.kind === "message" && item.live && item.turnId === turnId ? { ...item, live: false } : item;
}
