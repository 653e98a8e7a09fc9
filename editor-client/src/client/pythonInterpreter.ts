/**
 * Finds a Python that can run the server: the setting, then the interpreter of the Python extension, then the PATH.
 *
 * If the setting names a path, no other is tried: a wrong one gives a message and is never replaced silently. A Python
 * in a workspace folder is never started (row O4). Each candidate runs once, isolated, and prints its version. The
 * result is an interpreter, or a sentence that says what to do.
 */
import { execFile } from "node:child_process";
import type { Located } from "./workspacePrograms";

const OLDEST_PYTHON: readonly [number, number] = [3, 10];
const OLDEST_PYTHON_TEXT = OLDEST_PYTHON.join(".");
const PROBE_MAX_MS = 10_000;
const COMMANDS_ON_PATH = [
  "python3",
  "python",
  "python3.14",
  "python3.13",
  "python3.12",
  "python3.11",
  "python3.10",
] as const;

/**
 * The flags of each Python that the extension starts, also of the one that is asked for its version: no variable
 * `PYTHON…`, no packages of the user, and neither the current folder nor any other of the workspace on its path.
 */
export const PYTHON_FLAGS = ["-I"] as const;

export interface Interpreter {
  readonly command: string;
  readonly version: string;
}

export type PythonSearch = { readonly interpreter: Interpreter } | { readonly problem: string };

/** The programs of this machine. */
export interface Programs {
  /** Find a program by its name or path; undefined: there is none. */
  readonly locate: (command: string) => Located | undefined;
  /** Run a candidate, given by its path: its version, or undefined if it does not run. */
  readonly probe: (command: string) => Promise<string | undefined>;
}

/** `setting`: may be empty; `fromExtension`: the interpreter of the Python extension, if there is one. */
export async function findPython(
  setting: string,
  fromExtension: string | undefined,
  programs: Programs,
): Promise<PythonSearch> {
  if (setting.trim() !== "") return checkSetting(setting.trim(), programs);
  const refused: string[] = [];
  for (const command of [...(fromExtension === undefined ? [] : [fromExtension]), ...COMMANDS_ON_PATH]) {
    const located = programs.locate(command);
    if (located === undefined) continue;
    if ("inside" in located) {
      refused.push(`${located.inside} lies in the open folder`);
      continue;
    }
    const version = await programs.probe(located.path);
    if (version === undefined) continue;
    if (isSupportedVersion(version)) return { interpreter: { command: located.path, version } };
    refused.push(`${located.path} is ${version}`);
  }
  const found = refused.length > 0 ? `Found only these: ${[...new Set(refused)].join(", ")}.` : "Found none.";
  const advice = "Install one, or name it in the setting steadyhand.python.";
  return {
    problem: `Steadyhand needs Python ${OLDEST_PYTHON_TEXT} or newer, outside the open folder. ${found} ${advice}`,
  };
}

async function checkSetting(command: string, programs: Programs): Promise<PythonSearch> {
  const located = programs.locate(command);
  if (located !== undefined && "inside" in located) {
    const place = `lies in the open folder ${located.folder}`;
    const reason = "whoever changes the folder would choose the program that runs.";
    const advice = "Name a Python elsewhere, or clear the setting.";
    return { problem: `The Python in the setting steadyhand.python ${place}: ${reason} ${advice}` };
  }
  const version = located === undefined ? undefined : await programs.probe(located.path);
  if (located === undefined || version === undefined) {
    const advice = "Correct the setting, or clear it.";
    return { problem: `The Python in the setting steadyhand.python cannot be run: ${command}. ${advice}` };
  }
  if (!isSupportedVersion(version)) {
    const needed = `Steadyhand needs ${OLDEST_PYTHON_TEXT} or newer.`;
    return { problem: `The Python in the setting steadyhand.python is ${version}; ${needed}` };
  }
  return { interpreter: { command: located.path, version } };
}

export function isSupportedVersion(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_PYTHON;
  return major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
}

/** Run the candidate. One that hangs counts as one that does not run. */
export function probeVersion(command: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const program = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
    execFile(
      command,
      [...PYTHON_FLAGS, "-c", program],
      { timeout: PROBE_MAX_MS, windowsHide: true },
      (error, stdout) => {
        const version = stdout.trim();
        resolve(error === null && /^\d+\.\d+\.\d+$/.test(version) ? version : undefined);
      },
    );
  });
}
