/** The delivery of a prompt, as a table: every stage with every fact (rows D1, D2; cases 40, 77). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeliveryFact, OutgoingPrompt, DeliveryStage } from "../src/store/outbox";
import {
  DELIVERY,
  advance,
  promptsInDoubt,
  loseConnection,
  nextPromptToWrite,
  addPrompt,
  parseOutbox,
  mergeReturned,
} from "../src/store/outbox";

const FACTS: readonly DeliveryFact[] = ["written", "acknowledged", "refused", "lost", "known", "unknown", "ended"];
const STAGES: readonly DeliveryStage[] = ["notSent", "maybeDelivered", "accepted", "done"];
const CERTAIN = new Set<string>([
  "notSent refused",
  "notSent lost",
  "maybeDelivered refused",
  "maybeDelivered unknown",
]);

function prompt(id: string, stage: DeliveryStage = "notSent", sessionId = "s"): OutgoingPrompt {
  return { clientMessageId: id, sessionId, text: `text of ${id}`, attachments: [], stage, inDoubt: false };
}

for (const stage of STAGES) {
  for (const fact of FACTS) {
    test(`${stage}, ${fact}: the prompt returns only if the server certainly does not have it`, () => {
      const { outbox, returned } = advance([prompt("a", stage)], "a", fact);
      assert.equal(returned.length === 1, CERTAIN.has(`${stage} ${fact}`));
      const next = DELIVERY[stage][fact];
      const kept = next === "returned" || next === "done" ? [] : [next ?? stage];
      assert.deepEqual(
        outbox.map((one) => one.stage),
        kept,
      );
    });
  }
}

test("the prompts of a session are sent one at a time, oldest first; another session does not wait", () => {
  const box = [prompt("a", "maybeDelivered"), prompt("b"), prompt("c", "notSent", "other")];
  assert.equal(nextPromptToWrite(box, "s"), undefined);
  assert.equal(nextPromptToWrite(box, "other")?.clientMessageId, "c");
  assert.equal(nextPromptToWrite(advance(box, "a", "acknowledged").outbox, "s")?.clientMessageId, "b");
});

test("a lost connection: written prompts are in doubt, waiting ones return, accepted ones stay", () => {
  const { outbox, returned } = loseConnection([prompt("a", "accepted"), prompt("b", "maybeDelivered"), prompt("c")]);
  assert.deepEqual(
    returned.map((one) => one.clientMessageId),
    ["c"],
  );
  assert.deepEqual(
    promptsInDoubt(outbox).map((one) => one.clientMessageId),
    ["b"],
  );
});

test("after the loss, a prompt that the server knows is accepted; an unknown one returns once", () => {
  const { outbox } = loseConnection([prompt("a", "maybeDelivered"), prompt("b", "maybeDelivered")]);
  const known = advance(outbox, "a", "known");
  assert.deepEqual(
    known.outbox.map((one) => [one.stage, one.inDoubt]),
    [
      ["accepted", false],
      ["maybeDelivered", true],
    ],
  );
  const unknown = advance(known.outbox, "b", "unknown");
  assert.deepEqual(
    unknown.returned.map((one) => one.text),
    ["text of b"],
  );
  assert.deepEqual(advance(unknown.outbox, "b", "unknown").returned, []);
});

test("returned texts stand before the text typed since; no attachment is lost or doubled", () => {
  const since = { text: "typed since", attachments: [{ kind: "file" as const, path: "b.py" }] };
  const empty = { text: "  ", attachments: [] };
  assert.deepEqual(mergeReturned(since, [prompt("a"), prompt("b")]), {
    ...since,
    text: "text of a\n\ntext of b\n\ntyped since",
  });
  assert.deepEqual(mergeReturned(empty, [prompt("a")]), { text: "text of a", attachments: [] });
  const returned = { ...prompt("a"), attachments: [{ kind: "file" as const, path: "a.py" }, ...since.attachments] };
  assert.deepEqual(mergeReturned(since, [returned]).attachments, returned.attachments);
});

test("after a reload of the window, written prompts are in doubt; invalid entries are dropped", () => {
  const stored: unknown = JSON.parse(
    JSON.stringify([{ ...prompt("a", "maybeDelivered"), steers: "t" }, prompt("b", "accepted"), { text: 1 }, null]),
  );
  const box = parseOutbox(stored);
  assert.deepEqual(
    box.map((one) => one.steers),
    ["t", undefined],
  );
  assert.deepEqual(
    box.map((one) => one.clientMessageId),
    ["a", "b"],
  );
  assert.deepEqual(
    promptsInDoubt(box).map((one) => one.clientMessageId),
    ["a"],
  );
  assert.deepEqual(parseOutbox("nonsense"), []);
});

test("an added prompt is not sent yet", () => {
  assert.equal(addPrompt([], prompt("a", "accepted"))[0]?.stage, "notSent");
});
