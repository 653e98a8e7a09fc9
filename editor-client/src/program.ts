/**
 * The command line of the server: a Python that was found, and the server that the extension carries in `server/`.
 *
 * The folder is run as a program, so that its packages are on Python's path and nothing is put into the environment
 * that the agent's own commands would inherit. `steadyhand.server.command` replaces the whole command line.
 */
import * as vscode from "vscode";
import type { Executable } from "vscode-languageclient/node";
import { TransportKind } from "vscode-languageclient/node";
import { findPython, runProbe } from "./python";

interface PythonApi {
  readonly environments?: { getActiveEnvironmentPath?: (resource?: vscode.Uri) => { readonly path?: string } };
}

export async function pythonProgram(
  context: vscode.ExtensionContext,
  output: vscode.LogOutputChannel,
): Promise<{ readonly program: Executable } | { readonly trouble: string }> {
  const configuration = vscode.workspace.getConfiguration("steadyhand");
  const replaced = configuration.get<readonly string[]>("server.command", []);
  const cwd = vscode.workspace.workspaceFolders?.find((folder) => folder.uri.scheme === "file")?.uri.fsPath;
  const options = { env: process.env, ...(cwd === undefined ? {} : { cwd }) };
  const [first, ...rest] = replaced;
  if (first !== undefined) return { program: { command: first, args: rest, transport: TransportKind.stdio, options } };
  const found = await findPython(configuration.get("python", ""), await interpreterOfPythonExtension(), runProbe);
  if ("trouble" in found) return found;
  output.info(`Python ${found.interpreter.version} (${found.interpreter.command}) runs the server.`);
  const args = ["-E", "-s", context.asAbsolutePath("server")];
  return { program: { command: found.interpreter.command, args, transport: TransportKind.stdio, options } };
}

async function interpreterOfPythonExtension(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (extension === undefined) return undefined;
  try {
    const api = await extension.activate();
    return api.environments?.getActiveEnvironmentPath?.(vscode.workspace.workspaceFolders?.[0]?.uri).path;
  } catch {
    return undefined; // a broken extension of others is no reason to fail: PATH is tried
  }
}
