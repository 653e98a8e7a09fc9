/** What the user does in the chat: each message of the webview becomes a call of the controller or action it names. */
import * as vscode from "vscode";
import type { ServerConnection } from "../client/serverConnection";
import {
  attachmentOfProblems,
  attachmentOfSelection,
  findFiles,
  insertAtCursor,
  openDiff,
  openFile,
  saveFile,
} from "../editor/editorActions";
import type { InspectionDocuments } from "../editor/inspectionDocuments";
import type { Attachment, OptionId } from "../protocol";
import type { DraftStore } from "../store/draftStore";
import type { Item } from "../store/state";
import type { Store } from "../store/store";
import type { FromWebview, ToWebview } from "../views/webviewMessages";
import type { PromptController } from "./promptController";
import type { QuestionController } from "./questionController";
import type { RecoveryController } from "./recoveryController";
import type { SessionController } from "./sessionController";
import type { SessionDialogs } from "./sessionDialogs";

export interface ChatControllerParts {
  readonly connection: ServerConnection;
  readonly store: Store;
  readonly drafts: DraftStore;
  readonly sessions: SessionController;
  readonly dialogs: SessionDialogs;
  readonly prompts: PromptController;
  readonly questions: QuestionController;
  readonly recovery: RecoveryController;
  readonly documents: InspectionDocuments;
  readonly chat: { post(message: ToWebview): void };
  readonly output: vscode.LogOutputChannel;
}

export class ChatController {
  constructor(private readonly parts: ChatControllerParts) {}

  /** Rejects with the reason if the server refuses. */
  async receive(message: FromWebview): Promise<void> {
    const { connection, drafts, sessions, dialogs, prompts, questions, recovery, output } = this.parts;
    switch (message.kind) {
      case "draft":
        drafts.keep(message.sessionId, message.draft);
        return;
      case "send":
        return prompts.send(message.text, message.attachments);
      case "steer":
        return prompts.steer(message.text);
      case "sendAgain":
        return prompts.sendAgain(message.turnId, message.text);
      case "stop":
        return prompts.stop();
      case "answer":
        return this.answerPermission(message.askId, message.option, message.note);
      case "answerUser":
        questions.answerUser(message.askId, message.answer);
        return;
      case "queueEdit":
        return prompts.editQueued(message.clientMessageId, { text: message.text });
      case "queueRemove":
        return prompts.editQueued(message.clientMessageId, { remove: true });
      case "queueResume":
        return prompts.resumeQueue();
      case "openSession":
        return sessions.open(message.sessionId);
      case "newSession":
        sessions.leave();
        return;
      case "sessionCommand":
        return dialogs.run(message.command, message.sessionId);
      case "showEarlier":
        return sessions.showEarlier();
      case "setMode":
        return dialogs.setMode(message.mode);
      case "chooseModel":
        return dialogs.chooseModel();
      case "decide":
        return recovery.decideById(message.action, message.attemptId);
      case "showUncertain":
        return run("steadyhand.recovery.focus");
      case "openFile":
        return openFile(message.path);
      case "openDiff":
        return openDiff(this.itemsOf(message.turnId), message.path);
      case "insert":
        return insertAtCursor(message.text);
      case "completeFile":
        return this.completeFile(message.request, message.query);
      case "attachSelection":
        this.attachSelection();
        return;
      case "attachProblems":
        this.attach(attachmentOfProblems());
        return;
      case "saveAndContinue":
        return this.saveAndContinue(message.path, message.turnId);
      case "setApiKey":
        return run("steadyhand.setApiKey");
      case "manageTrust":
        return run("workbench.trust.manage");
      case "startServer":
        return connection.start();
      case "showLog":
        output.show();
        return;
    }
  }

  attachSelection(): void {
    this.attach(attachmentOfSelection());
  }

  private attach(attachment: Attachment | undefined): void {
    if (attachment !== undefined) this.parts.chat.post({ kind: "attach", attachment });
  }

  /** The server inspects the effects that hold the call back; the extension shows their files beside the question. */
  private async answerPermission(askId: string, option: OptionId, note: string): Promise<void> {
    const { store, questions, documents } = this.parts;
    const about = store.state.questions.find((question) => question.askId === askId)?.about;
    questions.answerPermission(askId, option, note);
    if (option !== "inspect" || about?.kind !== "permission") return;
    for (const { attemptId, scope } of about.request.uncertain ?? []) {
      if ("paths" in scope && scope.paths.length > 0) await documents.openPaths(attemptId, scope.paths);
    }
  }

  private async completeFile(request: number, query: string): Promise<void> {
    const { store, chat } = this.parts;
    const paths = await findFiles(query, store.state.active?.session.workspace);
    chat.post({ kind: "completions", request, paths });
  }

  /**
   * Save the file that the agent did not overwrite, and continue. The prompt is sent again only if its turn changed
   * nothing, because the agent would repeat the changes; otherwise a new prompt asks the agent to continue.
   */
  private async saveAndContinue(path: string, turnId: string): Promise<void> {
    if (!(await saveFile(path))) {
      void vscode.window.showWarningMessage(`VS Code could not save ${path}.`);
      return;
    }
    const items = this.itemsOf(turnId);
    const prompt = items.find((item) => item.kind === "message" && item.role === "user");
    const hasChanges = items.some((item) => item.kind === "call" && (item.call.files?.length ?? 0) > 0);
    const { prompts } = this.parts;
    if (prompt?.kind === "message" && !hasChanges) await prompts.send(prompt.text, prompt.attachments ?? []);
    else await prompts.send(`${path} is saved now. Please continue.`, []);
  }

  private itemsOf(turnId: string): readonly Item[] {
    return (this.parts.store.state.active?.items ?? []).filter((item) => item.turnId === turnId);
  }
}

async function run(command: string): Promise<void> {
  await vscode.commands.executeCommand(command);
}
