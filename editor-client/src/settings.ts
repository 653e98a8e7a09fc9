/**
 * The settings that are sent to the server: those of the user, none of a workspace (wire.md), and whether the folder is
 * trusted, without which the server lets the agent only read.
 *
 * Only what the user set is sent; what is absent has the server's default. What a workspace wants to be asked or denied
 * the server asks for itself, by `workspace/configuration`.
 */
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
  "cost.prices",
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

/** As `initializationOptions`, and under `steadyhand.machine` when they change. `ofUser`: a setting as the user set it. */
export function machineSettings(ofUser: (name: string) => unknown, trusted: boolean): Nested {
  const set = new Map<string, unknown>([["trusted", trusted]]);
  for (const name of MACHINE) {
    const value = ofUser(name);
    if (value !== undefined && value !== null && value !== "") set.set(name, value);
  }
  return nested(set);
}
