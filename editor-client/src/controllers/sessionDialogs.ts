/** What the user does with sessions in dialogs and pick lists: choose, rename, delete, export, fork, choose a model. */
import * as vscode from "vscode";
import type { ServerApi } from "../client/serverApi";
import { isServerError } from "../client/serverApi";
import { MODE_HINTS, UNTRUSTED_FOLDER, forkItems } from "../labels";
import type { Mode, Session } from "../protocol";
import { errorCodes, notBuilt } from "../protocol";
import { sessionName } from "../store/state";
import type { Store } from "../store/store";
import type { SessionController } from "./sessionController";

export type SessionCommand = "rename" | "delete" | "export" | "fork" | "close";

export class SessionDialogs {
  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly sessions: SessionController,
  ) {
    sessions.onFolderGone = (session) => void this.offerRebind(session);
  }

  async pick(title: string): Promise<Session | undefined> {
    await this.sessions.refreshLists();
    const items = this.store.state.sessions.map((session) => ({
      label: sessionName(session),
      description: [
        ...(session.uncertain > 0 ? [`${session.uncertain} uncertain`] : []),
        ...(session.busy ? ["running"] : []),
      ].join(", "),
      detail: new Date(session.updated).toLocaleString(),
      session,
    }));
    const options = { title, placeHolder: "Choose a session", matchOnDescription: true };
    return (await vscode.window.showQuickPick(items, options))?.session;
  }

  /** Run a command on the active session, or on one that the user chooses. */
  async runOnActiveOrPicked(command: SessionCommand): Promise<void> {
    const sessionId = this.store.activeId ?? (await this.pick("Choose a session"))?.sessionId;
    if (sessionId !== undefined) await this.run(command, sessionId);
  }

  async run(command: SessionCommand, sessionId: string): Promise<void> {
    const session = this.store.state.sessions.find((one) => one.sessionId === sessionId);
    if (session === undefined) return;
    switch (command) {
      case "rename":
        return this.rename(session);
      case "delete":
        return this.remove(session);
      case "export":
        return this.exportAs(session);
      case "fork":
        return this.fork(session);
      case "close":
        return this.sessions.close(sessionId);
    }
  }

  async chooseMode(): Promise<void> {
    const modes: readonly Mode[] = vscode.workspace.isTrusted ? ["plan", "ask", "edits", "auto"] : ["plan"];
    const items = modes.map((mode) => ({ label: mode, detail: MODE_HINTS[mode], mode }));
    const chosen = await vscode.window.showQuickPick(items, { title: "Mode of this session" });
    if (chosen !== undefined) await this.sessions.setMode(chosen.mode);
  }

  async setMode(mode: Mode): Promise<void> {
    if (vscode.workspace.isTrusted || mode === "plan") {
      await this.sessions.setMode(mode);
      return;
    }
    void vscode.window.showWarningMessage(UNTRUSTED_FOLDER);
    // The chat draws the mode of the session again, in place of the one that the user chose.
    this.store.dispatch({ kind: "connectionChanged", status: this.store.state.connection });
  }

  async chooseModel(): Promise<void> {
    if (notBuilt.includes("steadyhand/model/list")) {
      const openSettings = "Open settings";
      const text = "A session cannot change its model yet. The settings say which model new sessions use.";
      if ((await vscode.window.showInformationMessage(text, openSettings)) === openSettings) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "steadyhand.model");
      }
      return;
    }
    const { models } = await this.server.request("steadyhand/model/list", {});
    const items = models.map(({ provider, name }) => ({
      label: name,
      description: provider,
      model: { provider, name },
    }));
    const chosen = await vscode.window.showQuickPick(items, { title: "Model of this session" });
    if (chosen !== undefined) await this.sessions.setModel(chosen.model);
  }

  /** The folder of a session is gone: offer to bind the session to one that is open in this window (row S10). */
  private async offerRebind(session: Session): Promise<void> {
    const folders = vscode.workspace.workspaceFolders ?? [];
    const [first] = folders;
    if (first === undefined) return;
    const button = folders.length === 1 ? `Use ${first.name}` : "Choose a folder";
    const question = `The folder of “${sessionName(session)}” is gone. Did it move to a folder of this window?`;
    if ((await vscode.window.showWarningMessage(question, button)) !== button) return;
    const items = folders.map(({ name, uri }) => ({ label: name, description: uri.fsPath, uri }));
    const options = { title: "The session's folder is now", placeHolder: "Choose a folder" };
    const uri = folders.length === 1 ? first.uri : (await vscode.window.showQuickPick(items, options))?.uri;
    if (uri === undefined) return;
    try {
      await this.sessions.rebind(session.sessionId, uri.toString());
    } catch (error) {
      void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
    }
  }

  private async rename({ sessionId, title }: Session): Promise<void> {
    const prompt = "Steadyhand keeps the title that you give.";
    const chosen = await vscode.window.showInputBox({ title: "Rename session", value: title, prompt });
    if (chosen !== undefined && chosen.trim() !== "") await this.sessions.rename(sessionId, chosen.trim());
  }

  private async remove(session: Session): Promise<void> {
    const { sessionId } = session;
    const name = sessionName(session);
    const detail =
      "This deletes the conversation and the file versions that the session stores. Your files do not change.";
    if (!(await isConfirmed(`Delete “${name}”?`, detail, "Delete"))) return;
    try {
      await this.sessions.remove(sessionId, false);
    } catch (error) {
      if (!isServerError(error) || error.code !== errorCodes.recoveryRequired) throw error;
      const warning = "If you delete the session, nothing records that these changes may have been made.";
      const question = `“${name}” has uncertain effects. Delete it anyway?`;
      if (await isConfirmed(question, warning, "Delete anyway")) await this.sessions.remove(sessionId, true);
    }
  }

  /** Of the session in the chat, the user chooses where its fork ends; of another one, the fork gets everything. */
  private async fork({ sessionId }: Session): Promise<void> {
    const active = this.store.state.active;
    const items = active?.session.sessionId === sessionId ? forkItems(active) : [];
    if (items.length <= 1) return this.sessions.fork(sessionId);
    const options = { title: "Fork session", placeHolder: "The last prompt that the new session has" };
    const chosen = await vscode.window.showQuickPick(items, options);
    if (chosen !== undefined) await this.sessions.fork(sessionId, chosen.turnId);
  }

  private async exportAs({ sessionId }: Session): Promise<void> {
    const options = { title: "Export session", placeHolder: "Choose a format" };
    const formats = (["markdown", "json"] as const).flatMap((format) => [
      { label: format, description: "as it is", format, redact: false },
      { label: format, description: "without what looks like a credential", format, redact: true },
    ]);
    const chosen = await vscode.window.showQuickPick(formats, options);
    if (chosen === undefined) return;
    const { format, redact } = chosen;
    const params = redact ? { sessionId, format, redact } : { sessionId, format };
    const { text } = await this.server.request("steadyhand/session/export", params);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: text, language: format }));
  }
}

async function isConfirmed(question: string, detail: string, button: string): Promise<boolean> {
  return (await vscode.window.showWarningMessage(question, { modal: true, detail }, button)) === button;
}
