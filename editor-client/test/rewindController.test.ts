/** Rewind: what is offered, which request is sent, and what is said about what was left (row G4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerApi } from "../src/client/serverApi";
import type { RewindUi } from "../src/controllers/rewindController";
import { RewindController } from "../src/controllers/rewindController";
import type { CheckpointTurn, Session } from "../src/protocol";
import { Store } from "../src/store/store";
import { EPOCH, SESSION, TIME, id, makeOpenResult, makeSession } from "./support";

const TURNS: readonly CheckpointTurn[] = [
  { turnId: id("1"), at: TIME, prompt: "first", files: [{ path: "a.txt", change: "created" }] },
  { turnId: id("2"), at: TIME, prompt: "second", files: [{ path: "b.txt", change: "modified" }], undone: true },
];

function setUp(turns: readonly CheckpointTurn[], choices: readonly number[], session: Partial<Session> = {}) {
  const sent: unknown[] = [];
  const offered: string[][] = [];
  const informed: string[] = [];
  const answer = (method: string, params: unknown): unknown => {
    if (method === "steadyhand/checkpoint/list") return { turns };
    sent.push(params);
    const restored = [{ path: "a.txt", change: "deleted" }];
    const left = [{ path: "run_command: make", why: "command" }];
    return { restored, left, undo: id("9"), session: makeSession() };
  };
  const server = {
    request: (method: string, params: unknown) => Promise.resolve(answer(method, params)),
  } as unknown as ServerApi;
  const ui: RewindUi = {
    pick: (items) => {
      const choice = choices[offered.length];
      offered.push(items.map((one) => `${one.label}: ${one.description}`));
      return Promise.resolve(choice === undefined ? undefined : items[choice]);
    },
    inform: (text) => void informed.push(text),
  };
  const store = new Store();
  store.dispatch({ kind: "sessionOpened", result: makeOpenResult({ session: makeSession(session) }), events: [] });
  return { rewind: new RewindController(server, store, ui), sent, offered, informed };
}

test("the newest turn is offered first, and the request names the turn, what goes back and the epoch", async () => {
  const { rewind, sent, offered, informed } = setUp(TURNS, [1, 0]);
  await rewind.show();
  assert.deepEqual(offered[0], ["second: undone: b.txt", "first: a.txt"]);
  assert.deepEqual(sent, [{ sessionId: SESSION, epoch: EPOCH, turnId: id("1"), what: "both" }]);
  const left = "run_command: make (nothing takes back what a command did)";
  assert.deepEqual(informed, [`Rewound 1 file. Left as it is: ${left}.`]);
});

test("a rewind that is not chosen to its end sends nothing", async () => {
  for (const choices of [[], [0]]) {
    const { rewind, sent } = setUp(TURNS, choices);
    await rewind.show();
    assert.deepEqual(sent, []);
  }
});

test("a read-only session says why, and nothing is offered", async () => {
  const readOnly = { reason: "owned", text: "Another window has this session." } as const;
  const { rewind, offered, informed } = setUp(TURNS, [0, 0], { readOnly });
  await rewind.show();
  assert.deepEqual([offered, informed], [[], [readOnly.text]]);
});

test("a session whose turns changed nothing says so", async () => {
  const { rewind, offered, informed } = setUp([], []);
  await rewind.show();
  assert.deepEqual([offered, informed], [[], ["No turn of this session changed a file."]]);
});
