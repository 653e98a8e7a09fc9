/** The review of changes: what is listed, which decision is sent, and what is said about what was left (row V4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerApi } from "../src/client/serverApi";
import type { ReviewChoice, ReviewUi } from "../src/controllers/reviewController";
import { ReviewController } from "../src/controllers/reviewController";
import type { ReviewFile, ReviewLeft, Session } from "../src/protocol";
import { Store } from "../src/store/store";
import { EPOCH, SESSION, id, makeOpenResult, makeSession } from "./support";

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
  const answer = (method: string, params: Record<string, unknown>): unknown => {
    if (method === "steadyhand/review/list") return { files, more: 0 };
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
    inform: (text) => void informed.push(text),
  };
  const store = new Store();
  store.dispatch({ kind: "sessionOpened", result: makeOpenResult({ session: makeSession(session) }), events: [] });
  return { review: new ReviewController(server, store, ui), sent, offered, opened, informed, confirmed };
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
