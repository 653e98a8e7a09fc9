/** Builders of wire values with the fields that a test does not care about, and a fake server for the controllers. */
import type { ServerApi } from "../src/client/serverApi";
import { PromptController } from "../src/controllers/promptController";
import { ServerEvents } from "../src/controllers/serverEvents";
import { SessionController } from "../src/controllers/sessionController";
import type { Attachment, Call, Session, SessionOpenResult, Snapshot } from "../src/protocol";
import type { Draft } from "../src/store/drafts";
import { DraftStore } from "../src/store/draftStore";
import type { Memory } from "../src/store/memory";
import { OUTBOX_KEY } from "../src/store/memory";
import { parseOutbox } from "../src/store/outbox";
import { Store } from "../src/store/store";

export const TIME = "2026-01-31T09:30:00.000Z";
export const id = (digit: string): string => digit.repeat(32);
export const SESSION = id("5");
export const EPOCH = id("e");
export const TURN = id("7");

// --- wire values --------------------------------------------------------------------------------------------------

export function makeSession(more: Partial<Session> = {}): Session {
  return {
    sessionId: SESSION,
    path: "/state/s",
    title: "",
    titleSource: "none",
    epoch: EPOCH,
    created: TIME,
    updated: TIME,
    mode: "ask",
    model: { provider: "practice", name: "practice" },
    busy: false,
    parked: false,
    uncertain: 0,
    ...more,
  };
}

export function makeSnapshot(more: Partial<Snapshot> = {}): Snapshot {
  return {
    sessionId: SESSION,
    sessionPath: "/state/s",
    revision: "0".repeat(64),
    retryEnabled: false,
    calls: [],
    settled: [],
    statistics: {
      unknown: 0,
      checked: 0,
      confirmed: 0,
      rejected: 0,
      waived: 0,
      retried: 0,
      restored: 0,
      heldBack: 0,
      heldBackAdmitted: 0,
      heldBackRefused: 0,
      byProof: 0,
      byPerson: 0,
      byModel: 0,
    },
    ...more,
  };
}

export function makeOpenResult(more: Partial<SessionOpenResult> = {}): SessionOpenResult {
  const snapshot = makeSnapshot();
  return { session: makeSession(), messages: [], more: false, snapshot, queue: [], damaged: 0, ...more };
}

export function makeCall(more: Partial<Call> = {}): Call {
  return {
    callId: id("c"),
    turnId: TURN,
    tool: "write_file",
    title: "write_file: a",
    arguments: "{}",
    scope: { paths: ["a"] },
    state: "running",
    ...more,
  };
}

export function makeDraft(text: string, ...attachments: Attachment[]): Draft {
  return { text, attachments };
}

// --- a fake server --------------------------------------------------------------------------------------------------

/** An error that the server answers. */
export class Refusal extends Error {
  constructor(
    readonly code: number,
    text: string,
    readonly data?: unknown,
  ) {
    super(text);
  }
}

/** What the fake server does for one method; it may throw a `Refusal` or reject like a lost connection. */
export type Answer = (params: Record<string, unknown>) => unknown;

export const loseAnswer: Answer = () => Promise.reject(new Error("the connection got disposed"));

const USUAL_ANSWERS: Readonly<Record<string, Answer>> = {
  "steadyhand/session/list": () => ({ sessions: [makeSession({ sessionId: "a" }), makeSession({ sessionId: "b" })] }),
  "steadyhand/session/open": ({ sessionId }) => openResultOf(sessionId),
  "steadyhand/session/create": () => makeSession({ sessionId: "new" }),
  "steadyhand/usage": () => ({
    billed: { input: 0, output: 0, cacheHit: 0, cacheMiss: 0 },
    context: 0,
    complete: true,
  }),
  "steadyhand/turn/start": () => ({ turnId: "t", accepted: true, duplicate: false, queued: false }),
  "steadyhand.recovery.list": () => ({ uncertain: [], settled: [] }),
};

export function openResultOf(sessionId: unknown, more: Partial<SessionOpenResult> = {}): SessionOpenResult {
  const session = makeSession({ sessionId: String(sessionId) });
  return makeOpenResult({ session, snapshot: makeSnapshot({ sessionId: String(sessionId) }), ...more });
}

/** The controllers over a server with the sessions `a` and `b`. `answers` replaces the answers to single methods. */
export function setUp(answers: Record<string, Answer> = {}, stored: Record<string, unknown> = {}) {
  const requests: { method: string; params: Record<string, unknown> }[] = [];
  const answer = async (method: string, params: Record<string, unknown>): Promise<never> => {
    requests.push({ method, params });
    const found = answers[method] ?? USUAL_ANSWERS[method];
    if (found === undefined) throw new Refusal(-32601, `no ${method}`);
    return (await found(params)) as never;
  };
  const server: ServerApi = {
    request: (method, params) => answer(method, params as never),
    command: (name, ...args) => answer(name, (args[0] ?? {}) as never),
  };
  const values = new Map<string, unknown>(Object.entries(stored));
  const memory: Memory = {
    get: (key) => values.get(key),
    update: (key, value) => {
      values.set(key, value);
      return Promise.resolve();
    },
  };
  const store = new Store({ outbox: parseOutbox(memory.get(OUTBOX_KEY)) });
  const drafts = new DraftStore(store, memory);
  const sessions = new SessionController(server, store, memory, drafts);
  const prompts = new PromptController(server, store, memory, drafts, sessions, () => undefined);
  const events = new ServerEvents(store, sessions, prompts);
  const shown: Draft[] = [];
  drafts.onReplaced((draft) => shown.push(draft));
  return {
    store,
    drafts,
    sessions,
    prompts,
    events,
    /** the drafts that the message box was given */
    shown,
    /** every request and command, oldest first */
    requests,
    /** a copy of what the window stores, as JSON leaves it */
    stored: (): Record<string, unknown> => JSON.parse(JSON.stringify(Object.fromEntries(values))) as never,
    sent: () => requests.filter(({ method }) => method === "steadyhand/turn/start"),
    connect: () => events.statusChanged({ state: "ready" }),
    disconnect: () => events.statusChanged({ state: "lost", text: "…" }),
  };
}

/** A connected server with the session `a` open. */
export async function setUpOpen(answers: Record<string, Answer> = {}) {
  const all = setUp(answers);
  await all.connect();
  await all.sessions.open("a");
  return all;
}
