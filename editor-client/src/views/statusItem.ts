/** The status bar: how the connection stands, and how many effects are uncertain; a click leads to either. */
import * as vscode from "vscode";
import type { View } from "../store";
import { effects } from "../words";

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("steadyhand", vscode.StatusBarAlignment.Left, 20);

  constructor() {
    this.item.name = "Steadyhand";
    this.item.show();
  }

  show(view: View): void {
    const count = view.uncertain.length;
    const look = looks(view, count);
    this.item.text = look.text;
    this.item.tooltip = look.tooltip;
    this.item.command = look.command;
    this.item.accessibilityInformation = { label: look.tooltip, role: "button" };
    this.item.backgroundColor = look.loud ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}

interface Look {
  readonly text: string;
  readonly tooltip: string;
  readonly command: string;
  readonly loud: boolean;
}

function looks(view: View, count: number): Look {
  const { link } = view;
  switch (link.state) {
    case "starting":
      return { text: "$(loading~spin) Steadyhand", tooltip: link.text, command: "steadyhand.showLog", loud: false };
    case "lost":
      return { text: "$(loading~spin) Steadyhand: restarting", tooltip: link.text, command: "steadyhand.showLog", loud: true };
    case "silent":
      return { text: "$(watch) Steadyhand: not answering", tooltip: link.text, command: "steadyhand.showLog", loud: true };
    case "stopped":
      return { text: "$(error) Steadyhand: stopped", tooltip: `${link.text} Click to start it again.`, command: "steadyhand.restartServer", loud: true };
    case "ready":
      break;
  }
  if (count > 0) {
    return { text: `$(warning) ${count} uncertain`, tooltip: `Steadyhand: ${effects(count)} uncertain. Click to see.`, command: "steadyhand.recovery.focus", loud: true };
  }
  const asked = view.questions.some((question) => question.gone === undefined);
  if (asked) return { text: "$(question) Steadyhand asks", tooltip: "Steadyhand waits for your answer.", command: "steadyhand.focusChat", loud: true };
  const busy = view.bound?.session.busy === true;
  return {
    text: busy ? "$(sync~spin) Steadyhand" : "$(check) Steadyhand",
    tooltip: busy ? "Steadyhand is at work." : "Steadyhand: nothing is uncertain.",
    command: "steadyhand.focusChat",
    loud: false,
  };
}
