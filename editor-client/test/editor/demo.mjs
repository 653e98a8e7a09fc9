// The real VS Code to try out: prints its address, opens it if there is a display, and ends with Ctrl+C.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { TestEditor } from "./testEditor.mjs";

const names = ["code-server", "node", "vsix"];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: "string" }])) });
const editor = new TestEditor({ codeServer: values["code-server"], node: values.node, vsix: values.vsix });
const folder = path.join(editor.root, "demo");
fs.mkdirSync(folder);
fs.writeFileSync(path.join(folder, "shopping.md"), "# Shopping\n\n- tea\n- bread\n");
process.on("SIGINT", () => void editor.end().then(() => process.exit(0)));
await editor.startEditor();
const address = `${editor.url}/?folder=${encodeURIComponent(folder)}`;
console.log(`VS Code is at ${address}\nSteadyhand is the hand on the left. Ctrl+C ends VS Code.`);
if (process.env.DISPLAY || process.env.WAYLAND_DISPLAY) {
  spawn("xdg-open", [address], { stdio: "ignore" }).on("error", () => undefined);
}
