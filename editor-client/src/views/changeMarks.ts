/**
 * Shows in the editors what is under review: a colour behind the lines and a bar beside them, a dashed line where lines
 * were removed, and above each change *Keep* and *Undo*. The colours are those of the theme for diffs; a theme of high
 * contrast has none, so there the bar alone shows the lines.
 */
import * as vscode from "vscode";
import type { State } from "../store/state";
import type { Change } from "../store/review";
import { isRemoval, lineOf, openChanges } from "../store/review";

const CHANGED_OPTIONS = {
  isWholeLine: true,
  backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
  gutterIconSize: "contain",
  overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.modifiedForeground"),
  overviewRulerLane: vscode.OverviewRulerLane.Left,
  rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
};
const REMOVED_OPTIONS = {
  isWholeLine: true,
  borderStyle: "dashed",
  borderColor: new vscode.ThemeColor("editorGutter.deletedBackground"),
  overviewRulerColor: new vscode.ThemeColor("editorOverviewRuler.deletedForeground"),
  overviewRulerLane: vscode.OverviewRulerLane.Left,
};
const REMOVED_ABOVE = vscode.window.createTextEditorDecorationType({ ...REMOVED_OPTIONS, borderWidth: "2px 0 0 0" });
const REMOVED_AT_END = vscode.window.createTextEditorDecorationType({ ...REMOVED_OPTIONS, borderWidth: "0 0 2px 0" });

export class ChangeMarks implements vscode.CodeLensProvider, vscode.Disposable {
  private changes: readonly Change[] = [];
  private readonly changed: vscode.TextEditorDecorationType;
  private readonly lensesChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.lensesChanged.event;
  private readonly registrations: vscode.Disposable[] = [
    vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
    vscode.window.onDidChangeVisibleTextEditors(() => this.mark()),
    this.lensesChanged,
    REMOVED_ABOVE,
    REMOVED_AT_END,
  ];

  constructor(extensionUri: vscode.Uri) {
    const gutterIconPath = vscode.Uri.joinPath(extensionUri, "media", "changed.svg");
    this.changed = vscode.window.createTextEditorDecorationType({ ...CHANGED_OPTIONS, gutterIconPath });
    this.registrations.push(this.changed);
  }

  show(state: State): void {
    this.changes = openChanges(state.review);
    this.mark();
    this.lensesChanged.fire();
    const files = this.changes.map(({ uri }) => vscode.Uri.parse(uri).fsPath);
    void vscode.commands.executeCommand("setContext", "steadyhand.changedFiles", [...new Set(files)]);
    void vscode.commands.executeCommand("setContext", "steadyhand.hasChanges", this.changes.length > 0);
  }

  /** Put the marks where the changes are, in all editors that are visible. */
  mark(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { document } = editor;
      const inFile = this.changesIn(document).filter(({ range }) => range !== undefined);
      const removals = inFile.filter(isRemoval).map(lineOf);
      const lines = inFile.filter((one) => !isRemoval(one)).map((one) => wholeLines(document, one));
      const isAtEnd = (line: number): boolean => line >= endOf(document);
      editor.setDecorations(this.changed, lines);
      editor.setDecorations(REMOVED_ABOVE, removals.filter((line) => !isAtEnd(line)).map(lineRange));
      editor.setDecorations(
        REMOVED_AT_END,
        removals.filter(isAtEnd).map(() => lineRange(endOf(document) - 1)),
      );
    }
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    return this.changesIn(document).flatMap((change) => {
      const line = Math.min(lineOf(change), document.lineCount - 1);
      const range = new vscode.Range(line, 0, line, 0);
      const lens = (title: string, command: string, tooltip: string): vscode.CodeLens =>
        new vscode.CodeLens(range, { title, command, tooltip, arguments: [change.hunkId] });
      return [
        lens("$(check) Keep", "steadyhand.keepChange", "Keep this change of the agent"),
        lens("$(discard) Undo", "steadyhand.undoChange", "Undo this change of the agent"),
      ];
    });
  }

  dispose(): void {
    for (const registration of this.registrations) registration.dispose();
  }

  private changesIn(document: vscode.TextDocument): readonly Change[] {
    const uri = document.uri.toString();
    return this.changes.filter((change) => change.uri === uri);
  }
}

/** The number of lines as the server counts them: after a last line end there is none. */
function endOf(document: vscode.TextDocument): number {
  const last = document.lineAt(document.lineCount - 1);
  return last.text === "" ? document.lineCount - 1 : document.lineCount;
}

function wholeLines(document: vscode.TextDocument, { range }: Change): vscode.Range {
  const first = range?.start.line ?? 0;
  const last = Math.max(first, (range?.end.line ?? 1) - 1);
  return document.validateRange(new vscode.Range(first, 0, last, Number.MAX_SAFE_INTEGER));
}

function lineRange(line: number): vscode.Range {
  const shown = Math.max(0, line);
  return new vscode.Range(shown, 0, shown, 0);
}
