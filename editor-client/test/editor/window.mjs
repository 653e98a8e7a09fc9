// One window of the editor: what a user does there, and what is seen.
//
// Whatever is waited for has a limit. What went wrong is told with the end of the server's own words, by `words`.
import fs from "node:fs";
import path from "node:path";
import { shown_ms_max, until } from "./waiting.mjs";

const still_ms_max = 3_000;
const opened_ms_max = 4_000;
const words_lines_max = 20;

export const THEMES = {
  dark: { name: "Dark Modern", mark: "vs-dark" },
  light: { name: "Light Modern", mark: "vs:not(.vs-dark)" },
  contrast: { name: "Default High Contrast", mark: "hc-black" },
  contrastLight: { name: "Default High Contrast Light", mark: "hc-light" },
};

const READY = ["Ask", "Goes", "This session"].map((begin) => `.composer textarea[placeholder^='${begin}']`).join(", ");

export class Window {
  constructor(stage, page, folder, place, name) {
    Object.assign(this, { stage, page, folder, place, name });
    this.chat = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    this.box = this.chat.locator(".composer > .box textarea");
    page.setDefaultTimeout(shown_ms_max);
  }

  /** Errors of our page count; the editor's own noise and what is expected do not. */
  listen(expected = /(?!)/) {
    const note = (text) => this.over === true || this.stage.troubles.push(`${this.name}: ${text}`);
    this.page.on("pageerror", (error) => note(`page error: ${error.message.slice(0, 300)}`));
    this.page.on("console", (message) => {
      const text = message.text();
      const from = message.location().url;
      const noise = /spdlog|bindings file|native-watchdog/.test(text); // not built in the code-server of the tests
      const ours = !noise && !expected.test(text) && (/steadyhand/i.test(text) || from.includes("chat.js") || (from.includes("webview") && !from.includes("service-worker")));
      if (message.type() === "error" && ours) note(`console: ${text.slice(0, 300)} (${from.slice(-80)})`);
    });
  }

  async load(started = true) {
    await this.page.goto(`${this.stage.url}/?folder=${encodeURIComponent(this.folder)}`);
    await this.page.locator(".monaco-workbench").waitFor();
    await this.showChat();
    if (started) await this.ready();
  }

  async showChat() {
    const icon = this.page.locator('.activitybar a.action-label[aria-label^="Steadyhand"]');
    await icon.waitFor();
    if (!(await this.page.locator("iframe.webview.ready").count())) await icon.click();
    await this.box.waitFor();
  }

  ready() {
    return this.chat.locator(READY).first().waitFor();
  }

  // --- the chat ---------------------------------------------------------------------------------------------

  async say(text) {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  /** Sends it and waits for the end of the turn. */
  async sayAndWait(text) {
    await this.say(text);
    await this.see(".message.user", text.split("\n")[0]);
    await this.idle();
  }

  idle() {
    return until("the turn ended", async () => (await this.chat.locator(".round.stop").count()) === 0);
  }

  answer(label) {
    return this.chat.locator(".question .buttons button", { hasText: label }).first().click();
  }

  see(selector, text) {
    return this.chat.locator(selector, text === undefined ? undefined : { hasText: text }).first().waitFor();
  }

  gone(selector, text) {
    return this.chat.locator(selector, text === undefined ? undefined : { hasText: text }).first().waitFor({ state: "detached" });
  }

  press(selector, text) {
    return this.chat.locator(selector, text === undefined ? undefined : { hasText: text }).first().click();
  }

  // --- the editor -------------------------------------------------------------------------------------------

  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input").first();
    await input.waitFor();
    await input.fill(`>${title}`);
    // Enter takes the row that has the focus, which may still be one of the list before.
    await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: title }).first().waitFor();
    await this.page.keyboard.press("Enter");
  }

  /** A choice of an open quick pick, by its text. */
  async pick(text) {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().waitFor();
    await this.page.locator(".quick-input-widget input").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** The text of an open input box. */
  async fill(title, text) {
    await this.page.locator(".quick-input-widget", { hasText: title }).first().waitFor();
    await this.page.locator(".quick-input-widget input").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  async closeTab(text) {
    await this.tab(text).click({ button: "middle" });
    await this.tab(text).waitFor({ state: "detached" });
  }

  async openFile(name) {
    const soon = { timeout: opened_ms_max };
    await this.page.locator(".part.statusbar").click({ position: { x: 640, y: 10 } }); // out of the chat
    // Asked again where it closed by itself, which it does when the focus moves.
    await until(`${name} is offered`, async () => {
      try {
        await this.page.keyboard.press("Control+p");
        await this.page.locator(".quick-input-widget input").first().fill(name, soon);
        await this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: name }).first().waitFor(soon);
        return true;
      } catch {
        return false;
      }
    });
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.tab.active[aria-label*="${name}"]`).first().waitFor();
  }

  /** A line of an open text. */
  line(text) {
    return this.page.locator(".monaco-editor .view-line", { hasText: text }).first();
  }

  /** A line of an open diff. */
  diffLine(text) {
    return this.page.locator(".monaco-diff-editor .view-line", { hasText: text }).first();
  }

  tab(text) {
    return this.page.locator(".tab", { hasText: text }).first();
  }

  toast(text) {
    return this.page.locator(".notification-toast", { hasText: text }).first();
  }

  dialog(text) {
    return this.page.locator(".monaco-dialog-box", { hasText: text }).first();
  }

  dialogButton(label) {
    return this.page.locator(".monaco-dialog-box .monaco-button", { hasText: label }).first();
  }

  async dismissToasts() {
    await this.command("Notifications: Clear All Notifications");
    await until("no message is left", async () => (await this.page.locator(".notification-toast").count()) === 0);
  }

  /** A row of the list of uncertain effects. */
  effect(text) {
    return this.page.locator(".pane-body .monaco-list-row", { hasText: text }).first();
  }

  async pressEffect(row, label) {
    await row.hover();
    await row.locator(`.action-label[aria-label^="${label}"]`).first().click();
  }

  // --- the world --------------------------------------------------------------------------------------------

  file(name) {
    const found = path.join(this.folder, name);
    return fs.existsSync(found) ? fs.readFileSync(found, "utf8") : undefined;
  }

  /** The next server of this window dies like this. */
  plant(faults) {
    fs.writeFileSync(path.join(this.place, "faults.json"), JSON.stringify(faults));
  }

  /** The pid of the server that runs now. */
  pid() {
    return Number(this.starts().at(-1));
  }

  /** The pids of all servers so far, oldest first. */
  starts() {
    const pids = path.join(this.place, "pids");
    return fs.existsSync(pids) ? fs.readFileSync(pids, "utf8").trim().split("\n") : [];
  }

  /** Until the editor keeps this text for a next start of the window. */
  kept(text) {
    return until(`kept for the next start: ${text}`, () => this.page.evaluate(holdsText, text));
  }

  // --- pictures ---------------------------------------------------------------------------------------------

  /** Taken when two looks in a row are the same: animations are over, texts are there. */
  async picture(name, { keepMouse = false } = {}) {
    if (!keepMouse) {
      await this.page.mouse.move(900, 500); // no tooltip over what is shown
      await until("no tooltip", async () => (await this.page.locator(".workbench-hover:visible").count()) === 0, still_ms_max).catch(() => undefined);
    }
    let shown = await this.look();
    const end = Date.now() + still_ms_max;
    for (let next = await this.look(); !next.equals(shown) && Date.now() < end; next = await this.look()) shown = next;
    fs.writeFileSync(path.join(this.stage.pictures, `${name}.png`), shown);
  }

  /** In the dark theme and in the light one. */
  async pictures(name, options) {
    await this.picture(name, options);
    await this.theme("light");
    await this.picture(`${name}-light`, options);
    await this.theme("dark");
  }

  look() {
    return this.page.screenshot({ animations: "disabled" });
  }

  async theme(kind) {
    await this.page.emulateMedia({ colorScheme: kind });
    await this.page.locator(`.monaco-workbench.${THEMES[kind].mark}`).waitFor();
  }

  /** The end of what its servers said. */
  words() {
    const file = path.join(this.place, "stderr");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim().split("\n").slice(-words_lines_max).join("\n") : "";
  }

  /** What the editor says of its own end is nobody's trouble. */
  close() {
    this.over = true;
    return this.page.close();
  }
}

/** In the page: whether any value of the editor's own storage holds this text. */
async function holdsText(text) {
  for (const { name } of await indexedDB.databases()) {
    if (!name.startsWith("vscode-web-state-db")) continue;
    const database = await new Promise((resolve, reject) => {
      const asked = indexedDB.open(name);
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
    const values = await new Promise((resolve, reject) => {
      const asked = database.transaction("ItemTable").objectStore("ItemTable").getAll();
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
    database.close();
    if (values.some((value) => String(value).includes(text))) return true;
  }
  return false;
}
