// The chat in daily use: questions, unsaved text, sessions, the keyboard alone, a long conversation.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { slowness, until } from "../waiting.mjs";

const SEED = path.join(path.dirname(fileURLToPath(import.meta.url)), "..", "seed.py");
const OPENED_MAX_MS = 2_000;
const TABS_MAX = 20;

export const chat = {
  /** A session of 2,000 messages opens in under 2 s and scrolls. */
  long: {
    async run(editor) {
      const stateFolder = editor.stateFolder("long");
      fs.mkdirSync(stateFolder, { recursive: true });
      execFileSync(editor.python, [SEED, stateFolder, editor.folder("long"), "1000"]);
      const window = await editor.open("long");
      await window.click(".session-header .title");
      await window.waitFor(".session-row", "A long one");
      const begun = Date.now();
      await window.click(".session-row .session-open");
      await window.waitFor(".message.assistant", "number 1000");
      const took = Date.now() - begun;
      assert.ok(took < OPENED_MAX_MS * slowness(), `shown after ${took} ms`);
      await window.picture("long");
      const conversation = window.chat.locator(".conversation");
      const earliest = async () =>
        Number(/number (\d+)/.exec(await window.chat.locator(".message.user").first().innerText())?.[1]);
      let seen = await earliest();
      while (seen > 1) {
        const older = window.chat.locator(".earlier");
        if ((await older.count()) > 0) await older.click();
        else await conversation.evaluate((element) => element.scrollTo(0, 0));
        const before = seen;
        seen = await until(`older than ${before}`, async () => {
          const now = await earliest();
          return now < before && now;
        });
        await conversation.evaluate((element) => element.scrollTo(0, 400)); // the next step scrolls to the top again
      }
      await conversation.evaluate((element) => element.scrollTo(0, 0));
      await window.picture("long-first");
      await window.command("Steadyhand: New Session");
      await window.waitFor(".welcome h1");
      await window.click(".session-header .title");
      process.kill(window.pid(), "SIGSTOP"); // so that loading takes long enough to be seen
      await window.click(".session-row .session-open", "A long one");
      await window.waitFor(".working", "Restoring the conversation…");
      process.kill(window.pid(), "SIGCONT");
      await window.waitFor(".message.assistant", "number 1000");
    },
  },

  /** The folder of a session has moved: the editor offers the folder of this window, and the session goes on there. */
  moved: {
    async run(editor) {
      const stateFolder = editor.stateFolder("moved");
      fs.mkdirSync(stateFolder, { recursive: true });
      execFileSync(editor.python, [SEED, stateFolder, editor.folder("moved-from-here"), "3"]);
      const window = await editor.open("moved", { "a.txt": "one\n" });
      await window.click(".session-header .title");
      await window.click(".session-row .session-open", "A long one");
      const question = window.toast("is gone. Did it move to a folder of this window?");
      await question.waitFor();
      await window.picture("folder-gone");
      await question.locator(".monaco-button", { hasText: `Use ${path.basename(editor.folder("moved"))}` }).click();
      await question.waitFor({ state: "detached" });
      await window.sendAndWait("show a.txt");
      await window.waitFor(".call.returned", "a.txt");
      await window.picture("folder-found");
    },
  },

  /** A window with two folders: the session reads the second one without a question, by its name. */
  folders: {
    async run(editor) {
      const second = editor.folder("second");
      fs.mkdirSync(second, { recursive: true });
      fs.writeFileSync(path.join(second, "b.txt"), "in the second folder\n");
      const window = await editor.open("folders", { "a.txt": "one\n" }, { beside: [second] });
      await window.sendAndWait(`show @${path.basename(second)}/b.txt`);
      await window.waitFor(".call.returned", "b.txt");
      await window.picture("second-folder");
      assert.equal(await window.toast("The workspace sets").count(), 0, "nobody has set anything in this window");
      assert.equal(await window.chat.locator(".question").count(), 0);
    },
  },

  /** Reject a call with a note: nothing is written, and the card says that the call did not run. */
  reject: {
    async run(editor) {
      const window = await editor.open("reject", { "a.txt": "one\ntwo\nthree\n" }, { theme: "contrast" });
      await window.send("replace two with TWO in a.txt");
      await window.waitFor(".question .diff .removed", "two");
      await window.click(".question button", "Reject with a note");
      await window.chat.locator(".question input").fill("keep two as it is");
      await window.picture("reject-note-contrast");
      await window.chat.locator(".question .buttons button", { hasText: /^Reject$/ }).click();
      await window.waitFor(".call.refused .call-state", "refused, did not run");
      await window.waitIdle();
      assert.equal(window.file("a.txt"), "one\ntwo\nthree\n");
      await window.picture("rejected-contrast");
    },
  },

  /** Unsaved text is edited where it is and never overwritten; a button saves it and continues (V2). */
  unsaved: {
    async run(editor) {
      const window = await editor.open("unsaved", { "a.txt": "one\ntwo\nthree\n" }, { theme: "contrastLight" });
      await window.openFile("a.txt");
      await window.line("three").click();
      await window.page.keyboard.press("End");
      await window.page.keyboard.type(" and more");
      await window.send("replace two with TWO in a.txt");
      await window.answer("Allow once");
      await window.line("TWO").waitFor();
      await window.waitIdle();
      assert.equal(window.file("a.txt"), "one\ntwo\nthree\n", "edited in the editor and not saved");
      await window.send("delete a.txt");
      await window.waitFor(".question", "has unsaved changes");
      assert.equal(window.file("a.txt"), "one\ntwo\nthree\n", "neither saved nor deleted without an answer");
      await window.picture("unsaved-contrast");
      await window.answer("Save and go on");
      await until("saved", () => window.file("a.txt") === "one\nTWO\nthree and more\n");
      await window.answer("Reject");
      await window.waitIdle();
      assert.equal(window.file("a.txt"), "one\nTWO\nthree and more\n");
    },
  },

  /** The keyboard alone: open the chat, answer a question, complete a command, stop a turn, choose a session. */
  keyboard: {
    async run(editor) {
      const window = await editor.open("keyboard", { "a.txt": "one\ntwo\nthree\n" });
      const { keyboard } = window.page;
      const countFocused = (selector) => window.chat.locator(`${selector}:focus`).count();
      const waitFocused = (selector) => until(`the focus is on ${selector}`, () => countFocused(selector));
      const tabBackTo = async (selector) => {
        for (let times = 0; times < TABS_MAX && (await countFocused(selector)) === 0; times += 1) {
          await keyboard.press("Shift+Tab");
        }
        await waitFocused(selector);
      };
      await keyboard.press("Control+Alt+h");
      await waitFocused(".composer textarea");
      await keyboard.type("replace two with TWO in a.txt");
      await keyboard.press("Enter");
      await window.waitFor(".question .buttons button", "Allow once");
      await keyboard.press("Shift+Tab");
      await waitFocused(".question button");
      await window.picture("keyboard-question");
      await keyboard.press("1");
      await until("changed", () => window.file("a.txt") === "one\nTWO\nthree\n");
      await waitFocused(".composer textarea");
      await window.waitIdle();
      await keyboard.type("/recovery in");
      await window.waitFor(".completions .selected", "/recovery inspect");
      await window.picture("keyboard-completion");
      await keyboard.press("Tab");
      assert.equal(await window.box.inputValue(), "/recovery inspect");
      await keyboard.press("Shift+Home"); // not Ctrl+A: the workbench also handles it, later
      await keyboard.type("run sleep 300");
      await keyboard.press("Enter");
      await window.waitFor(".question .buttons button", "Allow once");
      await keyboard.press("Shift+Tab");
      await keyboard.press("1");
      await window.waitFor(".call.running");
      await window.picture("keyboard-running");
      await waitFocused(".composer textarea");
      await keyboard.press("Escape");
      await window.waitFor(".call.stopped");
      await window.waitIdle();
      await tabBackTo(".session-header .title");
      await keyboard.press("Enter");
      await waitFocused(".session-open");
      await keyboard.press("Escape");
      await window.waitGone(".sessions");
      await waitFocused(".session-header .title");
    },
  },

  /** Sessions: list, rename, choose a mode, export, close, delete, open again. */
  sessions: {
    async run(editor) {
      const window = await editor.open("sessions");
      await window.sendAndWait("say apples");
      await window.command("Steadyhand: New Session");
      await window.waitFor(".welcome h1");
      await window.sendAndWait("say pears");
      const runCommand = async (session, command) => {
        const row = window.chat.locator(".session-row", { hasText: session });
        await window.click(".session-header .title");
        await row.locator("button[aria-label^='More for']").click();
        if (command === "Rename") await window.picture("sessions");
        await row.locator(".session-actions button", { hasText: command }).click();
      };
      await runCommand("say pears", "Rename");
      await window.fill("Rename session", "Fruit");
      await window.waitFor(".session-header .title-text", "Fruit");
      await window.chat.locator(".picker select").selectOption("edits");
      await window.send("write a.txt with hi");
      await until("written without a question", () => window.file("a.txt") === "hi");
      await window.waitIdle();
      await window.command("Steadyhand: Export Session");
      await window.pick("markdown");
      await window.line("pears").waitFor();
      await window.picture("export");
      await runCommand("Fruit", "Close");
      await window.waitFor(".welcome h1");
      await runCommand("say apples", "Delete");
      await window.dialog("Delete “say apples”?").waitFor();
      await window.picture("delete");
      await window.dialogButton("Delete").click();
      await window.click(".session-header .title");
      await until("one is left", async () => (await window.chat.locator(".session-row").count()) === 1);
      await window.click(".session-row .session-open", "Fruit");
      await window.waitFor(".message.assistant", "pears");
      assert.equal(window.file("a.txt"), "hi");
    },
  },

  /** A selection and a file after @: chips in the message box, after a reload, and in the message. */
  attach: {
    async run(editor) {
      const window = await editor.open("attach", {
        "a.txt": "one\ntwo\nthree\n",
        "src/part.py": "def part():\n    return 1\n",
      });
      await window.openFile("a.txt");
      await window.line("two").click();
      await window.page.keyboard.press("Home");
      await window.page.keyboard.press("Shift+End");
      await window.command("Steadyhand: Ask About Selection");
      await window.waitFor(".box .chip", "a.txt:2");
      await window.box.pressSequentially("say look at @par");
      await window.waitFor(".completions li", "src/part.py");
      await window.picture("attach-completion");
      await window.box.press("Enter");
      await window.waitFor(".box .chip", "src/part.py");
      await window.waitStored("src/part.py");
      await window.page.reload();
      await window.load();
      await window.waitFor(".box .chip", "a.txt:2");
      await window.waitFor(".box .chip", "src/part.py");
      await window.box.press("Enter");
      await window.waitFor(".message.user .chip", "src/part.py");
      await window.waitFor(".message.assistant", "look at @src/part.py");
      await window.waitIdle();
      assert.equal(await window.chat.locator(".box .chip").count(), 0);
      await window.picture("attach-sent");
    },
  },

  /** A permission for the workspace: another session does not ask, and the list shows the permission. */
  remembered: {
    async run(editor) {
      const window = await editor.open("remembered", { "a.txt": "one\n" });
      await window.send("append two to a.txt");
      await window.answer("Allow in this workspace");
      await until("written", () => window.file("a.txt") === "one\ntwo\n");
      await window.waitIdle();
      await window.command("Steadyhand: New Session");
      await window.waitFor(".welcome h1");
      await window.send("append three to a.txt");
      await until("written without a question", () => window.file("a.txt") === "one\ntwo\nthree\n");
      await window.waitIdle();
      await window.command("Steadyhand: Remembered Permissions");
      await window.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
      await window.picture("remembered");
    },
  },

  /** Another view covers the chat: a dialog shows the question and answers it. */
  modal: {
    async run(editor) {
      const window = await editor.open("modal", { "a.txt": "one\n" });
      await window.sendAndWait("say ready");
      await window.send("run sleep 1\nappend two to a.txt");
      await window.answer("Allow once");
      await window.page.locator('.activitybar a.action-label[aria-label^="Explorer"]').click();
      await window.dialog("a.txt").waitFor();
      await window.picture("modal");
      await window.dialogButton("Allow once").click();
      await until("written", () => window.file("a.txt") === "one\ntwo\n");
    },
  },
};
