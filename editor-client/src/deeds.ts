/**
 * What the chat's user can do, one deed a message, and the few that reach into the editor: files, diffs, selections.
 *
 * A deed that the server refuses throws; whoever called shows it. Nothing here keeps state.
 */
import * as vscode from "vscode";
import type { Draft, Problem } from "./attachments";
import { attachment_text_bytes_max, fitted, problemsText } from "./attachments";
import type { Call, Mode, OptionId, Session } from "./protocol";
import { notBuilt } from "./protocol";
import type { Desk } from "./desk";
import { isAnswer } from "./desk";
import type { Looks } from "./looks";
import type { Questions } from "./questions";
import type { Recovery } from "./recovery";
import type { Connection } from "./connection";
import { errorCodes } from "./protocol";
import { sessionName } from "./store";
import type { FromChat } from "./views/bridge";
import type { ChatDeeds, ChatView } from "./views/chatView";
import { workspaceFile } from "./views/recoveryTree";
import { UNTRUSTED } from "./words";

const completions_max = 30;
const FILES_NEVER_SHOWN = "**/{node_modules,.git,out,dist,__pycache__,.venv*}/**";

export class Deeds implements ChatDeeds {
  constructor(
    private readonly connection: () => Connection,
    private readonly desk: Desk,
    private readonly questions: Questions,
    private readonly recovery: Recovery,
    private readonly looks: Looks,
    private readonly chat: () => ChatView,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  whole(): { readonly view: Desk["view"]; readonly draft: Draft } {
    return { view: this.desk.view, draft: this.desk.draft() };
  }

  async on(message: Exclude<FromChat, { kind: "ready" }>): Promise<void> {
    switch (message.kind) {
      case "draft":
        this.desk.keepDraft(message.sessionId, message.draft);
        return;
      case "send":
        return this.desk.send(message.text, message.attachments);
      case "stop":
        return this.desk.stop();
      case "answer":
        return this.answer(message.askId, message.option, message.note);
      case "answerUser":
        this.questions.answerUser(message.askId, message.answer);
        return;
      case "queueEdit":
        return this.desk.editQueued(message.clientMessageId, { text: message.text });
      case "queueRemove":
        return this.desk.editQueued(message.clientMessageId, { remove: true });
      case "queueResume":
        return this.desk.resumeQueue();
      case "bind":
        return this.desk.bind(message.sessionId);
      case "new":
        this.desk.unbind();
        return;
      case "sessionDo":
        return this.onSession(message.what, message.sessionId);
      case "earlier":
        return this.desk.earlier();
      case "mode":
        return this.setMode(message.mode);
      case "model":
        return this.chooseModel();
      case "recover":
        return this.recover(message.action, message.attemptId);
      case "showUncertain":
        await vscode.commands.executeCommand("steadyhand.recovery.focus");
        return;
      case "openFile":
        return this.openFile(message.path);
      case "openDiff":
        return this.openDiff(message.turnId, message.path);
      case "insert":
        return insertAtCursor(message.text);
      case "complete":
        return this.complete(message.asked, message.query);
      case "attachSelection":
        return this.attachSelection();
      case "attachProblems":
        this.attachProblems();
        return;
      case "saveAndGoOn":
        return this.saveAndGoOn(message.path, message.turnId);
      case "setKey":
        await vscode.commands.executeCommand("steadyhand.setApiKey");
        return;
      case "manageTrust":
        await vscode.commands.executeCommand("workbench.trust.manage");
        return;
      case "startServer":
        return this.connection().start();
      case "showLog":
        this.output.show();
        return;
    }
  }

  // --- sessions ---------------------------------------------------------------------------------------------

  async onSession(what: "rename" | "delete" | "export" | "close", sessionId: string): Promise<void> {
    const session = this.desk.view.sessions.find((one) => one.sessionId === sessionId);
    if (session === undefined) return;
    switch (what) {
      case "rename":
        return this.rename(session);
      case "delete":
        return this.remove(session);
      case "export":
        return this.exportSession(session);
      case "close":
        return this.desk.close(sessionId);
    }
  }

  async pickSession(title: string): Promise<Session | undefined> {
    await this.desk.refreshLists();
    const items = this.desk.view.sessions.map((session) => ({
      label: sessionName(session),
      description: [session.uncertain > 0 ? `${session.uncertain} uncertain` : "", session.busy ? "at work" : ""].filter((part) => part !== "").join(", "),
      detail: new Date(session.updated).toLocaleString(),
      session,
    }));
    return (await vscode.window.showQuickPick(items, { title, placeHolder: "Which session?", matchOnDescription: true }))?.session;
  }

  private async rename(session: Session): Promise<void> {
    const title = await vscode.window.showInputBox({ title: "Rename session", value: session.title, prompt: "A title that you give is never replaced." });
    if (title !== undefined && title.trim() !== "") await this.desk.rename(session.sessionId, title.trim());
  }

  private async remove(session: Session): Promise<void> {
    const name = sessionName(session);
    const detail = "The conversation and the kept file contents go for good. Your files stay as they are.";
    if ((await vscode.window.showWarningMessage(`Delete “${name}”?`, { modal: true, detail }, "Delete")) !== "Delete") return;
    try {
      await this.desk.remove(session.sessionId, false);
    } catch (error) {
      if (!isAnswer(error) || error.code !== errorCodes.recoveryRequired) throw error;
      const force = "Delete all the same";
      const doubt = "It holds effects that are uncertain. Deleted, nothing remembers that they may have happened.";
      if ((await vscode.window.showWarningMessage(`“${name}” is not settled`, { modal: true, detail: doubt }, force)) === force) {
        await this.desk.remove(session.sessionId, true);
      }
    }
  }

  private async exportSession(session: Session): Promise<void> {
    const chosen = await vscode.window.showQuickPick(["markdown", "json"] as const, { title: "Export session", placeHolder: "As what?" });
    const format = chosen === "markdown" || chosen === "json" ? chosen : undefined;
    if (format === undefined) return;
    const { text } = await this.connection().request("steadyhand/session/export", { sessionId: session.sessionId, format });
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: text, language: format }));
  }

  private async setMode(mode: Mode): Promise<void> {
    if (!vscode.workspace.isTrusted && mode !== "plan") {
      void vscode.window.showWarningMessage(UNTRUSTED);
      this.desk.happen({ kind: "linked", link: this.desk.view.link });
      return;
    }
    await this.desk.setMode(mode);
  }

  async chooseModel(): Promise<void> {
    const openSettings = "Open settings";
    if (notBuilt.includes("steadyhand/model/list")) {
      const text = "Choosing a model per session is not built yet. The settings say which model answers in new sessions.";
      if ((await vscode.window.showInformationMessage(text, openSettings)) === openSettings) {
        await vscode.commands.executeCommand("workbench.action.openSettings", "steadyhand.model");
      }
      return;
    }
    const { models } = await this.connection().request("steadyhand/model/list", {});
    const items = models.map((model) => ({ label: model.name, description: model.provider, model }));
    const chosen = await vscode.window.showQuickPick(items, { title: "Model of this session" });
    if (chosen !== undefined) await this.desk.setModel({ provider: chosen.model.provider, name: chosen.model.name });
  }

  /** Inspect, of a held-back call, has the server look anew and ask again; here the texts are shown beside it. */
  private async answer(askId: string, option: OptionId, note: string): Promise<void> {
    const about = this.desk.view.questions.find((question) => question.askId === askId)?.about;
    this.questions.answerPermission(askId, option, note);
    if (option !== "inspect" || about?.kind !== "permission") return;
    for (const { attemptId, scope } of about.asked.uncertain ?? []) {
      if ("paths" in scope && scope.paths.length > 0) await this.looks.openPaths(attemptId, scope.paths);
    }
  }

  // --- effects and files ------------------------------------------------------------------------------------

  private async recover(action: Parameters<Recovery["act"]>[0], attemptId: string): Promise<void> {
    const { view } = this.desk;
    const known = [...view.uncertain, ...view.settled, ...(view.bound?.snapshot.calls ?? []), ...(view.bound?.snapshot.settled ?? [])];
    const uncertain = known.find((one) => one.attemptId === attemptId);
    if (uncertain !== undefined) await this.recovery.act(action, uncertain);
  }

  private async openFile(path: string): Promise<void> {
    const uri = workspaceFile(path);
    if (uri !== undefined) await vscode.commands.executeCommand("vscode.open", uri);
  }

  /** The file before the turn's first change of it, against the file now. */
  private async openDiff(turnId: string, path: string): Promise<void> {
    const uri = workspaceFile(path);
    const call = this.callsOf(turnId).find((one) => one.files?.some((file) => file.path === path) === true);
    if (uri === undefined || call?.attemptId === undefined) return this.openFile(path);
    const before = vscode.Uri.parse(`steadyhand:/attempt/${call.attemptId}/before/${path.split("/").map(encodeURIComponent).join("/")}`);
    await vscode.commands.executeCommand("vscode.diff", before, uri, `${path}: before this turn ↔ now`, { preview: true });
  }

  private callsOf(turnId: string): readonly Call[] {
    return (this.desk.view.bound?.items ?? []).flatMap((item) => (item.kind === "call" && item.turnId === turnId ? [item.call] : []));
  }

  private async complete(asked: number, query: string): Promise<void> {
    const glob = query === "" ? "**/*" : `**/*${query.replaceAll(/[[\]{}*?\\]/g, "?")}*`;
    // Only files of the session's folder can be attached: their paths are relative to it.
    const folders = vscode.workspace.workspaceFolders ?? [];
    const folder = folders.find((one) => one.uri.toString() === this.desk.view.bound?.session.workspace) ?? folders[0];
    const where = folder === undefined ? glob : new vscode.RelativePattern(folder, glob);
    const found = await vscode.workspace.findFiles(where, FILES_NEVER_SHOWN, completions_max);
    const paths = found.map((uri) => vscode.workspace.asRelativePath(uri, false)).sort((a, b) => a.length - b.length || a.localeCompare(b));
    this.chat().post({ kind: "completions", asked, paths });
  }

  async attachSelection(): Promise<void> {
    const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
    if (editor === undefined || editor.selection.isEmpty) {
      void vscode.window.showInformationMessage("Nothing is selected in an editor.");
      return;
    }
    const selected = editor.document.getText(editor.selection);
    const text = fitted(selected);
    const { start } = editor.selection;
    // What did not fit is not in the range either, so that the chip names what really goes along.
    const end = text === selected ? editor.selection.end : editor.document.positionAt(editor.document.offsetAt(start) + text.length);
    if (text !== selected) {
      void vscode.window.showWarningMessage(`Only the selection's first ${attachment_text_bytes_max / 1024} KiB are attached.`);
    }
    const range = { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } };
    this.chat().post({ kind: "attach", attachment: { kind: "selection", uri: editor.document.uri.toString(), range, text } });
    await Promise.resolve();
  }

  /** What all language servers report, as a text: ours sees its own marks alone. */
  private attachProblems(): void {
    const problems = vscode.languages.getDiagnostics().flatMap(([uri, found]) => found.map((one) => problemOf(uri, one)));
    if (problems.length === 0) {
      void vscode.window.showInformationMessage("The editor reports no problems.");
      return;
    }
    this.chat().post({ kind: "attach", attachment: { kind: "text", name: "problems", text: problemsText(problems) } });
  }

  /**
   * “Save first”: save the document the agent did not overwrite, and ask for the same again. The prompt is repeated
   * only where its turn changed nothing; otherwise it would do the rest twice, so the user is left to say how to go on.
   */
  private async saveAndGoOn(path: string, turnId: string): Promise<void> {
    const uri = workspaceFile(path);
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri?.toString());
    if (document?.isDirty === true && !(await document.save())) {
      void vscode.window.showWarningMessage(`${path} could not be saved.`);
      return;
    }
    const items = (this.desk.view.bound?.items ?? []).filter((item) => item.turnId === turnId);
    const prompt = items.find((item) => item.kind === "message" && item.role === "user");
    const changed = items.some((item) => item.kind === "call" && (item.call.files?.length ?? 0) > 0);
    if (prompt?.kind === "message" && !changed) await this.desk.send(prompt.text, prompt.attachments ?? []);
    else await this.desk.send(`${path} is saved now. Please go on.`, []);
  }
}

function problemOf(uri: vscode.Uri, found: vscode.Diagnostic): Problem {
  const severities = ["error", "warning", "information", "hint"] as const;
  return {
    path: vscode.workspace.asRelativePath(uri, false),
    line: found.range.start.line + 1,
    column: found.range.start.character + 1,
    severity: severities[found.severity],
    message: found.message,
    ...(found.source === undefined ? {} : { source: found.source }),
  };
}

async function insertAtCursor(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (editor === undefined) {
    void vscode.window.showInformationMessage("Open a file first; the text goes to its cursor.");
    return;
  }
  await editor.edit((edit) => edit.replace(editor.selection, text));
}
