// What a user does and sees, in the real VS Code. Each story throws where the product does not keep its word.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { seedLongSession } from "./seed.mjs";
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
    await at.theme("light");
    await at.picture("first-changed-light");
    await at.theme("dark");
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
    await at.closeEditor(); // it took the place of the file's preview
    await at.openFile("notes.md");
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
    await at.page.locator(".monaco-diff-editor .view-line", { hasText: "green tea" }).first().waitFor({ timeout: shown_ms_max });
    await at.theme("light");
    await at.dismissToasts();
    await row.hover();
    await pause(300);
    await at.page.screenshot({ path: `${stage.pictures}/list-inspected-light.png` });
    await at.theme("dark");
    await row.hover();
    await pause(300);
    await at.page.screenshot({ path: `${stage.pictures}/list-inspected.png` });
    await press("Reject");
    await at.page.locator(".pane-body .monaco-list-row", { hasText: "not to be repeated; still uncertain" }).first().waitFor({ timeout: shown_ms_max });
    await at.picture("list-rejected");
    await press("Continue Without Knowing");
    await at.see(".call.settled .call-state", "without knowing");
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
    await at.theme("contrast");
    await at.picture("held-back-contrast");
    await at.theme("light");
    await at.picture("held-back-light");
    await at.theme("dark");
    await at.answer("Inspect");
    await at.page.locator(".tab", { hasText: "before ↔ intended ↔ now" }).first().waitFor({ timeout: shown_ms_max });
    await at.see(".question.held .waits-title", "notes.md");
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

  /** Text that is not saved is never overwritten; one button saves it and goes on (V2). */
  async unsaved(stage) {
    stage.useLauncher();
    const at = await stage.open("unsaved", { "a.txt": "one\ntwo\nthree\n" });
    await at.openFile("a.txt");
    await at.page.locator(".monaco-editor .view-line", { hasText: "three" }).first().click();
    await at.page.keyboard.press("End");
    await at.page.keyboard.type(" and more");
    await at.say("replace two with TWO in a.txt");
    await at.see(".question", "has unsaved changes");
    assert.equal(at.file("a.txt"), "one\ntwo\nthree\n", "neither saved nor overwritten by itself");
    await at.picture("unsaved");
    await at.chat.locator(".question button", { hasText: "Save and go on" }).click();
    await until("saved", () => at.file("a.txt") === "one\ntwo\nthree and more\n");
    await at.answer("Allow once");
    await until("changed", () => at.file("a.txt") === "one\nTWO\nthree and more\n");
    await at.page.locator(".monaco-editor .view-line", { hasText: "TWO" }).first().waitFor({ timeout: shown_ms_max });
    await at.close();
  },

  /** Draft and queue over a reload of the window: the draft in its box, the queue paused, then resumed (S4, D2). */
  async reload(stage) {
    stage.useLauncher();
    const at = await stage.open("reload", { "a.txt": "one\n" });
    await at.say("append two to a.txt");
    await at.see(".question .buttons button", "Allow once");
    await at.say("say first in the queue");
    await at.see(".queue-row", "first in the queue");
    await at.say("say second");
    await at.see(".queue-row", "say second");
    await at.chat.locator(".queue-row", { hasText: "say second" }).locator("button[title=Edit]").click();
    await at.chat.locator(".queue-row textarea").fill("say second, edited");
    await at.chat.locator(".queue-row textarea").press("Enter");
    await at.see(".queue-row", "say second, edited");
    await at.box.fill("a draft of mine");
    await pause(600);
    await at.picture("queue");
    await at.page.reload();
    await at.load();
    await at.see(".queue-head", "paused since the restart");
    assert.equal(await at.box.inputValue(), "a draft of mine");
    assert.equal(await at.chat.locator(".queue-row").count(), 2);
    assert.equal(at.file("a.txt"), "one\n", "what was only asked did not run");
    await at.picture("queue-after-reload");
    await at.chat.locator(".queue-head button", { hasText: "Resume" }).click();
    await at.see(".message.assistant", "second, edited");
    assert.equal(await at.box.inputValue(), "a draft of mine");
    await at.close();
  },

  /** The server killed, stopped and killed again and again: a clear state within 2 s each time (D4, case 40). */
  async killed(stage) {
    stage.useLauncher();
    const at = await stage.open("killed", { "a.txt": "one\n" });
    at.expected = /The server ended 4 times/;
    await at.say("say hello");
    await at.see(".message.assistant", "hello");
    await at.box.fill("what I was typing");
    process.kill(at.pid(), "SIGSTOP");
    await at.see(".strip.silent", "not answering");
    await at.picture("silent");
    process.kill(at.pid(), "SIGCONT");
    await at.chat.locator(".strip.silent").waitFor({ state: "detached", timeout: shown_ms_max });
    for (let time = 1; time <= 4; time += 1) {
      const pid = at.pid();
      await at.ready();
      process.kill(pid, "SIGKILL");
      const said = at.chat.locator(time < 4 ? ".strip.lost" : ".strip.stopped").first();
      await said.waitFor({ timeout: 2_000 });
      if (time < 4) await until("another server", () => at.pid() !== pid);
    }
    await at.picture("stopped");
    assert.equal(await at.box.inputValue(), "what I was typing");
    await at.chat.locator(".strip.stopped button", { hasText: "Start again" }).click();
    await at.ready();
    await at.see(".message.assistant", "hello");
    assert.equal(await at.box.inputValue(), "what I was typing");
    await at.box.press("Enter");
    await at.see(".message.assistant", "I do not understand");
    await at.close();
  },

  /** An inspection that comes after the session was switched changes nothing of what is shown (A9, case 79). */
  async late(stage) {
    stage.useLauncher();
    const at = await killedInMidWrite(stage, "late");
    await at.chat.locator(".call-aside button", { hasText: "Inspect" }).click();
    await at.chat.locator(".head .title").click();
    await at.chat.locator(".session-new").click();
    await at.see(".welcome h1");
    await at.page.locator(".tab", { hasText: "before ↔ intended ↔ now" }).first().waitFor({ timeout: shown_ms_max });
    assert.equal(await at.chat.locator(".call").count(), 0);
    assert.equal(await at.chat.locator(".head .title-text").innerText(), "New session");
    await at.picture("late-inspection");
    await at.close();
  },

  /** Another view covers the chat: the question comes as a message, and its answer is the answer. */
  async modal(stage) {
    stage.useLauncher();
    const at = await stage.open("modal", { "a.txt": "one\n" });
    await at.say("say ready");
    await at.see(".message.assistant", "ready");
    await at.say("run sleep 2\nappend two to a.txt");
    await at.answer("Allow once");
    await at.page.locator('.activitybar a.action-label[aria-label^="Explorer"]').click();
    const dialog = at.page.locator(".monaco-dialog-box");
    await dialog.waitFor({ timeout: shown_ms_max });
    await at.picture("modal");
    await dialog.locator("a.monaco-button, button.monaco-button", { hasText: "Allow once" }).click();
    await until("written", () => at.file("a.txt") === "one\ntwo\n");
    await at.close();
  },

  /** A session of 2,000 messages opens in under 2 s and scrolls. */
  async long(stage) {
    stage.useLauncher();
    const title = await seedLongSession(stage, "long", 1_000);
    const at = await stage.open("long");
    await at.chat.locator(".head .title").click();
    await at.see(".session-row", title);
    const begun = Date.now();
    await at.chat.locator(".session-row .session-open").first().click();
    await at.see(".message.assistant", "number 1000");
    const took = Date.now() - begun;
    console.log(`  long: shown after ${took} ms`);
    assert.ok(took < 2_000, `shown after ${took} ms`);
    const conversation = at.chat.locator(".conversation");
    const earliest = async () => Number(/number (\d+)/.exec(await at.chat.locator(".message.user").first().innerText())?.[1]);
    const first = await earliest();
    for (let times = 0; times < 40 && (await earliest()) > 1; times += 1) {
      await conversation.evaluate((element) => element.scrollTo(0, 0));
      await pause(150);
      await at.chat.locator(".earlier").click({ timeout: 500 }).catch(() => undefined);
    }
    assert.ok((await earliest()) === 1, `from ${first} back to ${await earliest()}`);
    await at.picture("long");
    await at.close();
  },
};
