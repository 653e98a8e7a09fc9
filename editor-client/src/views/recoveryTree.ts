/**
 * The list of uncertain and recently settled effects. Each effect shows its status and its last inspection below it.
 *
 * The server decides which actions an effect has: the context value of an item lists them, and package.json shows a
 * button for each.
 */
import * as vscode from "vscode";
import { workspaceFile } from "../editor/workspaceFiles";
import {
  CHECK_LABELS,
  callSubject,
  capitalize,
  effectStatus,
  shortEffectStatus,
  statisticsText,
  callVerb,
  withoutTitle,
} from "../labels";
import type { Inspection, Uncertain } from "../protocol";
import type { Inspections } from "../store/inspections";
import type { State } from "../store/state";
import { sessionName } from "../store/state";

interface LineNode {
  readonly kind: "line";
  readonly text: string;
  readonly icon: string;
  readonly tooltip?: string;
  /** the file that a click opens */
  readonly file?: vscode.Uri;
}

export type RecoveryNode =
  | { readonly kind: "effect"; readonly uncertain: Uncertain; readonly session: string }
  | { readonly kind: "survivors"; readonly uncertain: Uncertain; readonly text: string }
  | LineNode;

export class RecoveryTree implements vscode.TreeDataProvider<RecoveryNode>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly view: vscode.TreeView<RecoveryNode>;
  private effects: readonly RecoveryNode[] = [];

  constructor(private readonly inspections: Inspections) {
    this.view = vscode.window.createTreeView("steadyhand.recovery", { treeDataProvider: this });
    inspections.onChange(() => this.changed.fire(undefined));
  }

  show({ uncertain, settled, sessions, active }: State): void {
    this.view.message = active === undefined ? "" : statisticsText(active.snapshot.statistics);
    this.effects = [...uncertain, ...settled].map((effect) => {
      const session = sessions.find((one) => one.sessionId === effect.sessionId);
      return { kind: "effect", uncertain: effect, session: session === undefined ? "" : sessionName(session) };
    });
    const count = uncertain.length;
    this.view.badge = count > 0 ? { value: count, tooltip: `${count} uncertain` } : undefined;
    this.changed.fire(undefined);
  }

  getChildren(node?: RecoveryNode): RecoveryNode[] {
    if (node === undefined) return [...this.effects];
    if (node.kind !== "effect") return [];
    const status = lineNode(capitalize(effectStatus(node.uncertain)), "info");
    const inspection = this.inspections.get(node.uncertain.attemptId);
    return [status, ...(inspection === undefined ? [] : inspectionNodes(inspection, node.uncertain))];
  }

  getTreeItem(node: RecoveryNode): vscode.TreeItem {
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
        item.tooltip = node.tooltip ?? node.text;
        if (node.file !== undefined) item.command = { command: "vscode.open", title: "Open", arguments: [node.file] };
        return item;
      }
    }
  }

  dispose(): void {
    this.view.dispose();
    this.changed.dispose();
  }
}

function effectItem(uncertain: Uncertain, session: string): vscode.TreeItem {
  const label = `${callVerb(uncertain)} ${callSubject(uncertain)}`;
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  const status = effectStatus(uncertain);
  const began = new Date(uncertain.started).toLocaleString();
  item.id = `${uncertain.sessionId}/${uncertain.attemptId}`;
  item.description = shortEffectStatus(uncertain);
  item.iconPath =
    uncertain.state === "settled"
      ? new vscode.ThemeIcon("pass", new vscode.ThemeColor("testing.iconPassed"))
      : new vscode.ThemeIcon("warning", new vscode.ThemeColor("list.warningForeground"));
  item.contextValue = `effect ${uncertain.state} ${uncertain.actions.join(" ")}`;
  item.tooltip = `${label}\n${capitalize(status)}\nSession: ${session}\nStarted: ${began}`;
  item.accessibilityInformation = { label: `${label}, ${status}` };
  return item;
}

function inspectionNodes(inspection: Inspection, uncertain: Uncertain): RecoveryNode[] {
  const { at, text, paths, survivors, changed, changedMore } = inspection;
  const checks = paths.length > 1 ? paths : []; // the status says the check of a single path
  return [
    lineNode(`Inspected at ${new Date(at).toLocaleTimeString()}`, "search", withoutTitle(text, uncertain.title)),
    ...checks.map(({ path, check, reason }) => {
      const why = reason === undefined ? "" : ` (${reason})`;
      return lineNode(`${path}: ${CHECK_LABELS[check]}${why}`, "file");
    }),
    ...survivors.map(({ command, pid }): RecoveryNode => {
      return { kind: "survivors", uncertain, text: `Still running: ${command} (pid ${pid})` };
    }),
    ...changed.map((path) => withFile(lineNode(`Changed since: ${path}`, "diff-modified"), path)),
    ...(changedMore > 0 ? [lineNode(`and ${changedMore} more changed files`, "ellipsis")] : []),
  ];
}

function lineNode(text: string, icon: string, tooltip?: string): LineNode {
  return { kind: "line", text, icon, ...(tooltip === undefined ? {} : { tooltip }) };
}

function withFile(node: LineNode, path: string): LineNode {
  const file = workspaceFile(path);
  return file === undefined ? node : { ...node, file };
}
