// Runs the scenarios: node run.mjs --code-server DIR --node NODE --vsix FILE --python PYTHON --pictures DIR [NAME…]
//
// Scenarios with settings of their own run first, one after another. The others then run in parallel. A scenario that
// ran out of time is played once more, alone and in a new window: the machine or the editor can be slow for a moment,
// but a fault of ours happens again. Each result is a line of JSON: {scenario, outcome, seconds, first?}, with the
// outcome "ok" or an error; `first` is the error of the first time. The last line is {scenario: "console", …}.
import { parseArgs } from "node:util";
import { scenarios } from "./scenarios/index.mjs";
import { TestEditor } from "./testEditor.mjs";
import { within } from "./waiting.mjs";

const PARALLEL_MAX = 2;
const SCENARIO_MAX_MS = 150_000;
const OUTCOME_MAX_CHARS = 4_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: Object.fromEntries(
    ["code-server", "node", "vsix", "python", "pictures", "chromium"].map((name) => [name, { type: "string" }]),
  ),
});
const editor = new TestEditor({
  codeServer: values["code-server"],
  node: values.node,
  vsix: values.vsix,
  python: values.python ?? "python3",
  pictures: values.pictures ?? "pictures",
  browserPath: values.chromium ?? "/usr/bin/chromium",
});

const late = [];

function report(result) {
  console.log(JSON.stringify(result));
  if (result.outcome !== "ok") process.exitCode = 1;
}

/** The editor for one scenario, with windows of its own. `first`: the error when the scenario was played before. */
function editorFor(first) {
  return Object.create(editor, { windows: { value: [] }, isPlayedAgain: { value: first !== undefined } });
}

/** Play a scenario and report its outcome. The first time, one that runs out of time is kept in `late` instead. */
async function runScenario(scenario, own, first) {
  const [name, { run }] = scenario;
  const begun = Date.now();
  let outcome = "ok";
  let isLate = false;
  try {
    await within(name, SCENARIO_MAX_MS, run(own));
  } catch (error) {
    isLate = error.name === "TimeoutError";
    outcome = String(error.stack ?? error).slice(0, OUTCOME_MAX_CHARS);
    for (const [index, window] of own.windows.entries()) {
      const picture = `${editor.pictures}/failed-${name}${index === 0 ? "" : `-${index}`}.png`;
      await window.page.screenshot({ path: picture }).catch(() => undefined);
      if (window.serverLog() !== "") outcome += `\nthe server wrote:\n${window.serverLog()}`;
    }
  }
  for (const window of own.windows) await window.close().catch(() => undefined);
  if (isLate && first === undefined) late.push([scenario, outcome]);
  else report({ scenario: name, outcome, seconds: (Date.now() - begun) / 1_000, first });
}

async function runAll() {
  const wanted = Object.entries(scenarios).filter(([name]) => positionals.length === 0 || positionals.includes(name));
  for (const scenario of wanted.filter(([, { settings }]) => settings !== undefined)) {
    await runAlone(scenario);
  }
  editor.applySettings(editor.launcherSettings);
  const waiting = wanted.filter(([, { settings }]) => settings === undefined);
  const runWaiting = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await runScenario(next, editorFor());
  };
  await Promise.all(Array.from({ length: PARALLEL_MAX }, runWaiting));
  for (const [scenario, outcome] of late) await runAlone(scenario, outcome);
}

async function runAlone(scenario, first) {
  const { settings } = scenario[1];
  const own = editorFor(first);
  editor.applySettings(settings === undefined ? editor.launcherSettings : await settings(own));
  await runScenario(scenario, own, first);
}

try {
  await editor.start();
  await runAll();
} finally {
  await editor.end();
}
report({ scenario: "console", outcome: editor.problems.length === 0 ? "ok" : editor.problems.join("\n") });
