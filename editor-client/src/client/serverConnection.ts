/**
 * The connection to the server: a language client that starts the server and starts it again after a crash.
 *
 * The status distinguishes three troubles. *Lost*: the server ended and is being started again. *Silent*: it runs and
 * has not answered for `SILENCE_MAX_MS`; nothing is stopped. *Stopped*: it ended too often, or no Python was found; the
 * user has to start it. The connection passes on what the server sends and knows no sessions.
 */
import * as vscode from "vscode";
import type { LanguageClientOptions, ShowMessageParams, StaticFeature } from "vscode-languageclient/node";
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn, State } from "vscode-languageclient/node";
import type { Commands, RequestsToEditor, RequestsToServer } from "../protocol";
import type { ConnectionStatus } from "../store/state";
import { LivenessCheck } from "./liveness";
import type { NestedSettings } from "./machineSettings";
import { collectMachineSettings } from "./machineSettings";
import { decideRestart } from "./restartPolicy";
import type { ServerApi, ServerNotification } from "./serverApi";
import { findServerCommand } from "./serverCommand";

const STOP_MAX_MS = 6_000;

/** The requests that the editor answers; `withdrawn` fires when the server needs no answer any more. */
export type EditorApi = {
  [Method in keyof RequestsToEditor]: (
    params: RequestsToEditor[Method]["params"],
    withdrawn: vscode.CancellationToken,
  ) => Promise<RequestsToEditor[Method]["result"]>;
};

/** Runs around a server command that a code action or a lens names; `send` sends the command. */
export type CommandInterceptor = (command: string, send: () => Promise<unknown>) => Promise<unknown>;

export type MessageLevel = "error" | "warning" | "info";
const MESSAGE_LEVELS: Readonly<Record<number, MessageLevel>> = { 1: "error", 2: "warning" };

const NOTIFICATIONS = [
  "steadyhand/turn/event",
  "steadyhand/recovery/changed",
  "steadyhand/session/changed",
  "steadyhand/queue/changed",
] as const satisfies readonly ServerNotification["method"][];

/** Tells the server which of its requests this editor answers. */
const CLIENT_FEATURES: StaticFeature = {
  fillClientCapabilities(capabilities) {
    const experimental = (capabilities.experimental ?? {}) as Record<string, unknown>;
    const steadyhand = { permission: true, userAsk: true, save: true, encoding: true, secret: true };
    capabilities.experimental = { ...experimental, steadyhand };
  },
  initialize: () => undefined,
  getState: () => ({ kind: "static" }),
  clear: () => undefined,
};

export class ServerConnection implements ServerApi, vscode.Disposable {
  private readonly statusChanged = new vscode.EventEmitter<ConnectionStatus>();
  private readonly notified = new vscode.EventEmitter<ServerNotification>();
  private readonly messageShown = new vscode.EventEmitter<{ readonly level: MessageLevel; readonly text: string }>();
  readonly onStatus = this.statusChanged.event;
  readonly onNotification = this.notified.event;
  readonly onMessage = this.messageShown.event;

  private client: LanguageClient | undefined;
  private crashTimesMs: readonly number[] = [];
  private isWanted = false;
  private readonly liveness: LivenessCheck;
  private editorApi: EditorApi | undefined;
  private interceptCommand: CommandInterceptor = (_command, send) => send();

  /** `probe`: a cheap request that shows that the server answers; undefined when there is nothing to ask. */
  constructor(
    private readonly extension: vscode.ExtensionContext,
    private readonly output: vscode.LogOutputChannel,
    probe: (server: ServerApi) => Promise<unknown> | undefined,
  ) {
    this.liveness = new LivenessCheck(
      () => probe(this),
      (isSilent) => {
        const text = "The server is not answering. Nothing was stopped; it may come back.";
        this.statusChanged.fire(isSilent ? { state: "silent", text } : { state: "ready" });
      },
    );
  }

  /** Set the answers to the requests of the server. Called once, before the first start. */
  serve(editorApi: EditorApi, interceptCommand: CommandInterceptor): void {
    this.editorApi = editorApi;
    this.interceptCommand = interceptCommand;
  }

  /** Start the server, or start it again. */
  async start(): Promise<void> {
    await this.stop();
    this.isWanted = true;
    this.crashTimesMs = [];
    this.statusChanged.fire({ state: "starting", text: "Starting the server…" });
    const found = await findServerCommand(this.extension, this.output);
    if ("problem" in found) {
      this.statusChanged.fire({ state: "stopped", text: found.problem });
      return;
    }
    const client = new LanguageClient("steadyhand", "Steadyhand", found.command, this.clientOptions());
    this.client = client;
    client.registerFeature(CLIENT_FEATURES);
    this.listen(client);
    try {
      await client.start();
    } catch (error) {
      this.output.error(`The server did not start: ${String(error)}`);
      this.statusChanged.fire({ state: "stopped", text: "The server did not start. See the log for the reason." });
    }
  }

  /** Start the server if it does not run, because no program was found or allowed. */
  async startIfStopped(): Promise<void> {
    if (this.client === undefined) await this.start();
  }

  async stop(): Promise<void> {
    this.isWanted = false;
    this.liveness.stop();
    const client = this.client;
    this.client = undefined;
    if (client === undefined) return;
    try {
      await client.dispose(STOP_MAX_MS);
    } catch (error) {
      this.output.warn(`Stopping the server: ${String(error)}`);
    }
  }

  dispose(): void {
    void this.stop();
    this.statusChanged.dispose();
    this.notified.dispose();
    this.messageShown.dispose();
  }

  async request<Method extends keyof RequestsToServer>(
    method: Method,
    params: RequestsToServer[Method]["params"],
  ): Promise<RequestsToServer[Method]["result"]> {
    return this.runningClient().sendRequest<RequestsToServer[Method]["result"]>(method, params);
  }

  async command<Name extends keyof Commands>(
    name: Name,
    ...args: Commands[Name]["arguments"]
  ): Promise<Commands[Name]["result"]> {
    const params = { command: name, arguments: args };
    return this.runningClient().sendRequest<Commands[Name]["result"]>("workspace/executeCommand", params);
  }

  /** The text of a virtual document of the server. */
  async readVirtualDocument(uri: string): Promise<string> {
    const client = this.runningClient();
    return (await client.sendRequest<{ readonly text: string }>("workspace/textDocumentContent", { uri })).text;
  }

  /** Send the settings of this machine again, after a change. */
  async sendSettings(): Promise<void> {
    if (this.client?.state !== State.Running) return;
    const settings = { steadyhand: { machine: currentSettings() } };
    await this.client.sendNotification("workspace/didChangeConfiguration", { settings });
  }

  private runningClient(): LanguageClient {
    if (this.client?.state !== State.Running) throw new Error("Steadyhand is not connected.");
    return this.client;
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: "file" }],
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: currentSettings,
      initializationFailedHandler: () => false,
      diagnosticCollectionName: "steadyhand",
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: this.afterServerEnded(), handled: true }),
      },
      middleware: {
        handleWorkDoneProgress: () => undefined, // the status item and the chat show it
        executeCommand: async (command, args: unknown[], next) =>
          this.interceptCommand(command, async () => this.sendCommand(command, args, next)),
        provideCodeLenses: async (document, token, next) => shortenLensTitles((await next(document, token)) ?? []),
      },
    };
  }

  /** Send the request directly: `next` would show an error as a second message. */
  private async sendCommand(
    command: string,
    args: unknown[],
    next: (command: string, args: unknown[]) => unknown,
  ): Promise<unknown> {
    if (this.client?.state !== State.Running) return next(command, args);
    return this.client.sendRequest("workspace/executeCommand", { command, arguments: args });
  }

  private listen(client: LanguageClient): void {
    client.onDidChangeState(({ newState }) => {
      if (client === this.client && newState === State.Running) this.afterServerStarted();
    });
    for (const method of NOTIFICATIONS) {
      client.onNotification(method, (params: unknown) => this.notified.fire({ method, params } as ServerNotification));
    }
    client.onNotification("window/showMessage", ({ type, message }: ShowMessageParams) => {
      this.messageShown.fire({ level: MESSAGE_LEVELS[type] ?? "info", text: message });
    });
    for (const [method, answer] of Object.entries(this.editorApi ?? {})) {
      client.onRequest(method, answer as (params: unknown, withdrawn: vscode.CancellationToken) => Promise<unknown>);
    }
  }

  private afterServerStarted(): void {
    this.statusChanged.fire({ state: "ready" });
    this.liveness.start();
  }

  private afterServerEnded(): CloseAction {
    this.liveness.stop();
    if (!this.isWanted) return CloseAction.DoNotRestart;
    const decision = decideRestart(this.crashTimesMs, Date.now());
    this.crashTimesMs = decision.crashTimesMs;
    if (decision.restart) {
      this.statusChanged.fire({ state: "lost", text: "The server ended. Starting it again…" });
      return CloseAction.Restart;
    }
    const count = decision.crashTimesMs.length;
    const text = `The server ended ${count} times within a minute. Steadyhand stopped restarting it.`;
    this.statusChanged.fire({ state: "stopped", text });
    return CloseAction.DoNotRestart;
  }
}

function currentSettings(): NestedSettings {
  const configuration = vscode.workspace.getConfiguration("steadyhand");
  return collectMachineSettings((name) => configuration.inspect(name)?.globalValue, vscode.workspace.isTrusted);
}

/** VS Code shows the lenses of a line side by side: keep our name in the first alone, and the explanation in none. */
function shortenLensTitles(lenses: readonly vscode.CodeLens[]): vscode.CodeLens[] {
  const linesWithLens = new Set<number>();
  return lenses.map((lens) => {
    const { line } = lens.range.start;
    const brief = lens.command?.title.replace(/ \(.*\)$/, "") ?? "";
    const title = linesWithLens.has(line) ? brief.replace(/^Steadyhand: /, "") : brief;
    linesWithLens.add(line);
    return lens.command === undefined ? lens : new vscode.CodeLens(lens.range, { ...lens.command, title });
  });
}
