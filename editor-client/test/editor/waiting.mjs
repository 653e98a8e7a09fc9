// Waiting for what must come: looked for again and again, with a limit, and never a sleep instead.
export const shown_ms_max = 40_000;
const again_ms = 50;

/** `holds` may be async; what it comes to is handed on once it is true. */
export async function until(what, holds, ms = shown_ms_max) {
  const end = Date.now() + ms;
  for (;;) {
    const found = await holds();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await pause(again_ms);
  }
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The same promise, or an error that says what did not come to its end. */
export async function within(what, ms, promise) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`not at its end within ${ms} ms: ${what}`)), ms)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
