// The real VS Code for the stories: code-server, our vsix in it, and a browser before it.
//
// One code-server and one browser serve all stories; each opens its own folder in its own window, with a server and a
// state of its own, so that several can be told side by side. Everything lies in one temporary folder and ends with
// the stage; only processes started here are ended.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { pause, until } from "./waiting.mjs";
import { THEMES, Window } from "./window.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const started_ms_max = 60_000;
const ended_ms_max = 5_000;
const size = { width: 1_280, height: 800 };

const SETTINGS = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  // Light and dark follow the browser, which each window sets for itself.
  "window.autoDetectColorScheme": true,
  "workbench.preferredDarkColorTheme": THEMES.dark.name,
  "workbench.preferredLightColorTheme": THEMES.light.name,
  "telemetry.telemetryLevel": "off",
  "workbench.enableExperiments": false,
  "extensions.autoUpdate": false,
  "extensions.autoCheckUpdates": false,
  "extensions.ignoreRecommendations": true,
  "update.mode": "none",
  "chat.disableAIFeatures": true,
  "workbench.tips.enabled": false,
  "window.commandCenter": false,
  "window.title": "${activeEditorShort}${separator}${rootName}",
  "workbench.layoutControl.enabled": false,
  "workbench.editor.useModal": "off",
  "editor.minimap.enabled": false,
  "files.autoSave": "off",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.reduceMotion": "on",
  "git.enabled": false,
};

export class Stage {
  constructor({ codeServer, node, vsix, pictures, python, browserPath }) {
    Object.assign(this, { codeServer, node, vsix, pictures, python, browserPath });
    this.root = fs.mkdtempSync(path.join(os.tmpdir(), "stories-"));
    this.entry = path.join(codeServer, "node_modules/code-server/out/node/entry.js");
    this.troubles = [];
    for (const folder of ["user/User", "user/Machine", "extensions", "stories"]) fs.mkdirSync(path.join(this.root, folder), { recursive: true });
    if (pictures) fs.mkdirSync(pictures, { recursive: true });
  }

  /** The settings of the windows that are opened from now on: ours as given, the editor's with these changes. */
  use(changes) {
    const all = Object.entries({ ...SETTINGS, ...changes });
    // A browser is a remote editor: settings of the machine are read from the machine's own file.
    const write = (file, which) => fs.writeFileSync(path.join(this.root, "user", file, "settings.json"), JSON.stringify(Object.fromEntries(which), undefined, 1));
    write("Machine", all.filter(([name]) => name.startsWith("steadyhand.")));
    write("User", all.filter(([name]) => !name.startsWith("steadyhand.")));
  }

  /** Servers started by launch.py, each with a place of its own. */
  get launcher() {
    return { "steadyhand.server.command": [this.python, path.join(here, "launch.py")] };
  }

  async start() {
    const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
    const launched = chromium.launch({ executablePath: this.browserPath, headless: true, args });
    await this.startEditor();
    this.browser = await launched;
  }

  async startEditor() {
    this.use({});
    const common = ["--user-data-dir", path.join(this.root, "user"), "--extensions-dir", path.join(this.root, "extensions")];
    const env = {
      ...process.env,
      EXTENSIONS_GALLERY: "{}",
      STEADYHAND_STORIES: path.join(this.root, "stories"),
      ...Object.fromEntries(["CONFIG", "DATA", "CACHE", "STATE"].map((kind) => [`XDG_${kind}_HOME`, path.join(this.root, `xdg-${kind.toLowerCase()}`)])),
    };
    execFileSync(this.node, [this.entry, ...common, "--install-extension", this.vsix], { env, stdio: ["ignore", "ignore", "pipe"], timeout: started_ms_max });
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.log = path.join(this.pictures ?? this.root, "code-server.log");
    const log = fs.openSync(this.log, "w");
    const flags = ["--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override", "--disable-proxy"];
    this.server = spawn(this.node, [this.entry, ...common, "--bind-addr", `127.0.0.1:${port}`, ...flags, this.root], { env, stdio: ["ignore", log, log], detached: true });
    await until("code-server answers", async () => (await status(`${this.url}/healthz`)) === 200, started_ms_max);
  }

  /**
   * A window on a new folder with these files; `theme`: of THEMES, for the whole of its life; `started`: a server is
   * waited for; `expected`: what the console may say.
   */
  async open(name, files = {}, { theme, started = true, expected } = {}) {
    const folder = path.join(this.root, name);
    const place = path.join(this.root, "stories", name);
    fs.mkdirSync(folder, { recursive: true });
    fs.mkdirSync(place, { recursive: true });
    const own = theme === undefined ? {} : { ".vscode/settings.json": JSON.stringify({ "window.autoDetectColorScheme": false, "workbench.colorTheme": THEMES[theme].name }) };
    for (const [file, text] of Object.entries({ ...files, ...own })) {
      fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      fs.writeFileSync(path.join(folder, file), text);
    }
    const page = await this.browser.newPage({ viewport: size, colorScheme: "dark" });
    const at = new Window(this, page, folder, place, name);
    at.listen(expected);
    this.windows?.push(at);
    await at.load(started);
    return at;
  }

  async end() {
    await this.browser?.close();
    if (this.server?.pid) {
      const ended = new Promise((resolve) => this.server.once("exit", resolve));
      try {
        process.kill(-this.server.pid, "SIGTERM");
        await Promise.race([ended, pause(ended_ms_max)]);
      } catch {
        // it has ended already
      }
    }
    fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
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
