/**
 * The report of *Steadyhand: Doctor*: a virtual Markdown document, made again each time.
 *
 * No file exists, so the editor never asks to save it.
 */
import * as vscode from "vscode";
import type { Commands } from "../protocol";

type DoctorResult = Commands["steadyhand.doctor"]["result"];

const DOCTOR_SCHEME = "steadyhand-doctor";
const DOCTOR_URI = vscode.Uri.from({ scheme: DOCTOR_SCHEME, path: "/Steadyhand Doctor.md" });

export class DoctorPage implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(DOCTOR_SCHEME, this);
  private text = "";

  provideTextDocumentContent(): string {
    return this.text;
  }

  async show(result: DoctorResult): Promise<void> {
    this.text = doctorMarkdown(result);
    this.changed.fire(DOCTOR_URI);
    try {
      await vscode.commands.executeCommand("markdown.showPreview", DOCTOR_URI);
    } catch {
      await vscode.window.showTextDocument(DOCTOR_URI); // an editor without a Markdown preview
    }
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

function doctorMarkdown(result: DoctorResult): string {
  const { version, python, model, paths, journal, provider, sandbox, retention, notes = [] } = result;
  const installation: Record<string, string> = {
    Version: version,
    Python: python,
    Model: model.provider === model.name ? `${model.name} model` : `${model.name}, from ${model.provider}`,
  };
  const checks = provider.map(({ what, fine, text }) => [what, `${fine ? "✓" : "✗"} ${text}`] as const);
  return [
    "# Steadyhand Doctor",
    table("This installation", Object.entries(installation)),
    table("Folders and files", Object.entries(paths)),
    table("The journal on this disk", Object.entries(journal)),
    table("The sandbox for commands", sandboxRows(sandbox)),
    table("Contents of old turns", [
      ["Named for removal", String(retention.named)],
      ["Removed so far", String(retention.removed)],
    ]),
    ...(checks.length === 0 ? [] : [table("The provider", checks)]),
    ...(notes.length === 0 ? [] : [`## Notes\n\n${notes.map((note) => `- ${note}`).join("\n")}`]),
  ].join("\n\n");
}

function sandboxRows({ mode, kind, network, why }: DoctorResult["sandbox"]): (readonly [string, string])[] {
  const confined = kind === "none" ? "✗ Commands are not confined." : `✓ Commands are confined by ${kind}.`;
  return [
    ["Setting", mode],
    ["State", why === undefined ? confined : `${confined} ${why}`],
    ["Network", network === "deny" ? "Each command has a network of its own." : "Commands use your network."],
  ];
}

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  const lines = rows.map(([name, value]) => `| **${cell(name)}** | ${cell(value)} |`);
  return [`## ${title}`, "", "| | |", "|---|---|", ...lines].join("\n");
}
