/** The search for a Python that can run the server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Programs } from "../src/client/pythonInterpreter";
import { findPython, isSupportedVersion } from "../src/client/pythonInterpreter";

const FOLDER = "/ws";

/** A machine with these programs, each with its version. One that begins with `/ws/` lies in the workspace folder. */
function machineWith(versions: Readonly<Record<string, string>>): Programs {
  return {
    locate: (command) => {
      if (!(command in versions)) return undefined;
      return command.startsWith(`${FOLDER}/`) ? { inside: command, folder: FOLDER } : { path: command };
    },
    probe: (command) => {
      assert.ok(!command.startsWith(`${FOLDER}/`), "a program of the workspace was started");
      return Promise.resolve(versions[command]);
    },
  };
}

test("Python: the setting alone, then the interpreter of the Python extension, then the PATH", async () => {
  const probe = machineWith({ "/set": "3.12.1", "/ext": "3.11.0", python3: "3.10.2" });
  assert.deepEqual(await findPython("/set", "/ext", probe), { interpreter: { command: "/set", version: "3.12.1" } });
  assert.deepEqual(await findPython("", "/ext", probe), { interpreter: { command: "/ext", version: "3.11.0" } });
  const onPath = { interpreter: { command: "python3", version: "3.10.2" } };
  assert.deepEqual(await findPython(" ", undefined, probe), onPath);
});

test("Python: a newer one later on the PATH is found although the first is too old", async () => {
  const probe = machineWith({ python3: "3.9.18", "python3.12": "3.12.1" });
  const found = { interpreter: { command: "python3.12", version: "3.12.1" } };
  assert.deepEqual(await findPython("", undefined, probe), found);
});

for (const [what, setting, versions, expected] of [
  ["none", "", {}, /Found none.*Install one/],
  ["only old ones", "", { python3: "3.9.18" }, /python3 is 3\.9\.18/],
  ["a setting that does not run", "/gone", { python3: "3.12.1" }, /cannot be run: \/gone/],
  ["a setting in the workspace", "/ws/py", { "/ws/py": "3.12.1", python3: "3.12.1" }, /lies in the open folder \/ws:/],
  ["a setting that is too old", "/old", { "/old": "2.7.18", python3: "3.12.1" }, /is 2\.7\.18; Steadyhand needs 3\.10/],
] as const) {
  test(`Python: ${what} gives one clear message`, async () => {
    const found = await findPython(setting, undefined, machineWith(versions));
    assert.ok("problem" in found);
    assert.match(found.problem, expected);
  });
}

test("Python: one in the workspace is passed over, and named where there is no other (case 140)", async () => {
  const inside = { "/ws/.venv/bin/python": "3.12.1" };
  const elsewhere = machineWith({ ...inside, python3: "3.11.0" });
  const expected = { interpreter: { command: "python3", version: "3.11.0" } };
  assert.deepEqual(await findPython("", "/ws/.venv/bin/python", elsewhere), expected);
  const alone = await findPython("", "/ws/.venv/bin/python", machineWith(inside));
  assert.ok("problem" in alone);
  assert.match(alone.problem, /\/ws\/\.venv\/bin\/python lies in the open folder/);
});

test("versions are compared as numbers", () => {
  const versions = ["3.9.18", "3.10.0", "3.14.1", "4.0.0", "2.7.18"];
  assert.deepEqual(versions.map(isSupportedVersion), [false, true, true, true, false]);
});
