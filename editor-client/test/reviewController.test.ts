/** The review of changes: what is listed, which decision is sent, and what is said about what was left (row V4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerApi } from "../src/client/serverApi";
import type { ReviewChoice, ReviewUi } from "../src/controllers/reviewController";
import { ReviewController } from "../src/controllers/reviewController";
import type { ReviewFile, ReviewLeft, Session } from "../src/protocol";
import type { Place } from "../src/store/review";
import { Store } from "../src/store/store";
import { EPOCH, SESSION, TURN, id, makeCall, makeOpenResult, makeSession } from "./support";

const FILES: readonly ReviewFile[] = [
  { uri: "file:///w/a.txt", path: "a.txt", change: "created", hunks: [{ hunkId: id("1"), state: "kept" }] },
  {
    uri: "file:///w/b.txt",
    path: "b.txt",
    change: "modified",
    hunks: [
      { hunkId: id("2"), state: "undone" },
      { hunkId: id("3"), state: "new" },
    ],
  },
  { uri: "file:///w/c.txt", path: "c.txt", change: "deleted", hunks: [{ hunkId: id("4"), state: "gone" }] },
];

function setUp(
  files: readonly ReviewFile[],
  word?: string,
  left: readonly ReviewLeft[] = [],
  session: Partial<Session> = {},
) {
  const sent: Record<string, unknown>[] = [];
  const offered: ReviewChoice[] = [];
  const opened: string[] = [];
  const informed: string[] = [];
  const confirmed: string[] = [];
  const revealed: Place[] = [];
  const listed: string[] = [];
  let position: Place | undefined;
  const answer = (method: string, params: Record<string, unknown>): unknown => {
    if (method === "steadyhand/review/list") {
      listed.push(method);
      return { files, more: 0 };
    }
    sent.push(params);
    return { files, left };
  };
  const server = {
    request: (method: string, params: Record<string, unknown>) => Promise.resolve(answer(method, params)),
  } as unknown as ServerApi;
  const ui: ReviewUi = {
    pick: (items) => {
      offered.push(...items);
      return Promise.resolve(items[0]);
    },
    ask: () => Promise.resolve(word),
    confirm: (question) => {
      confirmed.push(question);
      return Promise.resolve(word !== undefined);
    },
    open: (uri) => {
      opened.push(uri);
      return Promise.resolve();
    },
    reveal: (place) => {
      revealed.push(place);
      position = place;
      return Promise.resolve();
    },
    position: () => position,
    spell: (uri) => uri,
    inform: (text) => void informed.push(text),
  };
  const store = new Store();
  store.dispatch({ kind: "connectionChanged", status: { state: "ready" } });
  store.dispatch({ kind: "sessionOpened", result: makeOpenResult({ session: makeSession(session) }), events: [] });
  const moveTo = (place: Place): void => void (position = place);
  const review = new ReviewController(server, store, ui);
  return { review, store, sent, offered, opened, informed, confirmed, revealed, listed, moveTo };
}

test("the list has the files under review alone, and the decision names the open hunk and the epoch", async () => {
  const { review, sent, offered, opened } = setUp(FILES, "Undo");
  await review.show();
  assert.deepEqual(
    offered.map((one) => [one.label, one.description]),
    [
      ["b.txt", "modified"],
      ["c.txt", "deleted, then changed by somebody else"],
    ],
  );
  assert.deepEqual(opened, ["file:///w/b.txt"]);
  assert.deepEqual(sent, [{ sessionId: SESSION, epoch: EPOCH, action: "undo", hunkIds: [id("3")] }]);
});

test("keep all and undo all name everything, and what was left is said with its reason", async () => {
  const left: ReviewLeft[] = [{ uri: "file:///w/c.txt", hunkId: id("4"), why: "changed" }];
  const { review, sent, informed } = setUp(FILES, "Undo all", left);
  await review.decideAll("keep");
  await review.decideAll("undo");
  assert.deepEqual(
    sent.map((one) => [one["action"], one["all"]]),
    [
      ["keep", true],
      ["undo", true],
    ],
  );
  assert.equal(informed.at(-1), "Not undone: c.txt (somebody else changed it since).");
});

test("undo all names the number of files first, and a no sends nothing; keep all asks nothing", async () => {
  const { review, sent, confirmed } = setUp(FILES);
  await review.decideAll("undo");
  assert.deepEqual([sent, confirmed], [[], ["Undo the changes of this session in 2 files?"]]);
  await review.decideAll("keep");
  assert.equal(sent.length, 1);
  assert.equal(confirmed.length, 1);
});

test("a read-only session says why, and no decision is sent", async () => {
  const readOnly = { reason: "owned", text: "Another window has this session." } as const;
  const { review, sent, informed } = setUp(FILES, "Keep", [], { readOnly });
  await review.decideAll("keep");
  await review.decideAll("undo");
  await review.show();
  assert.deepEqual([sent, informed], [[], [readOnly.text, readOnly.text, readOnly.text]]);
});

test("a session with nothing under review says so and sends nothing", async () => {
  const { review, sent, offered, informed } = setUp(FILES.slice(0, 1), "Keep");
  await review.show();
  await review.decideAll("undo");
  assert.deepEqual([sent, offered], [[], []]);
  assert.equal(informed.length, 2);
});

test("a file whose question is closed stays under review", async () => {
  const { review, sent } = setUp(FILES);
  await review.show();
  assert.deepEqual(sent, []);
});

const lines = (start: number, end: number) => ({
  start: { line: start, character: 0 },
  end: { line: end, character: 0 },
});
const HUNKS: readonly ReviewFile[] = [
  {
    uri: "file:///w/a.txt",
    path: "a.txt",
    change: "modified",
    hunks: [
      { hunkId: id("1"), state: "kept" },
      { hunkId: id("2"), state: "new", before: lines(1, 2), after: lines(1, 3) },
      { hunkId: id("3"), state: "gone", before: lines(4, 5) },
      { hunkId: id("4"), state: "new", before: lines(7, 8), after: lines(8, 8) },
    ],
  },
  { uri: "file:///w/gone.txt", path: "gone.txt", change: "deleted", hunks: [{ hunkId: id("5"), state: "new" }] },
  { uri: "file:///w/new.txt", path: "new.txt", change: "created", hunks: [{ hunkId: id("6"), state: "new" }] },
];

test("next and previous go through the changes of all files and around their end", async () => {
  const { review, revealed, moveTo } = setUp(HUNKS);
  for (let step = 0; step < 4; step += 1) await review.go(1);
  const [a, b, c] = [
    { uri: "file:///w/a.txt", line: 1 },
    { uri: "file:///w/a.txt", line: 8 },
    { uri: "file:///w/new.txt", line: 0 },
  ];
  assert.deepEqual(revealed.splice(0), [a, b, c, a]);
  for (let step = 0; step < 3; step += 1) await review.go(-1);
  assert.deepEqual(revealed.splice(0), [c, b, a]);
  moveTo({ uri: "file:///w/a.txt", line: 5 });
  await review.go(-1);
  moveTo({ uri: "file:///w/other.txt", line: 5 });
  await review.go(1);
  assert.deepEqual(revealed, [a, a]);
});

test("keep and undo at the cursor decide on the change at its line, at a removal on both sides", async () => {
  const { review, sent, informed, moveTo } = setUp(HUNKS);
  for (const line of [0, 1, 2, 3, 7, 8, 9]) {
    moveTo({ uri: "file:///w/a.txt", line });
    await review.decideOne("keep");
  }
  const chosen = [id("2"), id("2"), id("4"), id("4")];
  assert.deepEqual(
    sent.map((one) => one["hunkIds"]),
    chosen.map((one) => [one]),
  );
  assert.equal(informed.length, 3, "at any other line the user is told that nothing is there");
});

test("a cursor that moves while the list is read does not change what is decided on", async () => {
  const { review, sent, moveTo } = setUp(HUNKS);
  moveTo({ uri: "file:///w/a.txt", line: 1 });
  const decided = review.decideOne("undo");
  moveTo({ uri: "file:///w/a.txt", line: 8 });
  await decided;
  assert.deepEqual(
    sent.map((one) => one["hunkIds"]),
    [[id("2")]],
  );
});

test("an undo by a key in a file that is one change is confirmed, a keep and a lens are not", async () => {
  for (const word of [undefined, "Undo"]) {
    const { review, sent, confirmed, moveTo } = setUp(FILES, word);
    moveTo({ uri: "file:///w/b.txt", line: 7 });
    await review.decideOne("undo");
    assert.equal(sent.length, word === undefined ? 0 : 1);
    assert.match(confirmed[0] ?? "", /^Undo everything that this session changed in b\.txt\?/);
    await review.decideOne("keep");
    await review.decideOne("undo", id("3"));
    assert.equal(confirmed.length, 1);
  }
});

test("a lens decides on its own change wherever the cursor is, and the list is read again", async () => {
  const { review, store, sent, listed } = setUp(HUNKS);
  await review.decideOne("undo", id("4"));
  assert.deepEqual(sent, [{ sessionId: SESSION, epoch: EPOCH, action: "undo", hunkIds: [id("4")] }]);
  assert.equal(listed.length, 1);
  assert.deepEqual(store.state.review, HUNKS);
});

test("the list is read again at the end of a turn and after a call that changed files, once for several", async () => {
  const { review, listed } = setUp(HUNKS);
  const event = (more: object) =>
    ({
      kind: "turnEvent",
      turnEvent: { sessionId: SESSION, epoch: EPOCH, turnId: TURN, number: 1, event: more },
    }) as unknown as Parameters<ReviewController["storeChanged"]>[0];
  await review.storeChanged(event({ kind: "call", call: makeCall() }));
  assert.equal(listed.length, 0, "a call that changed nothing");
  const changed = event({ kind: "call", call: makeCall({ files: [] }) });
  await Promise.all([changed, changed, changed].map((one) => review.storeChanged(one)));
  assert.equal(listed.length, 2, "one reading, and one more for what came meanwhile");
  await review.storeChanged(event({ kind: "ended", reason: "done", changed: [] }));
  assert.equal(listed.length, 3);
});

test("no reason to read the list is lost, however shortly after the last reading it comes", async () => {
  for (let steps = 0; steps < 20; steps += 1) {
    const { review, listed } = setUp(HUNKS);
    const first = review.refresh();
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    const before = listed.length;
    await Promise.all([first, review.refresh()]);
    assert.ok(listed.length > before, `the second reading began ${steps} steps after the first`);
  }
});

test("a decision by a code action reads the list again and says what was left", async () => {
  const { review, informed, listed } = setUp(HUNKS);
  const left = [{ uri: "file:///w/a.txt", hunkId: id("2"), why: "unsaved" }];
  const result = await review.intercept("steadyhand.review.undo", () => Promise.resolve({ files: [], left }));
  assert.deepEqual(result, { files: [], left });
  assert.deepEqual([informed, listed.length], [["Not undone: a.txt (it has unsaved changes: save it first)."], 1]);
  await review.intercept("steadyhand.ask", () => Promise.resolve(undefined));
  assert.equal(listed.length, 1);
});

test("what another session changed is not shown", async () => {
  const { review, store } = setUp(HUNKS);
  await review.refresh();
  assert.equal(store.state.review.length, 3);
  const result = makeOpenResult({ session: makeSession({ sessionId: id("9") }) });
  store.dispatch({ kind: "sessionOpened", result, events: [] });
  assert.deepEqual(store.state.review, []);
});
