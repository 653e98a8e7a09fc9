/** Prompts over a server that loses answers: none is sent twice and no text is lost (rows D1, D2, G5; cases 40, 77). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attachment, Event, TurnEvent } from "../src/protocol";
import { isForRunningTurn, isQueuePaused } from "../src/store/state";
import type { Answer } from "./support";
import { EPOCH, Refusal, TIME, TURN, id, loseAnswer, makeDraft, setUpOpen } from "./support";

const FILE: Attachment = { kind: "file", path: "x.py" };
const NOTES: Attachment = { kind: "text", name: "notes", text: "one" };

const turnEvent = (number: number, event: Event): TurnEvent => ({
  sessionId: "a",
  epoch: EPOCH,
  turnId: TURN,
  number,
  event,
});

test("a send without an answer, known to the server after the reconnection: the prompt is not sent again", async () => {
  const { store, prompts, sent, shown, connect, disconnect } = await setUpOpen({
    "steadyhand/turn/start": loseAnswer,
    "steadyhand/turn/status": () => ({ known: true, turnId: "t", state: "running" }),
  });
  await prompts.send("do it", []);
  await disconnect();
  assert.deepEqual(
    store.state.outbox.map((one) => [one.stage, one.inDoubt]),
    [["maybeDelivered", true]],
  );
  await connect();
  assert.equal(sent().length, 1);
  assert.deepEqual(store.state.outbox, []);
  assert.ok(!shown.some((draft) => draft.text === "do it"));
});

test("a send without an answer, unknown to the server: the text returns before what was typed since", async () => {
  const { prompts, drafts, sent, shown, connect, disconnect } = await setUpOpen({
    "steadyhand/turn/start": loseAnswer,
    "steadyhand/turn/status": () => ({ known: false }),
  });
  await prompts.send("do it", []);
  drafts.keep("a", makeDraft("typed since"));
  await disconnect();
  await connect();
  assert.equal(sent().length, 1);
  assert.equal(shown.at(-1)?.text, "do it\n\ntyped since");
});

test("a refused prompt returns; after a stale epoch the prompt is sent again under the same id", async () => {
  let refusal: Refusal | undefined = new Refusal(-32051, "stale", { kind: "staleEpoch", epoch: id("f") });
  const { store, prompts, sent, shown } = await setUpOpen({
    "steadyhand/turn/start": () => {
      const now = refusal;
      refusal = undefined;
      if (now) throw now;
      return { turnId: "t", accepted: true, duplicate: false, queued: false };
    },
  });
  await prompts.send("do it", []);
  assert.deepEqual(
    sent().map((one) => one.params["epoch"]),
    [EPOCH, id("f")],
  );
  assert.equal(new Set(sent().map((one) => one.params["clientMessageId"])).size, 1);
  refusal = new Refusal(-32059, "broken");
  await prompts.send("once more", []);
  assert.equal(shown.at(-1)?.text, "once more");
  assert.deepEqual(
    store.state.outbox.map((one) => one.stage),
    ["accepted"],
  );
});

test("a failed request is sent again with its turn; while a turn runs it is not (case 114)", async () => {
  const { store, prompts, sent } = await setUpOpen();
  await prompts.sendAgain(id("7"), "do it");
  assert.deepEqual(
    sent().map((one) => [one.params["text"], one.params["again"], one.params["attachments"]]),
    [["do it", id("7"), undefined]],
  );
  const session = store.state.active?.session;
  assert.ok(session !== undefined);
  store.dispatch({ kind: "sessionChanged", session: { ...session, busy: true } });
  await prompts.sendAgain(id("7"), "do it");
  assert.equal(sent().length, 1);
});

test("a text for the running turn names that turn; it leaves the outbox when it waits or is taken (S8)", async () => {
  const { store, prompts, events, requests, sent } = await setUpOpen({
    "steadyhand/turn/steer": () => ({ accepted: true, duplicate: false, queued: false }),
  });
  const session = store.state.active?.session;
  assert.ok(session !== undefined);
  store.dispatch({ kind: "sessionChanged", session: { ...session, busy: true } });
  store.dispatch({ kind: "turnEvent", turnEvent: turnEvent(1, { kind: "text", messageId: id("a"), delta: "Hm" }) });
  await prompts.steer("only that");
  const [steer] = requests.filter(({ method }) => method === "steadyhand/turn/steer");
  assert.deepEqual([steer?.params["turnId"], steer?.params["text"]], [TURN, "only that"]);
  assert.equal(sent().length, 0);
  assert.deepEqual(
    store.state.outbox.map((one) => [one.stage, one.steers]),
    [["accepted", TURN]],
  );
  const clientMessageId = String(steer?.params["clientMessageId"]);
  const waiting = { clientMessageId, text: "only that", at: TIME, paused: true, steers: TURN };
  events.receive({ method: "steadyhand/queue/changed", params: { sessionId: "a", queue: [waiting] } });
  assert.deepEqual(store.state.outbox, []);
  assert.ok(store.state.active !== undefined);
  assert.equal(isForRunningTurn(waiting, store.state.active), true);
  assert.equal(isQueuePaused(store.state.active), false);
  store.dispatch({ kind: "sessionChanged", session: { ...session, busy: false } });
  assert.equal(isQueuePaused(store.state.active), true, "the turn ended without taking it");
});

test("a text for a turn: sent again after a stale epoch; it returns when refused or unknown (S8, D2)", async () => {
  let refusal: Refusal | undefined = new Refusal(-32051, "stale", { kind: "staleEpoch", epoch: id("f") });
  const { store, prompts, shown, requests, connect, disconnect } = await setUpOpen({
    "steadyhand/turn/steer": () => {
      const now = refusal;
      refusal = undefined;
      if (now) throw now;
      return loseAnswer({});
    },
    "steadyhand/turn/status": () => ({ known: false }),
  });
  store.dispatch({ kind: "turnEvent", turnEvent: turnEvent(1, { kind: "text", messageId: id("a"), delta: "Hm" }) });
  await prompts.steer("lost");
  const sent = requests.filter(({ method }) => method === "steadyhand/turn/steer");
  assert.deepEqual(
    sent.map(({ params }) => params["epoch"]),
    [EPOCH, id("f")],
  );
  assert.equal(new Set(sent.map(({ params }) => params["clientMessageId"])).size, 1);
  await disconnect();
  await connect();
  assert.equal(shown.at(-1)?.text, "lost");
  refusal = new Refusal(-32602, "no such turn");
  store.dispatch({ kind: "turnEvent", turnEvent: turnEvent(1, { kind: "text", messageId: id("a"), delta: "Hm" }) });
  await prompts.steer("refused");
  assert.equal(shown.at(-1)?.text, "refused");
});

test("without a running turn a text is a prompt (S8)", async () => {
  const { prompts, requests, sent } = await setUpOpen();
  await prompts.steer("do it");
  assert.deepEqual(
    sent().map((one) => one.params["text"]),
    ["do it"],
  );
  assert.ok(!requests.some(({ method }) => method === "steadyhand/turn/steer"));
});

test("attachments are sent as they are; a prompt without attachments names none (G5)", async () => {
  const { prompts, sent } = await setUpOpen();
  await prompts.send("look", [FILE, NOTES]);
  await prompts.send("and this", []);
  assert.deepEqual(
    sent().map((one) => one.params["attachments"]),
    [[FILE, NOTES], undefined],
  );
  assert.deepEqual(
    sent().map((one) => one.params["text"]),
    ["look", "and this"],
  );
});

test("the attachments of a refused prompt return beside those attached since", async () => {
  const refuse: Answer = () => {
    throw new Refusal(-32602, "$.attachments: longer than 20 items");
  };
  const { prompts, drafts, shown } = await setUpOpen({ "steadyhand/turn/start": refuse });
  const sending = prompts.send("look", [FILE]);
  drafts.keep("a", makeDraft("typed since", NOTES));
  await sending;
  assert.deepEqual(shown.at(-1), makeDraft("look\n\ntyped since", FILE, NOTES));
  assert.deepEqual(drafts.current(), makeDraft("look\n\ntyped since", FILE, NOTES));
});

test("without a server nothing is sent, and the draft stays", async () => {
  const { prompts, drafts, sent, disconnect } = await setUpOpen();
  await disconnect();
  drafts.keep("a", makeDraft("keep me"));
  await prompts.send("keep me", []);
  assert.equal(sent().length, 0);
  assert.deepEqual(drafts.current(), makeDraft("keep me"));
});
