/**
 * Questions of the server and who answers them: the chat, or a modal message while the chat is not to be seen.
 *
 * Each question has one promise, kept here, that the first answer fulfils. When the server withdraws it, or ends, the
 * question stays on screen for a while and says what became of it; an answer that comes after that changes nothing.
 */
import * as vscode from "vscode";
import type { OptionId, PermissionAnswer, PermissionAskParams, UserAnswer, UserAskParams } from "./protocol";
import type { Desk } from "./desk";
import { sessionName } from "./store";
import { hunk, subject, untitled, verb } from "./words";

const detail_chars_max = 1_500;

interface Open<Answer> {
  readonly settle: (answer: Answer) => void;
}

export class Questions {
  private readonly permissions = new Map<string, Open<PermissionAnswer>>();
  private readonly asks = new Map<string, Open<UserAnswer>>();

  /** `chatVisible`: whether the chat can be seen and shows the session that is asked about. */
  constructor(
    private readonly desk: () => Desk,
    private readonly chatVisible: (sessionId: string) => boolean,
    private readonly showSession: (sessionId: string) => Promise<void>,
  ) {}

  askPermission(asked: PermissionAskParams, withdrawn: vscode.CancellationToken): Promise<PermissionAnswer> {
    this.desk().happen({ kind: "asked", question: { askId: asked.askId, sessionId: asked.sessionId, turnId: asked.turnId, about: { kind: "permission", asked } } });
    const answer = this.waitFor(this.permissions, asked.askId, withdrawn);
    if (!this.chatVisible(asked.sessionId)) void this.permissionMessage(asked);
    return answer;
  }

  askUser(asked: UserAskParams, withdrawn: vscode.CancellationToken): Promise<UserAnswer> {
    this.desk().happen({ kind: "asked", question: { askId: asked.askId, sessionId: asked.sessionId, turnId: asked.turnId, about: { kind: "user", asked } } });
    const answer = this.waitFor(this.asks, asked.askId, withdrawn);
    if (!this.chatVisible(asked.sessionId)) void this.userMessage(asked);
    return answer;
  }

  /** False: it needs no answer any more. */
  answerPermission(askId: string, option: OptionId, note?: string): boolean {
    return this.answer(this.permissions, askId, note === undefined || note.trim() === "" ? { option } : { option, note });
  }

  answerUser(askId: string, answer: UserAnswer): boolean {
    return this.answer(this.asks, askId, answer);
  }

  /** The oldest open permission question, for the keyboard. */
  oldestPermission(): PermissionAskParams | undefined {
    const question = this.desk().view.questions.find((one) => one.gone === undefined && this.permissions.has(one.askId));
    return question?.about.kind === "permission" ? question.about.asked : undefined;
  }

  private answer<Answer>(open: Map<string, Open<Answer>>, askId: string, answer: Answer): boolean {
    const found = open.get(askId);
    if (found === undefined) return false;
    open.delete(askId);
    this.desk().happen({ kind: "questionGone", askId });
    found.settle(answer);
    return true;
  }

  private waitFor<Answer>(open: Map<string, Open<Answer>>, askId: string, withdrawn: vscode.CancellationToken): Promise<Answer> {
    return new Promise((settle, reject) => {
      open.set(askId, { settle });
      withdrawn.onCancellationRequested(() => {
        if (open.delete(askId)) this.desk().happen({ kind: "questionGone", askId, why: "It was decided elsewhere, or the turn was stopped." });
        reject(new vscode.CancellationError());
      });
    });
  }

  private async permissionMessage(asked: PermissionAskParams): Promise<void> {
    const show = "Show in chat";
    const lines = (asked.diff ?? "").trimEnd().split("\n");
    const diff = lines.filter((line) => !/^(---|\+\+\+) /.test(line)).map(hunk).join("\n");
    const detail = [untitled(asked.text ?? "", asked.title), diff, `Session: ${this.nameOf(asked.sessionId)}`].filter((part) => part !== "").join("\n\n");
    const options = { modal: true, detail: cut(detail) };
    const title = `Steadyhand asks: ${verb(asked.tool)} ${subject(asked)}`;
    // Closing the message is no answer: it leads to the chat, where the question stays.
    const near = asked.options.filter(({ id }) => id !== "workspace" && id !== "user"); // those are for the chat, where there is room
    const items = [...near.map(({ label }) => ({ title: label })), { title: show, isCloseAffordance: true }];
    const chosen = (await vscode.window.showWarningMessage(title, options, ...items))?.title;
    if (chosen === show) return this.showSession(asked.sessionId);
    const option = asked.options.find((one) => one.label === chosen);
    if (option !== undefined && !this.answerPermission(asked.askId, option.id)) this.tooLate(asked.title);
  }

  private async userMessage(asked: UserAskParams): Promise<void> {
    const show = "Answer in chat";
    const chosen = await vscode.window.showInformationMessage(asked.question, ...(asked.options ?? []).slice(0, 3), show);
    if (chosen === show) return this.showSession(asked.sessionId);
    if (chosen !== undefined && !this.answerUser(asked.askId, { answer: chosen })) this.tooLate(asked.question);
  }

  private tooLate(title: string): void {
    void vscode.window.showInformationMessage(`“${title}” needed no answer any more. The chat shows what became of it.`);
  }

  private nameOf(sessionId: string): string {
    const session = this.desk().view.sessions.find((one) => one.sessionId === sessionId);
    return session === undefined ? sessionId.slice(0, 8) : sessionName(session);
  }
}

function cut(text: string): string {
  return text.length <= detail_chars_max ? text : `${text.slice(0, detail_chars_max)}\n… (the rest is in the chat)`;
}
