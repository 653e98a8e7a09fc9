/** The item in the status bar: the connection, else the count of uncertain effects, else an open question. */
import * as vscode from "vscode";
import { countEffects } from "../labels";
import type { State } from "../store/state";
import { isOpen } from "../store/state";

interface Appearance {
  readonly text: string;
  readonly tooltip: string;
  /** runs on a click */
  readonly command: string;
  readonly isWarning: boolean;
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("steadyhand", vscode.StatusBarAlignment.Left, 20);

  constructor() {
    this.item.name = "Steadyhand";
    this.item.show();
  }

  show(state: State): void {
    const { text, tooltip, command, isWarning } = appearanceOf(state);
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.accessibilityInformation = { label: tooltip, role: "button" };
    this.item.backgroundColor = isWarning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}

function appearanceOf({ connection, uncertain, questions, active }: State): Appearance {
  switch (connection.state) {
    case "starting":
      return appearance("$(loading~spin) Steadyhand", connection.text, "steadyhand.showLog", false);
    case "lost":
      return appearance("$(loading~spin) Steadyhand: restarting", connection.text, "steadyhand.showLog");
    case "silent":
      return appearance("$(watch) Steadyhand: not answering", connection.text, "steadyhand.showLog");
    case "stopped": {
      const tooltip = `${connection.text} Click to start the server.`;
      return appearance("$(error) Steadyhand: stopped", tooltip, "steadyhand.restartServer");
    }
    case "ready":
      break;
  }
  const count = uncertain.length;
  if (count > 0) {
    const tooltip = `Steadyhand: ${countEffects(count)} uncertain. Click to show the list.`;
    return appearance(`$(warning) ${count} uncertain`, tooltip, "steadyhand.recovery.focus");
  }
  if (questions.some(isOpen)) {
    return appearance("$(question) Steadyhand asks", "Steadyhand waits for your answer.", "steadyhand.focusChat");
  }
  if (active?.session.busy === true) {
    return appearance("$(sync~spin) Steadyhand", "Steadyhand is working.", "steadyhand.focusChat", false);
  }
  return appearance("$(check) Steadyhand", "Steadyhand: nothing is uncertain.", "steadyhand.focusChat", false);
}

function appearance(text: string, tooltip: string, command: string, isWarning = true): Appearance {
  return { text, tooltip, command, isWarning };
}
