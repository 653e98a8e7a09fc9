// What becomes of a prompt when the connection, the server or the window goes.
import assert from "node:assert/strict";
import { until } from "../waiting.mjs";
import { plant } from "./doubt.mjs";

const said_ms_max = 2_000;

export const delivery = {
  /** Draft and queue over a reload of the window: the draft in its box, the queue paused, then resumed (S4, D2). */
  reload: {
    async tell(stage) {
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
      await at.kept("a draft of mine");
      await at.picture("queue");
      await at.page.reload();
      await at.load();
      await at.see(".queue-head", "Paused since the restart");
      assert.equal(await at.box.inputValue(), "a draft of mine");
      assert.equal(await at.chat.locator(".queue-row").count(), 2);
      assert.equal(at.file("a.txt"), "one\n", "what was only asked did not run");
      await at.picture("queue-after-reload");
      await at.press(".queue-head button", "Resume");
      await at.see(".message.assistant", "second, edited");
      assert.equal(await at.box.inputValue(), "a draft of mine");
    },
  },

  /** The server killed between send and acknowledgement: not there → back in the box; there → never sent twice. */
  outbox: {
    async tell(stage) {
      plant(stage, "outbox", [{ verb: "write", carries: "user" }]);
      const at = await stage.open("outbox", { "a.txt": "one\n" });
      const prompt = "append two to a.txt";
      await at.say(prompt);
      await until("it comes back into the box", async () => (await at.box.inputValue()) === prompt);
      assert.equal(await at.chat.locator(".message.user").count(), 0, "nothing is shown as sent");
      await at.picture("outbox-back");

      at.plant([{ verb: "write", carries: "user", when: "after" }]);
      await at.command("Steadyhand: Restart Server");
      await until("another server", () => at.starts().length === 3);
      await at.ready();
      await at.box.press("Enter");
      await until("killed and started again", () => at.starts().length === 4);
      await at.ready();
      await at.see(".message.user, .queue-row", prompt);
      assert.equal(await at.box.inputValue(), "", "it is there, so it is not given back");
      await at.see(".note", "The server ended before it began with this. Nothing was run.");
      await at.picture("outbox-there");
      assert.equal(at.file("a.txt"), "one\n", "nothing runs by itself");
      await at.press(".note button", "Ask again");
      await at.answer("Allow once");
      await until("written", () => at.file("a.txt") === "one\ntwo\n");
      await at.idle();
      assert.equal(await at.chat.locator(".call", { hasText: "Write" }).count(), 1, "and once");
    },
  },

  /** The server silent, killed, and killed again and again: a clear state within 2 s each time (D4, case 40). */
  killed: {
    async tell(stage) {
      const at = await stage.open("killed", { "a.txt": "one\n" }, { expected: /The server ended 4 times/ });
      await at.sayAndWait("say hello");
      await at.box.fill("what I was typing");
      process.kill(at.pid(), "SIGSTOP");
      await at.see(".strip.silent", "not answering");
      await at.picture("silent");
      process.kill(at.pid(), "SIGCONT");
      await at.gone(".strip.silent");
      for (let time = 1; time <= 4; time += 1) {
        const pid = at.pid();
        await at.ready();
        process.kill(pid, "SIGKILL");
        await at.chat.locator(time < 4 ? ".strip.lost" : ".strip.stopped").first().waitFor({ timeout: said_ms_max });
        if (time < 4) await until("another server", () => at.pid() !== pid);
      }
      await at.toast("ended 4 times").waitFor();
      await at.picture("stopped");
      assert.equal(await at.box.inputValue(), "what I was typing");
      await at.press(".strip.stopped button", "Start again");
      await at.ready();
      await at.see(".message.assistant", "hello");
      assert.equal(await at.box.inputValue(), "what I was typing");
      await at.box.press("Enter");
      await at.see(".message.assistant", "I do not understand");
    },
  },
};
