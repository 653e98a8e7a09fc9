// From the squiggle to settled, by every door: lightbulb, list, chat; and what is held back meanwhile.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { until } from "../waiting.mjs";
import { BEFORE, CHANGED, DIES_BEFORE_THE_WRITE, killedInMidWrite } from "./doubt.mjs";

const asked_ms_max = 3_000;

export const recovery = {
  /** Killed in mid-write, the file changed by somebody else: from the squiggle to settled, by the lightbulb. */
  lightbulb: {
    async tell(stage) {
      const at = await killedInMidWrite(stage, "lightbulb");
      await at.dismissToasts();
      await at.openFile("notes.md");
      await at.page.locator(".monaco-editor .squiggly-warning").first().waitFor();
      const fixes = at.page.locator(".action-widget .monaco-list-row");
      const ask = async () => {
        await at.line("black tea").click();
        // Pressed again where the editor drops it: it asks anew whenever diagnostics or lenses come.
        await until("the quick fixes", async () => {
          await at.page.keyboard.press("Control+.");
          return fixes.first().waitFor({ timeout: asked_ms_max }).then(() => true, () => false);
        });
      };
      await ask();
      await fixes.filter({ hasText: "Steadyhand: Inspect" }).waitFor();
      assert.equal(await fixes.filter({ hasText: "Steadyhand: Confirm" }).count(), 0, "not before an inspection");
      await at.picture("doubt-lightbulb");
      await at.page.keyboard.press("Enter");
      await at.diffLine("green tea").waitFor();
      await at.toast("neither as it was before nor as intended").waitFor();
      await at.pictures("doubt-inspected");
      await at.dismissToasts();
      await at.closeTab("before ↔ intended ↔ now");
      await at.openFile("notes.md");
      await ask();
      await fixes.filter({ hasText: "Steadyhand: Confirm" }).waitFor();
      await at.pictures("doubt-lightbulb-after");
      await at.page.keyboard.press("ArrowDown");
      await at.page.keyboard.press("Enter");
      await at.page.locator(".monaco-editor .squiggly-warning").first().waitFor({ state: "detached" });
      await at.see(".call.settled .call-state", "confirmed by you");
      assert.equal(at.file("notes.md"), CHANGED, "nothing was repeated");
      await at.picture("doubt-settled");
    },
  },

  /** The same doubt, settled in the list; rejected first, which settles nothing. */
  list: {
    async tell(stage) {
      const at = await killedInMidWrite(stage, "list");
      await at.command("Steadyhand: Show Uncertain Effects");
      const row = at.effect("notes.md");
      await row.waitFor();
      await at.pressEffect(row, "Inspect");
      await at.effect("Inspected at").waitFor();
      await at.diffLine("green tea").waitFor();
      await at.dismissToasts();
      await row.hover();
      await at.pictures("list-inspected", { keepMouse: true });
      await at.pressEffect(row, "Reject");
      await at.effect("not to be repeated; still uncertain").waitFor();
      await at.picture("list-rejected");
      await at.pressEffect(row, "Continue Without Knowing");
      await at.see(".call.settled .call-state", "without knowing");
      await at.picture("list-settled");
      assert.equal(at.file("notes.md"), CHANGED, "nothing was repeated");
    },
  },

  /** A call that overlaps an uncertain effect is held back as a question, with that effect and its ways on (B4). */
  held: {
    async tell(stage) {
      const at = await killedInMidWrite(stage, "held");
      await at.dismissToasts();
      await at.say("append - milk to notes.md");
      await at.see(".question.held .waits-title", "notes.md");
      await at.picture("held-back");
      await at.answer("Inspect");
      await at.tab("before ↔ intended ↔ now").waitFor();
      await at.diffLine("green tea").waitFor();
      await at.see(".question.held .waits-title", "notes.md");
      await at.pictures("held-back-inspected");
      await at.answer("Confirm");
      await at.see(".question:not(.held) .diff .added", "milk");
      await at.answer("Allow once");
      await at.see(".ended-head", "1 file really changed");
      assert.equal(at.file("notes.md"), `${CHANGED}- milk\n`);
      await at.picture("held-back-done");
    },
  },

  /** An inspection that comes after the session was switched changes nothing of what is shown (A9, case 79). */
  late: {
    async tell(stage) {
      const at = await killedInMidWrite(stage, "late", { theme: "contrast" });
      await at.press(".call-aside button", "Inspect");
      await at.press(".head .title");
      await at.press(".session-new");
      await at.see(".welcome h1");
      await at.tab("before ↔ intended ↔ now").waitFor();
      assert.equal(await at.chat.locator(".call").count(), 0);
      assert.equal(await at.chat.locator(".head .title-text").innerText(), "New session");
      await at.picture("late-inspection-contrast");
    },
  },

  /** The ways on that are not always there: Restore, Retry where it is switched on, and End them for survivors. */
  ways: {
    async tell(stage) {
      const place = path.join(stage.root, "stories", "ways");
      fs.mkdirSync(place, { recursive: true });
      fs.writeFileSync(path.join(place, "environment.json"), JSON.stringify({ STEADYHAND_RECOVERY_RETRY: "1" }));
      const at = await killedInMidWrite(stage, "ways");
      await at.press(".call-aside button", "Inspect");
      await at.diffLine("green tea").waitFor();
      await at.press(".call-aside button", "Restore");
      await at.see(".call.settled .call-state", "restored");
      await until("brought back", () => at.file("notes.md") === BEFORE);

      at.plant(DIES_BEFORE_THE_WRITE);
      await at.command("Steadyhand: Restart Server");
      await until("another server", () => at.starts().length === 3);
      await at.ready();
      await at.say("replace tea with coffee in notes.md");
      await at.answer("Allow once");
      await at.see(".call.settled .call-state", "checked: not there");
      assert.equal(at.file("notes.md"), BEFORE);
      await at.command("Steadyhand: Show Uncertain Effects");
      const row = at.effect("notes.md");
      await row.waitFor();
      await at.pressEffect(row, "Inspect");
      await row.locator('.action-label[aria-label^="Retry"]').waitFor({ state: "attached" });
      await row.hover();
      await at.picture("retry-offered", { keepMouse: true });
      await at.pressEffect(row, "Retry");
      await at.answer("Allow once");
      await until("done once", () => at.file("notes.md") === BEFORE.replace("tea", "coffee"));

      await at.idle();
      await at.say("run setsid sleep 300 & echo up > up.txt; sleep 300");
      await at.answer("Allow once");
      await until("the command runs", () => at.file("up.txt") !== undefined);
      process.kill(at.pid(), "SIGKILL");
      const command = at.effect("Run command");
      await command.waitFor();
      await at.pressEffect(command, "Inspect");
      const survivor = at.effect("still running");
      await survivor.waitFor();
      await survivor.hover();
      await at.picture("survivors", { keepMouse: true });
      await at.pressEffect(survivor, "End Them");
      await at.toast("Still there: 0").waitFor();
      await until("none is left", async () => (await at.effect("still running").count()) === 0);
      await at.picture("survivors-ended");
    },
  },
};
