/** Messages of the server and about it, as notifications of the editor. */
import * as vscode from "vscode";
import type { MessageLevel } from "../client/serverConnection";

/** A warning while effects are uncertain gets a button that opens their list. */
export async function showServerMessage(level: MessageLevel, text: string, hasUncertain: boolean): Promise<void> {
  const { showErrorMessage, showWarningMessage, showInformationMessage } = vscode.window;
  const show = { error: showErrorMessage, warning: showWarningMessage, info: showInformationMessage }[level];
  const showEffects = "Show uncertain effects";
  const buttons = hasUncertain && level === "warning" ? [showEffects] : [];
  if ((await show(text, ...buttons)) === showEffects) {
    await vscode.commands.executeCommand("steadyhand.recovery.focus");
  }
}

export async function showServerStopped(text: string): Promise<void> {
  const commands: Readonly<Record<string, string>> = {
    "Start again": "steadyhand.restartServer",
    "Show log": "steadyhand.showLog",
  };
  const chosen = await vscode.window.showErrorMessage(`Steadyhand: ${text}`, ...Object.keys(commands));
  const command = chosen === undefined ? undefined : commands[chosen];
  if (command !== undefined) await vscode.commands.executeCommand(command);
}
