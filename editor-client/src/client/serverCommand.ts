/**
 * The command line of the server: a Python, and the folder `server/` that the extension contains.
 *
 * Python runs the folder as a program. Its packages are then on Python's path, and the environment, which the commands
 * of the agent inherit, stays as it is. The setting `steadyhand.server.command` replaces the whole command line.
 *
 * No workspace chooses a program: settings are the user's own, a Python in a workspace folder is refused, and before
 * the user trusts the folder neither the Python extension is asked nor a command line used that names a file in the
 * folder (row O4, case 140).
 */
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { TransportKind } from "vscode-languageclient/node";
import { findPython, probeVersion, PYTHON_FLAGS } from "./pythonInterpreter";
import type { SearchPlaces } from "./workspacePrograms";
import { locateProgram, wordInFolder } from "./workspacePrograms";

interface PythonExtensionApi {
  readonly environments?: { getActiveEnvironmentPath?: (resource?: vscode.Uri) => { readonly path?: string } };
}

/** The command line, or a sentence that says what to do. */
export type ServerCommand = { readonly command: Executable } | { readonly problem: string };

export async function findServerCommand(
  extension: vscode.ExtensionContext,
  output: vscode.LogOutputChannel,
): Promise<ServerCommand> {
  const [command, ...args] = userSetting<readonly string[]>("server.command", []);
  if (command !== undefined) return checkCommandLine(extension, command, args);
  const places = searchPlaces();
  const programs = { locate: (name: string) => locateProgram(name, places), probe: probeVersion };
  const found = await findPython(userSetting("python", ""), await pythonExtensionInterpreter(), programs);
  if ("problem" in found) return found;
  const { interpreter } = found;
  output.info(`Python ${interpreter.version} (${interpreter.command}) runs the server.`);
  return executable(extension, interpreter.command, [...PYTHON_FLAGS, extension.asAbsolutePath("server")]);
}

/** The value that the user set; a workspace's is passed over, whatever scope the editor thinks the setting has. */
function userSetting<T>(name: string, otherwise: T): T {
  return vscode.workspace.getConfiguration("steadyhand").inspect<T>(name)?.globalValue ?? otherwise;
}

function checkCommandLine(extension: vscode.ExtensionContext, command: string, args: string[]): ServerCommand {
  const word = vscode.workspace.isTrusted ? undefined : wordInFolder(command, args, searchPlaces());
  if (word === undefined) return executable(extension, command, args);
  const reason = "which is not trusted.";
  return {
    problem: `The setting steadyhand.server.command names ${word} in the open folder, ${reason} Trust it first.`,
  };
}

function searchPlaces(): SearchPlaces {
  const suffixes = process.platform === "win32" ? [".exe"] : [""];
  return { searchPath: process.env["PATH"] ?? "", suffixes, folders: workspaceFolders() };
}

function workspaceFolders(): string[] {
  const folders = vscode.workspace.workspaceFolders ?? [];
  return folders.filter((folder) => folder.uri.scheme === "file").map((folder) => folder.uri.fsPath);
}

/** Without trust the server does not start in the folder: some programs run what they find in the current folder. */
function executable({ extensionPath }: vscode.ExtensionContext, command: string, args: string[]): ServerCommand {
  const [folder] = workspaceFolders();
  const cwd = vscode.workspace.isTrusted && folder !== undefined ? folder : extensionPath;
  return { command: { command, args, transport: TransportKind.stdio, options: { env: process.env, cwd } } };
}

/** Undefined in a folder that is not trusted: the folder's settings may have chosen the interpreter. */
async function pythonExtensionInterpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtensionApi>("ms-python.python");
  if (extension === undefined || !vscode.workspace.isTrusted) return undefined;
  try {
    const api = await extension.activate();
    return api.environments?.getActiveEnvironmentPath?.(vscode.workspace.workspaceFolders?.[0]?.uri).path;
  } catch {
    return undefined; // a broken Python extension must not stop us: the next candidate is tried
  }
}
