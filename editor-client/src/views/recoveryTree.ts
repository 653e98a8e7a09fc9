/**
 * The list of uncertain and just settled effects, with their check, and below each what its last inspection found.
 *
 * Buttons follow the server's offer: the item's context value holds the offered actions as words, and package.json
 * binds each button to its word.
 */
import * as vscode from "vscode";
import type { Inspection, Uncertain } from "../protocol";
import type { View } from "../store";
import { sessionName } from "../store";
import { briefly, CHECK, standing, subject, untitled, verb } from "../words";

export type Node =
  | { readonly kind: "effect"; readonly uncertain: Uncertain; readonly session: string }
  | { readonly kind: "line"; readonly text: string; readonly icon: string; readonly hint?: string; readonly open?: vscode.Uri }
  | { readonly kind: "survivors"; readonly uncertain: Uncertain; readonly text: string };

export class RecoveryTree implements vscode.TreeDataProvider<Node> {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private nodes: readonly Node[] = [];

  constructor(private readonly inspectionOf: (attemptId: string) => Inspection | undefined) {}

  show(view: View): void {
    this.nodes = [...view.uncertain, ...view.settled].map((uncertain) => {
      const session = view.sessions.find((one) => one.sessionId === uncertain.sessionId);
      return { kind: "effect", uncertain, session: session === undefined ? "" : sessionName(session) };
    });
    this.refresh();
  }

  refresh(): void {
    this.changed.fire(undefined);
  }

  getChildren(node?: Node): Node[] {
    if (node === undefined) return [...this.nodes];
    if (node.kind !== "effect") return [];
    const standingLine: Node = { kind: "line", text: sentence(standing(node.uncertain)), icon: "info" };
    const inspection = this.inspectionOf(node.uncertain.attemptId);
    return [standingLine, ...(inspection === undefined ? [] : found(inspection, node.uncertain))];
  }

  getTreeItem(node: Node): vscode.TreeItem {
    switch (node.kind) {
      case "effect":
        return effectItem(node.uncertain, node.session);
      case "survivors": {
        const item = new vscode.TreeItem(node.text);
        item.iconPath = new vscode.ThemeIcon("pulse", new vscode.ThemeColor("list.warningForeground"));
        item.contextValue = "survivors";
        return item;
      }
      case "line": {
        const item = new vscode.TreeItem(node.text);
        item.iconPath = new vscode.ThemeIcon(node.icon);
        item.tooltip = node.hint ?? node.text;
        if (node.open !== undefined) item.command = { command: "vscode.open", title: "Open", arguments: [node.open] };
        return item;
      }
    }
  }
}

function effectItem(uncertain: Uncertain, session: string): vscode.TreeItem {
  const item = new vscode.TreeItem(`${verb(uncertain.tool)} ${subject(uncertain)}`, vscode.TreeItemCollapsibleState.Expanded);
  const settled = uncertain.state === "settled";
  item.id = `${uncertain.sessionId}/${uncertain.attemptId}`;
  item.description = briefly(uncertain);
  item.iconPath = settled
    ? new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed"))
    : new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground"));
  item.contextValue = `effect ${uncertain.state} ${uncertain.actions.join(" ")}`;
  item.tooltip = `${uncertain.title}\n${sentence(standing(uncertain))}\nSession: ${session}\nBegan: ${new Date(uncertain.started).toLocaleString()}`;
  item.accessibilityInformation = { label: `${uncertain.title}, ${standing(uncertain)}` };
  return item;
}

function found(inspection: Inspection, uncertain: Uncertain): Node[] {
  const at = new Date(inspection.at).toLocaleTimeString();
  const more = inspection.changedMore > 0 ? [line(`and ${inspection.changedMore} more changed files`, "ellipsis")] : [];
  return [
    line(`Inspected at ${at}`, "search", untitled(inspection.text, uncertain.title)),
    ...(inspection.paths.length > 1 ? inspection.paths : []).map((one) => line(`${one.path}: ${CHECK[one.check]}${one.reason === undefined ? "" : ` (${one.reason})`}`, "file")),
    ...inspection.survivors.map((one): Node => ({ kind: "survivors", uncertain, text: `Still running: ${one.command} (${one.pid})` })),
    ...inspection.changed.map((path) => ({ ...line(`Changed since: ${path}`, "diff-modified"), ...openable(path) })),
    ...more,
  ];
}

function line(text: string, icon: string, hint?: string): Extract<Node, { kind: "line" }> {
  return { kind: "line", text, icon, ...(hint === undefined ? {} : { hint }) };
}

function openable(path: string): { readonly open?: vscode.Uri } {
  const uri = workspaceFile(path);
  return uri === undefined ? {} : { open: uri };
}

/** A path as the server shows it: relative to the folder, absolute if outside. */
export function workspaceFile(path: string): vscode.Uri | undefined {
  if (path.startsWith("/")) return vscode.Uri.file(path);
  const folder = vscode.workspace.workspaceFolders?.[0];
  return folder === undefined ? undefined : vscode.Uri.joinPath(folder.uri, path);
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
