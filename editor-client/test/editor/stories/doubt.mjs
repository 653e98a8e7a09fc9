// How the stories come to an uncertain effect: the server dies in the middle of a write.
import fs from "node:fs";
import path from "node:path";

export const BEFORE = "# Notes\n\n- tea\n";
export const CHANGED = "# Notes\n\n- black tea\n";

/** Right before the result is recorded; meanwhile somebody else changes the file. */
export function diesInMidWrite(file) {
  const elsewhere = ["sh", "-c", `printf '${CHANGED.replaceAll("\n", "\\n")}' > '${file}'`];
  return [{ verb: "write", carries: "result", run: elsewhere }];
}

/** Right after *started* is recorded: the file is as it was. */
export const DIES_BEFORE_THE_WRITE = [{ verb: "write", carries: "started", when: "after" }];

/** For the server of a window that is not open yet. */
export function plant(stage, name, faults) {
  const place = path.join(stage.root, "stories", name);
  fs.mkdirSync(place, { recursive: true });
  fs.writeFileSync(path.join(place, "faults.json"), JSON.stringify(faults));
}

/** A window whose server was killed in mid-write under it, and is back with the doubt. */
export async function killedInMidWrite(stage, name, options) {
  plant(stage, name, diesInMidWrite(path.join(stage.root, name, "notes.md")));
  const at = await stage.open(name, { "notes.md": BEFORE }, options);
  await at.say("replace tea with \"green tea\" in notes.md");
  await at.answer("Allow once");
  await at.see(".call.unknown .call-state", "outcome unknown");
  await at.see(".strip.doubtful", "1 effect is uncertain");
  return at;
}
