// Prompts when the connection is lost, the server ends or the window is reloaded.
import assert from "node:assert/strict";
import { slowness, until } from "../waiting.mjs";
import { injectFaults } from "./uncertainWrite.mjs";

const BANNER_MAX_MS = 2_000;

export const delivery = {
  /** A reload of the window: the draft is in the box again, the queue is paused and can be resumed (S4, D2). */
  reload: {
    async run(editor) {
      const window = await editor.open("reload", { "a.txt": "one\n" });
      await window.send("append two to a.txt");
      await window.waitFor(".question .buttons button", "Allow once");
      await window.send("say first in the queue");
      await window.waitFor(".queue-row", "first in the queue");
      await window.send("say second");
      await window.waitFor(".queue-row", "say second");
      await window.chat.locator(".queue-row", { hasText: "say second" }).locator("button[title=Edit]").click();
      await window.chat.locator(".queue-row textarea").fill("say second, edited");
      await window.chat.locator(".queue-row textarea").press("Enter");
      await window.waitFor(".queue-row", "say second, edited");
      await window.box.fill("a draft of mine");
      await window.waitStored("a draft of mine");
      await window.picture("queue");
      await window.page.reload();
      await window.load();
      await window.waitFor(".queue-head", "Queue paused");
      assert.equal(await window.box.inputValue(), "a draft of mine");
      assert.equal(await window.chat.locator(".queue-row").count(), 2);
      assert.equal(window.file("a.txt"), "one\n", "the call that waited for an answer did not run");
      await window.picture("queue-after-reload");
      await window.click(".queue-head button", "Resume");
      await window.waitFor(".message.assistant", "second, edited");
      assert.equal(await window.box.inputValue(), "a draft of mine");
    },
  },

  /** The server dies before it acknowledges a prompt: an unknown one returns to the box, a known one is not resent. */
  outbox: {
    async run(editor) {
      injectFaults(editor, "outbox", [{ verb: "write", carries: "user" }]);
      const window = await editor.open("outbox", { "a.txt": "one\n" });
      const prompt = "append two to a.txt";
      await window.send(prompt);
      await until("the prompt returns to the box", async () => (await window.box.inputValue()) === prompt);
      assert.equal(await window.chat.locator(".message.user").count(), 0, "no message is shown as sent");
      await window.picture("outbox-back");

      window.injectFaults([{ verb: "write", carries: "user", when: "after" }]);
      await window.command("Steadyhand: Restart Server");
      await until("another server", () => window.starts().length === 3);
      await window.waitReady();
      await window.box.press("Enter");
      await until("killed and started again", () => window.starts().length === 4);
      await window.waitReady();
      await window.waitFor(".message.user, .queue-row", prompt);
      assert.equal(await window.box.inputValue(), "", "the server has it, so it does not return");
      await window.waitFor(".note", "The server ended before it started on this. Nothing ran.");
      await window.picture("outbox-there");
      assert.equal(window.file("a.txt"), "one\n", "nothing runs without the user");
      await window.click(".note button", "Ask again");
      await window.answer("Allow once");
      await until("written", () => window.file("a.txt") === "one\ntwo\n");
      await window.waitIdle();
      assert.equal(await window.chat.locator(".call", { hasText: "Write" }).count(), 1, "it ran once");
    },
  },

  /** The server is silent, then dies four times: the chat says so within 2 s each time (D4, case 40). */
  killed: {
    async run(editor) {
      const window = await editor.open("killed", { "a.txt": "one\n" }, { expected: /The server ended 4 times/ });
      await window.sendAndWait("say hello");
      await window.box.fill("what I was typing");
      process.kill(window.pid(), "SIGSTOP");
      await window.waitFor(".banner.silent", "not answering");
      await window.picture("silent");
      process.kill(window.pid(), "SIGCONT");
      await window.waitGone(".banner.silent");
      await window.recordBanners();
      for (let time = 1; time <= 4; time += 1) {
        const pid = window.pid();
        await window.waitReady();
        const killedMs = Date.now();
        process.kill(pid, "SIGKILL");
        const delayMs = await window.bannerDelay(time < 4 ? "lost" : "stopped", killedMs);
        assert.ok(delayMs <= BANNER_MAX_MS * slowness(), `banner ${time} appeared after ${delayMs} ms`);
        if (time < 4) await until("another server", () => window.pid() !== pid);
      }
      await window.toast("ended 4 times").waitFor();
      await window.picture("stopped");
      assert.equal(await window.box.inputValue(), "what I was typing");
      await window.click(".banner.stopped button", "Start again");
      await window.waitReady();
      await window.waitFor(".message.assistant", "hello");
      assert.equal(await window.box.inputValue(), "what I was typing");
      await window.box.press("Enter");
      await window.waitFor(".message.assistant", "I do not understand");
    },
  },
};
