// The real VS Code to look at: prints its address, opens it where the system can, and ends with Ctrl+C.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { Stage } from "./stage.mjs";

const names = ["code-server", "node", "vsix"];
const { values } = parseArgs({ options: Object.fromEntries(names.map((name) => [name, { type: "string" }])) });
const stage = new Stage({ codeServer: values["code-server"], node: values.node, vsix: values.vsix });
const folder = path.join(stage.root, "demo");
fs.mkdirSync(folder);
fs.writeFileSync(path.join(folder, "shopping.md"), "# Shopping\n\n- tea\n- bread\n");
process.on("SIGINT", () => void stage.end().then(() => process.exit(0)));
await stage.startEditor();
const address = `${stage.url}/?folder=${encodeURIComponent(folder)}`;
console.log(`VS Code is at ${address}\nThe hand on the left is Steadyhand. Ctrl+C ends it.`);
if (process.env.DISPLAY || process.env.WAYLAND_DISPLAY) spawn("xdg-open", [address], { stdio: "ignore" }).on("error", () => undefined);
