/**
 * Finding a Python that can run the server: the setting, the Python extension's interpreter, then PATH.
 *
 * A path in the setting is the only one tried: a wrong one is told, never silently replaced. Each candidate is run
 * once to learn its version. Comes to an interpreter or to one sentence that says what to do.
 */
import { execFile } from "node:child_process";

export const oldest: readonly [number, number] = [3, 10];
const probe_ms_max = 10_000;
const ON_PATH = ["python3", "python", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];

export interface Interpreter {
  readonly command: string;
  readonly version: string;
}

export type Found = { readonly interpreter: Interpreter } | { readonly trouble: string };

/** What running a candidate said: its version, or undefined when it cannot be run. */
export type Probe = (command: string) => Promise<string | undefined>;

/** `setting`: as the user wrote it, maybe empty; `fromExtension`: the Python extension's interpreter, if any. */
export async function findPython(setting: string, fromExtension: string | undefined, probe: Probe): Promise<Found> {
  if (setting.trim() !== "") return fromSetting(setting.trim(), probe);
  const tooOld: string[] = [];
  for (const command of [...(fromExtension === undefined ? [] : [fromExtension]), ...ON_PATH]) {
    const version = await probe(command);
    if (version === undefined) continue;
    if (newEnough(version)) return { interpreter: { command, version } };
    tooOld.push(`${command} is ${version}`);
  }
  const seen = tooOld.length > 0 ? ` Found only older ones: ${tooOld.join(", ")}.` : " Found none.";
  return { trouble: `Steadyhand needs Python ${oldest.join(".")} or newer.${seen} Install one, or choose it in the setting steadyhand.python.` };
}

async function fromSetting(command: string, probe: Probe): Promise<Found> {
  const version = await probe(command);
  if (version === undefined) {
    return { trouble: `The Python of the setting steadyhand.python cannot be run: ${command}. Correct it, or clear it.` };
  }
  if (!newEnough(version)) {
    return { trouble: `The Python of the setting steadyhand.python is ${version}; Steadyhand needs ${oldest.join(".")} or newer.` };
  }
  return { interpreter: { command, version } };
}

export function newEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1]);
}

/** Runs the candidate; a shim that hangs counts as none. */
export const runProbe: Probe = (command) =>
  new Promise((resolve) => {
    const program = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
    execFile(command, ["-c", program], { timeout: probe_ms_max, windowsHide: true }, (error, stdout) => {
      const version = stdout.trim();
      resolve(error === null && /^\d+\.\d+\.\d+$/.test(version) ? version : undefined);
    });
  });
