// The real VS Code for the stories: code-server, our vsix in it, and a browser before it.
//
// One code-server serves all stories; each opens its own folder in its own page, with a server and a state of its
// own. Everything lies in one temporary folder and ends with the stage; only processes started here are ended.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const here = path.dirname(fileURLToPath(import.meta.url));
const started_ms_max = 90_000;
export const shown_ms_max = 60_000;

const THEMES = {
  dark: { name: "Default Dark Modern", mark: "vs-dark" },
  light: { name: "Default Light Modern", mark: "vs:not(.vs-dark)" },
  contrast: { name: "Default High Contrast", mark: "hc-black" },
};

const SETTINGS = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.colorTheme": THEMES.dark.name,
  "telemetry.telemetryLevel": "off",
  "workbench.enableExperiments": false,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "chat.disableAIFeatures": true,
  "workbench.tips.enabled": false,
  "window.commandCenter": false,
  "editor.minimap.enabled": false,
  "files.autoSave": "off",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.reduceMotion": "on",
  "git.enabled": false,
};

export class Stage {
  constructor({ codeServer, node, vsix, pictures, python, browserPath }) {
    Object.assign(this, { codeServer, node, vsix, pictures, python, browserPath });
    this.root = fs.mkdtempSync(path.join(os.tmpdir(), "steadyhand-editor-"));
    this.entry = path.join(codeServer, "node_modules/code-server/out/node/entry.js");
    this.troubles = [];
    this.settings = { ...SETTINGS };
    for (const folder of ["user/User", "user/Machine", "extensions", "stories"]) fs.mkdirSync(path.join(this.root, folder), { recursive: true });
    if (pictures) fs.mkdirSync(pictures, { recursive: true });
  }

  /** Change user settings; the running editor takes them up. */
  set(changes) {
    Object.assign(this.settings, changes);
    for (const [name, value] of Object.entries(this.settings)) if (value === undefined) delete this.settings[name];
    // A browser is a remote editor: settings of the machine are read from the machine's own file.
    const all = Object.entries(this.settings);
    const machine = all.filter(([name]) => name.startsWith("steadyhand."));
    const user = all.filter(([name]) => !name.startsWith("steadyhand."));
    fs.writeFileSync(path.join(this.root, "user", "Machine", "settings.json"), JSON.stringify(Object.fromEntries(machine), undefined, 1));
    fs.writeFileSync(path.join(this.root, "user", "User", "settings.json"), JSON.stringify(Object.fromEntries(user), undefined, 1));
  }

  /** From now on servers are started by launch.py, with a place of their own. */
  useLauncher() {
    this.set({ "steadyhand.server.command": [this.python, path.join(here, "launch.py")] });
  }

  async start() {
    await this.startEditor();
    const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
    this.browser = await chromium.launch({ executablePath: this.browserPath, headless: true, args });
  }

  async startEditor() {
    this.set({});
    const common = ["--user-data-dir", path.join(this.root, "user"), "--extensions-dir", path.join(this.root, "extensions")];
    const env = {
      ...process.env,
      EXTENSIONS_GALLERY: "{}",
      STEADYHAND_STORIES: path.join(this.root, "stories"),
      ...Object.fromEntries(["CONFIG", "DATA", "CACHE", "STATE"].map((kind) => [`XDG_${kind}_HOME`, path.join(this.root, `xdg-${kind.toLowerCase()}`)])),
    };
    execFileSync(this.node, [this.entry, ...common, "--install-extension", this.vsix], { env, stdio: ["ignore", "ignore", "pipe"] });
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    const log = fs.openSync(path.join(this.pictures ?? this.root, "code-server.log"), "w");
    const flags = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust", "--disable-getting-started-override", "--disable-proxy"];
    this.server = spawn(this.node, [this.entry, ...common, "--bind-addr", `127.0.0.1:${port}`, ...flags, this.root], { env, stdio: ["ignore", log, log], detached: true });
    const until = Date.now() + started_ms_max;
    while ((await status(`${this.url}/healthz`)) !== 200) {
      if (Date.now() > until) throw new Error("code-server did not start");
      await pause(200);
    }
  }

  /** A window on a new folder with these files. */
  async open(name, files = {}) {
    const folder = path.join(this.root, name);
    const place = path.join(this.root, "stories", name);
    fs.mkdirSync(folder, { recursive: true });
    fs.mkdirSync(place, { recursive: true });
    for (const [file, text] of Object.entries(files)) fs.writeFileSync(path.join(folder, file), text);
    const page = await this.browser.newPage({ viewport: { width: 1280, height: 800 } });
    const scene = new Window(this, page, folder, place, name);
    scene.listen();
    await scene.load();
    return scene;
  }

  async end() {
    await this.browser?.close();
    if (this.server?.pid) {
      try {
        process.kill(-this.server.pid, "SIGTERM");
      } catch {
        // it has ended already
      }
    }
    await pause(1_000);
    fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  }
}

/** One window of the editor, with what a user does there. */
export class Window {
  constructor(stage, page, folder, place, name) {
    Object.assign(this, { stage, page, folder, place, name });
    this.expected = /(?!)/;
    this.chat = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
    this.box = this.chat.locator(".composer > .box textarea");
  }

  /** Errors of our page count; the editor's own noise does not. */
  listen() {
    const note = (text) => this.stage.troubles.push(`${this.name}: ${text}`);
    this.page.on("pageerror", (error) => note(`page error: ${error.message.slice(0, 300)}`));
    this.page.on("console", (message) => {
      const text = message.text();
      const from = message.location().url;
      const noise = /spdlog|bindings file|native-watchdog/.test(text); // not built in the code-server of the tests
      const ours = !noise && !this.expected.test(text) && (/steadyhand/i.test(text) || from.includes("chat.js") || (from.includes("webview") && !from.includes("service-worker")));
      if (message.type() === "error" && ours) note(`console: ${text.slice(0, 300)} (${from.slice(-80)})`);
    });
  }

  async load() {
    await this.page.goto(`${this.stage.url}/?folder=${encodeURIComponent(this.folder)}`);
    await this.page.locator(".monaco-workbench").waitFor({ timeout: shown_ms_max });
    const icon = this.page.locator('.activitybar a.action-label[aria-label^="Steadyhand"]');
    await icon.waitFor({ timeout: shown_ms_max });
    if (!(await this.page.locator("iframe.webview.ready").count())) await icon.click();
    await this.box.waitFor({ timeout: shown_ms_max });
    await this.ready();
  }

  async ready() {
    await this.chat.locator(".composer textarea[placeholder^='Ask'], .composer textarea[placeholder^='Goes'], .composer textarea[placeholder^='This session']").first().waitFor({ timeout: shown_ms_max });
  }

  async say(text) {
    await this.box.fill(text);
    await this.box.press("Enter");
  }

  async answer(label) {
    await this.chat.locator(".question .buttons button", { hasText: label }).first().click({ timeout: shown_ms_max });
  }

  see(selector, text) {
    return this.chat.locator(selector, text === undefined ? undefined : { hasText: text }).first().waitFor({ timeout: shown_ms_max });
  }

  async command(title) {
    await this.page.keyboard.press("F1");
    const input = this.page.locator(".quick-input-widget input").first();
    await input.waitFor({ timeout: shown_ms_max });
    await input.fill(`>${title}`);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor({ timeout: shown_ms_max });
    await this.page.keyboard.press("Enter");
  }

  async closeEditor() {
    await this.command("View: Close Editor");
  }

  async openFile(name) {
    await this.page.locator(".monaco-workbench").click({ position: { x: 640, y: 5 } });
    await this.page.keyboard.press("Control+p");
    await this.page.locator(".quick-input-widget input").first().fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().waitFor({ timeout: shown_ms_max });
    await this.page.keyboard.press("Enter");
    await this.page.locator(`.tab[aria-label*="${name}"]`).first().waitFor({ timeout: shown_ms_max });
  }

  toast(text) {
    return this.page.locator(".notification-toast", { hasText: text }).first();
  }

  async dismissToasts() {
    await this.command("Notifications: Clear All Notifications");
    await pause(300);
  }

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
    return Number(fs.readFileSync(path.join(this.place, "pids"), "utf8").trim().split("\n").at(-1));
  }

  async picture(name) {
    await this.page.mouse.move(900, 16); // no tooltip over what is shown
    await pause(500); // animations of the editor's own
    await this.page.screenshot({ path: path.join(this.stage.pictures, `${name}.png`) });
  }

  async theme(kind) {
    const { name, mark } = THEMES[kind];
    this.stage.set({ "workbench.colorTheme": name });
    await this.page.locator(`.monaco-workbench.${mark}`).waitFor({ timeout: shown_ms_max });
    await pause(500);
  }

  close() {
    return this.page.close();
  }
}

export async function until(what, holds, ms = shown_ms_max) {
  const end = Date.now() + ms;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await pause(50);
  }
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function freePort() {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function status(url) {
  return new Promise((resolve) => {
    http.get(url, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on("error", () => resolve(0));
  });
}
