// Uncertain effects: settled from the lightbulb, the list and the chat; calls that they hold back.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { until } from "../waiting.mjs";
import { BEFORE, CHANGED, DIE_BEFORE_THE_WRITE, openWithUncertainWrite } from "./uncertainWrite.mjs";

const QUICK_FIX_MAX_MS = 3_000;

export const recovery = {
  /** The server dies during a write and the file changes: the lightbulb inspects and settles the effect. */
  lightbulb: {
    async run(editor) {
      const window = await openWithUncertainWrite(editor, "lightbulb");
      await window.dismissToasts();
      await window.openFile("notes.md");
      await window.page.locator(".monaco-editor .squiggly-warning").first().waitFor();
      const fixes = window.page.locator(".action-widget .monaco-list-row");
      const ask = async () => {
        await window.line("black tea").click();
        // Press again if the list closes: the editor reloads it when diagnostics or lenses arrive.
        await until("the quick fixes", async () => {
          await window.page.keyboard.press("Control+.");
          return fixes
            .first()
            .waitFor({ timeout: QUICK_FIX_MAX_MS })
            .then(
              () => true,
              () => false,
            );
        });
      };
      await ask();
      await fixes.filter({ hasText: "Steadyhand: Inspect" }).waitFor();
      assert.equal(await fixes.filter({ hasText: "Steadyhand: Confirm" }).count(), 0, "not before an inspection");
      await window.picture("uncertain-lightbulb");
      await window.page.keyboard.press("Enter");
      await window.diffLine("green tea").waitFor();
      await window.toast("neither as it was before nor as intended").waitFor();
      await window.pictures("uncertain-inspected");
      await window.dismissToasts();
      await window.closeTab("before ↔ intended ↔ now");
      await window.openFile("notes.md");
      await ask();
      await fixes.filter({ hasText: "Steadyhand: Confirm" }).waitFor();
      await window.pictures("uncertain-lightbulb-after");
      await window.page.keyboard.press("ArrowDown");
      await window.page.keyboard.press("Enter");
      await window.page.locator(".monaco-editor .squiggly-warning").first().waitFor({ state: "detached" });
      await window.waitFor(".call.settled .call-state", "confirmed by you");
      assert.equal(window.file("notes.md"), CHANGED, "nothing was repeated");
      await window.picture("uncertain-settled");
    },
  },

  /** The list: Reject settles nothing, Continue Without Knowing does. */
  list: {
    async run(editor) {
      const window = await openWithUncertainWrite(editor, "list");
      await window.command("Steadyhand: Show Uncertain Effects");
      const row = window.effect("notes.md");
      await row.waitFor();
      await window.clickEffectAction(row, "Inspect");
      await window.effect("Inspected at").waitFor();
      await window.diffLine("green tea").waitFor();
      await window.dismissToasts();
      await row.hover();
      await window.pictures("list-inspected", { keepMouse: true });
      await window.clickEffectAction(row, "Reject");
      await window.effect("will not run again; still uncertain").waitFor();
      await window.picture("list-rejected");
      await window.clickEffectAction(row, "Continue Without Knowing");
      await window.waitFor(".call.settled .call-state", "without knowing");
      await window.picture("list-settled");
      assert.equal(window.file("notes.md"), CHANGED, "nothing was repeated");
    },
  },

  /** A call that overlaps an uncertain effect is held back: the question shows the effect and its actions (B4). */
  held: {
    async run(editor) {
      const window = await openWithUncertainWrite(editor, "held");
      await window.dismissToasts();
      await window.send("append - milk to notes.md");
      await window.waitFor(".question.held .blocking-title", "notes.md");
      await window.picture("held-back");
      await window.answer("Inspect");
      await window.tab("before ↔ intended ↔ now").waitFor();
      await window.diffLine("green tea").waitFor();
      await window.waitFor(".question.held .blocking-title", "notes.md");
      await window.pictures("held-back-inspected");
      await window.answer("Confirm");
      await window.waitFor(".question:not(.held) .diff .added", "milk");
      await window.answer("Allow once");
      await window.waitFor(".turn-end-title", "1 file changed");
      assert.equal(window.file("notes.md"), `${CHANGED}- milk\n`);
      await window.picture("held-back-done");
    },
  },

  /** An inspection that arrives after a switch to another session changes nothing there (A9, case 79). */
  late: {
    async run(editor) {
      const window = await openWithUncertainWrite(editor, "late", { theme: "contrast" });
      await window.click(".call-notice button", "Inspect");
      await window.click(".session-header .title");
      await window.click(".session-new");
      await window.waitFor(".welcome h1");
      await window.tab("before ↔ intended ↔ now").waitFor();
      assert.equal(await window.chat.locator(".call").count(), 0);
      assert.equal(await window.chat.locator(".session-header .title-text").innerText(), "New session");
      await window.picture("late-inspection-contrast");
    },
  },

  /** The actions that are not always offered: Restore, Retry if it is enabled, and ending survivors. */
  ways: {
    async run(editor) {
      const stateFolder = editor.stateFolder("ways");
      fs.mkdirSync(stateFolder, { recursive: true });
      fs.writeFileSync(path.join(stateFolder, "environment.json"), JSON.stringify({ STEADYHAND_RECOVERY_RETRY: "1" }));
      const window = await openWithUncertainWrite(editor, "ways");
      await window.click(".call-notice button", "Inspect");
      await window.diffLine("green tea").waitFor();
      await window.click(".call-notice button", "Restore");
      await window.waitFor(".call.settled .call-state", "restored");
      await until("brought back", () => window.file("notes.md") === BEFORE);

      window.injectFaults(DIE_BEFORE_THE_WRITE);
      await window.command("Steadyhand: Restart Server");
      await until("another server", () => window.starts().length === 3);
      await window.waitReady();
      await window.sendAndWait("show notes.md"); // it is not what the model made, so the model reads it before it edits
      await window.send("replace tea with coffee in notes.md");
      await window.answer("Allow once");
      await window.waitFor(".call.settled .call-state", "checked: the change is not there");
      assert.equal(window.file("notes.md"), BEFORE);
      await window.command("Steadyhand: Show Uncertain Effects");
      const row = window.effect("notes.md");
      await row.waitFor();
      await window.clickEffectAction(row, "Inspect");
      await row.locator('.action-label[aria-label^="Retry"]').waitFor({ state: "attached" });
      await row.hover();
      await window.picture("retry-offered", { keepMouse: true });
      await window.clickEffectAction(row, "Retry");
      await window.answer("Allow once");
      await until("done once", () => window.file("notes.md") === BEFORE.replace("tea", "coffee"));

      await window.waitIdle();
      await window.send("run setsid sleep 300 & echo up > up.txt; sleep 300");
      await window.answer("Allow once");
      await until("the command runs", () => window.file("up.txt") !== undefined);
      process.kill(window.pid(), "SIGKILL");
      const command = window.effect("Run command");
      await command.waitFor();
      await window.clickEffectAction(command, "Inspect");
      const survivor = window.effect("still running");
      await survivor.waitFor();
      await survivor.hover();
      await window.picture("survivors", { keepMouse: true });
      await window.clickEffectAction(survivor, "End These Processes");
      await window.toast("Still running: 0").waitFor();
      await until("none is left", async () => (await window.effect("still running").count()) === 0);
      await window.picture("survivors-ended");
    },
  },
};
