// One window of the editor: what a user does there, and what the window shows.
//
// Every wait has a limit. After a failure `serverLog` gives the end of what the servers of the window wrote.
import fs from "node:fs";
import path from "node:path";
import { SHOWN_MAX_MS, until } from "./waiting.mjs";

const STILL_MAX_MS = 3_000;
const OPENED_MAX_MS = 4_000;
const HOVERED_MAX_MS = 4_000;
const LOG_LINES_MAX = 20;

export const THEMES = {
  dark: { name: "Dark Modern", mark: "vs-dark" },
  light: { name: "Light Modern", mark: "vs:not(.vs-dark)" },
  contrast: { name: "Default High Contrast", mark: "hc-black" },
  contrastLight: { name: "Default High Contrast Light", mark: "hc-light" },
};

const READY = ["Ask", "Queue", "This session"].map((begin) => `.composer textarea[placeholder^='${begin}']`).join(", ");

export class Window {
  constructor(editor, page, folder, stateFolder, name) {
    Object.assign(this, { editor, page, folder, stateFolder, name });
    this.chat = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    this.box = this.chat.locator(".composer > .box textarea");
    page.setDefaultTimeout(SHOWN_MAX_MS);
  }

  /** Collect the errors of our page. Errors of the editor itself and those that match `expected` do not count. */
  listen(expected = /(?!)/) {
    const note = (text) => this.isClosing === true || this.editor.problems.push(`${this.name}: ${text}`);
    this.page.on("pageerror", (error) => note(`page error: ${error.message.slice(0, 300)}`));
    this.page.on("console", (message) => {
      const text = message.text();
      const from = message.location().url;
      const noise = /spdlog|bindings file|native-watchdog/.test(text); // not built in the code-server of the tests
      const ours =
        !noise &&
        !expected.test(text) &&
        (/steadyhand/i.test(text) ||
          from.includes("chat.js") ||
          (from.includes("webview") && !from.includes("service-worker")));
      if (message.type() === "error" && ours) note(`console: ${text.slice(0, 300)} (${from.slice(-80)})`);
    });
  }

  async load(started = true) {
    const opened = this.workspaceFile === undefined ? ["folder", this.folder] : ["workspace", this.workspaceFile];
    await this.page.goto(`${this.editor.url}/?${opened[0]}=${encodeURIComponent(opened[1])}`);
    await this.page.locator(".monaco-workbench").waitFor();
    await this.showChat();
    if (started) await this.waitReady();
  }

  async showChat() {
    const icon = this.page.locator('.activitybar a.action-label[aria-label^="Steadyhand"]');
    await icon.waitFor();
    if (!(await this.page.locator("iframe.webview.ready").count())) await icon.click();
    await this.box.waitFor();
  }

  waitReady() {
    return this.chat.locator(READY).first().waitFor();
  }

  // --- the chat ---------------------------------------------------------------------------------------------

  async send(text) {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  /** Send a prompt and wait until its turn has ended. */
  async sendAndWait(text) {
    await this.send(text);
    await this.waitFor(".message.user", text.split("\n")[0]);
    await this.waitIdle();
  }

  waitIdle() {
    return until("the turn ended", async () => (await this.chat.locator(".round.stop").count()) === 0);
  }

  answer(label) {
    return this.chat.locator(".question .buttons button", { hasText: label }).first().click();
  }

  waitFor(selector, text) {
    return this.chat
      .locator(selector, text === undefined ? undefined : { hasText: text })
      .first()
      .waitFor();
  }

  waitGone(selector, text) {
    return this.chat
      .locator(selector, text === undefined ? undefined : { hasText: text })
      .first()
      .waitFor({ state: "detached" });
  }

  click(selector, text) {
    return this.chat
      .locator(selector, text === undefined ? undefined : { hasText: text })
      .first()
      .click();
  }

  /**
   * Record from now on when each banner appears. A banner can be gone before a locator looks: a killed server is back
   * within a fraction of a second.
   */
  recordBanners() {
    return this.chat.locator("body").evaluate((body) => {
      window.bannersShown = [];
      new MutationObserver(() => {
        const shown = body.querySelector(".banner.lost, .banner.stopped");
        if (shown !== null) window.bannersShown.push({ kind: shown.className, timeMs: Date.now() });
      }).observe(body, { childList: true, subtree: true, attributes: true, attributeFilter: ["class"] });
    });
  }

  /** Milliseconds from `sinceMs`, a time of `Date.now()`, until the recorded banner of this kind appeared. */
  async bannerDelay(kind, sinceMs) {
    const shown = await until(`the banner ${kind} appears`, () =>
      this.chat
        .locator("body")
        .evaluate(
          (_, [wanted, since]) =>
            window.bannersShown.find((banner) => banner.kind.includes(wanted) && banner.timeMs >= since),
          [kind, sinceMs],
        ),
    );
    return shown.timeMs - sinceMs;
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

  /** Choose a row of the open quick pick by its text. */
  async pick(text) {
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: text }).first().waitFor();
    await this.page.locator(".quick-input-widget input").first().fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Fill the open input box and accept it. */
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
    const soon = { timeout: OPENED_MAX_MS };
    await this.page.locator(".part.statusbar").click({ position: { x: 640, y: 10 } }); // out of the chat
    // Open it again if it closes, which it does when the focus moves.
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

  /**
   * Click an action of this row. The list shows actions only under the mouse, and it can be drawn again, or move, after
   * the mouse came there: then the mouse moves away and comes again.
   */
  async clickEffectAction(row, label) {
    const action = row.locator(`.action-label[aria-label^="${label}"]`).first();
    await action.waitFor({ state: "attached" });
    await until(`${label} is clicked`, async () => {
      try {
        await this.page.locator(".part.statusbar").hover();
        await row.hover({ timeout: HOVERED_MAX_MS });
        await action.click({ timeout: HOVERED_MAX_MS });
        return true;
      } catch (error) {
        if (error.name !== "TimeoutError") throw error;
        return false;
      }
    });
  }

  // --- files and servers --------------------------------------------------------------------------------------------

  file(name) {
    const found = path.join(this.folder, name);
    return fs.existsSync(found) ? fs.readFileSync(found, "utf8") : undefined;
  }

  /** The next server of this window ends at these faults. */
  injectFaults(faults) {
    fs.writeFileSync(path.join(this.stateFolder, "faults.json"), JSON.stringify(faults));
  }

  /** The pid of the server that runs now. */
  pid() {
    return Number(this.starts().at(-1));
  }

  /** The pids of all servers so far, oldest first. */
  starts() {
    const pids = path.join(this.stateFolder, "pids");
    return fs.existsSync(pids) ? fs.readFileSync(pids, "utf8").trim().split("\n") : [];
  }

  /** Wait until the editor has stored this text for the next start of the window. */
  waitStored(text) {
    return until(`stored for the next start: ${text}`, () => this.page.evaluate(isInStorage, text));
  }

  // --- pictures ---------------------------------------------------------------------------------------------

  /** Take a picture when two screenshots in a row are equal: animations are over and texts are there. */
  async picture(name, { keepMouse = false } = {}) {
    if (!keepMouse) {
      await this.page.mouse.move(900, 500); // no tooltip over what is shown
      await until(
        "no tooltip",
        async () => (await this.page.locator(".workbench-hover:visible").count()) === 0,
        STILL_MAX_MS,
      ).catch(() => undefined);
    }
    let shown = await this.screenshot();
    const end = Date.now() + STILL_MAX_MS;
    for (let next = await this.screenshot(); !next.equals(shown) && Date.now() < end; next = await this.screenshot())
      shown = next;
    fs.writeFileSync(path.join(this.editor.pictures, `${name}.png`), shown);
  }

  /** In the dark theme and in the light one. */
  async pictures(name, options) {
    await this.picture(name, options);
    await this.theme("light");
    await this.picture(`${name}-light`, options);
    await this.theme("dark");
  }

  screenshot() {
    return this.page.screenshot({ animations: "disabled" });
  }

  async theme(kind) {
    await this.page.emulateMedia({ colorScheme: kind });
    await this.page.locator(`.monaco-workbench.${THEMES[kind].mark}`).waitFor();
  }

  /** The last lines that the servers of this window wrote to stderr. */
  serverLog() {
    const file = path.join(this.stateFolder, "stderr");
    return fs.existsSync(file) ? fs.readFileSync(file, "utf8").trim().split("\n").slice(-LOG_LINES_MAX).join("\n") : "";
  }

  /** Errors during the close do not count. */
  close() {
    this.isClosing = true;
    return this.page.close();
  }
}

/** Runs in the page: whether a value in the storage of the editor contains this text. */
async function isInStorage(text) {
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
