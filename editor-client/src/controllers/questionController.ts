/**
 * Questions of the server to the user. The chat shows them; a dialog does so while the chat is hidden or shows another
 * session.
 *
 * The first answer to a question counts. When the server withdraws a question, or ends, the chat keeps it for a while
 * and says what happened to it; a later answer changes nothing.
 */
import * as vscode from "vscode";
import { callSubject, callVerb, hunkLabel, withoutTitle } from "../labels";
import type { OptionId, PermissionAnswer, PermissionAskParams, UserAnswer, UserAskParams } from "../protocol";
import type { Question } from "../store/state";
import { isOpen, sessionName } from "../store/state";
import type { Store } from "../store/store";

const DETAIL_MAX_CHARS = 1_500;
const DIALOG_OPTIONS_MAX = 3;
/** Grants that outlast the session: the chat alone offers them. */
const LASTING: ReadonlySet<OptionId> = new Set(["workspace", "user"]);

type Resolvers<Answer> = Map<string, (answer: Answer) => void>;

/** The chat, as far as questions need it. */
export interface QuestionView {
  /** Whether the user can see the chat. */
  readonly isVisible: boolean;
  focus(): Promise<void>;
}

export class QuestionController {
  private readonly permissions: Resolvers<PermissionAnswer> = new Map();
  private readonly userQuestions: Resolvers<UserAnswer> = new Map();

  constructor(
    private readonly store: Store,
    private readonly sessions: { open(sessionId: string): Promise<void> },
    private readonly chat: QuestionView,
  ) {}

  askPermission(request: PermissionAskParams, withdrawn: vscode.CancellationToken): Promise<PermissionAnswer> {
    this.show(request, { kind: "permission", request });
    const answer = this.waitForAnswer(this.permissions, request.askId, withdrawn);
    if (!this.isVisibleInChat(request.sessionId)) void this.showPermissionDialog(request);
    return answer;
  }

  askUser(request: UserAskParams, withdrawn: vscode.CancellationToken): Promise<UserAnswer> {
    this.show(request, { kind: "user", request });
    const answer = this.waitForAnswer(this.userQuestions, request.askId, withdrawn);
    if (!this.isVisibleInChat(request.sessionId)) void this.showUserDialog(request);
    return answer;
  }

  /** False: the question needs no answer any more. */
  answerPermission(askId: string, option: OptionId, note = ""): boolean {
    return this.answer(this.permissions, askId, note.trim() === "" ? { option } : { option, note });
  }

  /** False: the question needs no answer any more. */
  answerUser(askId: string, answer: UserAnswer): boolean {
    return this.answer(this.userQuestions, askId, answer);
  }

  /** The permission that the palette's commands answer. */
  oldestOpenPermission(): PermissionAskParams | undefined {
    const { questions } = this.store.state;
    const question = questions.find((one) => isOpen(one) && this.permissions.has(one.askId));
    return question?.about.kind === "permission" ? question.about.request : undefined;
  }

  private show({ askId, sessionId, turnId }: PermissionAskParams | UserAskParams, about: Question["about"]): void {
    this.store.dispatch({ kind: "questionAsked", question: { askId, sessionId, turnId, about } });
  }

  private isVisibleInChat(sessionId: string): boolean {
    return this.chat.isVisible && this.store.activeId === sessionId;
  }

  private answer<Answer>(resolvers: Resolvers<Answer>, askId: string, answer: Answer): boolean {
    const resolve = resolvers.get(askId);
    if (resolve === undefined) return false;
    resolvers.delete(askId);
    this.store.dispatch({ kind: "questionClosed", askId });
    resolve(answer);
    return true;
  }

  private waitForAnswer<Answer>(
    resolvers: Resolvers<Answer>,
    askId: string,
    withdrawn: vscode.CancellationToken,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      resolvers.set(askId, resolve);
      withdrawn.onCancellationRequested(() => {
        const reason = "Another window answered it, or the turn was stopped.";
        if (resolvers.delete(askId)) this.store.dispatch({ kind: "questionClosed", askId, reason });
        reject(new vscode.CancellationError());
      });
    });
  }

  private async showPermissionDialog(request: PermissionAskParams): Promise<void> {
    const showInChat = "Show in chat";
    const title = `Steadyhand asks: ${callVerb(request)} ${callSubject(request)}`;
    const options = request.options.filter(({ id }) => !LASTING.has(id)).map(({ label }) => ({ title: label }));
    // Closing the dialog does not answer the question: it opens the chat, which still shows it.
    const items = [...options, { title: showInChat, isCloseAffordance: true }];
    const detail = truncate(this.permissionDetail(request));
    const chosen = (await vscode.window.showWarningMessage(title, { modal: true, detail }, ...items))?.title;
    if (chosen === showInChat) return this.showInChat(request.sessionId);
    const option = request.options.find((one) => one.label === chosen);
    if (option !== undefined && !this.answerPermission(request.askId, option.id)) showTooLate(request.title);
  }

  private permissionDetail({ diff = "", text = "", title, sessionId }: PermissionAskParams): string {
    const lines = diff.trimEnd().split("\n");
    const changes = lines.filter((line) => !/^(---|\+\+\+) /.test(line)).map(hunkLabel);
    const parts = [withoutTitle(text, title), changes.join("\n"), `Session: ${this.nameOf(sessionId)}`];
    return parts.filter((part) => part !== "").join("\n\n");
  }

  private async showUserDialog({ askId, sessionId, question, options = [] }: UserAskParams): Promise<void> {
    const answerInChat = "Answer in chat";
    const buttons = [...options.slice(0, DIALOG_OPTIONS_MAX), answerInChat];
    const chosen = await vscode.window.showInformationMessage(question, ...buttons);
    if (chosen === answerInChat) return this.showInChat(sessionId);
    if (chosen !== undefined && !this.answerUser(askId, { answer: chosen })) showTooLate(question);
  }

  private async showInChat(sessionId: string): Promise<void> {
    if (this.store.activeId !== sessionId) await this.sessions.open(sessionId);
    await this.chat.focus();
  }

  private nameOf(sessionId: string): string {
    const session = this.store.state.sessions.find((one) => one.sessionId === sessionId);
    return session === undefined ? sessionId.slice(0, 8) : sessionName(session);
  }
}

function showTooLate(title: string): void {
  void vscode.window.showInformationMessage(`“${title}” no longer needed an answer. The chat shows what happened.`);
}

function truncate(text: string): string {
  return text.length <= DETAIL_MAX_CHARS ? text : `${text.slice(0, DETAIL_MAX_CHARS)}\n… (the chat shows the rest)`;
}
