/**
 * The palette and the keys: each command in a line or two, the work is elsewhere.
 *
 * Commands of the list take the item they stand at; from the palette they ask which effect is meant.
 */
import * as vscode from "vscode";
import type { Action, Uncertain } from "./protocol";
import type { Connection } from "./connection";
import type { Deeds } from "./deeds";
import type { Desk } from "./desk";
import type { Questions } from "./questions";
import type { Recovery } from "./recovery";
import type { ChatView } from "./views/chatView";
import type { DoctorPage } from "./views/doctorPage";
import type { Node } from "./views/recoveryTree";
import { ACTION, grantLine, standing, subject, verb } from "./words";

export interface Parts {
  readonly connection: Connection;
  readonly desk: Desk;
  readonly deeds: Deeds;
  readonly questions: Questions;
  readonly recovery: Recovery;
  readonly chat: ChatView;
  readonly doctor: DoctorPage;
  readonly output: vscode.LogOutputChannel;
  readonly secrets: vscode.SecretStorage;
  readonly failed: (error: unknown) => void;
}

/** The name under which a key is kept, as the server asks for it. */
export const keyName = (provider: string): string => `${provider}.apiKey`;

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { connection, desk, deeds, questions, recovery, chat, output, doctor } = parts;
  const table: Readonly<Record<string, (...args: unknown[]) => unknown>> = {
    focusChat: () => chat.focus(),
    send: () => chat.post({ kind: "do", what: "send" }),
    stop: () => desk.stop(),
    newSession: async () => {
      desk.unbind();
      await chat.focus();
    },
    openSession: async () => {
      const session = await deeds.pickSession("Open session");
      if (session === undefined) return;
      await desk.bind(session.sessionId);
      await chat.focus();
    },
    renameSession: () => onSession("rename"),
    closeSession: () => onSession("close"),
    deleteSession: () => onSession("delete"),
    exportSession: () => onSession("export"),
    setMode: () => chooseMode(desk),
    setModel: () => deeds.chooseModel(),
    attachSelection: async () => {
      await deeds.attachSelection();
      await chat.focus();
    },
    resumeQueue: () => desk.resumeQueue(),
    allowOnce: () => answer("once"),
    rejectCall: () => answer("reject"),
    showPermissions: () => showPermissions(connection),
    showUncertain: () => vscode.commands.executeCommand("steadyhand.recovery.focus"),
    inspectEffect: act("inspect"),
    confirmEffect: act("confirm"),
    rejectEffect: act("reject"),
    waiveEffect: act("waive"),
    restoreEffect: act("restore"),
    retryEffect: act("retry"),
    endSurvivors: (node) => (isNode(node) && node.kind === "survivors" ? recovery.endSurvivors(node.uncertain) : undefined),
    restartServer: () => connection.start(),
    showLog: () => output.show(),
    showDoctor: async () => doctor.show(await connection.command("steadyhand.doctor")),
    setApiKey: () => setApiKey(parts.secrets),
    openWalkthrough: () => vscode.commands.executeCommand("workbench.action.openWalkthrough", "steadyhand.steadyhand#start", false),
  };

  function onSession(what: "rename" | "delete" | "export" | "close"): Promise<void> {
    return desk.boundId === undefined ? deeds.pickSession("Session").then((one) => one && deeds.onSession(what, one.sessionId)) : deeds.onSession(what, desk.boundId);
  }

  function act(action: Action): (node: unknown) => Promise<void> {
    return async (node) => {
      const uncertain = isNode(node) && node.kind === "effect" ? node.uncertain : await pickEffect(desk, action);
      if (uncertain !== undefined) await recovery.act(action, uncertain);
    };
  }

  function answer(option: "once" | "reject"): void {
    const asked = questions.oldestPermission();
    if (asked?.options.some((one) => one.id === option) === true) questions.answerPermission(asked.askId, option);
  }

  return Object.entries(table).map(([name, run]) =>
    vscode.commands.registerCommand(`steadyhand.${name}`, async (...args: unknown[]) => {
      try {
        await run(...args);
      } catch (error) {
        parts.failed(error);
      }
    }),
  );
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "kind" in value;
}

async function pickEffect(desk: Desk, action: Action): Promise<Uncertain | undefined> {
  const offered = [...desk.view.uncertain, ...desk.view.settled].filter((one) => one.actions.includes(action));
  if (offered.length === 0) {
    const why = desk.view.uncertain.length === 0 ? "Nothing is uncertain." : `${ACTION[action]} is not offered for any effect now. Inspect first.`;
    void vscode.window.showInformationMessage(why);
    return undefined;
  }
  const items = offered.map((uncertain) => ({ label: `${verb(uncertain.tool)} ${subject(uncertain)}`, description: standing(uncertain), uncertain }));
  return (await vscode.window.showQuickPick(items, { title: `Steadyhand: ${ACTION[action]}`, placeHolder: "Which effect?" }))?.uncertain;
}

async function chooseMode(desk: Desk): Promise<void> {
  const modes = [
    { label: "plan", detail: "Reads only; changes nothing." },
    { label: "ask", detail: "Asks before each change." },
    { label: "edits", detail: "File edits in the folder pass; the rest asks." },
    { label: "auto", detail: "Everything passes but protected paths." },
  ] as const;
  const allowed = vscode.workspace.isTrusted ? modes : modes.slice(0, 1);
  const chosen = await vscode.window.showQuickPick(allowed, { title: "Mode of this session" });
  if (chosen !== undefined) await desk.setMode(chosen.label);
}

/** What passes without asking; what is picked is taken back. */
async function showPermissions(connection: Connection): Promise<void> {
  const { grants } = await connection.command("steadyhand.permissions.list");
  if (grants.length === 0) {
    void vscode.window.showInformationMessage("Nothing is remembered: every call is asked about, but what the mode and the rules let pass.");
    return;
  }
  const items = grants.map((grant) => ({ ...grantLine(grant), grantId: grant.grantId }));
  const options = { title: "What passes without asking", placeHolder: "Pick what shall be asked about again", canPickMany: true } as const;
  const taken = (await vscode.window.showQuickPick(items, options)) ?? [];
  for (const { grantId } of taken) await connection.command("steadyhand.permissions.forget", { grantId });
  if (taken.length > 0) void vscode.window.showInformationMessage(`${taken.length === 1 ? "One permission is" : `${taken.length} permissions are`} taken back.`);
}

async function setApiKey(secrets: vscode.SecretStorage): Promise<void> {
  const configured = vscode.workspace.getConfiguration("steadyhand").get("model.provider", "");
  const known = ["deepseek", "openai", "anthropic", "openrouter", "compatible"];
  const providers = [...known.filter((one) => one === configured), ...known.filter((one) => one !== configured)];
  const provider = await vscode.window.showQuickPick(providers, { title: "Key for which provider?" });
  if (provider === undefined) return;
  const prompt = "Kept in the editor's secret store, never in settings or logs. Empty removes it.";
  const key = await vscode.window.showInputBox({ title: `Key for ${provider}`, prompt, password: true, ignoreFocusOut: true });
  if (key === undefined) return;
  if (key === "") await secrets.delete(keyName(provider));
  else await secrets.store(keyName(provider), key);
}
