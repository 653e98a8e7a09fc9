/** Paths as the server shows them, and the files that they name. */
import * as vscode from "vscode";

/** `path`: relative to the first folder, or absolute if the file is outside. Undefined: no folder is open. */
export function workspaceFile(path: string): vscode.Uri | undefined {
  if (path.startsWith("/")) return vscode.Uri.file(path);
  const folder = vscode.workspace.workspaceFolders?.[0];
  return folder === undefined ? undefined : vscode.Uri.joinPath(folder.uri, path);
}
