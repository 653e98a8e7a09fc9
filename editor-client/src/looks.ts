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

type Shown = Pick<Inspection["paths"][number], "path"> & Readonly<Record<"before" | "intended" | "now", { readonly uri?: string }>>;

export class Looks implements vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  /** `text`: what the server has under one of its URIs. */
  constructor(private readonly text: (uri: string) => Promise<string>) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    if (uri.query === "") return "";
    try {
      return await this.text(uri.query);
    } catch (error) {
      // Never an empty text: that would read as an empty file.
      return `(This text cannot be shown now: ${error instanceof Error ? error.message : String(error)})\n`;
    }
  }

  /** By its paths alone, for an effect whose inspection is the server's own (a held-back call). */
  openPaths(attemptId: string, paths: readonly string[]): Promise<void> {
    const side = (which: string, path: string): { readonly uri: string } => ({
      uri: `steadyhand:/attempt/${attemptId}/${which}/${path.split("/").map(encodeURIComponent).join("/")}`,
    });
    return this.open({ paths: paths.map((path) => ({ path, before: side("before", path), intended: side("intended", path), now: side("now", path) })) });
  }

  /** For an effect without texts nothing is opened. */
  async open(inspection: { readonly paths: readonly Shown[] }): Promise<void> {
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
