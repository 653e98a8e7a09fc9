// Tells the stories: node run.mjs --code-server DIR --node NODE --vsix FILE --python PYTHON --pictures DIR [STORY…]
//
// First those that need the editor to themselves, one after another; then the others, `tellers` at a time. Each end
// is one line of JSON: {story, outcome, seconds}, outcome "ok" or what went wrong; last {story: "console", …}.
import { parseArgs } from "node:util";
import { Stage } from "./stage.mjs";
import { stories } from "./stories/index.mjs";
import { within } from "./waiting.mjs";

const tellers = 2;
const story_ms_max = 150_000;
const said_chars_max = 4_000;

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
const report = (story, outcome, seconds) => console.log(JSON.stringify({ story, outcome, ...(seconds === undefined ? {} : { seconds }) }));

async function tell([name, { tell: story }]) {
  const begun = Date.now();
  const mine = Object.create(stage, { windows: { value: [] } });
  let outcome = "ok";
  try {
    await within(name, story_ms_max, story(mine));
  } catch (error) {
    outcome = String(error.stack ?? error).slice(0, said_chars_max);
    process.exitCode = 1;
    for (const [number, at] of mine.windows.entries()) {
      await at.page.screenshot({ path: `${stage.pictures}/failed-${name}${number === 0 ? "" : `-${number}`}.png` }).catch(() => undefined);
      if (at.words() !== "") outcome += `\nthe server said:\n${at.words()}`;
    }
  }
  for (const at of mine.windows) await at.close().catch(() => undefined);
  report(name, outcome, (Date.now() - begun) / 1_000);
}

try {
  await stage.start();
  const wanted = Object.entries(stories).filter(([name]) => positionals.length === 0 || positionals.includes(name));
  for (const story of wanted.filter(([, { settings }]) => settings !== undefined)) {
    stage.use(await story[1].settings(stage));
    await tell(story);
  }
  stage.use(stage.launcher);
  const together = wanted.filter(([, { settings }]) => settings === undefined);
  const teller = async () => {
    for (let story = together.shift(); story !== undefined; story = together.shift()) await tell(story);
  };
  await Promise.all(Array.from({ length: tellers }, teller));
} finally {
  await stage.end();
}
report("console", stage.troubles.length === 0 ? "ok" : stage.troubles.join("\n"));
if (stage.troubles.length > 0) process.exitCode = 1;
