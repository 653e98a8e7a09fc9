/** How actions change the state: numbered events, other sessions and epochs, openings (rows A9, D2, D3, G6, S4, S5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event, Message, TurnEvent } from "../src/protocol";
import { compactionLabel } from "../src/labels";
import type { StoreAction } from "../src/store/actions";
import { reduce } from "../src/store/reducer";
import type { Item, Question, State } from "../src/store/state";
import { INITIAL_STATE, hasMissedEvents, sessionName } from "../src/store/state";
import { EPOCH, SESSION, TIME, TURN, id, makeCall, makeOpenResult, makeSession, makeSnapshot } from "./support";

function makeTurnEvent(number: number, event: Event, more: Partial<TurnEvent> = {}): TurnEvent {
  return { sessionId: SESSION, epoch: EPOCH, turnId: TURN, number, event, ...more };
}

function stateAfter(...all: StoreAction[]): State {
  return all.reduce(reduce, INITIAL_STATE);
}

const OPEN: StoreAction = { kind: "sessionOpened", result: makeOpenResult(), events: [] };
const turn = (...args: Parameters<typeof makeTurnEvent>): StoreAction => ({
  kind: "turnEvent",
  turnEvent: makeTurnEvent(...args),
});

test("text grows in place; a call completes the message before it; a later state replaces the call", () => {
  const state = stateAfter(
    OPEN,
    turn(1, { kind: "text", messageId: id("a"), delta: "Hel" }),
    turn(2, { kind: "text", messageId: id("a"), delta: "lo" }),
    turn(3, { kind: "call", call: makeCall() }),
    turn(4, { kind: "call", call: makeCall({ state: "returned" }) }),
  );
  assert.deepEqual(
    state.active?.items.map((item) =>
      item.kind === "message" ? [item.text, item.live] : item.kind === "call" ? item.call.state : item.kind,
    ),
    [["Hello", false], "returned"],
  );
});

test("a repeated event changes nothing; a gap is detected, in the epoch of the session alone", () => {
  const first = stateAfter(OPEN, turn(1, { kind: "notice", text: "once" }));
  assert.equal(reduce(first, turn(1, { kind: "notice", text: "once" })), first);
  assert.equal(hasMissedEvents(first, makeTurnEvent(3, { kind: "notice", text: "later" })), true);
  assert.equal(hasMissedEvents(first, makeTurnEvent(2, { kind: "notice", text: "next" })), false);
  assert.equal(hasMissedEvents(first, makeTurnEvent(9, { kind: "notice", text: "old" }, { epoch: id("f") })), false);
});

test("what the model is told is shown once, also where the session is opened during the turn (G15)", () => {
  const told: Event = { kind: "told", from: "review", text: "The user took back your change of a.txt." };
  const live = stateAfter(OPEN, turn(1, told));
  assert.deepEqual(
    live.active?.items.map((item) => item.kind === "note" && [item.level, item.text]),
    [["notice", told.text]],
  );
  const message: Message = { messageId: id("b"), turnId: TURN, role: "notice", at: TIME, text: told.text };
  const result = makeOpenResult({ messages: [message], session: makeSession({ busy: true }) });
  const later: Event = { ...told, text: "another" };
  const events = [makeTurnEvent(1, told), makeTurnEvent(2, later)];
  const opened = stateAfter({ kind: "sessionOpened", result, events });
  const texts = opened.active?.items.map((item) => (item.kind === "message" || item.kind === "note" ? item.text : ""));
  assert.deepEqual(texts, [told.text, "another"]);
});

test("a compaction is shown once with its text, live and where the session is opened during the turn (K4)", () => {
  const text = "What the journal knows.\n\nSummary by the model:\nThey talked.";
  const note = { before: { messages: 12, contextTokens: 3400 }, after: { messages: 1 }, automatic: true };
  const compacted: Event = { kind: "compacted", messageId: id("c"), text, ...note };
  const item = { kind: "compaction", id: id("c"), turnId: TURN, text, note };
  assert.deepEqual(stateAfter(OPEN, turn(1, compacted)).active?.items, [item]);
  const message: Message = { messageId: id("c"), turnId: TURN, role: "notice", at: TIME, text, compaction: note };
  const result = makeOpenResult({ messages: [message], session: makeSession({ busy: true }) });
  const events = [makeTurnEvent(1, compacted)];
  assert.deepEqual(stateAfter({ kind: "sessionOpened", result, events }).active?.items, [item]);
  assert.equal(compactionLabel(note), "Compacted automatically: the model gets 1 message in place of 12");
  const asked = { ...note, automatic: false, after: { messages: 2 } };
  assert.equal(compactionLabel(asked), "Compacted: the model gets 2 messages in place of 12");
});

for (const [what, action] of Object.entries<StoreAction>({
  "an event of another session": turn(1, { kind: "notice", text: "x" }, { sessionId: id("6") }),
  "an event of another epoch": turn(1, { kind: "notice", text: "x" }, { epoch: id("f") }),
  "a snapshot of another session": { kind: "recoveryChanged", snapshot: makeSnapshot({ sessionId: id("6") }) },
  "a queue of another session": { kind: "queueChanged", sessionId: id("6"), queue: [] },
  "usage of another session": {
    kind: "usageChanged",
    sessionId: id("6"),
    usage: { billed: { input: 1, output: 1, cacheHit: 0, cacheMiss: 0 }, context: 1, complete: true },
  },
})) {
  test(`${what} changes nothing in the active one (A9)`, () => {
    const before = stateAfter(OPEN);
    assert.equal(reduce(before, action).active, before.active);
  });
}

test("when its turn begins, a prompt becomes a message of the user with the text that was sent", () => {
  const outgoing = {
    clientMessageId: "m1",
    sessionId: SESSION,
    text: "do it",
    attachments: [],
    stage: "maybeDelivered" as const,
    inDoubt: false,
  };
  const state = stateAfter(
    OPEN,
    { kind: "outboxChanged", outbox: [outgoing] },
    turn(1, { kind: "began", clientMessageId: "m1" }),
  );
  assert.deepEqual(
    state.active?.items.map((item) => item.kind === "message" && [item.role, item.text]),
    [["user", "do it"]],
  );
  assert.equal(state.active.turnId, TURN);
});

test("a sent and a queued prompt show their attachments when their turn begins (G5)", () => {
  const attachments = [{ kind: "file" as const, path: "a.py" }];
  const outgoing = {
    clientMessageId: "m1",
    sessionId: SESSION,
    text: "look",
    attachments,
    stage: "maybeDelivered" as const,
    inDoubt: false,
  };
  const sent = stateAfter(
    OPEN,
    { kind: "outboxChanged", outbox: [outgoing] },
    turn(1, { kind: "began", clientMessageId: "m1" }),
  );
  const waiting = { clientMessageId: "m1", text: "look", attachments, at: TIME, paused: false };
  const waited = stateAfter(
    OPEN,
    { kind: "queueChanged", sessionId: SESSION, queue: [waiting] },
    turn(1, { kind: "began", clientMessageId: "m1" }),
  );
  for (const state of [sent, waited]) {
    assert.deepEqual(
      state.active?.items.map((item) => item.kind === "message" && item.attachments),
      [attachments],
    );
  }
});

test("a steer stands in the conversation when it is taken, once, behind the text before it (S8)", () => {
  const taken = { kind: "steered" as const, clientMessageId: "s1", text: "only that" };
  const state = stateAfter(OPEN, turn(1, { kind: "text", messageId: id("a"), delta: "I read." }), turn(2, taken));
  const shown = (items: readonly Item[] | undefined): unknown =>
    items?.map((item) => item.kind === "message" && [item.role, item.text, item.turnId, item.live]);
  assert.deepEqual(shown(state.active?.items), [
    ["assistant", "I read.", TURN, false],
    ["user", "only that", TURN, false],
  ]);
  const message = { messageId: id("b"), turnId: TURN, role: "user" as const, at: TIME, text: "only that" };
  const opened = stateAfter({
    kind: "sessionOpened",
    result: makeOpenResult({
      session: makeSession({ busy: true }),
      messages: [{ ...message, clientMessageId: "s1" }],
    }),
    events: [{ sessionId: SESSION, epoch: EPOCH, turnId: TURN, number: 2, event: taken }],
    number: 2,
  });
  assert.deepEqual(shown(opened.active?.items), [["user", "only that", TURN, false]]);
});

test("the end of a turn has the files that it changed and the paths that the answer only claims (G6)", () => {
  const changed = [{ path: "a", change: "created" as const }];
  const during = [{ path: "c", change: "deleted" as const, callId: id("c") }];
  const state = stateAfter(
    OPEN,
    turn(1, { kind: "text", messageId: id("a"), delta: "x" }),
    turn(2, { kind: "ended", reason: "done", changed, unclaimed: ["b"], during, protected: [".envrc"] }),
  );
  const last = state.active?.items.at(-1);
  assert.ok(last?.kind === "ended");
  assert.deepEqual([last.changed, last.unclaimed], [changed, ["b"]]);
  assert.deepEqual([last.during, last.protectedNames], [during, [".envrc"]]);
  assert.equal(state.active?.turnId, undefined);
});

test("opened during a turn: complete messages from the journal, the live one from events, none twice (S1, D3)", () => {
  const message: Message = {
    messageId: id("a"),
    turnId: TURN,
    role: "assistant",
    at: TIME,
    text: "whole",
    calls: [makeCall({ state: "returned" })],
  };
  const state = stateAfter({
    kind: "sessionOpened",
    result: makeOpenResult({ session: makeSession({ busy: true }), messages: [message] }),
    events: [
      makeTurnEvent(1, { kind: "text", messageId: id("a"), delta: "whole" }),
      makeTurnEvent(2, { kind: "call", call: makeCall({ state: "returned" }) }),
      makeTurnEvent(3, { kind: "text", messageId: id("b"), delta: "grow" }),
    ],
    number: 3,
  });
  assert.deepEqual(
    state.active?.items.map((item) => (item.kind === "message" ? item.text : item.kind)),
    ["whole", "call", "grow"],
  );
  const after = reduce(state, turn(4, { kind: "text", messageId: id("b"), delta: "ing" }));
  const last = after.active?.items.at(-1);
  assert.ok(last?.kind === "message");
  assert.equal(last.text, "growing");
});

test("an opened session has an end with files after each turn that changed some", () => {
  const wrote = makeCall({ state: "returned", files: [{ path: "a", change: "created" }] });
  const again = makeCall({ callId: id("d"), state: "returned", files: [{ path: "a", change: "modified" }] });
  const messages: Message[] = [
    { messageId: id("1"), turnId: TURN, role: "user", at: TIME, text: "go" },
    { messageId: id("2"), turnId: TURN, role: "assistant", at: TIME, text: "", calls: [wrote, again] },
    { messageId: id("3"), turnId: id("8"), role: "user", at: TIME, text: "thanks" },
  ];
  const state = stateAfter({ kind: "sessionOpened", result: makeOpenResult({ messages }), events: [] });
  const ends = state.active?.items.filter((item) => item.kind === "ended") ?? [];
  assert.deepEqual(
    ends.map((end) => end.changed),
    [[{ path: "a", change: "created" }]],
  );
});

test("a call takes its settlement from the snapshot", () => {
  const unknownCall = makeCall({ attemptId: id("b"), state: "unknown" });
  const one = {
    sessionId: SESSION,
    attemptId: id("b"),
    callId: unknownCall.callId,
    turnId: TURN,
    tool: "write_file",
    title: "write_file: a",
    scope: { paths: ["a"] },
    state: "settled" as const,
    settled: "waived" as const,
    started: TIME,
    actions: [],
  };
  const state = stateAfter(OPEN, turn(1, { kind: "call", call: unknownCall }), {
    kind: "recoveryChanged",
    snapshot: makeSnapshot({ settled: [one] }),
  });
  const item = state.active?.items[0];
  assert.ok(item?.kind === "call");
  assert.deepEqual([item.call.state, item.call.settled], ["unknown", "waived"]);
});

test("when the model is asked again, the text of the first answer is withdrawn and the next is not (T6)", () => {
  const state = stateAfter(
    OPEN,
    turn(1, { kind: "text", messageId: id("1"), delta: "It" }),
    turn(2, { kind: "warning", code: "askedAgain", text: "Retrying." }),
    turn(3, { kind: "text", messageId: id("2"), delta: "It is" }),
    turn(4, { kind: "warning", code: "notKept", text: "Not kept." }),
  );
  const texts = (state.active?.items ?? []).map((item) =>
    item.kind === "message" ? [item.text, item.withdrawn, item.live] : item.kind,
  );
  assert.deepEqual(texts, [["It", true, false], "note", ["It is", undefined, true], "note"]);
});

test("the repeats of a request are one line that counts, then one sentence and the way to try again (case 114)", () => {
  const again = (number: number, text: string): StoreAction =>
    turn(number, { kind: "warning", code: "askedAgain", text });
  const prompt: Message = { messageId: id("1"), turnId: TURN, role: "user", at: TIME, text: "do it" };
  const state = stateAfter(
    { kind: "sessionOpened", result: makeOpenResult({ messages: [prompt] }), events: [] },
    again(1, "Down. Retrying, 1 of 4."),
    turn(2, { kind: "warning", code: "costNear", text: "Near." }),
    again(3, "Down. Retrying, 2 of 4."),
    turn(4, { kind: "warning", code: "modelFailed", text: "Down. Try again." }),
    turn(5, { kind: "ended", reason: "modelFailed", changed: [] }),
  );
  const items = state.active?.items ?? [];
  assert.deepEqual(
    items.flatMap((item) => (item.kind === "note" ? [item.text] : [])),
    ["Near.", "Down. Retrying, 2 of 4.", "Down. Try again."],
  );
  const end = items.at(-1);
  assert.ok(end?.kind === "ended");
  assert.equal(end.failed, "do it");
  const done = stateAfter(
    { kind: "sessionOpened", result: makeOpenResult({ messages: [prompt] }), events: [] },
    turn(1, { kind: "ended", reason: "done", changed: [] }),
  );
  const last = done.active?.items.at(-1);
  assert.ok(last?.kind === "ended");
  assert.equal(last.failed, undefined);
});

test("a request sent again is shown as that and not as a prompt (case 114)", () => {
  const prompt: Message = { messageId: id("1"), turnId: TURN, role: "user", at: TIME, text: "do it" };
  const second: Message = { ...prompt, messageId: id("2"), turnId: id("8"), clientMessageId: "c-2", again: TURN };
  const opened: StoreAction = {
    kind: "sessionOpened",
    result: makeOpenResult({ messages: [prompt, second] }),
    events: [],
  };
  const shown = stateAfter(opened).active?.items.map((item) => (item.kind === "message" ? item.again : item.kind));
  assert.deepEqual(shown, [undefined, TURN]);
  const cutOff: StoreAction = { kind: "turnCutOff", sessionId: SESSION, turnId: id("8") };
  const note = stateAfter(opened, cutOff).active?.items.at(-1);
  assert.ok(note?.kind === "cutOff");
  assert.equal(note.resend, undefined, "as a new prompt it would stand in the history twice");
});

test("a withdrawn question keeps its reason and stays for a while; an answered one disappears", () => {
  const question = (askId: string): Question => ({
    askId,
    sessionId: SESSION,
    turnId: TURN,
    about: { kind: "user", request: { askId, sessionId: SESSION, turnId: TURN, question: "?" } },
  });
  let state = stateAfter(
    OPEN,
    ...["1", "2", "3", "4", "5"].map((askId): StoreAction => ({ kind: "questionAsked", question: question(askId) })),
  );
  state = reduce(state, { kind: "questionClosed", askId: "1" });
  for (const askId of ["2", "3", "4", "5"]) state = reduce(state, { kind: "questionClosed", askId, reason: "stopped" });
  assert.deepEqual(
    state.questions.map((one) => [one.askId, one.closedReason]),
    [
      ["3", "stopped"],
      ["4", "stopped"],
      ["5", "stopped"],
    ],
  );
});

test("restoring is shown for a session with a history, until it is open (S5)", () => {
  const listed = (updated: string): StoreAction => ({ kind: "sessionsListed", sessions: [makeSession({ updated })] });
  const restoring: StoreAction = { kind: "restoring", sessionId: SESSION };
  assert.equal(stateAfter(listed(TIME), restoring).restoring, undefined);
  assert.equal(stateAfter(restoring).restoring, undefined);
  const before = stateAfter(listed("2026-01-31T09:31:00.000Z"), restoring);
  assert.equal(before.restoring, SESSION);
  assert.equal(reduce(before, OPEN).restoring, undefined);
  assert.equal(reduce(before, { kind: "sessionLeft" }).restoring, undefined);
});

test("a session without a title has a name", () => {
  assert.equal(sessionName(makeSession()), "New session");
  assert.equal(sessionName(makeSession({ title: "Mine" })), "Mine");
});

test("a cut-off turn gets one note; the note can resend the prompt if no call began (D2)", () => {
  const prompt: Message = {
    messageId: id("1"),
    turnId: TURN,
    role: "user",
    at: TIME,
    text: "do it",
    clientMessageId: "c-1",
  };
  const cutOff: StoreAction = { kind: "turnCutOff", sessionId: SESSION, turnId: TURN };
  const state = stateAfter(
    { kind: "sessionOpened", result: makeOpenResult({ messages: [prompt] }), events: [] },
    cutOff,
    cutOff,
  );
  assert.deepEqual(
    state.active?.items.filter((item) => item.kind === "cutOff").map((item) => item.resend),
    [{ text: "do it", attachments: [] }],
  );
  const begun: Message = {
    messageId: id("2"),
    turnId: TURN,
    role: "assistant",
    at: TIME,
    text: "",
    calls: [makeCall({ state: "unknown" })],
  };
  const after = stateAfter(
    { kind: "sessionOpened", result: makeOpenResult({ messages: [prompt, begun] }), events: [] },
    cutOff,
  );
  assert.deepEqual(
    after.active?.items.filter((item) => item.kind === "cutOff").map((item) => item.resend),
    [undefined],
  );
  assert.equal(
    reduce(after, { kind: "turnCutOff", sessionId: SESSION, turnId: id("8") }),
    after,
    "another turn than the last one",
  );
});
