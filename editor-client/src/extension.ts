/**
 * Builds the parts and connects them; nothing is decided here.
 *
 * One connection, one desk, three views over the same folded state. Data flows one way: the server tells, the desk
 * folds, the views show; what the user does goes through deeds and recovery to the server and comes back as told.
 */
import * as vscode from "vscode";
import { keyName, registerCommands } from "./commands";
import { Connection } from "./connection";
import type { Answers, Level, Told } from "./connection";
import { Deeds } from "./deeds";
import { Desk } from "./desk";
import type { DocumentSaveParams, DocumentSaveResult } from "./protocol";
import { Looks, lookScheme } from "./looks";
import { Questions } from "./questions";
import { RESOLVING, Recovery } from "./recovery";
import type { Happened, Link, View } from "./store";
import { ChatView, chatViewId } from "./views/chatView";
import { DoctorPage } from "./views/doctorPage";
import { RecoveryTree } from "./views/recoveryTree";
import { StatusItem } from "./views/statusItem";

let connection: Connection | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const output = vscode.window.createOutputChannel("Steadyhand", { log: true });
  const failed = (error: unknown): void => {
    if (error instanceof vscode.CancellationError) return;
    const text = error instanceof Error ? error.message : String(error);
    output.error(text);
    void vscode.window.showErrorMessage(text);
  };

  const status = new StatusItem();
  const doctor = new DoctorPage();
  const looks = new Looks((uri) => server.text(uri));
  const recovery: Recovery = new Recovery({ request: (...args) => server.request(...args), command: (...args) => server.command(...args) }, () => desk, looks);
  const tree = new RecoveryTree((attemptId) => recovery.inspectionOf(attemptId));
  const treeView = vscode.window.createTreeView("steadyhand.recovery", { treeDataProvider: tree });
  const questions: Questions = new Questions(
    () => desk,
    (sessionId) => chat.visible && desk.boundId === sessionId,
    async (sessionId) => {
      if (desk.boundId !== sessionId) await desk.bind(sessionId);
      await chat.focus();
    },
  );
  const server: Connection = new Connection(context, output, answersOf(questions, context.secrets), (command, next) => (RESOLVING.has(command) ? recovery.around(command, next) : next()), () =>
    desk.boundId === undefined ? undefined : server.request("steadyhand/usage", { sessionId: desk.boundId }),
  );
  connection = server;
  const show = (happened: Happened, view: View): void => {
    chat.happened(happened);
    status.show(view);
    if (happened.kind === "uncertain" || happened.kind === "listed") showUncertain(view, tree, treeView);
    void vscode.commands.executeCommand("setContext", "steadyhand.busy", view.bound?.session.busy === true);
    void vscode.commands.executeCommand("setContext", "steadyhand.asked", view.questions.some((one) => one.gone === undefined));
    void vscode.commands.executeCommand("setContext", "steadyhand.bound", view.bound !== undefined);
    void vscode.commands.executeCommand("setContext", "steadyhand.connected", view.link.state === "ready");
  };
  const desk: Desk = new Desk(server, context.workspaceState, {
    happened: show,
    box: (draft) => chat.post({ kind: "box", draft }),
    warn: (text) => void vscode.window.showWarningMessage(text),
  });
  const deeds: Deeds = new Deeds(() => server, desk, questions, recovery, looks, () => chat, output);
  const chat: ChatView = new ChatView(context.extensionUri, deeds, failed);

  context.subscriptions.push(
    output,
    status,
    treeView,
    doctor,
    server,
    recovery.onInspected(() => tree.refresh()),
    vscode.window.registerWebviewViewProvider(chatViewId, chat, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.workspace.registerTextDocumentContentProvider(lookScheme, looks),
    server.onMessage(({ level, text }) => void tellMessage(level, text, desk.view.uncertain.length > 0)),
    server.onLink((link) => onLink(link, desk, failed)),
    server.onTold((told) => onTold(told, desk)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("steadyhand")) server.tellSettings().catch(failed);
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      chat.renew();
      server.tellSettings().catch(failed);
    }),
    ...registerCommands({ connection: server, desk, deeds, questions, recovery, chat, doctor, output, secrets: context.secrets, failed }),
  );
  await server.start();
}

export function deactivate(): Promise<void> | undefined {
  return connection?.stop();
}

function onLink(link: Link, desk: Desk, failed: (error: unknown) => void): void {
  if (link.state !== "ready") {
    desk.disconnected(link);
    if (link.state === "stopped") void tellStopped(link.text);
    return;
  }
  if (desk.view.link.state === "silent") desk.happen({ kind: "linked", link });
  else desk.connected().catch(failed);
}

/** A message of the server; one that warns while effects are uncertain leads to the list of them. */
async function tellMessage(level: Level, text: string, uncertain: boolean): Promise<void> {
  const show = "Show uncertain effects";
  const buttons = uncertain && level === "warning" ? [show] : [];
  const tell = { error: vscode.window.showErrorMessage, warning: vscode.window.showWarningMessage, info: vscode.window.showInformationMessage }[level];
  if ((await tell(text, ...buttons)) === show) await vscode.commands.executeCommand("steadyhand.recovery.focus");
}

async function tellStopped(text: string): Promise<void> {
  const again = "Start again";
  const log = "Show log";
  const chosen = await vscode.window.showErrorMessage(`Steadyhand: ${text}`, again, log);
  if (chosen !== undefined) await vscode.commands.executeCommand(chosen === again ? "steadyhand.restartServer" : "steadyhand.showLog");
}

function onTold(told: Told, desk: Desk): void {
  switch (told.method) {
    case "steadyhand/turn/event":
      desk.turnEvent(told.params);
      return;
    case "steadyhand/recovery/changed":
      desk.snapshotIs(told.params);
      return;
    case "steadyhand/session/changed":
      desk.sessionChanged(told.params);
      return;
    case "steadyhand/queue/changed":
      desk.queueIs(told.params.sessionId, told.params.queue);
      return;
  }
}

function showUncertain(view: View, tree: RecoveryTree, treeView: vscode.TreeView<unknown>): void {
  const count = view.uncertain.length;
  tree.show(view);
  treeView.badge = count > 0 ? { value: count, tooltip: `${count} uncertain` } : undefined;
  void vscode.commands.executeCommand("setContext", "steadyhand.anyEffect", count + view.settled.length > 0);
}

function answersOf(questions: Questions, secrets: vscode.SecretStorage): Answers {
  return {
    "steadyhand/permission/ask": (params, withdrawn) => questions.askPermission(params, withdrawn),
    "steadyhand/user/ask": (params, withdrawn) => questions.askUser(params, withdrawn),
    "steadyhand/document/save": saveDocument,
    "steadyhand/secret/get": async ({ name }) => {
      const value = (await secrets.get(name)) ?? (await secrets.get(keyName(name)));
      return value === undefined ? {} : { value };
    },
  };
}

/** Saved only if the document still has the version that the server means. */
async function saveDocument({ uri, version }: DocumentSaveParams): Promise<DocumentSaveResult> {
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === vscode.Uri.parse(uri).toString());
  if (document?.version !== version) return { saved: false };
  return { saved: await document.save() };
}
