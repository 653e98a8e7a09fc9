/** What the chat does in the editor: open files and diffs, find files, insert text, attach a selection or problems. */
import * as vscode from "vscode";
import type { Attachment } from "../protocol";
import { ATTACHMENT_TEXT_MAX_BYTES, truncateText } from "../store/attachments";
import type { Problem } from "../store/problems";
import { problemsText } from "../store/problems";
import type { Item } from "../store/state";
import { workspaceFile } from "./workspaceFiles";

const COMPLETIONS_MAX = 30;
const EXCLUDED_FILES_GLOB = "**/{node_modules,.git,out,dist,__pycache__,.venv*}/**";

// --- files ------------------------------------------------------------------------------------------------------

export async function openFile(path: string): Promise<void> {
  const uri = workspaceFile(path);
  if (uri !== undefined) await vscode.commands.executeCommand("vscode.open", uri);
}

/** Compare the file before the first change of the turn with the file now. `items`: those of the turn. */
export async function openDiff(items: readonly Item[], path: string): Promise<void> {
  const uri = workspaceFile(path);
  const calls = items.flatMap((item) => (item.kind === "call" ? [item.call] : []));
  const call = calls.find((one) => one.files?.some((file) => file.path === path) === true);
  if (uri === undefined || call?.attemptId === undefined) return openFile(path);
  const encodedPath = path.split("/").map(encodeURIComponent).join("/");
  const before = vscode.Uri.parse(`steadyhand:/attempt/${call.attemptId}/before/${encodedPath}`);
  await vscode.commands.executeCommand("vscode.diff", before, uri, `${path}: before this turn ↔ now`, {
    preview: true,
  });
}

/** Paths of files whose name contains the query, shortest first; `workspace`: the folder of the session. */
export async function findFiles(query: string, workspace: string | undefined): Promise<readonly string[]> {
  const glob = query === "" ? "**/*" : `**/*${query.replaceAll(/[[\]{}*?\\]/g, "?")}*`;
  // The paths of attachments are relative to the folder of the session, so files of other folders cannot be attached.
  const folders = vscode.workspace.workspaceFolders ?? [];
  const folder = folders.find((one) => one.uri.toString() === workspace) ?? folders[0];
  const pattern = folder === undefined ? glob : new vscode.RelativePattern(folder, glob);
  const found = await vscode.workspace.findFiles(pattern, EXCLUDED_FILES_GLOB, COMPLETIONS_MAX);
  const paths = found.map((uri) => vscode.workspace.asRelativePath(uri, false));
  return paths.sort((a, b) => a.length - b.length || a.localeCompare(b));
}

/** False: the file has unsaved text and could not be saved. */
export async function saveFile(path: string): Promise<boolean> {
  const uri = workspaceFile(path);
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri?.toString());
  return document?.isDirty !== true || document.save();
}

// --- text ---------------------------------------------------------------------------------------------------------

export async function insertAtCursor(text: string): Promise<void> {
  const editor = activeEditor();
  if (editor === undefined) {
    void vscode.window.showInformationMessage("Open a file first. The text is inserted at its cursor.");
    return;
  }
  await editor.edit((edit) => edit.replace(editor.selection, text));
}

/** The selected text; undefined, with a message, if there is none. */
export function attachmentOfSelection(): Attachment | undefined {
  const editor = activeEditor();
  if (editor === undefined || editor.selection.isEmpty) {
    void vscode.window.showInformationMessage("Select text in an editor first.");
    return undefined;
  }
  const { document, selection } = editor;
  const selectedText = document.getText(selection);
  const text = truncateText(selectedText);
  const isCut = text !== selectedText;
  // The range ends where the text was cut, so the name of the attachment says what it contains.
  const end = isCut ? document.positionAt(document.offsetAt(selection.start) + text.length) : selection.end;
  if (isCut) {
    const limit = ATTACHMENT_TEXT_MAX_BYTES / 1024;
    void vscode.window.showWarningMessage(`Only the first ${limit} KiB of the selection are attached.`);
  }
  const range = {
    start: { line: selection.start.line, character: selection.start.character },
    end: { line: end.line, character: end.character },
  };
  return { kind: "selection", uri: document.uri.toString(), range, text };
}

/** The problems of all language servers, as a text: the server sees its own diagnostics alone. */
export function attachmentOfProblems(): Attachment | undefined {
  const all = vscode.languages.getDiagnostics();
  const problems = all.flatMap(([uri, diagnostics]) => diagnostics.map((one) => toProblem(uri, one)));
  if (problems.length === 0) {
    void vscode.window.showInformationMessage("The editor reports no problems.");
    return undefined;
  }
  return { kind: "text", name: "problems", text: problemsText(problems) };
}

/** The active editor; while the chat has the focus, the first visible one. */
function activeEditor(): vscode.TextEditor | undefined {
  return vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
}

function toProblem(uri: vscode.Uri, diagnostic: vscode.Diagnostic): Problem {
  const severities = ["error", "warning", "information", "hint"] as const;
  return {
    path: vscode.workspace.asRelativePath(uri, false),
    line: diagnostic.range.start.line + 1,
    column: diagnostic.range.start.character + 1,
    severity: severities[diagnostic.severity],
    message: diagnostic.message,
    ...(diagnostic.source === undefined ? {} : { source: diagnostic.source }),
  };
}
