/**
 * The language client: starts the server, starts it again after a crash, and says how the connection stands.
 *
 * Three ends are told apart. *Lost*: the server ended and is being started again. *Silent*: it lives and has not
 * answered a sign of life for `silent_ms_max`; nothing is killed because of that. *Stopped*: it does not come back by
 * itself (no Python, or it ended too often), until the user starts it again. What the server sends is handed on as
 * it comes; this room knows no sessions.
 */
import * as vscode from "vscode";
import type { LanguageClientOptions, ShowMessageParams, StaticFeature } from "vscode-languageclient/node";
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import type { Commands, NotificationsToEditor, RequestsToEditor, RequestsToServer } from "./protocol";
import { afterCrash } from "./restart";
import type { Link } from "./store";
import type { Nested } from "./settings";
import { machineSettings } from "./settings";
import { pythonProgram } from "./program";

export const silent_ms_max = 5_000;
const sign_of_life_ms = 2_000;
const stop_ms_max = 6_000;

export type Told = {
  [Method in keyof NotificationsToEditor]: { readonly method: Method; readonly params: NotificationsToEditor[Method] };
}[keyof NotificationsToEditor];

/** What the editor side answers; `withdrawn` fires when the server needs no answer any more. */
export type Answers = {
  [Method in keyof RequestsToEditor]: (
    params: RequestsToEditor[Method]["params"],
    withdrawn: vscode.CancellationToken,
  ) => Promise<RequestsToEditor[Method]["result"]>;
};

/** Runs a server command that a code action or lens named; `next` sends it. */
export type AroundCommand = (command: string, next: () => Promise<unknown>) => Promise<unknown>;

export type Level = "error" | "warning" | "info";
const LEVELS: Readonly<Record<number, Level>> = { 1: "error", 2: "warning" };

function settingsNow(): Nested {
  const configuration = vscode.workspace.getConfiguration("steadyhand");
  return machineSettings((name) => configuration.inspect(name)?.globalValue, vscode.workspace.isTrusted);
}

const ABILITIES: StaticFeature = {
  fillClientCapabilities(capabilities) {
    const experimental = (capabilities.experimental ?? {}) as Record<string, unknown>;
    capabilities.experimental = { ...experimental, steadyhand: { permission: true, userAsk: true, save: true, secret: true } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

export class Connection implements vscode.Disposable {
  private readonly linked = new vscode.EventEmitter<Link>();
  private readonly told = new vscode.EventEmitter<Told>();
  private readonly messages = new vscode.EventEmitter<{ readonly level: Level; readonly text: string }>();
  readonly onLink = this.linked.event;
  readonly onTold = this.told.event;
  readonly onMessage = this.messages.event;

  private client: LanguageClient | undefined;
  private link: Link = { state: "starting", text: "Starting…" };
  private crashes: readonly number[] = [];
  private wanted = false;
  private pulse: NodeJS.Timeout | undefined;
  private asked: number | undefined;

  /** `probe`: a cheap request whose answer shows that the server lives; undefined when there is nothing to ask. */
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
    private readonly answers: Answers,
    private readonly aroundCommand: AroundCommand,
    private readonly probe: () => Promise<unknown> | undefined,
  ) {}

  get standing(): Link {
    return this.link;
  }

  /** Start, or start again after it stopped for good. */
  async start(): Promise<void> {
    await this.stop();
    this.wanted = true;
    this.crashes = [];
    this.setLink({ state: "starting", text: "Starting the server…" });
    const found = await pythonProgram(this.context, this.output);
    if ("trouble" in found) {
      this.setLink({ state: "stopped", text: found.trouble });
      return;
    }
    const client = new LanguageClient("steadyhand", "Steadyhand", found.program, this.options());
    this.client = client;
    client.registerFeature(ABILITIES);
    this.listen(client);
    try {
      await client.start();
    } catch (error) {
      this.output.error(`The server did not start: ${String(error)}`);
      this.setLink({ state: "stopped", text: "The server did not start. The log says why." });
    }
  }

  async stop(): Promise<void> {
    this.wanted = false;
    clearInterval(this.pulse);
    const client = this.client;
    this.client = undefined;
    if (client === undefined) return;
    try {
      await client.dispose(stop_ms_max);
    } catch (error) {
      this.output.warn(`Stopping the server: ${String(error)}`);
    }
  }

  dispose(): void {
    void this.stop();
    this.linked.dispose();
    this.told.dispose();
    this.messages.dispose();
  }

  async request<Method extends keyof RequestsToServer>(
    method: Method,
    params: RequestsToServer[Method]["params"],
  ): Promise<RequestsToServer[Method]["result"]> {
    return this.running().sendRequest<RequestsToServer[Method]["result"]>(method, params);
  }

  async command<Name extends keyof Commands>(name: Name, ...args: Commands[Name]["arguments"]): Promise<Commands[Name]["result"]> {
    return this.running().sendRequest<Commands[Name]["result"]>("workspace/executeCommand", { command: name, arguments: args });
  }

  /** One of the server's virtual texts. */
  async text(uri: string): Promise<string> {
    return (await this.running().sendRequest<{ readonly text: string }>("workspace/textDocumentContent", { uri })).text;
  }

  /** Settings of this machine changed. */
  async tellSettings(): Promise<void> {
    if (this.client?.state !== State.Running) return;
    await this.client.sendNotification("workspace/didChangeConfiguration", { settings: { steadyhand: { machine: settingsNow() } } });
  }

  private running(): LanguageClient {
    if (this.client?.state !== State.Running) throw new Error("Steadyhand is not connected.");
    return this.client;
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: settingsNow,
      initializationFailedHandler: () => false,
      diagnosticCollectionName: "steadyhand",
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: this.afterEnd(), handled: true }),
      },
      middleware: {
        handleWorkDoneProgress: () => undefined, // our own status item and the chat show it
        executeCommand: async (command, args: unknown[], next) =>
          this.aroundCommand(command, async () => this.commandOf(command, args, next)),
        provideCodeLenses: async (document, token, next) => inOneLine((await next(document, token)) ?? []),
      },
    };
  }

  /** The request itself, so that an error reaches whoever shows it instead of a second message of the client. */
  private async commandOf(command: string, args: unknown[], next: (command: string, args: unknown[]) => unknown): Promise<unknown> {
    if (this.client?.state !== State.Running) return next(command, args);
    return this.client.sendRequest("workspace/executeCommand", { command, arguments: args });
  }

  private listen(client: LanguageClient): void {
    client.onDidChangeState(({ newState }) => {
      if (client !== this.client) return;
      if (newState === State.Running) this.setReady();
    });
    for (const method of ["steadyhand/turn/event", "steadyhand/recovery/changed", "steadyhand/session/changed", "steadyhand/queue/changed"] as const) {
      client.onNotification(method, (params: unknown) => this.told.fire({ method, params } as Told));
    }
    client.onNotification("window/showMessage", ({ type, message }: ShowMessageParams) => {
      this.messages.fire({ level: LEVELS[type] ?? "info", text: message });
    });
    const answers = this.answers;
    client.onRequest("steadyhand/permission/ask", (params: RequestsToEditor["steadyhand/permission/ask"]["params"], token: vscode.CancellationToken) => answers["steadyhand/permission/ask"](params, token));
    client.onRequest("steadyhand/user/ask", (params: RequestsToEditor["steadyhand/user/ask"]["params"], token: vscode.CancellationToken) => answers["steadyhand/user/ask"](params, token));
    client.onRequest("steadyhand/document/save", (params: RequestsToEditor["steadyhand/document/save"]["params"], token: vscode.CancellationToken) => answers["steadyhand/document/save"](params, token));
    client.onRequest("steadyhand/secret/get", (params: RequestsToEditor["steadyhand/secret/get"]["params"], token: vscode.CancellationToken) => answers["steadyhand/secret/get"](params, token));
  }

  private afterEnd(): CloseAction {
    clearInterval(this.pulse);
    if (!this.wanted) return CloseAction.DoNotRestart;
    const decided = afterCrash(this.crashes, Date.now());
    this.crashes = decided.crashes;
    if (decided.restart) {
      this.setLink({ state: "lost", text: "The server ended. Starting it again…" });
      return CloseAction.Restart;
    }
    this.setLink({ state: "stopped", text: `The server ended ${decided.crashes.length} times within a minute and is left alone.` });
    return CloseAction.DoNotRestart;
  }

  private setReady(): void {
    this.asked = undefined;
    this.setLink({ state: "ready" });
    clearInterval(this.pulse);
    this.pulse = setInterval(() => this.feelPulse(), sign_of_life_ms);
  }

  private feelPulse(): void {
    if (this.asked !== undefined) {
      if (Date.now() - this.asked >= silent_ms_max && this.link.state === "ready") {
        this.setLink({ state: "silent", text: "The server is not answering. Nothing was stopped; it may come back." });
      }
      return;
    }
    const question = this.probe();
    if (question === undefined) return;
    this.asked = Date.now();
    const answered = (): void => {
      this.asked = undefined;
      if (this.link.state === "silent") this.setLink({ state: "ready" });
    };
    question.then(answered, answered);
  }

  private setLink(link: Link): void {
    this.link = link;
    this.linked.fire(link);
  }
}

/** Lenses of one line stand side by side: only the first of them says whose they are, and none explains itself. */
function inOneLine(lenses: readonly vscode.CodeLens[]): vscode.CodeLens[] {
  const begun = new Set<number>();
  return lenses.map((lens) => {
    const { line } = lens.range.start;
    const brief = lens.command?.title.replace(/ \(.*\)$/, "") ?? "";
    const title = begun.has(line) ? brief.replace(/^Steadyhand: /, "") : brief;
    begun.add(line);
    return lens.command === undefined ? lens : new vscode.CodeLens(lens.range, { ...lens.command, title });
  });
}
