/**
 * *Steadyhand: Doctor* as a page to read: a virtual text, made anew each time, shown as Markdown where the editor can.
 *
 * It is nobody's file: nothing is left to be saved or closed with a question.
 */
import * as vscode from "vscode";
import type { Commands } from "../protocol";

export type Found = Commands["steadyhand.doctor"]["result"];

const scheme = "steadyhand-doctor";
const page = vscode.Uri.from({ scheme, path: "/Steadyhand Doctor.md" });

export class DoctorPage implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registered = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  private text = "";

  provideTextDocumentContent(): string {
    return this.text;
  }

  async show(found: Found): Promise<void> {
    this.text = written(found);
    this.changed.fire(page);
    try {
      await vscode.commands.executeCommand("markdown.showPreview", page);
    } catch {
      await vscode.window.showTextDocument(page); // an editor without its Markdown preview
    }
  }

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }
}

export function written(found: Found): string {
  const { provider, name } = found.model;
  const about: Record<string, string> = {
    Version: found.version,
    Python: found.python,
    Model: provider === name ? `${name} model` : `${name}, from ${provider}`,
  };
  const looks = found.provider.map(({ what, fine, text }) => [what, `${fine ? "✓" : "✗"} ${text}`] as const);
  return [
    "# Steadyhand Doctor",
    table("This installation", Object.entries(about)),
    table("Where things lie", Object.entries(found.paths)),
    table("The journal here", Object.entries(found.journal)),
    ...(looks.length === 0 ? [] : [table("The provider", looks)]),
    ...(found.notes === undefined || found.notes.length === 0 ? [] : [`## Notes\n\n${found.notes.map((note) => `- ${note}`).join("\n")}`]),
  ].join("\n\n");
}

function table(title: string, rows: readonly (readonly [string, string])[]): string {
  const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
  return [`## ${title}`, "", "| | |", "|---|---|", ...rows.map(([name, value]) => `| **${cell(name)}** | ${cell(value)} |`)].join("\n");
}
