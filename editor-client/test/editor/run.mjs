// Runs the stories: node run.mjs --code-server DIR --node NODE --vsix FILE --python PYTHON --pictures DIR [STORY…]
import { parseArgs } from "node:util";
import { Stage } from "./stage.mjs";
import { stories } from "./stories.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(["code-server", "node", "vsix", "python", "pictures", "chromium"].map((name) => [name, { type: "string" }])),
});
const stage = new Stage({
  codeServer: values["code-server"],
  node: values.node,
  vsix: values.vsix,
  python: values.python ?? "python3",
  pictures: values.pictures ?? "pictures",
  browserPath: values.chromium ?? "/usr/bin/chromium",
});
const failed = [];
const begun = Date.now();
const seconds = () => ((Date.now() - begun) / 1_000).toFixed(1);
try {
  await stage.start();
  console.log(`[${seconds()} s] the editor is up`);
  for (const [name, tell] of Object.entries(stories)) {
    if (positionals.length > 0 && !positionals.includes(name)) continue;
    try {
      await tell(stage);
      console.log(`[${seconds()} s] ok ${name}`);
    } catch (error) {
      failed.push(name);
      console.log(`[${seconds()} s] FAILED ${name}: ${error.stack?.slice(0, 1_500)}`);
      const page = stage.browser.contexts().flatMap((context) => context.pages()).at(-1);
      await page?.screenshot({ path: `${stage.pictures}/failed-${name}.png` });
    }
    for (const context of stage.browser.contexts()) for (const page of context.pages()) await page.close();
  }
} finally {
  await stage.end();
}
for (const trouble of stage.troubles) console.log(`TROUBLE ${trouble}`);
if (stage.troubles.length > 0) failed.push("console");
console.log(failed.length > 0 ? `failed: ${failed.join(", ")}` : "all stories told");
process.exitCode = failed.length > 0 ? 1 : 0;
