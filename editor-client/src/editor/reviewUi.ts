/** The pickers and messages of VS Code for the review of changes and the rewind. */
import * as vscode from "vscode";
import type { Place } from "../store/review";

export const REVIEW_UI = {
  async pick<Item extends vscode.QuickPickItem>(items: readonly Item[]): Promise<Item | undefined> {
    const options = { title: "Changes of this session", placeHolder: "Choose a file to review" };
    return vscode.window.showQuickPick(items, options);
  },
  async ask(text: string, words: readonly string[]): Promise<string | undefined> {
    return vscode.window.showInformationMessage(text, ...words);
  },
  async confirm(question: string, word: string): Promise<boolean> {
    return (await vscode.window.showWarningMessage(question, { modal: true }, word)) === word;
  },
  async open(uri: string): Promise<void> {
    await vscode.window.showTextDocument(vscode.Uri.parse(uri), { preview: true });
  },
  async reveal({ uri, line }: Place): Promise<void> {
    const at = new vscode.Range(line, 0, line, 0);
    const editor = await vscode.window.showTextDocument(vscode.Uri.parse(uri), { preview: true, selection: at });
    editor.revealRange(at, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  },
  position(): Place | undefined {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined) return undefined;
    return { uri: editor.document.uri.toString(), line: editor.selection.active.line };
  },
  spell(uri: string): string {
    return vscode.Uri.parse(uri).toString();
  },
  inform(text: string): void {
    void vscode.window.showInformationMessage(text);
  },
};

export const REWIND_UI = {
  async pick<Item extends vscode.QuickPickItem>(items: readonly Item[], title: string): Promise<Item | undefined> {
    return vscode.window.showQuickPick(items, { title });
  },
  inform(text: string): void {
    void vscode.window.showInformationMessage(text);
  },
};
