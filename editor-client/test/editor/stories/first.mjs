// The first minutes on a fresh machine, and what needs settings of its own. Each is told alone.
import assert from "node:assert/strict";
import http from "node:http";
import { until } from "../waiting.mjs";

const KEY = "sk-of-the-story";
const ANSWER = "The key was right.";

/** A provider that answers each request with the same words, and keeps which keys came. */
async function provider() {
  const keys = [];
  const server = http.createServer((asked, answer) => {
    keys.push(asked.headers.authorization);
    asked.resume();
    answer.writeHead(200, { "content-type": "text/event-stream" });
    const said = [{ delta: { role: "assistant", content: ANSWER } }, { delta: {}, finish_reason: "stop" }];
    for (const choice of said) answer.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
    answer.end("data: [DONE]\n\n");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { keys, server, address: `http://127.0.0.1:${server.address().port}/v1` };
}

export const first = {
  /** The carried server, the practice model, a changed file; before it the walkthrough, after it the doctor. */
  first: {
    settings: () => ({}),
    async tell(stage) {
      const at = await stage.open("first");
      await at.command("Steadyhand: Get Started");
      await at.page.locator(".gettingStartedContainer", { hasText: "Let the practice model write a file" }).waitFor();
      await at.picture("walkthrough");
      await at.closeTab("Welcome");
      await at.see(".welcome h1");
      await at.press(".example");
      await at.see(".question h2", "notes.md");
      await at.see(".question .diff .added", "- tea");
      await at.pictures("first-permission");
      assert.equal(at.file("notes.md"), undefined, "nothing is written before the answer");
      await at.answer("Allow once");
      await at.see(".ended-head", "1 file really changed");
      assert.equal(at.file("notes.md"), "# Notes\n\n- tea\n");
      await at.press(".ended .file-row button", "diff");
      await at.diffLine("tea").waitFor();
      await at.pictures("first-changed");
      await at.command("Steadyhand: Doctor");
      await at.tab("Doctor").waitFor();
      await at.page.frameLocator("iframe.webview.ready >> nth=-1").frameLocator("iframe#active-frame").locator("h1", { hasText: "Steadyhand Doctor" }).waitFor();
      await at.picture("doctor");
    },
  },

  /** A key goes into the secret store, and from there to the provider, and nowhere else. */
  secret: {
    async settings(stage) {
      stage.provider = await provider();
      return { ...stage.launcher, "steadyhand.model.provider": "openai", "steadyhand.model.name": "a-model", "steadyhand.model.baseUrl": stage.provider.address };
    },
    async tell(stage) {
      const { keys, server } = stage.provider;
      const at = await stage.open("secret");
      await at.say("hello");
      await at.see(".ended.loud", "The model failed");
      assert.deepEqual(keys, [], "without a key nothing is asked");
      await at.picture("no-key");
      await at.press(".note button", "Set the key");
      await at.pick("openai");
      await at.fill("Key for openai", KEY);
      await at.say("hello again");
      await at.see(".message.assistant", ANSWER);
      assert.deepEqual([...new Set(keys)], [`Bearer ${KEY}`]);
      await at.picture("with-key");
      server.close();
    },
  },

  /** A folder that is not trusted: the agent reads there and changes nothing, until the user trusts it. */
  untrusted: {
    settings: (stage) => ({ ...stage.launcher, "security.workspace.trust.enabled": true, "security.workspace.trust.startupPrompt": "never" }),
    async tell(stage) {
      const at = await stage.open("untrusted", { "a.txt": "one\n" });
      await at.see(".strip.untrusted", "only reads");
      await at.sayAndWait("show a.txt");
      await at.see(".call.returned", "Read");
      await at.sayAndWait("write a.txt with two");
      await at.see(".call.refused", "Write");
      assert.equal(at.file("a.txt"), "one\n");
      await at.picture("untrusted");
      await at.press(".strip.untrusted button", "Trust");
      await at.page.locator(".workspace-trust-editor .monaco-button", { hasText: "Trust" }).first().click();
      await at.gone(".strip.untrusted");
      await at.say("write a.txt with two");
      await at.answer("Allow once");
      await until("written", () => at.file("a.txt") === "two");
    },
  },

  /** A Python that cannot be run: one clear message, and a way on. */
  python: {
    settings: () => ({ "steadyhand.python": "/nowhere/python" }),
    async tell(stage) {
      const at = await stage.open("python", {}, { started: false, expected: /cannot be run/ });
      await at.see(".strip.stopped", "The Python of the setting steadyhand.python cannot be run: /nowhere/python.");
      await at.toast("cannot be run").waitFor();
      await at.picture("no-python");
    },
  },
};
