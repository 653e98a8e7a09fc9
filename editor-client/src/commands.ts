/** The commands of the palette, the keys and the menus: each calls a controller. package.json declares them. */
import * as vscode from "vscode";
import type { ServerApi } from "./client/serverApi";
import type { Context } from "./context";
import { setApiKey } from "./editor/apiKeys";
import { ACTION_LABELS, callSubject, callVerb, effectStatus, grantLabel } from "./labels";
import type { Action, Uncertain } from "./protocol";
import type { State } from "./store/state";
import type { RecoveryNode } from "./views/recoveryTree";

export function registerCommands(context: Context, showError: (error: unknown) => void): vscode.Disposable[] {
  return Object.entries(commandTable(context)).map(([name, run]) =>
    vscode.commands.registerCommand(`steadyhand.${name}`, async (...args: unknown[]) => {
      try {
        await run(...args);
      } catch (error) {
        showError(error);
      }
    }),
  );
}

function commandTable(context: Context): Readonly<Record<string, (...args: unknown[]) => unknown>> {
  const { extension, output, client, views, controllers } = context;
  const { connection } = client;
  const { chat, dialogs, prompts, recovery, review, rewind, sessions } = controllers;
  const run = (command: string, ...args: unknown[]): Thenable<unknown> =>
    vscode.commands.executeCommand(command, ...args);
  return {
    focusChat: () => views.chat.focus(),
    send: () => views.chat.post({ kind: "command", command: "send" }),
    stop: () => prompts.stop(),
    newSession: async () => {
      sessions.leave();
      await views.chat.focus();
    },
    openSession: async () => {
      const session = await dialogs.pick("Open session");
      if (session === undefined) return;
      await sessions.open(session.sessionId);
      await views.chat.focus();
    },
    renameSession: () => dialogs.runOnActiveOrPicked("rename"),
    closeSession: () => dialogs.runOnActiveOrPicked("close"),
    deleteSession: () => dialogs.runOnActiveOrPicked("delete"),
    exportSession: () => dialogs.runOnActiveOrPicked("export"),
    forkSession: () => dialogs.runOnActiveOrPicked("fork"),
    setMode: () => dialogs.chooseMode(),
    setModel: () => dialogs.chooseModel(),
    attachSelection: async () => {
      chat.attachSelection();
      await views.chat.focus();
    },
    resumeQueue: () => prompts.resumeQueue(),
    allowOnce: () => answerOldest(context, "once"),
    rejectCall: () => answerOldest(context, "reject"),
    showPermissions: () => showPermissions(connection),
    rewind: () => rewind.show(),
    reviewChanges: () => review.show(),
    nextChange: () => review.go(1),
    previousChange: () => review.go(-1),
    keepChange: (hunkId) => review.decideOne("keep", typeof hunkId === "string" ? hunkId : undefined),
    undoChange: (hunkId) => review.decideOne("undo", typeof hunkId === "string" ? hunkId : undefined),
    keepAllChanges: () => review.decideAll("keep"),
    undoAllChanges: () => review.decideAll("undo"),
    showUncertain: () => run("steadyhand.recovery.focus"),
    inspectEffect: decideOn(context, "inspect"),
    confirmEffect: decideOn(context, "confirm"),
    rejectEffect: decideOn(context, "reject"),
    waiveEffect: decideOn(context, "waive"),
    restoreEffect: decideOn(context, "restore"),
    retryEffect: decideOn(context, "retry"),
    endSurvivors: (node) =>
      isRecoveryNode(node) && node.kind === "survivors" ? recovery.endSurvivors(node.uncertain) : undefined,
    restartServer: () => connection.start(),
    showLog: () => output.show(),
    showDoctor: async () => views.doctor.show(await connection.command("steadyhand.doctor")),
    setApiKey: () => setApiKey(extension.secrets),
    openWalkthrough: () => run("workbench.action.openWalkthrough", "steadyhand.steadyhand#start", false),
  };
}

function answerOldest({ controllers: { questions } }: Context, option: "once" | "reject"): void {
  const request = questions.oldestOpenPermission();
  if (request?.options.some((one) => one.id === option) === true) questions.answerPermission(request.askId, option);
}

/** From the list, the command gets the item; from the palette, the user chooses an effect. */
function decideOn({ store, controllers }: Context, action: Action): (node: unknown) => Promise<void> {
  return async (node) => {
    const isEffect = isRecoveryNode(node) && node.kind === "effect";
    const uncertain = isEffect ? node.uncertain : await pickEffect(store.state.state, action);
    if (uncertain !== undefined) await controllers.recovery.decide(action, uncertain);
  };
}

function isRecoveryNode(value: unknown): value is RecoveryNode {
  return typeof value === "object" && value !== null && "kind" in value;
}

async function pickEffect({ uncertain, settled }: State, action: Action): Promise<Uncertain | undefined> {
  const offered = [...uncertain, ...settled].filter((one) => one.actions.includes(action));
  const label = ACTION_LABELS[action];
  if (offered.length === 0) {
    const text = uncertain.length === 0 ? "Nothing is uncertain." : `No effect offers ${label} now. Inspect one first.`;
    void vscode.window.showInformationMessage(text);
    return undefined;
  }
  const items = offered.map((effect) => ({
    label: `${callVerb(effect)} ${callSubject(effect)}`,
    description: effectStatus(effect),
    effect,
  }));
  const options = { title: `Steadyhand: ${label}`, placeHolder: "Choose an effect" };
  return (await vscode.window.showQuickPick(items, options))?.effect;
}

/** List what runs without a question; revoke what the user picks. */
async function showPermissions(server: ServerApi): Promise<void> {
  const { grants } = await server.command("steadyhand.permissions.list");
  if (grants.length === 0) {
    const text = "No remembered permissions. Everything is asked unless your mode or your rules allow it.";
    void vscode.window.showInformationMessage(text);
    return;
  }
  const items = grants.map((grant) => ({ ...grantLabel(grant), grantId: grant.grantId }));
  const title = "Remembered permissions";
  const placeHolder = "Select the permissions to revoke";
  const revoked = (await vscode.window.showQuickPick(items, { title, placeHolder, canPickMany: true })) ?? [];
  for (const { grantId } of revoked) await server.command("steadyhand.permissions.forget", { grantId });
  if (revoked.length === 0) return;
  const count = revoked.length === 1 ? "1 permission" : `${revoked.length} permissions`;
  void vscode.window.showInformationMessage(`Revoked ${count}.`);
}
