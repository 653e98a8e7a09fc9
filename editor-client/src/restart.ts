/**
 * Whether a server that ended is started again: pure, from the times at which it ended.
 *
 * The first ends are answered at once, so that a killed server is back within two seconds; one that keeps ending is
 * left alone with a clear message and a manual restart. Nothing that runs is ever killed by this.
 */
export const crashes_max = 3;
export const crash_window_ms = 60_000;

export interface Decision {
  readonly restart: boolean;
  /** those within the window, this one among them */
  readonly crashes: readonly number[];
}

/** `crashes`: times of earlier ends, ms; `now`: of this one. */
export function afterCrash(crashes: readonly number[], now: number): Decision {
  const recent = [...crashes.filter((at) => now - at < crash_window_ms), now];
  return { restart: recent.length <= crashes_max, crashes: recent };
}
