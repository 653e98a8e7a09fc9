/**
 * What people read: states, reasons, checks and settlements in plain words, in one place, for chat, list and messages.
 *
 * Each record is total over the wire's words, so a new word of the server is a compile error here.
 */
import type { Action, CallState, Change, Check, Reason, Settled, StandingGrant, Uncertain } from "./protocol";

export const ACTION: Readonly<Record<Action, string>> = {
  inspect: "Inspect",
  confirm: "Confirm",
  reject: "Reject",
  waive: "Continue without knowing",
  retry: "Retry",
  restore: "Restore",
};

export const ACTION_HINT: Readonly<Record<Action, string>> = {
  inspect: "Look at the world now; shows before, intended and now.",
  confirm: "Accept what the inspection found.",
  reject: "It shall not be repeated. It stays uncertain and still holds back what overlaps.",
  waive: "Go on without knowing whether it happened.",
  retry: "Try it again, as a new attempt.",
  restore: "Bring back the content before this attempt.",
};

export const STATE: Readonly<Record<CallState, string>> = {
  proposed: "proposed",
  waiting: "waiting for you",
  running: "running",
  returned: "done",
  failed: "failed",
  stopped: "stopped, may be half done",
  refused: "refused, did not run",
  notRun: "did not run",
  unknown: "outcome unknown",
};

export const CHECK: Readonly<Record<Check, string>> = {
  satisfied: "the file is now as intended",
  unchanged: "the file is now as it was before",
  conflict: "the file is now neither as it was before nor as intended",
  unknown: "it cannot be told how the file is now",
};

const CHECK_BRIEFLY: Readonly<Record<Check, string>> = {
  satisfied: "as intended",
  unchanged: "as before",
  conflict: "neither as before nor as intended",
  unknown: "cannot be told",
};

export const SETTLED: Readonly<Record<Settled, string>> = {
  checked_present: "checked: it is there",
  checked_absent: "checked: not there",
  user_confirmed: "confirmed by you",
  model_confirmed: "confirmed by the model",
  waived: "went on without knowing",
  restored: "restored",
  superseded: "tried again",
};

export const CHANGE: Readonly<Record<Change, string>> = {
  created: "created",
  modified: "changed",
  deleted: "deleted",
  moved: "moved",
};

export const REASON: Readonly<Record<Reason, string>> = {
  done: "Done",
  cancelled: "Stopped",
  length: "The answer was cut at its greatest length",
  filtered: "The provider withheld the answer",
  cut: "The answer broke off",
  modelFailed: "The model failed",
  bound: "A bound was reached",
  cost: "The cost cap was reached",
  journalBroken: "The journal cannot be written; nothing more is kept",
  recoveryRequired: "It waits for a decision on an uncertain effect",
  closed: "The session was closed",
};

const CALL_REASON: ReadonlyMap<string, string> = new Map([
  ["interrupted_before_execution", "Interrupted before it started: it did not run. Ask again if you still want it."],
  ["interrupted", "Cut off while it was read. It changed nothing."],
  ["unknown_after_restart", "The server ended while this ran."],
  ["denied", "You said no."],
  ["not_answered", "Nobody answered the question."],
  ["policy", "Not allowed here."],
  ["changed", "The file changed meanwhile."],
  ["bad_arguments", "The model's arguments do not fit the tool."],
  ["unknown_tool", "There is no such tool."],
  ["recovery_required", "An earlier effect is uncertain."],
  ["loop_guard", "The same call came again and again."],
]);

/** Why a call stands as it does, for people; a word that is not known here is shown as words. */
export function callReason(reason: string): string {
  return CALL_REASON.get(reason) ?? reason.replaceAll("_", " ");
}

/** `write_file: a.txt` → `a.txt`. */
export function subject(call: { readonly tool: string; readonly title: string }): string {
  if (call.title.startsWith(`${call.tool}: `)) return call.title.slice(call.tool.length + 2);
  return call.title === call.tool ? "" : call.title;
}

/** `write_file` → `Write`. */
export function verb(tool: string): string {
  const text = tool.replaceAll("_", " ").replace(/ files?$/, "");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** How an uncertain or just settled effect stands, in one sentence. */
export function standing(uncertain: Uncertain): string {
  if (uncertain.state === "settled") {
    return uncertain.settled === undefined ? "settled" : SETTLED[uncertain.settled];
  }
  const { check, inspection } = uncertain;
  const looked = check !== undefined ? CHECK[check] : inspection === undefined ? "not inspected yet" : "a look cannot tell what a command did";
  return uncertain.state === "rejected" ? `rejected, not to be repeated; still uncertain: ${looked}` : `uncertain: ${looked}`;
}

/** The same in two or three words, for the end of a line that says which effect it is. */
export function briefly(uncertain: Uncertain): string {
  if (uncertain.state === "settled") return uncertain.settled === undefined ? "settled" : SETTLED[uncertain.settled];
  const looked = uncertain.check === undefined ? "" : CHECK_BRIEFLY[uncertain.check];
  return uncertain.state === "rejected" ? "rejected, still uncertain" : looked;
}

/** A line of a diff; `@@ -3,2 +3,4 @@` → `lines 3–6`. */
export function hunk(line: string): string {
  const [whole, first = "1", count = "1"] = /^@@ .*\+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
  if (whole === undefined) return line;
  const from = Math.max(1, Number(first));
  const to = from + Number(count) - 1;
  return to > from ? `lines ${from}–${to}` : `line ${from}`;
}

/** A notice for people: the digests in it are for the model. */
export function withoutDigests(text: string): string {
  return text.replaceAll(/,? SHA-256 [0-9a-f]{64}/g, "");
}

/** A text of the server that begins with the title of what it speaks of, without it. */
export function untitled(text: string, title: string): string {
  const rest = [`${title}: `, `${title}. `].find((begin) => text.startsWith(begin));
  return rest === undefined ? text : text.slice(rest.length);
}

/** `1 effect is`, `3 effects are`. */
export function effects(count: number): string {
  return count === 1 ? "1 effect is" : `${count} effects are`;
}

export const UNTRUSTED = "This folder is not trusted: the agent only reads here, whatever the mode of the session.";

/** A permission that is remembered, for a list. */
export function grantLine(grant: StandingGrant): { readonly label: string; readonly description: string } {
  const where = { session: "in one session", workspace: `in ${grant.workspace ?? ""}`, user: "in all workspaces" }[grant.lasts];
  if (grant.command === undefined) return { label: `${verb(grant.tool)} any file of the workspace`, description: where };
  return { label: grant.command, description: `${grant.cwd === "." ? "" : `from ${grant.cwd ?? ""}, `}${where}` };
}
