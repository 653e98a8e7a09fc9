// Waits for a condition: checks it again and again, with a limit, and never sleeps instead.
import os from "node:os";

export const SHOWN_MAX_MS = 40_000;
const RETRY_MS = 50;

/** An error with the name of the errors that Playwright gives when it runs out of time. */
function timeoutError(text) {
  return Object.assign(new Error(text), { name: "TimeoutError" });
}

/** Wait until the condition, which may be async, gives a true value, and return that value. */
export async function until(what, condition, ms = SHOWN_MAX_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw timeoutError(`not within ${ms} ms: ${what}`);
    await pause(RETRY_MS);
  }
}

/** How many times longer work takes now than on an idle machine: the processes that want a core, for each core. */
export function slowness() {
  return Math.max(1, os.loadavg()[0] / os.cpus().length);
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The value of the promise, or an error that says what took too long. */
export async function within(what, ms, promise) {
  let timer;
  const late = new Promise(
    (_, reject) => (timer = setTimeout(() => reject(timeoutError(`not finished within ${ms} ms: ${what}`)), ms)),
  );
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
