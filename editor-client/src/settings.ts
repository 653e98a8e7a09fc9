/**
 * The settings that are sent to the server. All of them are machine-scoped: a workspace cannot set them (wire.md).
 *
 * Only what the user set is sent; what is absent has the server's default. A folder that is not trusted gets the
 * mode “plan”, in which the agent only reads, whatever the settings say.
 */
import * as vscode from "vscode";

const MACHINE = [
  "model.provider",
  "model.name",
  "model.baseUrl",
  "model.apiKeyEnv",
  "mode",
  "permissions.allow",
  "permissions.ask",
  "permissions.deny",
  "recovery.settle",
  "recovery.retry",
  "continuation",
  "cost.cap",
  "stateDirectory",
  "environment.add",
  "mcpServers",
  "hooks",
] as const;

export type Nested = Record<string, unknown>;

/** Dotted names → nested objects. */
export function nested(flat: ReadonlyMap<string, unknown>): Nested {
  const root: Nested = {};
  for (const [path, value] of flat) {
    const names = path.split(".");
    const last = names.pop() ?? path;
    const parent = names.reduce<Nested>((at, name) => {
      const next = (at[name] ?? {}) as Nested;
      at[name] = next;
      return next;
    }, root);
    parent[last] = value;
  }
  return root;
}

/** As `initializationOptions`, and under `steadyhand.machine` when they change. */
export function machineSettings(): Nested {
  const configuration = vscode.workspace.getConfiguration("steadyhand");
  const set = new Map<string, unknown>();
  for (const name of MACHINE) {
    const value = configuration.inspect(name)?.globalValue;
    if (value !== undefined && value !== null && value !== "") set.set(name, value);
  }
  if (!vscode.workspace.isTrusted) set.set("mode", "plan");
  return nested(set);
}
