/** The delivery of a prompt, as a table: every stage with every fact (rows D1, D2; cases 40, 77). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fact, Outgoing, Stage } from "../src/outbox";
import { TABLE, advance, inDoubt, lose, nextToWrite, put, restored, withReturned } from "../src/outbox";

const FACTS: readonly Fact[] = ["written", "acknowledged", "refused", "lost", "known", "unknown", "ended"];
const STAGES: readonly Stage[] = ["notSent", "maybeDelivered", "accepted", "done"];
const CERTAIN = new Set<string>(["notSent refused", "notSent lost", "maybeDelivered refused", "maybeDelivered unknown"]);

function prompt(id: string, stage: Stage = "notSent", sessionId = "s"): Outgoing {
  return { clientMessageId: id, sessionId, text: `text of ${id}`, attachments: [], stage, doubtful: false };
}

for (const stage of STAGES) {
  for (const fact of FACTS) {
    test(`${stage}, ${fact}: the text comes back only when it is certain that it was not sent`, () => {
      const { outbox, back } = advance([prompt("a", stage)], "a", fact);
      assert.equal(back.length === 1, CERTAIN.has(`${stage} ${fact}`));
      const next = TABLE[stage][fact];
      const kept = next === "back" || next === "done" ? [] : [next ?? stage];
      assert.deepEqual(outbox.map((one) => one.stage), kept);
    });
  }
}

test("sends of a session go one at a time, oldest first; another session does not wait", () => {
  const box = [prompt("a", "maybeDelivered"), prompt("b"), prompt("c", "notSent", "other")];
  assert.equal(nextToWrite(box, "s"), undefined);
  assert.equal(nextToWrite(box, "other")?.clientMessageId, "c");
  assert.equal(nextToWrite(advance(box, "a", "acknowledged").outbox, "s")?.clientMessageId, "b");
});

test("a lost connection: what was written is in doubt, what waited comes back, what was accepted stays", () => {
  const { outbox, back } = lose([prompt("a", "accepted"), prompt("b", "maybeDelivered"), prompt("c")]);
  assert.deepEqual(back.map((one) => one.clientMessageId), ["c"]);
  assert.deepEqual(inDoubt(outbox).map((one) => one.clientMessageId), ["b"]);
});

test("asked by id after the loss: known is accepted, unknown comes back, each once", () => {
  const { outbox } = lose([prompt("a", "maybeDelivered"), prompt("b", "maybeDelivered")]);
  const known = advance(outbox, "a", "known");
  assert.deepEqual(known.outbox.map((one) => [one.stage, one.doubtful]), [["accepted", false], ["maybeDelivered", true]]);
  const unknown = advance(known.outbox, "b", "unknown");
  assert.deepEqual(unknown.back.map((one) => one.text), ["text of b"]);
  assert.deepEqual(advance(unknown.outbox, "b", "unknown").back, []);
});

test("what comes back stands before what was typed since, and nothing that was attached is lost or doubled", () => {
  const since = { text: "typed since", attachments: [{ kind: "file" as const, path: "b.py" }] };
  const empty = { text: "  ", attachments: [] };
  assert.deepEqual(withReturned(since, [prompt("a"), prompt("b")]), { ...since, text: "text of a\n\ntext of b\n\ntyped since" });
  assert.deepEqual(withReturned(empty, [prompt("a")]), { text: "text of a", attachments: [] });
  const back = { ...prompt("a"), attachments: [{ kind: "file" as const, path: "a.py" }, ...since.attachments] };
  assert.deepEqual(withReturned(since, [back]).attachments, back.attachments);
});

test("read back after a reload, what was written is in doubt; malformed entries are left out", () => {
  const stored: unknown = JSON.parse(JSON.stringify([prompt("a", "maybeDelivered"), prompt("b", "accepted"), { text: 1 }, null]));
  const box = restored(stored);
  assert.deepEqual(box.map((one) => one.clientMessageId), ["a", "b"]);
  assert.deepEqual(inDoubt(box).map((one) => one.clientMessageId), ["a"]);
  assert.deepEqual(restored("nonsense"), []);
});

test("put starts as not sent", () => {
  assert.equal(put([], prompt("a", "accepted"))[0]?.stage, "notSent");
});
