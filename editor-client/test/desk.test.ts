/** The desk over a server that loses answers: no prompt twice, no text lost, no binding that nobody asked for (D1, D2, S1; cases 40, 77, 79). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Draft } from "../src/attachments";
import type { Memory, Voice, Wire } from "../src/desk";
import { Desk, isAnswer } from "../src/desk";
import type { Attachment, Session, SessionOpenResult } from "../src/protocol";

const at = "2026-01-31T09:30:00.000Z";
const epoch = "e".repeat(32);

function session(sessionId: string): Session {
  return {
    sessionId, path: `/state/${sessionId}`, title: "", titleSource: "none", epoch, created: at, updated: at, mode: "ask",
    model: { provider: "practice", name: "practice" }, busy: false, parked: false, uncertain: 0,
  };
}

function opened(sessionId: string): SessionOpenResult {
  const statistics = { unknown: 0, checked: 0, confirmed: 0, rejected: 0, waived: 0, retried: 0, restored: 0, heldBack: 0 };
  const snapshot = { sessionId, sessionPath: "/s", revision: "0".repeat(64), retryEnabled: false, calls: [], settled: [], statistics };
  return { session: session(sessionId), messages: [], more: false, snapshot, queue: [], damaged: 0 };
}

class Refusal extends Error {
  constructor(
    readonly code: number,
    text: string,
    readonly data?: unknown,
  ) {
    super(text);
  }
}

type Answer = (params: Record<string, unknown>) => unknown;

/** A server of two sessions; `answers` replaces single methods. */
function setUp(answers: Record<string, Answer> = {}, stored: Record<string, unknown> = {}) {
  const asked: { method: string; params: Record<string, unknown> }[] = [];
  const memory = new Map<string, unknown>(Object.entries(stored));
  const boxes: string[] = [];
  const drafts: Draft[] = [];
  const usual: Record<string, Answer> = {
    "steadyhand/session/list": () => ({ sessions: [session("a"), session("b")] }),
    "steadyhand/session/open": (params) => opened(String(params["sessionId"])),
    "steadyhand/session/create": () => session("new"),
    "steadyhand/usage": () => ({ billed: { input: 0, output: 0, cacheHit: 0, cacheMiss: 0 }, context: 0, complete: true }),
    "steadyhand/turn/start": () => ({ turnId: "t", accepted: true, duplicate: false, queued: false }),
    "steadyhand.recovery.list": () => ({ uncertain: [], settled: [] }),
  };
  const answer = async (method: string, params: Record<string, unknown>): Promise<never> => {
    asked.push({ method, params });
    const found = answers[method] ?? usual[method];
    if (found === undefined) throw new Refusal(-32601, `no ${method}`);
    return (await found(params)) as never;
  };
  const wire: Wire = { request: (method, params) => answer(method, params as never), command: (name, ...args) => answer(name, (args[0] ?? {}) as never) };
  const store: Memory = {
    get: (key) => memory.get(key),
    update: (key, value) => {
      memory.set(key, value);
      return Promise.resolve();
    },
  };
  const voice: Voice = { happened: () => undefined, box: (draft) => drafts.push(draft) && boxes.push(draft.text), warn: () => undefined };
  return { desk: new Desk(wire, store, voice), asked, memory, boxes, drafts, sent: () => asked.filter((one) => one.method === "steadyhand/turn/start") };
}

function typed(text: string, ...attachments: Attachment[]): Draft {
  return { text, attachments };
}

const FILE: Attachment = { kind: "file", path: "x.py" };
const NOTES: Attachment = { kind: "text", name: "notes", text: "one" };

const lostAnswer: Answer = () => Promise.reject(new Error("the connection got disposed"));

test("the answer of a send is lost: the id is asked for after reconnecting, and known means no second send", async () => {
  const { desk, sent, boxes } = setUp({ "steadyhand/turn/start": lostAnswer, "steadyhand/turn/status": () => ({ known: true, turnId: "t", state: "running" }) });
  await desk.connected();
  await desk.bind("a");
  await desk.send("do it", []);
  desk.disconnected({ state: "lost", text: "…" });
  assert.deepEqual(desk.view.outbox.map((one) => [one.stage, one.doubtful]), [["maybeDelivered", true]]);
  await desk.connected();
  assert.equal(sent().length, 1);
  assert.deepEqual(desk.view.outbox, []);
  assert.ok(!boxes.includes("do it"));
});

test("asked by id and not known: certainly not sent, so the text is back in the box, before what was typed since", async () => {
  const { desk, sent, boxes } = setUp({ "steadyhand/turn/start": lostAnswer, "steadyhand/turn/status": () => ({ known: false }) });
  await desk.connected();
  await desk.bind("a");
  await desk.send("do it", []);
  desk.keepDraft("a", typed("typed since"));
  desk.disconnected({ state: "lost", text: "…" });
  await desk.connected();
  assert.equal(sent().length, 1);
  assert.equal(boxes.at(-1), "do it\n\ntyped since");
});

test("a refused prompt comes back; a stale epoch is sent again with the one that holds, under the same id", async () => {
  let refuse: Refusal | undefined = new Refusal(-32051, "stale", { kind: "staleEpoch", epoch: "f".repeat(32) });
  const { desk, sent, boxes } = setUp({
    "steadyhand/turn/start": () => {
      const now = refuse;
      refuse = undefined;
      if (now) throw now;
      return { turnId: "t", accepted: true, duplicate: false, queued: false };
    },
  });
  await desk.connected();
  await desk.bind("a");
  await desk.send("do it", []);
  assert.deepEqual(sent().map((one) => one.params["epoch"]), [epoch, "f".repeat(32)]);
  assert.equal(new Set(sent().map((one) => one.params["clientMessageId"])).size, 1);
  refuse = new Refusal(-32059, "broken");
  await desk.send("once more", []);
  assert.equal(boxes.at(-1), "once more");
  assert.deepEqual(desk.view.outbox.map((one) => one.stage), ["accepted"]);
});

test("attachments go as they are, and a prompt without any names none (G5)", async () => {
  const { desk, sent } = setUp();
  await desk.connected();
  await desk.bind("a");
  await desk.send("look", [FILE, NOTES]);
  await desk.send("and this", []);
  assert.deepEqual(sent().map((one) => one.params["attachments"]), [[FILE, NOTES], undefined]);
  assert.deepEqual(sent().map((one) => one.params["text"]), ["look", "and this"]);
});

test("what was attached comes back with a refused prompt, beside what was attached since", async () => {
  const refuse: Answer = () => {
    throw new Refusal(-32602, "$.attachments: longer than 20 items");
  };
  const { desk, drafts } = setUp({ "steadyhand/turn/start": refuse });
  await desk.connected();
  await desk.bind("a");
  const sending = desk.send("look", [FILE]);
  desk.keepDraft("a", typed("typed since", NOTES));
  await sending;
  assert.deepEqual(drafts.at(-1), typed("look\n\ntyped since", FILE, NOTES));
  assert.deepEqual(desk.draft(), typed("look\n\ntyped since", FILE, NOTES));
});

test("a draft keeps what is attached, over a switch and a reload (case 77)", async () => {
  const { desk, memory, drafts } = setUp();
  await desk.connected();
  await desk.bind("a");
  desk.keepDraft("a", typed("", FILE));
  await desk.bind("b");
  assert.deepEqual(drafts.at(-1), typed(""));
  await desk.bind("a");
  assert.deepEqual(drafts.at(-1), typed("", FILE));
  const again = setUp({}, JSON.parse(JSON.stringify(Object.fromEntries(memory))) as Record<string, unknown>);
  await again.desk.connected();
  assert.deepEqual(again.desk.draft(), typed("", FILE));
});

test("of two bindings the later asked for holds, whichever answer comes last (case 79)", async () => {
  let release: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => (release = resolve));
  const { desk } = setUp({
    "steadyhand/session/open": async (params) => {
      if (params["sessionId"] === "a") await slow;
      return opened(String(params["sessionId"]));
    },
  });
  await desk.connected();
  const first = desk.bind("a");
  await desk.bind("b");
  release();
  await first;
  assert.equal(desk.boundId, "b");
});

test("drafts are kept per session, over a switch and a reload (case 77)", async () => {
  const { desk, memory, boxes } = setUp();
  await desk.connected();
  await desk.bind("a");
  desk.keepDraft("a", typed("half a thought"));
  await desk.bind("b");
  assert.equal(boxes.at(-1), "");
  await desk.bind("a");
  assert.equal(boxes.at(-1), "half a thought");
  const again = setUp({}, Object.fromEntries(memory));
  await again.desk.connected();
  assert.equal(again.desk.boundId, "a");
  assert.deepEqual(again.desk.draft(), typed("half a thought"));
});

test("nothing is sent while the server is not there; the text stays", async () => {
  const { desk, sent } = setUp();
  await desk.connected();
  await desk.bind("a");
  desk.disconnected({ state: "lost", text: "…" });
  desk.keepDraft("a", typed("keep me"));
  await desk.send("keep me", []);
  assert.equal(sent().length, 0);
  assert.deepEqual(desk.draft(), typed("keep me"));
});

test("a gap in the events is asked for; a reset reads the session again", async () => {
  let reset = false;
  const notice = (number: number) => ({ sessionId: "a", epoch, turnId: "t", number, event: { kind: "notice" as const, text: `n${number}` } });
  const { desk, asked } = setUp({ "steadyhand/turn/events": () => ({ events: [notice(2), notice(3)], next: 3, reset }) });
  await desk.connected();
  await desk.bind("a");
  desk.turnEvent(notice(1));
  desk.turnEvent(notice(3));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(desk.view.bound?.number, 3);
  assert.equal(desk.view.bound.items.length, 3);
  reset = true;
  const before = asked.filter((one) => one.method === "steadyhand/session/open").length;
  desk.turnEvent(notice(9));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked.filter((one) => one.method === "steadyhand/session/open").length, before + 1);
});

test("only the server's own words are answers; the library's are a lost connection", () => {
  assert.equal(isAnswer(new Refusal(-32602, "params")), true);
  assert.equal(isAnswer(new Refusal(-32054, "inspectFirst")), true);
  assert.equal(isAnswer(new Refusal(-32097, "pending response rejected")), false);
  assert.equal(isAnswer(new Error("closed")), false);
});

test("a last turn without an end is asked about, and its being cut off is shown (D2)", async () => {
  const turnId = "7".repeat(32);
  const messages = [{ messageId: "1".repeat(32), turnId, role: "user", at, text: "do it", clientMessageId: "c-1" }];
  const states: Record<string, string> = { a: "interrupted", b: "ended" };
  const { desk } = setUp({
    "steadyhand/session/open": ({ sessionId }) => ({ ...opened(String(sessionId)), messages }),
    "steadyhand/turn/status": ({ sessionId }) => ({ known: true, turnId, state: states[String(sessionId)] }),
  });
  for (const [sessionId, said] of [["a", 1], ["b", 0]] as const) {
    await desk.bind(sessionId);
    assert.equal(desk.view.bound?.items.filter((item) => item.kind === "cutOff").length, said);
  }
});
