/** What the user reads about calls, effects, permissions and texts of the server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  callReasonLabel,
  callSubject,
  callVerb,
  changedDuringLabel,
  effectStatus,
  exitFailure,
  forkItems,
  grantLabel,
  hunkLabel,
  rewindItem,
  sandboxLabel,
  statisticsText,
  toolVerb,
  withoutDigests,
  withoutTitle,
} from "../src/labels";
import type { Uncertain } from "../src/protocol";
import type { Item } from "../src/store/state";
import { TIME, id } from "./support";

test("a rejected effect says that it will not run again and is still uncertain", () => {
  const effect: Omit<Uncertain, "state"> = {
    sessionId: "s",
    attemptId: "a",
    callId: "c",
    turnId: "t",
    tool: "write_file",
    title: "write_file: a",
    scope: { paths: ["a"] },
    started: TIME,
    actions: [],
  };
  const rejected = effectStatus({ ...effect, state: "rejected", check: "conflict" });
  assert.match(rejected, /^rejected, will not run again; still uncertain/);
  assert.match(effectStatus({ ...effect, state: "unknown" }), /not inspected yet/);
});

test("a title is divided into tool and subject", () => {
  const write = { tool: "write_file", title: "write_file: a b.txt" };
  assert.deepEqual([toolVerb(write.tool), callSubject(write)], ["Write", "a b.txt"]);
  const run = { tool: "run_command", title: "run_command: ls" };
  assert.deepEqual([toolVerb(run.tool), callSubject(run)], ["Run command", "ls"]);
});

test("the reason of a call has a label; an unknown one is shown in words", () => {
  assert.match(callReasonLabel("interrupted_before_execution"), /did not run/);
  assert.equal(callReasonLabel("some_later_word"), "some later word");
});

test("a remembered permission says what it allows and where (G2)", () => {
  const grantId = id("1");
  assert.deepEqual(grantLabel({ grantId, lasts: "workspace", tool: "write_file", workspace: "/w" }), {
    label: "Write any file in the workspace",
    description: "in /w",
  });
  assert.deepEqual(grantLabel({ grantId, lasts: "user", tool: "run_command", command: "npm test", cwd: "." }), {
    label: "npm test",
    description: "in all workspaces",
  });
  assert.deepEqual(grantLabel({ grantId, lasts: "session", tool: "run_command", command: "make", cwd: "/w/sub" }), {
    label: "make",
    description: "from /w/sub, in one session",
  });
  const outside = { grantId, lasts: "workspace", tool: "run_command", workspace: "/w", command: "npm ci", cwd: "." };
  assert.deepEqual(grantLabel({ ...outside, lasts: "workspace", unconfined: true }), {
    label: "npm ci",
    description: "in /w, also outside the sandbox",
  });
});

test("a text of the server is shown without the title that stands above it, and without digests", () => {
  assert.equal(withoutTitle("write_file: a. Creates a.", "write_file: a"), "Creates a.");
  assert.equal(withoutTitle("edit_file: a: Checked.", "edit_file: a"), "Checked.");
  assert.equal(withoutTitle("Something else.", "write_file: a"), "Something else.");
  const notice = `a was created: 2 bytes on disk, SHA-256 ${"0".repeat(64)}.`;
  assert.equal(withoutDigests(notice), "a was created: 2 bytes on disk.");
});

test("the header of a hunk names its lines", () => {
  const headers = ["@@ -0,0 +1,3 @@", "@@ -1 +1,2 @@", "@@ -4,2 +4 @@", "@@ -1,2 +0,0 @@", "+@@ added"];
  assert.deepEqual(headers.map(hunkLabel), ["lines 1–3", "lines 1–2", "line 4", "line 1", "+@@ added"]);
});

test("a command says whether it is confined; what was answered or never started says nothing (O1, O3)", () => {
  const run = { tool: "run_command" };
  assert.equal(
    sandboxLabel({ ...run, started: TIME, sandbox: { kind: "bubblewrap", sealed: false } }),
    "in a sandbox (bubblewrap)",
  );
  assert.equal(sandboxLabel({ ...run, sandbox: { kind: "landlock", sealed: false } }), "in a sandbox (landlock)");
  assert.equal(sandboxLabel({ ...run, started: TIME }), "not in a sandbox");
  assert.equal(sandboxLabel({ ...run, unconfined: true }), "outside the sandbox");
  assert.equal(sandboxLabel(run), undefined);
  assert.equal(sandboxLabel({ tool: "write_file", started: TIME }), undefined);
  const outside = { tool: "run_command", title: "Run outside the sandbox: npm" };
  assert.deepEqual([callVerb(outside), callSubject(outside)], ["Run outside the sandbox", "npm"]);
});

test("files that changed while a command ran are never said to be changed by it (O1)", () => {
  assert.match(changedDuringLabel({ exact: true }), /by it or by somebody else$/);
  assert.match(changedDuringLabel({ exact: false }), /perhaps incomplete/);
});

test("the statistics of a session say who settled its doubts", () => {
  const none = { unknown: 0, checked: 0, confirmed: 0, rejected: 0, waived: 0, retried: 0, restored: 0, heldBack: 0 };
  const counts = { ...none, heldBackAdmitted: 0, heldBackRefused: 0, byProof: 0, byPerson: 0, byModel: 0 };
  assert.equal(statisticsText(counts), "");
  assert.equal(statisticsText({ ...counts, unknown: 1 }), "This session had 1 uncertain effect; settled: none.");
  const settled = { ...counts, unknown: 4, byProof: 2, byPerson: 1 };
  assert.equal(statisticsText(settled), "This session had 4 uncertain effects; settled: 2 by a check, 1 by you.");
});

test("a command that did not exit with 0 has failed (case 123)", () => {
  assert.equal(exitFailure({ state: "returned", exit: { code: 0 } }), undefined);
  assert.equal(exitFailure({ state: "returned", exit: { code: 3 } }), "exit code 3");
  assert.equal(exitFailure({ state: "returned", exit: { signal: 9 } }), "ended by signal 9");
  assert.equal(exitFailure({ state: "returned" }), undefined);
  assert.equal(exitFailure({ state: "stopped", exit: { signal: 15 } }), undefined, "stopped says enough");
});

test("a fork may end at each prompt but the newest, which is the whole conversation; commands are no prompts", () => {
  const items = [
    makeMessage("1", "user", "first"),
    makeMessage("1", "assistant", "answer"),
    makeMessage("2", "user", "second"),
    makeMessage("3", "user", "/recovery"),
    makeMessage("4", "user", "third"),
    makeMessage("5", "user", "running"),
  ];
  assert.deepEqual(forkItems({ items, turnId: id("5") }), [
    { label: "The whole conversation" },
    { label: "second", turnId: id("2") },
    { label: "first", turnId: id("1") },
  ]);
  assert.deepEqual(forkItems({ items: items.slice(0, 2) }), [{ label: "The whole conversation" }]);
});

test("a text that steered a turn is no end of a fork, its turn's prompt is", () => {
  const items = [
    makeMessage("1", "user", "first"),
    { ...makeMessage("1", "user", "and this"), id: "steer-1" },
    makeMessage("2", "user", "second"),
    { ...makeMessage("2", "user", "not so fast"), id: "steer-2" },
  ];
  assert.deepEqual(forkItems({ items }), [{ label: "The whole conversation" }, { label: "first", turnId: id("1") }]);
});

test("a prompt in a list is its first line, not too long, and names no icon", () => {
  const items = ["\nfix it\nand test it", "x".repeat(200), "say $(trash) and $(ls -l)", "last"];
  const offered = forkItems({ items: items.map((text, place) => makeMessage(`${place}`, "user", text)) });
  assert.deepEqual(
    offered.map(({ label }) => label),
    ["The whole conversation", "say \\$(trash) and $(ls -l)", `${"x".repeat(120)}…`, "fix it"],
  );
  const turn = { turnId: id("1"), at: TIME, prompt: "say $(trash)", files: [] };
  assert.equal(rewindItem(turn).label, "say \\$(trash)");
});

function makeMessage(turn: string, role: "user" | "assistant", text: string): Item {
  return { kind: "message", id: `${turn}-${role}`, turnId: id(turn), role, text, reasoning: "", live: false };
}
