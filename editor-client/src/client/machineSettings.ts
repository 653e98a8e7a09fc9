/**
 * The settings that the extension sends to the server: those of the user, none of a workspace, and whether the folder
 * is trusted. In a folder that is not trusted the server lets the agent only read.
 *
 * A setting that the user did not set is not sent; the server has a default for it. The server reads the rules of a
 * workspace (`permissions.ask`, `permissions.deny`, `files.encoding`) with `workspace/configuration`.
 */
const MACHINE_SETTINGS = [
  "model.provider",
  "model.name",
  "model.baseUrl",
  "model.apiKeyEnv",
  "model.dialect",
  "model.window",
  "compaction.auto",
  "compaction.at",
  "compaction.model",
  "titles",
  "mode",
  "permissions.allow",
  "permissions.ask",
  "permissions.deny",
  "files.encoding",
  "recovery.settle",
  "recovery.retry",
  "continuation",
  "cost.cap",
  "cost.prices",
  "stateDirectory",
  "environment.add",
  "sandbox.mode",
  "sandbox.write",
  "sandbox.network",
  "retention.days",
] as const;

export type NestedSettings = Record<string, unknown>;

/**
 * For `initializationOptions`, and for `steadyhand.machine` when a setting changes. `userValue`: the value that the
 * user set for a name, undefined if none.
 */
export function collectMachineSettings(userValue: (name: string) => unknown, trusted: boolean): NestedSettings {
  const values = new Map<string, unknown>([["trusted", trusted]]);
  for (const name of MACHINE_SETTINGS) {
    const value = userValue(name);
    if (value !== undefined && value !== null && value !== "") values.set(name, value);
  }
  return nestSettings(values);
}

/** Dotted names → nested objects. */
function nestSettings(flat: ReadonlyMap<string, unknown>): NestedSettings {
  const root: NestedSettings = {};
  for (const [path, value] of flat) {
    const names = path.split(".");
    const last = names.pop() ?? path;
    const parent = names.reduce<NestedSettings>((object, name) => {
      const next = (object[name] ?? {}) as NestedSettings;
      object[name] = next;
      return next;
    }, root);
    parent[last] = value;
  }
  return root;
}
