/** Which errors are answers of the server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isServerError } from "../src/client/serverApi";
import { Refusal } from "./support";

test("errors with the server's codes are answers; those of the client library mean a lost connection", () => {
  assert.equal(isServerError(new Refusal(-32602, "params")), true);
  assert.equal(isServerError(new Refusal(-32054, "inspectFirst")), true);
  assert.equal(isServerError(new Refusal(-32097, "pending response rejected")), false);
  assert.equal(isServerError(new Error("closed")), false);
});
