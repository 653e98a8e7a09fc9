// The real VS Code for the scenarios: code-server with our vsix, shown in a browser.
//
// All scenarios share one code-server and one browser. Each scenario opens its own folder in its own window, with its
// own server and state, so several can run at the same time. Everything is in one temporary folder. `end` removes the
// folder and ends the processes that were started here.
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
const STARTED_MAX_MS = 60_000;
const ENDED_MAX_MS = 5_000;
const WINDOW_SIZE = { width: 1_280, height: 800 };

const SETTINGS = {
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  // Light and dark follow the browser. Each window sets them.
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

export class TestEditor {
  constructor({ codeServer, node, vsix, pictures, python, browserPath }) {
    Object.assign(this, { codeServer, node, vsix, pictures, python, browserPath });
    this.root = fs.mkdtempSync(path.join(os.tmpdir(), "scenarios-"));
    this.entry = path.join(codeServer, "node_modules/code-server/out/node/entry.js");
    this.problems = [];
    this.isPlayedAgain = false;
    for (const folder of ["user/User", "user/Machine", "extensions", "scenarios"]) {
      fs.mkdirSync(path.join(this.root, folder), { recursive: true });
    }
    if (pictures) fs.mkdirSync(pictures, { recursive: true });
  }

  /** Set the settings of all windows that open from now on. */
  applySettings(changes) {
    const all = Object.entries({ ...SETTINGS, ...changes });
    const isMachineSetting = ([name]) => name.startsWith("steadyhand.");
    // In a browser VS Code is a remote editor, which reads the settings of the machine from a file of its own.
    this.writeSettings("Machine", all.filter(isMachineSetting));
    this.writeSettings(
      "User",
      all.filter((one) => !isMachineSetting(one)),
    );
  }

  writeSettings(kind, entries) {
    const file = path.join(this.root, "user", kind, "settings.json");
    fs.writeFileSync(file, JSON.stringify(Object.fromEntries(entries), undefined, 1));
  }

  /** Settings that start each server with launch.py, which gives each window its own state. */
  get launcherSettings() {
    return {
      "steadyhand.server.command": [this.python, path.join(here, "launch.py")],
      "steadyhand.sandbox.mode": "off", // a confined command ends with its server, and scenarios need survivors
    };
  }

  /** The same for a folder that is not trusted: there the server does not start in the folder. */
  launcherSettingsFor(name) {
    const scenario = `--scenario=${this.folderName(name)}`;
    return { "steadyhand.server.command": [this.python, path.join(here, "launch.py"), scenario] };
  }

  /** The name of the folder and of the state for this name. A scenario that is played again gets new ones. */
  folderName(name) {
    return this.isPlayedAgain ? `${name}-again` : name;
  }

  /** The workspace folder of this name. */
  folder(name) {
    return path.join(this.root, this.folderName(name));
  }

  /** The folder with the server's state for the workspace folder of this name. */
  stateFolder(name) {
    return path.join(this.root, "scenarios", this.folderName(name));
  }

  async start() {
    const args = [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ];
    const launched = chromium.launch({ executablePath: this.browserPath, headless: true, args });
    await this.startEditor();
    this.browser = await launched;
  }

  async startEditor() {
    this.applySettings({});
    const common = [
      "--user-data-dir",
      path.join(this.root, "user"),
      "--extensions-dir",
      path.join(this.root, "extensions"),
    ];
    const env = {
      ...process.env,
      EXTENSIONS_GALLERY: "{}",
      STEADYHAND_SCENARIOS: path.join(this.root, "scenarios"),
      ...Object.fromEntries(
        ["CONFIG", "DATA", "CACHE", "STATE"].map((kind) => [
          `XDG_${kind}_HOME`,
          path.join(this.root, `xdg-${kind.toLowerCase()}`),
        ]),
      ),
    };
    execFileSync(this.node, [this.entry, ...common, "--install-extension", this.vsix], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
      timeout: STARTED_MAX_MS,
    });
    const port = await freePort();
    this.url = `http://127.0.0.1:${port}`;
    this.log = path.join(this.pictures ?? this.root, "code-server.log");
    const log = fs.openSync(this.log, "w");
    const flags = [
      "--auth",
      "none",
      "--disable-telemetry",
      "--disable-update-check",
      "--disable-getting-started-override",
      "--disable-proxy",
    ];
    this.server = spawn(this.node, [this.entry, ...common, "--bind-addr", `127.0.0.1:${port}`, ...flags, this.root], {
      env,
      stdio: ["ignore", log, log],
      detached: true,
    });
    await until("code-server answers", async () => (await status(`${this.url}/healthz`)) === 200, STARTED_MAX_MS);
  }

  /**
   * Open a window on a new folder with these files. `theme`: a name in THEMES; `started`: whether to wait for a server;
   * `expected`: matches the errors that the console may show; `beside`: other folders of the window.
   */
  async open(name, files = {}, { theme, started = true, expected, beside = [] } = {}) {
    const folder = this.folder(name);
    const stateFolder = this.stateFolder(name);
    fs.mkdirSync(folder, { recursive: true });
    fs.mkdirSync(stateFolder, { recursive: true });
    for (const [file, text] of Object.entries({ ...files, ...themeSettings(theme) })) {
      fs.mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
      fs.writeFileSync(path.join(folder, file), text);
    }
    const page = await this.browser.newPage({ viewport: WINDOW_SIZE, colorScheme: "dark" });
    const window = new Window(this, page, folder, stateFolder, name);
    window.listen(expected);
    this.windows?.push(window);
    if (beside.length > 0) window.workspaceFile = writeWorkspace(stateFolder, [folder, ...beside]);
    await window.load(started);
    return window;
  }

  async end() {
    await this.browser?.close();
    if (this.server?.pid) {
      const ended = new Promise((resolve) => this.server.once("exit", resolve));
      try {
        process.kill(-this.server.pid, "SIGTERM");
        await Promise.race([ended, pause(ENDED_MAX_MS)]);
      } catch {
        // it has ended already
      }
    }
    fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

/** A workspace file with these folders. */
function writeWorkspace(stateFolder, folders) {
  const file = path.join(stateFolder, "window.code-workspace");
  fs.writeFileSync(file, JSON.stringify({ folders: folders.map((folder) => ({ path: folder })) }));
  return file;
}

/** A settings file of the folder that fixes the theme; none for the theme of the browser. */
function themeSettings(theme) {
  if (theme === undefined) return {};
  const settings = { "window.autoDetectColorScheme": false, "workbench.colorTheme": THEMES[theme].name };
  return { ".vscode/settings.json": JSON.stringify(settings) };
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
    http
      .get(url, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      })
      .on("error", () => resolve(0));
  });
}
