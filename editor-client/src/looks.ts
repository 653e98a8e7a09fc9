/**
 * The texts of an inspection for the diff editor: before, intended and now, each pair under one name.
 *
 * The server gives each text by a URI of its own (`steadyhand:/attempt/…`). A diff of two such URIs looks like a
 * rename, so both sides of a pair get the same path here and name the server's URI in their query; an absent side is
 * an empty text. They are read anew whenever an inspection is shown.
 */
import * as vscode from "vscode";
import type { Inspection } from "./protocol";

export const lookScheme = "steadyhand-look";

export class Looks implements vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  /** `text`: what the server has under one of its URIs. */
  constructor(private readonly text: (uri: string) => Promise<string>) {}

  provideTextDocumentContent(uri: vscode.Uri): Promise<string> | string {
    return uri.query === "" ? "" : this.text(uri.query);
  }

  /** For an effect without texts nothing is opened. */
  async open(inspection: Inspection): Promise<void> {
    const [first, ...others] = inspection.paths;
    if (first === undefined) return;
    const rows = inspection.paths.flatMap(({ path, before, intended, now }) => [
      pair("before ↔ intended", path, before.uri, intended.uri),
      pair("intended ↔ now", path, intended.uri, now.uri),
    ]);
    for (const [, left, right] of rows) for (const uri of [left, right]) this.changed.fire(uri);
    const title = `${others.length === 0 ? first.path : `${others.length + 1} files`}: before ↔ intended ↔ now`;
    await vscode.commands.executeCommand("vscode.changes", title, rows);
  }
}

function pair(name: string, path: string, left: string | undefined, right: string | undefined): [vscode.Uri, vscode.Uri, vscode.Uri] {
  const shown = `/${name}/${path.replace(/^\//, "")}`;
  const side = (uri: string | undefined): vscode.Uri => vscode.Uri.from({ scheme: lookScheme, path: shown, query: uri ?? "" });
  return [side(right ?? left), side(left), side(right)];
}
