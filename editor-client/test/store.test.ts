/** The fold behind the screen: numbered events, other sessions and epochs, upserts, openings (rows A9, D3, S4, G6). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, Event, Message, Session, SessionOpenResult, Snapshot, TurnEvent } from "../src/protocol";
import type { Happened, Question, View } from "../src/store";
import { EMPTY, missed, reduce, sessionName } from "../src/store";

const at = "2026-01-31T09:30:00.000Z";
const id = (digit: string): string => digit.repeat(32);
const S = id("5");
const E = id("e");
const T = id("7");

function session(more: Partial<Session> = {}): Session {
  return {
    sessionId: S, path: "/state/s", title: "", titleSource: "none", epoch: E, created: at, updated: at, mode: "ask",
    model: { provider: "practice", name: "practice" }, busy: false, parked: false, uncertain: 0, ...more,
  };
}

function snapshot(more: Partial<Snapshot> = {}): Snapshot {
  const statistics = { unknown: 0, checked: 0, confirmed: 0, rejected: 0, waived: 0, retried: 0, restored: 0, heldBack: 0 };
  return { sessionId: S, sessionPath: "/state/s", revision: "0".repeat(64), retryEnabled: false, calls: [], settled: [], statistics, ...more };
}

function opened(more: Partial<SessionOpenResult> = {}): SessionOpenResult {
  return { session: session(), messages: [], more: false, snapshot: snapshot(), queue: [], damaged: 0, ...more };
}

function call(more: Partial<Call> = {}): Call {
  return { callId: id("c"), turnId: T, tool: "write_file", title: "write_file: a", arguments: "{}", scope: { paths: ["a"] }, state: "running", ...more };
}

function told(number: number, event: Event, more: Partial<TurnEvent> = {}): TurnEvent {
  return { sessionId: S, epoch: E, turnId: T, number, event, ...more };
}

function fold(...all: Happened[]): View {
  return all.reduce(reduce, EMPTY);
}

const open: Happened = { kind: "opened", opened: opened(), events: [] };
const turn = (...args: Parameters<typeof told>): Happened => ({ kind: "turn", told: told(...args) });

test("text grows in place; a call ends the message before it and is replaced as a whole", () => {
  const view = fold(
    open,
    turn(1, { kind: "text", messageId: id("a"), delta: "Hel" }),
    turn(2, { kind: "text", messageId: id("a"), delta: "lo" }),
    turn(3, { kind: "call", call: call() }),
    turn(4, { kind: "call", call: call({ state: "returned" }) }),
  );
  assert.deepEqual(
    view.bound?.items.map((item) => (item.kind === "message" ? [item.text, item.live] : item.kind === "call" ? item.call.state : item.kind)),
    [["Hello", false], "returned"],
  );
});

test("a doubled event changes nothing; a gap is told and another epoch is none of it", () => {
  const first = fold(open, turn(1, { kind: "notice", text: "once" }));
  assert.equal(reduce(first, turn(1, { kind: "notice", text: "once" })), first);
  assert.equal(missed(first, told(3, { kind: "notice", text: "later" })), true);
  assert.equal(missed(first, told(2, { kind: "notice", text: "next" })), false);
  assert.equal(missed(first, told(9, { kind: "notice", text: "old" }, { epoch: id("f") })), false);
});

for (const [what, happened] of Object.entries<Happened>({
  "an event of another session": turn(1, { kind: "notice", text: "x" }, { sessionId: id("6") }),
  "an event of another epoch": turn(1, { kind: "notice", text: "x" }, { epoch: id("f") }),
  "a snapshot of another session": { kind: "snapshot", snapshot: snapshot({ sessionId: id("6") }) },
  "a queue of another session": { kind: "queue", sessionId: id("6"), queue: [] },
  "usage of another session": { kind: "usage", sessionId: id("6"), usage: { billed: { input: 1, output: 1, cacheHit: 0, cacheMiss: 0 }, context: 1, complete: true } },
})) {
  test(`${what} changes nothing of the bound one (A9)`, () => {
    const before = fold(open);
    assert.equal(reduce(before, happened).bound, before.bound);
  });
}

test("a prompt shows as the user's when its turn begins, with the text that was sent or waited", () => {
  const outgoing = { clientMessageId: "m1", sessionId: S, text: "do it", attachments: [], stage: "maybeDelivered" as const, doubtful: false };
  const view = fold(open, { kind: "outbox", outbox: [outgoing] }, turn(1, { kind: "began", clientMessageId: "m1" }));
  assert.deepEqual(view.bound?.items.map((item) => item.kind === "message" && [item.role, item.text]), [["user", "do it"]]);
  assert.equal(view.bound.turnId, T);
});

test("a prompt shows what was attached to it, whether it was sent or waited (G5)", () => {
  const attachments = [{ kind: "file" as const, path: "a.py" }];
  const outgoing = { clientMessageId: "m1", sessionId: S, text: "look", attachments, stage: "maybeDelivered" as const, doubtful: false };
  const sent = fold(open, { kind: "outbox", outbox: [outgoing] }, turn(1, { kind: "began", clientMessageId: "m1" }));
  const waiting = { clientMessageId: "m1", text: "look", attachments, at, paused: false };
  const waited = fold(open, { kind: "queue", sessionId: S, queue: [waiting] }, turn(1, { kind: "began", clientMessageId: "m1" }));
  for (const view of [sent, waited]) {
    assert.deepEqual(view.bound?.items.map((item) => item.kind === "message" && item.attachments), [attachments]);
  }
});

test("the end of a turn says the files really changed, and the paths that are only claimed (G6)", () => {
  const changed = [{ path: "a", change: "created" as const }];
  const view = fold(open, turn(1, { kind: "text", messageId: id("a"), delta: "x" }), turn(2, { kind: "ended", reason: "done", changed, unclaimed: ["b"] }));
  const last = view.bound?.items.at(-1);
  assert.ok(last?.kind === "ended");
  assert.deepEqual([last.changed, last.unclaimed], [changed, ["b"]]);
  assert.equal(view.bound?.turnId, undefined);
});

test("opened while a turn runs: whole messages from the journal, the growing one from the events, none twice (S1, D3)", () => {
  const said: Message = { messageId: id("a"), turnId: T, role: "assistant", at, text: "whole", calls: [call({ state: "returned" })] };
  const view = fold({
    kind: "opened",
    opened: opened({ session: session({ busy: true }), messages: [said] }),
    events: [
      told(1, { kind: "text", messageId: id("a"), delta: "whole" }),
      told(2, { kind: "call", call: call({ state: "returned" }) }),
      told(3, { kind: "text", messageId: id("b"), delta: "grow" }),
    ],
    number: 3,
  });
  assert.deepEqual(view.bound?.items.map((item) => (item.kind === "message" ? item.text : item.kind)), ["whole", "call", "grow"]);
  const after = reduce(view, turn(4, { kind: "text", messageId: id("b"), delta: "ing" }));
  const last = after.bound?.items.at(-1);
  assert.ok(last?.kind === "message");
  assert.equal(last.text, "growing");
});

test("an opened history has a card of files after each turn that changed some, made from its calls", () => {
  const wrote = call({ state: "returned", files: [{ path: "a", change: "created" }] });
  const again = call({ callId: id("d"), state: "returned", files: [{ path: "a", change: "modified" }] });
  const messages: Message[] = [
    { messageId: id("1"), turnId: T, role: "user", at, text: "go" },
    { messageId: id("2"), turnId: T, role: "assistant", at, text: "", calls: [wrote, again] },
    { messageId: id("3"), turnId: id("8"), role: "user", at, text: "thanks" },
  ];
  const view = fold({ kind: "opened", opened: opened({ messages }), events: [] });
  const ends = view.bound?.items.filter((item) => item.kind === "ended") ?? [];
  assert.deepEqual(ends.map((end) => end.changed), [[{ path: "a", change: "created" }]]);
});

test("a call learns from the snapshot how its effect was settled", () => {
  const doubt = call({ attemptId: id("b"), state: "unknown" });
  const one = {
    sessionId: S, attemptId: id("b"), callId: doubt.callId, turnId: T, tool: "write_file", title: "write_file: a",
    scope: { paths: ["a"] }, state: "settled" as const, settled: "waived" as const, started: at, actions: [],
  };
  const view = fold(open, turn(1, { kind: "call", call: doubt }), { kind: "snapshot", snapshot: snapshot({ settled: [one] }) });
  const item = view.bound?.items[0];
  assert.ok(item?.kind === "call");
  assert.deepEqual([item.call.state, item.call.settled], ["unknown", "waived"]);
});

test("what was shown of an answer that is asked for again is withdrawn; what follows is not (T6)", () => {
  const view = fold(
    open,
    turn(1, { kind: "text", messageId: id("1"), delta: "It" }),
    turn(2, { kind: "warning", code: "askedAgain", text: "The model is asked again." }),
    turn(3, { kind: "text", messageId: id("2"), delta: "It is" }),
    turn(4, { kind: "warning", code: "notKept", text: "Not kept." }),
  );
  const said = (view.bound?.items ?? []).map((item) => (item.kind === "message" ? [item.text, item.withdrawn, item.live] : item.kind));
  assert.deepEqual(said, [["It", true, false], "note", ["It is", undefined, true], "note"]);
});

test("a withdrawn question says why and stays a while; an answered one goes", () => {
  const question = (askId: string): Question => ({
    askId, sessionId: S, turnId: T, about: { kind: "user", asked: { askId, sessionId: S, turnId: T, question: "?" } },
  });
  let view = fold(open, ...["1", "2", "3", "4", "5"].map((askId): Happened => ({ kind: "asked", question: question(askId) })));
  view = reduce(view, { kind: "questionGone", askId: "1" });
  for (const askId of ["2", "3", "4", "5"]) view = reduce(view, { kind: "questionGone", askId, why: "stopped" });
  assert.deepEqual(view.questions.map((one) => [one.askId, one.gone]), [["3", "stopped"], ["4", "stopped"], ["5", "stopped"]]);
});

test("restoring is said only where there is history, and ends with the opening (S5)", () => {
  const listed = (updated: string): Happened => ({ kind: "listed", sessions: [session({ updated })] });
  const restoring: Happened = { kind: "restoring", sessionId: S };
  assert.equal(fold(listed(at), restoring).restoring, undefined);
  assert.equal(fold(restoring).restoring, undefined);
  const before = fold(listed("2026-01-31T09:31:00.000Z"), restoring);
  assert.equal(before.restoring, S);
  assert.equal(reduce(before, open).restoring, undefined);
  assert.equal(reduce(before, { kind: "unbound" }).restoring, undefined);
});

test("a session without a title has a name all the same", () => {
  assert.equal(sessionName(session()), "New session");
  assert.equal(sessionName(session({ title: "Mine" })), "Mine");
});

test("a turn that the server died in is said so once; where nothing of it began, it can be asked again (D2)", () => {
  const prompt: Message = { messageId: id("1"), turnId: T, role: "user", at, text: "do it", clientMessageId: "c-1" };
  const cutOff: Happened = { kind: "cutOff", sessionId: S, turnId: T };
  const view = fold({ kind: "opened", opened: opened({ messages: [prompt] }), events: [] }, cutOff, cutOff);
  assert.deepEqual(view.bound?.items.filter((item) => item.kind === "cutOff").map((item) => item.again), [{ text: "do it", attachments: [] }]);
  const begun: Message = { messageId: id("2"), turnId: T, role: "assistant", at, text: "", calls: [call({ state: "unknown" })] };
  const after = fold({ kind: "opened", opened: opened({ messages: [prompt, begun] }), events: [] }, cutOff);
  assert.deepEqual(after.bound?.items.filter((item) => item.kind === "cutOff").map((item) => item.again), [undefined]);
  assert.equal(reduce(after, { kind: "cutOff", sessionId: S, turnId: id("8") }), after, "another turn than the last one");
});
