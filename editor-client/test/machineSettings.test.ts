/** The settings that the extension sends to the server. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { collectMachineSettings } from "../src/client/machineSettings";

test("settings: those that the user set and no others, and whether the folder is trusted (G2)", () => {
  const values: Readonly<Record<string, unknown>> = {
    mode: "edits",
    "permissions.deny": ["delete_file"],
    "model.name": "",
    "cost.cap": null,
    python: "/p",
  };
  const expected = { trusted: false, mode: "edits", permissions: { deny: ["delete_file"] } };
  assert.deepEqual(
    collectMachineSettings((name) => values[name], false),
    expected,
  );
  assert.deepEqual(
    collectMachineSettings(() => undefined, true),
    { trusted: true },
  );
});

interface Manifest {
  readonly capabilities: { readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] } };
  readonly contributes: { readonly configuration: { readonly properties: Record<string, Property> } };
}

interface Property {
  readonly scope: string;
  readonly default?: unknown;
}

/** The settings that a workspace may add to; their rules can only make permissions stricter. */
const OF_A_FOLDER = ["steadyhand.permissions.ask", "steadyhand.permissions.deny"];
const OF_A_WORKSPACE = [...OF_A_FOLDER, "steadyhand.files.encoding"];

test("settings: a workspace can set none but rules that ask and deny, trusted or not (case 140)", () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(process.cwd(), "package.json"), "utf8")) as Manifest;
  const scopes = Object.entries(manifest.contributes.configuration.properties).map(([name, { scope }]) => [
    name,
    scope,
  ]);
  const others = scopes.filter(([name]) => !OF_A_WORKSPACE.includes(name!));
  assert.deepEqual(
    others.filter(([, scope]) => scope !== "machine"),
    [],
  );
  for (const name of OF_A_FOLDER) {
    assert.equal(manifest.contributes.configuration.properties[name]?.scope, "resource", "each folder has its own");
  }
  assert.deepEqual(
    manifest.capabilities.untrustedWorkspaces.restrictedConfigurations,
    others.map(([name]) => name),
  );
});

test("settings: each has a default, because the editor answers 0 for a number without one (case 140)", () => {
  const manifest = JSON.parse(fs.readFileSync(path.join(process.cwd(), "package.json"), "utf8")) as Manifest;
  const without = Object.entries(manifest.contributes.configuration.properties).filter(
    ([, property]) => property.default === undefined,
  );
  assert.deepEqual(without, []);
});
