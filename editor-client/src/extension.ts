/**
 * The composition root: builds the parts, connects their events, and starts the server.
 *
 * Data flows in one direction. The server reports, the controllers put the report into the store, the views show the
 * store. What the user does goes through the controllers to the server and comes back as a report.
 */
import * as vscode from "vscode";
import { registerCommands } from "./commands";
import type { Context } from "./context";
import { buildContext } from "./context";
import { createEditorApi } from "./controllers/editorApi";
import type { ConnectionStatus } from "./store/state";
import { setContextKeys } from "./views/contextKeys";
import { showServerMessage, showServerStopped } from "./views/messages";

/** While the user writes, the places of changes are not read again. */
const TEXT_STILL_MS = 300;

let active: Context | undefined;

export async function activate(extension: vscode.ExtensionContext): Promise<void> {
  const context = buildContext(extension);
  active = context;
  const showError = (error: unknown): void => {
    if (error instanceof vscode.CancellationError) return;
    const text = error instanceof Error ? error.message : String(error);
    context.output.error(text);
    void vscode.window.showErrorMessage(text);
  };
  connectStoreToViews(context);
  connectServer(context);
  extension.subscriptions.push(
    ...disposables(context),
    ...listenToServer(context, showError),
    ...listenToEditor(context, showError),
    ...registerCommands(context, showError),
  );
  await context.client.connection.start();
}

export function deactivate(): Promise<void> | undefined {
  return active?.client.connection.stop();
}

function connectStoreToViews({ store, views }: Context): void {
  store.drafts.onReplaced((draft) => views.chat.showDraft(draft));
  let reviewBefore = store.state.state.review;
  store.state.onChange((action, state) => {
    views.chat.showAction(action);
    views.status.show(state);
    if (reviewBefore !== state.review) views.changes.show(state);
    reviewBefore = state.review;
    if (action.kind === "effectsListed" || action.kind === "sessionsListed") views.tree.show(state);
    setContextKeys(state);
  });
}

function connectServer({ client, controllers, extension }: Context): void {
  const { questions, recovery, review } = controllers;
  client.connection.serve(createEditorApi(questions, extension.secrets), (command, send) =>
    recovery.intercept(command, () => review.intercept(command, send)),
  );
}

function disposables({ output, client, views }: Context): vscode.Disposable[] {
  const { changes, chat, tree, status, doctor } = views;
  return [output, client.connection, client.documents, changes, chat, tree, status, doctor];
}

function listenToServer(
  { client, store, controllers }: Context,
  showError: (error: unknown) => void,
): vscode.Disposable[] {
  const { connection } = client;
  const onStatus = (status: ConnectionStatus): void => {
    controllers.events.statusChanged(status).catch(showError);
    if (status.state === "stopped") void showServerStopped(status.text);
  };
  return [
    connection.onStatus(onStatus),
    connection.onNotification((notification) => controllers.events.receive(notification)),
    connection.onMessage(({ level, text }) => {
      void showServerMessage(level, text, store.state.state.uncertain.length > 0);
    }),
  ];
}

function listenToEditor(
  { client, store, views, controllers }: Context,
  showError: (error: unknown) => void,
): vscode.Disposable[] {
  const onSettingsChanged = (): void => {
    views.chat.showSettings();
    client.connection.sendSettings().catch(showError);
  };
  let textTimer: NodeJS.Timeout | undefined;
  const onTextChanged = ({ uri }: vscode.TextDocument): void => {
    if (!controllers.review.lists(uri.toString())) return;
    clearTimeout(textTimer);
    // The editor moved the marks with its text, perhaps from places that were already those of the new text.
    textTimer = setTimeout(() => void controllers.review.refresh().then(() => views.changes.mark()), TEXT_STILL_MS);
  };
  store.state.onChange((action) => {
    controllers.review.storeChanged(action).catch(showError);
  });
  return [
    vscode.workspace.onDidChangeTextDocument(({ document }) => onTextChanged(document)),
    vscode.workspace.onDidSaveTextDocument(onTextChanged),
    { dispose: () => clearTimeout(textTimer) },
    views.chat.onMessage((message) => {
      controllers.chat.receive(message).catch(showError);
    }),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("steadyhand")) onSettingsChanged();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      onSettingsChanged();
      client.connection.startIfStopped().catch(showError);
    }),
  ];
}
