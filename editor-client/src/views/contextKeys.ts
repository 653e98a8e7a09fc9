/** The context keys that decide which commands and menus package.json shows. */
import * as vscode from "vscode";
import type { State } from "../store/state";
import { isOpen } from "../store/state";

export function setContextKeys({ connection, active, questions, uncertain, settled }: State): void {
  setContextKey("connected", connection.state === "ready");
  setContextKey("hasSession", active !== undefined);
  setContextKey("busy", active?.session.busy === true);
  setContextKey("hasQuestion", questions.some(isOpen));
  setContextKey("hasEffects", uncertain.length + settled.length > 0);
}

function setContextKey(name: string, value: boolean): void {
  void vscode.commands.executeCommand("setContext", `steadyhand.${name}`, value);
}
