/**
 * Whether to start a server again that ended. Pure.
 *
 * The first ends in a row lead to a restart at once, so a killed server is back within two seconds. A server that keeps
 * ending stays stopped; the user gets a message and can start it.
 */
export const CRASHES_MAX = 3;
export const CRASH_WINDOW_MS = 60_000;

export interface RestartDecision {
  readonly restart: boolean;
  /** the ends within the window, the newest among them */
  readonly crashTimesMs: readonly number[];
}

export function decideRestart(earlierMs: readonly number[], nowMs: number): RestartDecision {
  const crashTimesMs = [...earlierMs.filter((timeMs) => nowMs - timeMs < CRASH_WINDOW_MS), nowMs];
  return { restart: crashTimesMs.length <= CRASHES_MAX, crashTimesMs };
}
