/** The active session: explicit calls change it; it survives a reload and a gap in the events (rows S1, D2, D3). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attachment, TurnEvent } from "../src/protocol";
import { EPOCH, TIME, id, makeDraft, makeSession, openResultOf, setUp, setUpOpen } from "./support";

const FILE: Attachment = { kind: "file", path: "x.py" };

test("of two open requests the later one counts, whichever answer comes last (case 79)", async () => {
  let release: () => void = () => undefined;
  const slow = new Promise<void>((resolve) => (release = resolve));
  const { store, sessions, connect } = setUp({
    "steadyhand/session/open": async ({ sessionId }) => {
      if (sessionId === "a") await slow;
      return openResultOf(sessionId);
    },
  });
  await connect();
  const first = sessions.open("a");
  await sessions.open("b");
  release();
  await first;
  assert.equal(store.activeId, "b");
});

test("each session keeps its draft, over a switch and a reload of the window (case 77)", async () => {
  const { sessions, drafts, shown, stored } = await setUpOpen();
  drafts.keep("a", makeDraft("half a thought"));
  await sessions.open("b");
  assert.equal(shown.at(-1)?.text, "");
  await sessions.open("a");
  assert.equal(shown.at(-1)?.text, "half a thought");
  const reloaded = setUp({}, stored());
  await reloaded.connect();
  assert.equal(reloaded.store.activeId, "a");
  assert.deepEqual(reloaded.drafts.current(), makeDraft("half a thought"));
});

test("a draft keeps its attachments, over a switch and a reload of the window (case 77)", async () => {
  const { sessions, drafts, shown, stored } = await setUpOpen();
  drafts.keep("a", makeDraft("", FILE));
  await sessions.open("b");
  assert.deepEqual(shown.at(-1), makeDraft(""));
  await sessions.open("a");
  assert.deepEqual(shown.at(-1), makeDraft("", FILE));
  const reloaded = setUp({}, stored());
  await reloaded.connect();
  assert.deepEqual(reloaded.drafts.current(), makeDraft("", FILE));
});

test("missing events are requested; when the server no longer has them, the session is loaded again", async () => {
  let reset = false;
  const notice = (number: number): TurnEvent => {
    return { sessionId: "a", epoch: EPOCH, turnId: "t", number, event: { kind: "notice", text: `n${number}` } };
  };
  const { store, events, requests } = await setUpOpen({
    "steadyhand/turn/events": () => ({ events: [notice(2), notice(3)], next: 3, reset }),
  });
  const receive = (turnEvent: TurnEvent): void =>
    events.receive({ method: "steadyhand/turn/event", params: turnEvent });
  const settled = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));
  const openCount = (): number => requests.filter((one) => one.method === "steadyhand/session/open").length;
  receive(notice(1));
  receive(notice(3));
  await settled();
  assert.equal(store.state.active?.number, 3);
  assert.equal(store.state.active.items.length, 3);
  reset = true;
  const before = openCount();
  receive(notice(9));
  await settled();
  assert.equal(openCount(), before + 1);
});

test("a last turn without an end: the server is asked about it, and an interrupted one gets a note (D2)", async () => {
  const turnId = id("7");
  const messages = [
    { messageId: id("1"), turnId, role: "user" as const, at: TIME, text: "do it", clientMessageId: "c-1" },
  ];
  const states: Record<string, string> = { a: "interrupted", b: "ended" };
  const { store, sessions } = setUp({
    "steadyhand/session/open": ({ sessionId }) => openResultOf(sessionId, { messages }),
    "steadyhand/turn/status": ({ sessionId }) => ({ known: true, turnId, state: states[String(sessionId)] }),
  });
  for (const [sessionId, count] of [
    ["a", 1],
    ["b", 0],
  ] as const) {
    await sessions.open(sessionId);
    assert.equal(store.state.active?.items.filter((item) => item.kind === "cutOff").length, count);
  }
});

test("a session whose folder is gone is reported once and bound to the chosen one (case 130, row S10)", async () => {
  const moved = "file:///home/ann/moved";
  const gone = (sessionId: unknown): ReturnType<typeof makeSession> =>
    makeSession({ sessionId: String(sessionId), workspace: "file:///home/ann/demo", workspaceGone: true });
  const { sessions, store, requests, connect } = setUp({
    "steadyhand/session/open": ({ sessionId }) => openResultOf(sessionId, { session: gone(sessionId) }),
    "steadyhand/session/rebind": ({ sessionId, workspace }) =>
      makeSession({ sessionId: String(sessionId), workspace: String(workspace) }),
  });
  const reported: string[] = [];
  sessions.onFolderGone = (session) => reported.push(session.sessionId);
  await connect();
  await sessions.open("a");
  await sessions.reload();
  assert.deepEqual(reported, ["a"]);
  await sessions.rebind("a", moved);
  assert.deepEqual(requests.at(-1)?.params, { sessionId: "a", workspace: moved });
  assert.equal(store.state.active?.session.workspace, moved);
});

test("a fork is requested with the turn that it ends at, and then shown (row S3)", async () => {
  const { sessions, store, requests } = await setUpOpen({
    "steadyhand/session/fork": () => makeSession({ sessionId: "copy" }),
  });
  await sessions.fork("a");
  assert.equal(store.activeId, "copy");
  await sessions.fork("a", id("1"));
  const sent = requests.filter(({ method }) => method === "steadyhand/session/fork").map(({ params }) => params);
  assert.deepEqual(sent, [{ sessionId: "a" }, { sessionId: "a", turnId: id("1") }]);
});

test("a fork that is refused leaves the session that was shown", async () => {
  const { sessions, store } = await setUpOpen({
    "steadyhand/session/fork": () => {
      throw new Error("no");
    },
  });
  const before = store.activeId;
  await assert.rejects(sessions.fork("a"));
  assert.equal(store.activeId, before);
});
