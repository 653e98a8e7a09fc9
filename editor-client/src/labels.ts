/**
 * What the user reads about states, reasons, checks and decisions, in one place for the chat, the list and messages.
 *
 * Each record covers all words of the protocol, so the compiler finds a new word that has no label. Pure.
 */
import type {
  Action,
  Call,
  CallState,
  Change,
  Check,
  CheckpointRewindResult,
  CheckpointTurn,
  CompactionNote,
  Mode,
  Reason,
  ReviewFile,
  ReviewLeft,
  Settled,
  StandingGrant,
  Statistics,
  Uncertain,
} from "./protocol";
import type { ActiveSession } from "./store/state";

// --- modes ------------------------------------------------------------------------------------------------------

export const MODE_LABELS: Readonly<Record<Mode, string>> = { plan: "Plan", ask: "Ask", edits: "Edits", auto: "Auto" };

export const MODE_HINTS: Readonly<Record<Mode, string>> = {
  plan: "Reads files. Changes nothing.",
  ask: "Asks before each change.",
  edits: "Edits files in the workspace folder without asking. Asks before everything else.",
  auto: "Asks only about protected and secret files and files outside the workspace folder.",
};

export const UNTRUSTED_FOLDER = "This folder is not trusted, so the agent can only read here, in every mode.";

// --- the conversation -------------------------------------------------------------------------------------------

export function compactionLabel({ before, after, automatic }: CompactionNote): string {
  const by = automatic ? "Compacted automatically" : "Compacted";
  const now = after.messages === 1 ? "1 message" : `${after.messages} messages`;
  return `${by}: the model gets ${now} in place of ${before.messages}`;
}

// --- calls ------------------------------------------------------------------------------------------------------

export const CALL_STATE_LABELS: Readonly<Record<CallState, string>> = {
  proposed: "proposed",
  waiting: "waiting for you",
  running: "running",
  returned: "done",
  failed: "failed",
  stopped: "stopped, may be incomplete",
  refused: "refused, did not run",
  notRun: "did not run",
  unknown: "outcome unknown",
};

export const CHANGE_LABELS: Readonly<Record<Change, string>> = {
  created: "created",
  modified: "changed",
  deleted: "deleted",
  moved: "moved",
};

const CALL_REASON_LABELS: ReadonlyMap<string, string> = new Map([
  [
    "interrupted_before_execution",
    "The server ended before this started, so it did not run. Ask again if you still want it.",
  ],
  ["interrupted", "The server ended while this was reading. It changed nothing."],
  ["unknown_after_restart", "The server ended while this was running."],
  ["denied", "You rejected it."],
  ["not_answered", "The question got no answer."],
  ["policy", "The mode, a rule or an untrusted folder does not allow it."],
  ["changed", "The file changed in the meantime."],
  ["stale", "The file is not as the model read it, or the model did not read it whole. It has to read it first."],
  ["bad_arguments", "The arguments that the model gave do not fit the tool."],
  ["unknown_tool", "There is no tool with this name."],
  ["recovery_required", "An earlier effect is uncertain."],
  ["loop_guard", "The model made the same call too often."],
  ["encoding", "The encoding of the file forbids it; the answer to the model says why."],
  ["sandbox", "The sandbox could not be set up, so nothing ran. Run Steadyhand: Doctor to see why."],
]);

/** The reason for the state of a call. A reason without a label is shown as it is, without underscores. */
export function callReasonLabel(reason: string): string {
  return CALL_REASON_LABELS.get(reason) ?? reason.replaceAll("_", " ");
}

const OUTSIDE_TITLE = "Run outside the sandbox: ";

/** What confines a command that was started or that asks to leave the sandbox; undefined for every other call. */
export function sandboxLabel(call: Pick<Call, "tool" | "started" | "sandbox" | "unconfined">): string | undefined {
  if (call.unconfined === true) return "outside the sandbox";
  if (call.sandbox !== undefined) return `in a sandbox (${call.sandbox.kind})`;
  return call.tool === "run_command" && call.started !== undefined ? "not in a sandbox" : undefined;
}

/** Above the files that changed while a command ran: it may have been somebody else who changed them. */
export function changedDuringLabel({ exact }: { readonly exact: boolean }): string {
  const title = "Changed while this ran, by it or by somebody else";
  return exact ? title : `${title} (by modification time, perhaps incomplete)`;
}

/** What a call does, above what it works on: `Write`, `Run outside the sandbox`. */
export function callVerb({ tool, title }: { readonly tool: string; readonly title: string }): string {
  return title.startsWith(OUTSIDE_TITLE) ? OUTSIDE_TITLE.slice(0, -2) : toolVerb(tool);
}

/** `write_file: a.txt` → `a.txt`. */
export function callSubject({ tool, title }: { readonly tool: string; readonly title: string }): string {
  if (title.startsWith(OUTSIDE_TITLE)) return title.slice(OUTSIDE_TITLE.length);
  if (title.startsWith(`${tool}: `)) return title.slice(tool.length + 2);
  return title === tool ? "" : title;
}

/** `write_file` → `Write`. */
export function toolVerb(tool: string): string {
  return capitalize(tool.replaceAll("_", " ").replace(/ files?$/, ""));
}

// --- the end of a turn --------------------------------------------------------------------------------------------

export const END_REASON_LABELS: Readonly<Record<Reason, string>> = {
  done: "Done",
  cancelled: "Stopped",
  length: "The answer reached its maximum length",
  filtered: "The provider withheld the answer",
  cut: "The answer was cut off",
  modelFailed: "The model failed",
  bound: "Step limit reached",
  cost: "Cost cap reached",
  journalBroken: "The journal cannot be written, so nothing more is recorded",
  recoveryRequired: "Waiting for your decision about an uncertain effect",
  closed: "The session was closed",
};

// --- uncertain effects --------------------------------------------------------------------------------------------

export const ACTION_LABELS: Readonly<Record<Action, string>> = {
  inspect: "Inspect",
  confirm: "Confirm",
  reject: "Reject",
  waive: "Continue without knowing",
  retry: "Retry",
  restore: "Restore",
};

export const ACTION_HINTS: Readonly<Record<Action, string>> = {
  inspect: "Compare the file before, as intended, and now.",
  confirm: "Accept what the inspection found. The effect is then settled.",
  reject: "Do not run it again. It stays uncertain and keeps blocking changes to the same files.",
  waive: "Stop asking, whether it happened or not. The effect is then settled.",
  retry: "Run it again, as a new attempt.",
  restore: "Bring back the content before this attempt.",
};

export const CHECK_LABELS: Readonly<Record<Check, string>> = {
  satisfied: "the file is now as intended",
  unchanged: "the file is now as it was before",
  conflict: "the file is now neither as it was before nor as intended",
  unknown: "the file cannot be checked",
};

const SHORT_CHECK_LABELS: Readonly<Record<Check, string>> = {
  satisfied: "as intended",
  unchanged: "as before",
  conflict: "neither as before nor as intended",
  unknown: "cannot be checked",
};

export const SETTLED_LABELS: Readonly<Record<Settled, string>> = {
  checked_present: "checked: the change is there",
  checked_absent: "checked: the change is not there",
  user_confirmed: "confirmed by you",
  model_confirmed: "confirmed by the model",
  waived: "continued without knowing",
  restored: "restored",
  superseded: "retried",
};

/** The status of an uncertain or settled effect, as a clause. */
export function effectStatus({ state, settled, check, inspection }: Uncertain): string {
  if (state === "settled") return settled === undefined ? "settled" : SETTLED_LABELS[settled];
  const finding = findingLabel(check, inspection !== undefined);
  return state === "rejected" ? `rejected, will not run again; still uncertain: ${finding}` : `uncertain: ${finding}`;
}

function findingLabel(check: Check | undefined, isInspected: boolean): string {
  if (check !== undefined) return CHECK_LABELS[check];
  return isInspected ? "no inspection can show what a command did" : "not inspected yet";
}

/** The status in two or three words, for the end of a line. */
export function shortEffectStatus({ state, settled, check }: Uncertain): string {
  if (state === "settled") return settled === undefined ? "settled" : SETTLED_LABELS[settled];
  if (state === "rejected") return "rejected, still uncertain";
  return check === undefined ? "" : SHORT_CHECK_LABELS[check];
}

/** What says that a command has failed; undefined for a command that exited with 0, and for any other call. */
export function exitFailure({ exit, state }: Pick<Call, "exit" | "state">): string | undefined {
  if (exit === undefined || state !== "returned") return undefined;
  if (exit.signal !== undefined) return `ended by signal ${exit.signal}`;
  return exit.code === undefined || exit.code === 0 ? undefined : `exit code ${exit.code}`;
}

/** `1 effect is`, `3 effects are`. */
export function countEffects(count: number): string {
  return count === 1 ? "1 effect is" : `${count} effects are`;
}

/** What became of the doubts of a session so far; empty if it never had one. */
export function statisticsText(statistics: Statistics): string {
  const { unknown, byProof, byPerson, byModel } = statistics;
  if (unknown === 0) return "";
  const settled = [
    [byProof, "by a check"],
    [byPerson, "by you"],
    [byModel, "by the model"],
  ].flatMap(([count, by]) => (count === 0 ? [] : [`${count} ${by}`]));
  const effects = unknown === 1 ? "1 uncertain effect" : `${unknown} uncertain effects`;
  return `This session had ${effects}; settled: ${settled.join(", ") || "none"}.`;
}

// --- permissions ----------------------------------------------------------------------------------------------------

/** A remembered permission, for a list. */
export function grantLabel(grant: StandingGrant): { readonly label: string; readonly description: string } {
  const { tool, command, cwd = "", lasts, workspace = "" } = grant;
  const where = { session: "in one session", workspace: `in ${workspace}`, user: "in all workspaces" }[lasts];
  if (command === undefined) return { label: `${toolVerb(tool)} any file in the workspace`, description: where };
  const outside = grant.unconfined === true ? ", also outside the sandbox" : "";
  return { label: command, description: `${cwd === "." ? where : `from ${cwd}, ${where}`}${outside}` };
}

/** A changed file, for the list of the review. */
export function reviewItem(file: ReviewFile): { readonly label: string; readonly description: string } {
  const gone = file.hunks.at(-1)?.state === "gone" ? ", then changed by somebody else" : "";
  const from = file.from === undefined ? "" : ` from ${file.from}`;
  return { label: file.path, description: `${file.change}${from}${gone}` };
}

const PROMPT_LABEL_CHARS_MAX = 120;

/** A turn that changed files, for the list of a rewind. */
export function rewindItem(turn: CheckpointTurn): { readonly label: string; readonly description: string } {
  const files = turn.files.map((file) => file.path).join(", ");
  return { label: promptLabel(turn.prompt), description: `${turn.undone === true ? "undone: " : ""}${files}` };
}

/** Where a fork of the session in the chat may end: at everything, or at a prompt that is shown, newest first. */
export function forkItems({ items, turnId }: Pick<ActiveSession, "items" | "turnId">): readonly ForkItem[] {
  const ends = new Map<string, string>();
  for (const item of items) {
    if (item.kind !== "message" || item.role !== "user" || item.turnId === turnId) continue;
    // What steered a turn belongs to the prompt of that turn.
    if (!item.text.startsWith("/") && !ends.has(item.turnId)) ends.set(item.turnId, promptLabel(item.text));
  }
  const prompts = [...ends].map(([end, label]) => ({ label, turnId: end }));
  return [{ label: "The whole conversation" }, ...prompts.reverse().slice(1)];
}

/** A prompt as one line of a list. The words of an icon of the editor, `$(name)`, stay words. */
function promptLabel(text: string): string {
  const line = text.trimStart().split("\n", 1)[0] ?? "";
  const cut = line.length > PROMPT_LABEL_CHARS_MAX ? `${line.slice(0, PROMPT_LABEL_CHARS_MAX)}…` : line;
  return cut.replaceAll(/\$\([\w-]+(?:~\w+)?\)/g, "\\$&");
}

export interface ForkItem {
  readonly label: string;
  /** absent: the whole conversation */
  readonly turnId?: string;
}

/** What a rewind did, and what it left with the reasons. */
export function rewoundText({ restored, left }: CheckpointRewindResult): string {
  const files = restored.length === 1 ? "1 file" : `${restored.length} files`;
  const done = restored.length === 0 ? "Rewound." : `Rewound ${files}.`;
  if (left.length === 0) return done;
  const named = left.map(({ path, why }) => `${path} (${LEFT_REASONS[why]})`);
  return `${done} Left as it is: ${named.join(", ")}.`;
}

const LEFT_REASONS: Readonly<Record<CheckpointRewindResult["left"][number]["why"], string>> = {
  changed: "somebody else changed it since",
  unsaved: "it has unsaved changes: save it first",
  uncertain: "it is uncertain what was done: inspect it first",
  large: "its earlier content was too large to be stored",
  expired: "its earlier content is no longer stored",
  io: "it could not be read or written",
  command: "nothing takes back what a command did",
  inPlace: "it was written in place and then moved",
};

export function undoAllQuestion(files: number): string {
  return `Undo the changes of this session in ${files === 1 ? "1 file" : `${files} files`}?`;
}

function fileName(uri: string): string {
  return decodeURIComponent(uri.slice(uri.lastIndexOf("/") + 1));
}

export function undoWholeQuestion(uri: string): string {
  return `Undo everything that this session changed in ${fileName(uri)}? A file that it created is deleted.`;
}

/** What a keep or an undo left as it was, with the reasons. */
export function leftText(action: "keep" | "undo", left: readonly ReviewLeft[]): string {
  const named = left.map(({ uri, why }) => {
    const name = fileName(uri) || "a change that is gone";
    return `${name} (${LEFT_REASONS[why]})`;
  });
  return `Not ${action === "keep" ? "kept" : "undone"}: ${[...new Set(named)].join(", ")}.`;
}

// --- texts of the server --------------------------------------------------------------------------------------------

/** A line of a diff; `@@ -3,2 +3,4 @@` → `lines 3–6`. */
export function hunkLabel(line: string): string {
  const [header, first = "1", count = "1"] = /^@@ .*\+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
  if (header === undefined) return line;
  const from = Math.max(1, Number(first));
  const to = from + Number(count) - 1;
  return to > from ? `lines ${from}–${to}` : `line ${from}`;
}

/** The text without digests, which the model needs and the user does not. */
export function withoutDigests(text: string): string {
  return text.replaceAll(/,? SHA-256 [0-9a-f]{64}/g, "");
}

/** The text without the title of the call at its beginning, for a place that shows the title above it. */
export function withoutTitle(text: string, title: string): string {
  const prefix = [`${title}: `, `${title}. `].find((one) => text.startsWith(one));
  return prefix === undefined ? text : text.slice(prefix.length);
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
