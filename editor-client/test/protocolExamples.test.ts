/**
 * The golden messages of the protocol, which server and client both read: each is valid against the JSON Schema that is
 * generated with the client's types, and the reducer accepts the notifications.
 */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import Ajv from "ajv/dist/2020";
import type { QueueChanged, Session, SessionOpenResult, Snapshot, TurnEvent } from "../src/protocol";
import { errorCodes, notBuilt, protocolVersion } from "../src/protocol";
import { reduce } from "../src/store/reducer";
import { INITIAL_STATE } from "../src/store/state";

const protocol = path.resolve("..", "protocol");
const read = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

interface Example {
  readonly about: string;
  readonly method?: string;
  readonly params?: unknown;
  readonly result?: unknown;
  readonly command?: string;
  readonly arguments?: unknown;
  readonly error?: { readonly code: number; readonly data?: { readonly kind?: keyof typeof errorCodes } };
}

interface Schema {
  readonly version: number;
  readonly methods: readonly { name: string; params: object; result?: object; built: boolean }[];
  readonly commands: readonly { name: string; arguments: object; result: object; built: boolean }[];
  readonly errors: readonly { kind: keyof typeof errorCodes; code: number; data: object }[];
  readonly $defs: object;
}

const schema = read(path.join(protocol, "schema", "protocol.json")) as Schema;
const ajv = new Ajv({ strict: false, formats: {} });

/** What is wrong with the value; empty if it is valid. */
function validate(part: object, value: unknown): string {
  const check = ajv.compile({ ...part, $defs: schema.$defs });
  return check(value) ? "" : ajv.errorsText(check.errors);
}

const examples = readdirSync(path.join(protocol, "examples"))
  .filter((name) => name.endsWith(".json"))
  .flatMap((name) =>
    (read(path.join(protocol, "examples", name)) as readonly Example[]).map((example) => ({ ...example, name })),
  );

test("there are examples, and the version of the client is that of the schema", () => {
  assert.ok(examples.length > 50);
  assert.equal(protocolVersion, schema.version);
  const missing = [...schema.methods, ...schema.commands].filter((row) => !row.built).map((row) => row.name);
  assert.deepEqual([...notBuilt].sort(), missing.sort());
});

for (const example of examples) {
  test(`${example.name}: ${example.method ?? example.command ?? "error"}, ${example.about}`, () => {
    const method = schema.methods.find((row) => row.name === example.method);
    const command = schema.commands.find((row) => row.name === example.command);
    if (method && "params" in example) assert.equal(validate(method.params, example.params), "");
    if (method?.result && "result" in example) assert.equal(validate(method.result, example.result), "");
    if (command && "arguments" in example) assert.equal(validate(command.arguments, example.arguments), "");
    if (command && "result" in example) assert.equal(validate(command.result, example.result), "");
    const kind = example.error?.data?.kind;
    if (kind !== undefined) {
      assert.equal(example.error?.code, errorCodes[kind]);
      const row = schema.errors.find((one) => one.kind === kind);
      assert.ok(row);
      assert.equal(validate(row.data, example.error.data), "");
    }
    applyToState(example);
  });
}

/** Notifications and results go into the state as they are. */
function applyToState(example: Example): void {
  switch (example.method) {
    case "steadyhand/turn/event":
      reduce(INITIAL_STATE, { kind: "turnEvent", turnEvent: example.params as TurnEvent });
      break;
    case "steadyhand/session/changed": {
      const session = example.params as Session;
      assert.deepEqual(reduce(INITIAL_STATE, { kind: "sessionChanged", session }).sessions, [session]);
      break;
    }
    case "steadyhand/recovery/changed":
      reduce(INITIAL_STATE, { kind: "recoveryChanged", snapshot: example.params as Snapshot });
      break;
    case "steadyhand/queue/changed":
      reduce(INITIAL_STATE, { kind: "queueChanged", ...(example.params as QueueChanged) });
      break;
    case "steadyhand/session/open":
      if (example.result !== undefined) {
        const result = example.result as SessionOpenResult;
        const { active } = reduce(INITIAL_STATE, { kind: "sessionOpened", result, events: [] });
        assert.equal(active?.session.sessionId, result.session.sessionId);
        const calls = result.messages.flatMap((message) => message.calls ?? []);
        assert.deepEqual(
          active.items.flatMap((item) => (item.kind === "call" ? [item.call] : [])),
          calls,
        );
      }
      break;
    default:
  }
}
