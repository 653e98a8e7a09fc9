/** Whether a server that ended is started again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CRASHES_MAX, CRASH_WINDOW_MS, decideRestart } from "../src/client/restartPolicy";

test("the first crashes lead to a restart, too many within the window do not, and old ones are forgotten", () => {
  let crashTimesMs: readonly number[] = [];
  const restarts = Array.from({ length: CRASHES_MAX + 1 }, (_, index) => {
    const decision = decideRestart(crashTimesMs, index * 1_000);
    crashTimesMs = decision.crashTimesMs;
    return decision.restart;
  });
  assert.deepEqual(restarts, [...Array<boolean>(CRASHES_MAX).fill(true), false]);
  assert.equal(decideRestart(crashTimesMs, CRASH_WINDOW_MS * 2).restart, true);
});
