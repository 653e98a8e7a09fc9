/**
 * The contents of an inspection for the diff editor: before, intended and now.
 *
 * The server gives each content a URI (`steadyhand:/attempt/…`). VS Code shows a diff of two different paths as a
 * rename, so both sides of a pair get the same path here and carry the server's URI in their query. A file that does
 * not exist is an empty content. Contents are read again whenever an inspection is shown.
 */
import * as vscode from "vscode";
import type { Inspection } from "../protocol";

const INSPECTION_SCHEME = "steadyhand-inspection";

type Side = "before" | "intended" | "now";
type ComparedFile = Pick<Inspection["paths"][number], "path"> & Readonly<Record<Side, { readonly uri?: string }>>;

export class InspectionDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(INSPECTION_SCHEME, this);

  constructor(private readonly server: { readVirtualDocument(uri: string): Promise<string> }) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    if (uri.query === "") return "";
    try {
      return await this.server.readVirtualDocument(uri.query);
    } catch (error) {
      // An empty text would look like an empty file.
      return `(This content cannot be shown: ${error instanceof Error ? error.message : String(error)})\n`;
    }
  }

  /** Open the files of an effect that the server itself inspects, as it does for a held-back call. */
  openPaths(attemptId: string, paths: readonly string[]): Promise<void> {
    const side = (name: Side, path: string): { readonly uri: string } => ({
      uri: `steadyhand:/attempt/${attemptId}/${name}/${path.split("/").map(encodeURIComponent).join("/")}`,
    });
    const files = paths.map((path) => ({
      path,
      before: side("before", path),
      intended: side("intended", path),
      now: side("now", path),
    }));
    return this.open({ paths: files });
  }

  /** Open nothing for an effect without files. */
  async open({ paths }: { readonly paths: readonly ComparedFile[] }): Promise<void> {
    const [first] = paths;
    if (first === undefined) return;
    const pairs = paths.flatMap(({ path, before, intended, now }) => [
      diffPair("before ↔ intended", path, before.uri, intended.uri),
      diffPair("intended ↔ now", path, intended.uri, now.uri),
    ]);
    for (const [, left, right] of pairs) for (const uri of [left, right]) this.changed.fire(uri);
    const title = `${paths.length === 1 ? first.path : `${paths.length} files`}: before ↔ intended ↔ now`;
    await vscode.commands.executeCommand("vscode.changes", title, pairs);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** Label, left and right, as `vscode.changes` expects them. */
function diffPair(
  name: string,
  path: string,
  left: string | undefined,
  right: string | undefined,
): [vscode.Uri, vscode.Uri, vscode.Uri] {
  const label = `/${name}/${path.replace(/^\//, "")}`;
  const side = (uri: string | undefined): vscode.Uri =>
    vscode.Uri.from({ scheme: INSPECTION_SCHEME, path: label, query: uri ?? "" });
  return [side(right ?? left), side(left), side(right)];
}
