// Makes an uncertain effect: the server dies during a write.
import fs from "node:fs";
import path from "node:path";

export const BEFORE = "# Notes\n\n- tea\n";
export const CHANGED = "# Notes\n\n- black tea\n";

/** The server dies before it records the result. A shell changes the file in the meantime. */
export function dieBeforeTheResult(file) {
  const elsewhere = ["sh", "-c", `printf '${CHANGED.replaceAll("\n", "\\n")}' > '${file}'`];
  return [{ verb: "write", carries: "result", run: elsewhere }];
}

/** The server dies right after it records *started*, so the file does not change. */
export const DIE_BEFORE_THE_WRITE = [{ verb: "write", carries: "started", when: "after" }];

/** Inject faults into the first server of a window that is not open yet. */
export function injectFaults(editor, name, faults) {
  const stateFolder = editor.stateFolder(name);
  fs.mkdirSync(stateFolder, { recursive: true });
  fs.writeFileSync(path.join(stateFolder, "faults.json"), JSON.stringify(faults));
}

/** A window whose server died during a write and is running again, with one uncertain effect. */
export async function openWithUncertainWrite(editor, name, options) {
  injectFaults(editor, name, dieBeforeTheResult(path.join(editor.folder(name), "notes.md")));
  const window = await editor.open(name, { "notes.md": BEFORE }, options);
  await window.send('replace tea with "green tea" in notes.md');
  await window.answer("Allow once");
  await window.waitFor(".call.unknown .call-state", "outcome unknown");
  await window.waitFor(".banner.uncertain", "1 effect is uncertain");
  return window;
}
