/** Finding a Python, deciding on a restart, nesting settings' names, safe Markdown's ground rules. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { findPython, newEnough } from "../src/python";
import { afterCrash, crash_window_ms, crashes_max } from "../src/restart";
import { machineSettings } from "../src/settings";
import { callReason, grantLine, hunk, standing, subject, untitled, verb, withoutDigests } from "../src/words";

const machine = (installed: Record<string, string>) => (command: string) => Promise.resolve(installed[command]);

test("Python: the setting alone, then the extension's interpreter, then PATH", async () => {
  const probe = machine({ "/set": "3.12.1", "/ext": "3.11.0", python3: "3.10.2" });
  assert.deepEqual(await findPython("/set", "/ext", probe), { interpreter: { command: "/set", version: "3.12.1" } });
  assert.deepEqual(await findPython("", "/ext", probe), { interpreter: { command: "/ext", version: "3.11.0" } });
  assert.deepEqual(await findPython(" ", undefined, probe), { interpreter: { command: "python3", version: "3.10.2" } });
});

test("Python: an old one is passed over for a newer one further on", async () => {
  const probe = machine({ python3: "3.9.18", "python3.12": "3.12.1" });
  assert.deepEqual(await findPython("", undefined, probe), { interpreter: { command: "python3.12", version: "3.12.1" } });
});

for (const [what, setting, installed, says] of [
  ["none", "", {}, /Found none.*Install one/],
  ["only old ones", "", { python3: "3.9.18" }, /python3 is 3\.9\.18/],
  ["a setting that does not run", "/gone", { python3: "3.12.1" }, /cannot be run: \/gone/],
  ["a setting that is too old", "/old", { "/old": "2.7.18", python3: "3.12.1" }, /is 2\.7\.18; Steadyhand needs 3\.10/],
] as const) {
  test(`Python: ${what} is one clear message`, async () => {
    const found = await findPython(setting, undefined, machine(installed));
    assert.ok("trouble" in found);
    assert.match(found.trouble, says);
  });
}

test("versions are compared as numbers", () => {
  assert.deepEqual(["3.9.18", "3.10.0", "3.14.1", "4.0.0", "2.7.18"].map(newEnough), [false, true, true, true, false]);
});

test("the first crashes are answered by a restart, too many within the window are not, old ones are forgotten", () => {
  let crashes: readonly number[] = [];
  const decided = Array.from({ length: crashes_max + 1 }, (_, at) => {
    const next = afterCrash(crashes, at * 1_000);
    crashes = next.crashes;
    return next.restart;
  });
  assert.deepEqual(decided, [...Array<boolean>(crashes_max).fill(true), false]);
  assert.equal(afterCrash(crashes, crash_window_ms * 2).restart, true);
});

test("after a rejection the entry says that it is not to be repeated and still uncertain", () => {
  const at = "2026-01-31T09:30:00.000Z";
  const one = { sessionId: "s", attemptId: "a", callId: "c", turnId: "t", tool: "write_file", title: "write_file: a", scope: { paths: ["a"] }, started: at, actions: [] };
  assert.match(standing({ ...one, state: "rejected", check: "conflict" }), /^rejected, not to be repeated; still uncertain/);
  assert.match(standing({ ...one, state: "unknown" }), /not inspected yet/);
});

test("titles are taken apart for people", () => {
  assert.deepEqual([verb("write_file"), subject({ tool: "write_file", title: "write_file: a b.txt" })], ["Write", "a b.txt"]);
  assert.deepEqual([verb("run_command"), subject({ tool: "run_command", title: "run_command: ls" })], ["Run command", "ls"]);
});

test("settings: what the user set and nothing else, and whether the folder is trusted (G2)", () => {
  const set: Record<string, unknown> = { mode: "edits", "permissions.deny": ["delete_file"], "model.name": "", "cost.cap": null, "python": "/p" };
  assert.deepEqual(machineSettings((name) => set[name], false), { trusted: false, mode: "edits", permissions: { deny: ["delete_file"] } });
  assert.deepEqual(machineSettings(() => undefined, true), { trusted: true });
});

test("why a call stands as it does is said in words, known or not", () => {
  assert.match(callReason("interrupted_before_execution"), /did not run/);
  assert.equal(callReason("some_later_word"), "some later word");
});

test("a remembered permission says what it lets pass and how far it reaches (G2)", () => {
  const grantId = "1".repeat(32);
  assert.deepEqual(grantLine({ grantId, lasts: "workspace", tool: "write_file", workspace: "/w" }), { label: "Write any file of the workspace", description: "in /w" });
  assert.deepEqual(grantLine({ grantId, lasts: "user", tool: "run_command", command: "npm test", cwd: "." }), { label: "npm test", description: "in all workspaces" });
  assert.deepEqual(grantLine({ grantId, lasts: "session", tool: "run_command", command: "make", cwd: "/w/sub" }), { label: "make", description: "from /w/sub, in one session" });
});

test("a text of the server is shown without the title that stands above it, and without digests", () => {
  assert.equal(untitled("write_file: a. Creates a.", "write_file: a"), "Creates a.");
  assert.equal(untitled("edit_file: a: Checked.", "edit_file: a"), "Checked.");
  assert.equal(untitled("Something else.", "write_file: a"), "Something else.");
  assert.equal(withoutDigests(`a was created: 2 bytes on disk, SHA-256 ${"0".repeat(64)}.`), "a was created: 2 bytes on disk.");
});

test("the head of a hunk says which lines it is", () => {
  assert.deepEqual(["@@ -0,0 +1,3 @@", "@@ -1 +1,2 @@", "@@ -4,2 +4 @@", "@@ -1,2 +0,0 @@", "+@@ added"].map(hunk), ["lines 1–3", "lines 1–2", "line 4", "line 1", "+@@ added"]);
});
