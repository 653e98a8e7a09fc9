/** Programs in a workspace folder are found and not used, however the path leads there (row O4, case 140). */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { PYTHON_FLAGS, probeVersion } from "../src/client/pythonInterpreter";
import { folderOf, locateProgram, wordInFolder } from "../src/client/workspacePrograms";

const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "programs-")));
const ws = path.join(root, "ws");
const outside = path.join(root, "bin");

after(() => fs.rmSync(root, { recursive: true }));

function program(place: string, text = "#!/bin/sh\n"): string {
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.writeFileSync(place, text, { mode: 0o755 });
  return place;
}

function link(place: string, target: string): string {
  fs.mkdirSync(path.dirname(place), { recursive: true });
  fs.symlinkSync(target, place);
  return place;
}

const real = program(path.join(outside, "py"));
const inside = program(path.join(ws, ".venv/bin/py"));
const toReal = link(path.join(ws, "py-link"), real);
const folderLink = link(path.join(root, "ws-link"), ws);
const toFolder = link(path.join(root, "tools"), path.join(ws, ".venv/bin"));

for (const [what, place, leadsIn] of [
  ["a program elsewhere", real, false],
  ["a program in it", inside, true],
  ["a link in it to a program elsewhere", toReal, true],
  ["a link elsewhere to a program in it", link(path.join(root, "one"), inside), true],
  ["a link to a link in it that leads out again", link(path.join(root, "two"), toReal), true],
  ["a folder elsewhere that is a link into it", path.join(toFolder, "py"), true],
  ["another name of the folder", path.join(folderLink, ".venv/bin/py"), true],
  ["a path that goes up out of it", path.join(ws, "../bin/py"), false],
  ["a neighbour whose name begins the same", program(`${ws}-other/py`), false],
  ["a circle of links", link(path.join(root, "circle"), path.join(root, "circle")), false],
] as const) {
  test(`a program in the workspace: ${what}`, () => {
    assert.equal(folderOf(place, [ws]) !== undefined, leadsIn);
    assert.equal(folderOf(place, [folderLink]) !== undefined, leadsIn);
  });
}

test("a name is taken from outside of the workspace although the search path names the workspace first", () => {
  const inFolder = path.join(ws, ".venv/bin");
  const places = (searchPath: string[]) => ({
    searchPath: searchPath.join(path.delimiter),
    suffixes: [""],
    folders: [ws],
  });
  assert.deepEqual(locateProgram("py", places([inFolder, toFolder, outside])), { path: real });
  assert.deepEqual(locateProgram("py", places([inFolder])), { inside, folder: ws });
  assert.equal(locateProgram("py", places(["", ".", "bin"])), undefined);
  assert.equal(locateProgram("./py", places([outside])), undefined);
  assert.equal(locateProgram("../bin/py", places([outside])), undefined);
});

test("a command line that names something in the workspace is found by its word", () => {
  const places = {
    searchPath: [outside, path.join(ws, ".venv/bin")].join(path.delimiter),
    suffixes: [""],
    folders: [ws],
  };
  program(path.join(ws, "run.py"));
  program(path.join(ws, "py"));
  assert.equal(wordInFolder("py", ["-m", "x"], places), undefined);
  assert.equal(wordInFolder("py", ["-I", "run.py"], places), "run.py");
  assert.equal(wordInFolder(real, [path.join(folderLink, "run.py")], places), path.join(folderLink, "run.py"));
  assert.equal(wordInFolder(inside, [], places), inside);
  assert.equal(wordInFolder("./run.py", [], places), "./run.py");
});

test("Python is asked for its version isolated: no variable and no file of the current folder takes part", async () => {
  assert.deepEqual(PYTHON_FLAGS, ["-I"]);
  const flags = path.join(root, "flags");
  const recorder = program(
    path.join(outside, "recorder"),
    `#!/bin/sh\nprintf '%s\\n' "$@" > '${flags}'\necho 3.12.1\n`,
  );
  assert.equal(await probeVersion(recorder), "3.12.1");
  assert.equal(fs.readFileSync(flags, "utf8").split("\n")[0], "-I");
});
