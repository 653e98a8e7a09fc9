// The chat by day: questions, unsaved text, sessions, the keyboard alone, a long conversation.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { until } from "../waiting.mjs";

const seed = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "seed.py");
const opened_ms_max = 2_000;

export const chat = {
  /** A session of 2,000 messages opens in under 2 s and scrolls. */
  long: {
    async tell(stage) {
      const place = path.join(stage.root, "stories", "long");
      fs.mkdirSync(place, { recursive: true });
      execFileSync(stage.python, [seed, place, path.join(stage.root, "long"), "1000"]);
      const at = await stage.open("long");
      await at.press(".head .title");
      await at.see(".session-row", "A long one");
      const begun = Date.now();
      await at.press(".session-row .session-open");
      await at.see(".message.assistant", "number 1000");
      const took = Date.now() - begun;
      assert.ok(took < opened_ms_max, `shown after ${took} ms`);
      await at.picture("long");
      const conversation = at.chat.locator(".conversation");
      const earliest = async () => Number(/number (\d+)/.exec(await at.chat.locator(".message.user").first().innerText())?.[1]);
      let seen = await earliest();
      while (seen > 1) {
        const older = at.chat.locator(".earlier");
        if ((await older.count()) > 0) await older.click();
        else await conversation.evaluate((element) => element.scrollTo(0, 0));
        const before = seen;
        seen = await until(`older than ${before}`, async () => {
          const now = await earliest();
          return now < before && now;
        });
        await conversation.evaluate((element) => element.scrollTo(0, 400)); // the next step is a scroll to the top again
      }
      await conversation.evaluate((element) => element.scrollTo(0, 0));
      await at.picture("long-first");
      await at.command("Steadyhand: New Session");
      await at.see(".welcome h1");
      await at.press(".head .title");
      process.kill(at.pid(), "SIGSTOP"); // so that the moment lasts
      await at.press(".session-row .session-open", "A long one");
      await at.see(".working", "Restoring the conversation…");
      process.kill(at.pid(), "SIGCONT");
      await at.see(".message.assistant", "number 1000");
    },
  },

  /** Rejected with a note: nothing is written, and the card says that it did not run. */
  reject: {
    async tell(stage) {
      const at = await stage.open("reject", { "a.txt": "one\ntwo\nthree\n" }, { theme: "contrast" });
      await at.say("replace two with TWO in a.txt");
      await at.see(".question .diff .removed", "two");
      await at.press(".question button", "Reject with a note");
      await at.chat.locator(".question input").fill("keep two as it is");
      await at.picture("reject-note-contrast");
      await at.chat.locator(".question .buttons button", { hasText: /^Reject$/ }).click();
      await at.see(".call.refused .call-state", "refused, did not run");
      await at.idle();
      assert.equal(at.file("a.txt"), "one\ntwo\nthree\n");
      await at.picture("rejected-contrast");
    },
  },

  /** Text that is not saved is never overwritten; one button saves it and goes on (V2). */
  unsaved: {
    async tell(stage) {
      const at = await stage.open("unsaved", { "a.txt": "one\ntwo\nthree\n" }, { theme: "contrastLight" });
      await at.openFile("a.txt");
      await at.line("three").click();
      await at.page.keyboard.press("End");
      await at.page.keyboard.type(" and more");
      await at.say("replace two with TWO in a.txt");
      await at.see(".question", "has unsaved changes");
      assert.equal(at.file("a.txt"), "one\ntwo\nthree\n", "neither saved nor overwritten by itself");
      await at.picture("unsaved-contrast");
      await at.answer("Save and go on");
      await until("saved", () => at.file("a.txt") === "one\ntwo\nthree and more\n");
      await at.answer("Allow once");
      await until("changed", () => at.file("a.txt") === "one\nTWO\nthree and more\n");
      await at.line("TWO").waitFor();
    },
  },

  /** The keyboard alone: into the chat, a question answered, a command completed, a turn stopped, a session chosen. */
  keyboard: {
    async tell(stage) {
      const at = await stage.open("keyboard", { "a.txt": "one\ntwo\nthree\n" });
      const { keyboard } = at.page;
      const focused = (selector) => until(`the focus is on ${selector}`, () => at.chat.locator(`${selector}:focus`).count());
      const back = async (selector) => {
        for (let times = 0; times < 20 && (await at.chat.locator(`${selector}:focus`).count()) === 0; times += 1) await keyboard.press("Shift+Tab");
        await focused(selector);
      };
      await keyboard.press("Control+Alt+h");
      await focused(".composer textarea");
      await keyboard.type("replace two with TWO in a.txt");
      await keyboard.press("Enter");
      await at.see(".question .buttons button", "Allow once");
      await keyboard.press("Shift+Tab");
      await focused(".question button");
      await at.picture("keyboard-question");
      await keyboard.press("1");
      await until("changed", () => at.file("a.txt") === "one\nTWO\nthree\n");
      await focused(".composer textarea");
      await at.idle();
      await keyboard.type("/recovery in");
      await at.see(".choices .chosen", "/recovery inspect");
      await at.picture("keyboard-completion");
      await keyboard.press("Tab");
      assert.equal(await at.box.inputValue(), "/recovery inspect");
      await keyboard.press("Shift+Home"); // not Ctrl+A: the workbench selects all once more, at a time of its own
      await keyboard.type("run sleep 300");
      await keyboard.press("Enter");
      await at.see(".question .buttons button", "Allow once");
      await keyboard.press("Shift+Tab");
      await keyboard.press("1");
      await at.see(".call.running");
      await at.picture("keyboard-running");
      await focused(".composer textarea");
      await keyboard.press("Escape");
      await at.see(".call.stopped");
      await at.idle();
      await back(".head .title");
      await keyboard.press("Enter");
      await focused(".session-open");
      await keyboard.press("Escape");
      await at.gone(".sessions");
      await focused(".head .title");
    },
  },

  /** Sessions: listed, renamed, exported, a mode chosen, closed, opened again, deleted. */
  sessions: {
    async tell(stage) {
      const at = await stage.open("sessions");
      await at.sayAndWait("say apples");
      await at.command("Steadyhand: New Session");
      await at.see(".welcome h1");
      await at.sayAndWait("say pears");
      const deed = async (session, what) => {
        const row = at.chat.locator(".session-row", { hasText: session });
        await at.press(".head .title");
        await row.locator("button[aria-label^='More for']").click();
        if (what === "Rename") await at.picture("sessions");
        await row.locator(".session-deeds button", { hasText: what }).click();
      };
      await deed("say pears", "Rename");
      await at.fill("Rename session", "Fruit");
      await at.see(".head .title-text", "Fruit");
      await at.chat.locator(".picker select").selectOption("edits");
      await at.say("write a.txt with hi");
      await until("written without a question", () => at.file("a.txt") === "hi");
      await at.idle();
      await at.command("Steadyhand: Export Session");
      await at.pick("markdown");
      await at.line("pears").waitFor();
      await at.picture("export");
      await deed("Fruit", "Close");
      await at.see(".welcome h1");
      await deed("say apples", "Delete");
      await at.dialog("Delete “say apples”?").waitFor();
      await at.picture("delete");
      await at.dialogButton("Delete").click();
      await at.press(".head .title");
      await until("one is left", async () => (await at.chat.locator(".session-row").count()) === 1);
      await at.press(".session-row .session-open", "Fruit");
      await at.see(".message.assistant", "pears");
      assert.equal(at.file("a.txt"), "hi");
    },
  },

  /** A selection and a file by @: chips in the box, over a reload, and in the message. */
  attach: {
    async tell(stage) {
      const at = await stage.open("attach", { "a.txt": "one\ntwo\nthree\n", "src/part.py": "def part():\n    return 1\n" });
      await at.openFile("a.txt");
      await at.line("two").click();
      await at.page.keyboard.press("Home");
      await at.page.keyboard.press("Shift+End");
      await at.command("Steadyhand: Ask About Selection");
      await at.see(".box .chip", "a.txt:2");
      await at.box.pressSequentially("say look at @par");
      await at.see(".choices li", "src/part.py");
      await at.picture("attach-completion");
      await at.box.press("Enter");
      await at.see(".box .chip", "src/part.py");
      await at.kept("src/part.py");
      await at.page.reload();
      await at.load();
      await at.see(".box .chip", "a.txt:2");
      await at.see(".box .chip", "src/part.py");
      await at.box.press("Enter");
      await at.see(".message.user .chip", "src/part.py");
      await at.see(".message.assistant", "look at @src/part.py");
      await at.idle();
      assert.equal(await at.chat.locator(".box .chip").count(), 0);
      await at.picture("attach-sent");
    },
  },

  /** Allowed in this workspace: another session of it is not asked again, and the permission can be taken back. */
  remembered: {
    async tell(stage) {
      const at = await stage.open("remembered", { "a.txt": "one\n" });
      await at.say("append two to a.txt");
      await at.answer("Allow in this workspace");
      await until("written", () => at.file("a.txt") === "one\ntwo\n");
      await at.idle();
      await at.command("Steadyhand: New Session");
      await at.see(".welcome h1");
      await at.say("append three to a.txt");
      await until("written without a question", () => at.file("a.txt") === "one\ntwo\nthree\n");
      await at.idle();
      await at.command("Steadyhand: Remembered Permissions");
      await at.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
      await at.picture("remembered");
    },
  },

  /** Another view covers the chat: the question comes as a message, and its answer is the answer. */
  modal: {
    async tell(stage) {
      const at = await stage.open("modal", { "a.txt": "one\n" });
      await at.sayAndWait("say ready");
      await at.say("run sleep 1\nappend two to a.txt");
      await at.answer("Allow once");
      await at.page.locator('.activitybar a.action-label[aria-label^="Explorer"]').click();
      await at.dialog("a.txt").waitFor();
      await at.picture("modal");
      await at.dialogButton("Allow once").click();
      await until("written", () => at.file("a.txt") === "one\ntwo\n");
    },
  },
};
