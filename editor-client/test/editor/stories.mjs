// What a user does and sees, in the real VS Code. Each story throws where the product does not keep its word.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { pause, shown_ms_max, until } from "./stage.mjs";

const BEFORE = "# Notes\n\n- tea\n";
const CHANGED = "# Notes\n\n- black tea\n";

/** The server is killed right before it records the result; meanwhile somebody changes the file. */
async function killedInMidWrite(stage, name) {
  const file = path.join(stage.root, name, "notes.md");
  fs.mkdirSync(path.join(stage.root, "stories", name), { recursive: true });
  const elsewhere = ["sh", "-c", `printf '${CHANGED.replaceAll("\n", "\\n")}' > '${file}'`];
  fs.writeFileSync(path.join(stage.root, "stories", name, "faults.json"), JSON.stringify([{ verb: "write", carries: "result", run: elsewhere }]));
  const at = await stage.open(name, { "notes.md": BEFORE });
  await at.say("replace tea with \"green tea\" in notes.md");
  await at.answer("Allow once");
  const killed = Date.now();
  await at.see(".call.unknown .call-state", "outcome unknown");
  console.log(`  ${name}: back and telling the doubt after ${Date.now() - killed} ms`);
  await at.see(".strip.doubtful", "1 effect is uncertain");
  return at;
}

export const stories = {
  /** A fresh machine: the carried server, the practice model, a changed file. */
  async first(stage) {
    const at = await stage.open("first");
    await at.see(".welcome h1");
    await at.picture("first-welcome");
    await at.chat.locator(".example").first().click();
    await at.see(".question h2", "notes.md");
    await at.see(".question .diff .added", "- tea");
    await at.picture("first-permission");
    assert.equal(at.file("notes.md"), undefined, "nothing is written before the answer");
    await at.answer("Allow once");
    await at.see(".ended-head", "1 file really changed");
    assert.equal(at.file("notes.md"), "# Notes\n\n- tea\n");
    await at.chat.locator(".call summary").first().click();
    await at.chat.locator(".ended .file-row button", { hasText: "diff" }).first().click();
    await at.page.locator(".monaco-diff-editor .view-line", { hasText: "tea" }).first().waitFor({ timeout: shown_ms_max });
    await at.picture("first-changed");
    await at.theme("Default Light Modern");
    await at.picture("first-changed-light");
    await at.theme("Default Dark Modern");
    await at.close();
  },

  /** Killed in mid-write, the file changed by somebody else: from the squiggle to settled, by the lightbulb. */
  async lightbulb(stage) {
    stage.useLauncher();
    const at = await killedInMidWrite(stage, "lightbulb");
    await at.openFile("notes.md");
    await at.page.locator(".monaco-editor .squiggly-warning").first().waitFor({ timeout: shown_ms_max });
    await at.picture("doubt-squiggle");
    await at.page.locator(".monaco-editor .view-line", { hasText: "black tea" }).first().click();
    await at.page.keyboard.press("Control+.");
    await at.page.locator(".action-widget .monaco-list-row", { hasText: "Steadyhand: Inspect" }).first().waitFor({ timeout: shown_ms_max });
    assert.equal(await at.page.locator(".action-widget .monaco-list-row", { hasText: "Steadyhand: Confirm" }).count(), 0, "not before an inspection");
    await at.picture("doubt-lightbulb");
    await at.page.keyboard.press("Enter");
    await at.page.locator(".monaco-diff-editor .view-line", { hasText: "green tea" }).first().waitFor({ timeout: shown_ms_max });
    await at.toast("neither as it was before nor as intended").waitFor({ timeout: shown_ms_max });
    await at.picture("doubt-inspected");
    await at.dismissToasts();
    await at.closeEditor();
    await at.page.locator(".monaco-editor .view-line", { hasText: "black tea" }).first().click();
    await at.page.keyboard.press("Control+.");
    await at.page.locator(".action-widget .monaco-list-row", { hasText: "Steadyhand: Confirm" }).first().waitFor({ timeout: shown_ms_max });
    await at.picture("doubt-lightbulb-after");
    await at.page.keyboard.press("ArrowDown");
    await at.page.keyboard.press("Enter");
    await at.page.locator(".monaco-editor .squiggly-warning").first().waitFor({ state: "detached", timeout: shown_ms_max });
    await at.see(".call.settled .call-state", "confirmed by you");
    assert.equal(at.file("notes.md"), CHANGED, "nothing was repeated");
    await at.picture("doubt-settled");
    await at.close();
  },

  /** The same doubt, settled in the list; rejected first, which settles nothing. */
  async list(stage) {
    stage.useLauncher();
    const at = await killedInMidWrite(stage, "list");
    await at.command("Steadyhand: Show Uncertain Effects");
    const row = at.page.locator(".pane-body .monaco-list-row", { hasText: "notes.md" }).first();
    await row.waitFor({ timeout: shown_ms_max });
    await at.picture("list");
    const press = async (label) => {
      await row.hover();
      await row.locator(`.action-label[aria-label^="${label}"]`).first().click({ timeout: shown_ms_max });
    };
    await press("Inspect");
    await at.page.locator(".pane-body .monaco-list-row", { hasText: "neither as it was before" }).first().waitFor({ timeout: shown_ms_max });
    await row.hover();
    await pause(300);
    await at.page.screenshot({ path: `${stage.pictures}/list-inspected.png` });
    await press("Reject");
    await at.page.locator(".pane-body .monaco-list-row", { hasText: "not to be repeated; still uncertain" }).first().waitFor({ timeout: shown_ms_max });
    await at.picture("list-rejected");
    await press("Continue Without Knowing");
    await at.see(".call.settled .call-state", "going on without knowing");
    await at.picture("list-settled");
    assert.equal(at.file("notes.md"), CHANGED, "nothing was repeated");
    await at.close();
  },

  /** A call that overlaps an uncertain effect is held back as a question, with that effect and its ways on (B4). */
  async held(stage) {
    stage.useLauncher();
    const at = await killedInMidWrite(stage, "held");
    await at.say("append - milk to notes.md");
    await at.see(".question.held .waits-title", "notes.md");
    await at.picture("held-back");
    await at.answer("Confirm");
    await at.see(".question:not(.held) .diff .added", "milk");
    await at.answer("Allow once");
    await at.see(".ended-head", "1 file really changed");
    assert.equal(at.file("notes.md"), `${CHANGED}- milk\n`);
    await at.picture("held-back-done");
    await at.close();
  },

  /** Rejected with a note: nothing is written, and the card says that it did not run. */
  async reject(stage) {
    stage.useLauncher();
    const at = await stage.open("reject", { "a.txt": "one\ntwo\nthree\n" });
    await at.say('replace two with TWO in a.txt');
    await at.see(".question .diff .removed", "two");
    await at.chat.locator(".question button", { hasText: "Reject with a note" }).click();
    await at.chat.locator(".question input").fill("keep two as it is");
    await at.picture("reject-note");
    await at.chat.locator(".question .buttons button", { hasText: /^Reject$/ }).click();
    await at.see(".call.refused .call-state", "refused, did not run");
    await until("the turn ended", async () => (await at.chat.locator(".working").count()) === 0);
    assert.equal(at.file("a.txt"), "one\ntwo\nthree\n");
    await at.picture("rejected");
    await at.close();
  },
};

