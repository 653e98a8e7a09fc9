/**
 * What became of a prompt on its way to the server: one small table, no IO (rows D1, D2).
 *
 * A prompt is *not sent* while it waits for the one before it, *maybe delivered* from the moment it is written to
 * the connection, *accepted* when the server says that it is durable, *done* when its turn ended. Sends of a session
 * go one at a time. It goes back to the box, with what was attached, only when it is certain that the server has not got it: it was
 * refused, it was never written, or the server, asked by id after a loss, does not know it. A resend under the same
 * id runs nothing twice, whatever happened before.
 */
import type { Draft } from "./attachments";
import { restoredAttachments, withAttachment } from "./attachments";
import type { Attachment } from "./protocol";

export type Stage = "notSent" | "maybeDelivered" | "accepted" | "done";

export type Fact =
  | "written" // given to the connection
  | "acknowledged" // the server says that it is durable
  | "refused" // the server answered with an error: it is not there
  | "lost" // the connection ended, or the answer did not come
  | "known" // asked by id: it is there
  | "unknown" // asked by id: it is not there
  | "ended"; // its turn ended, or it was taken out of the queue

export interface Outgoing {
  readonly clientMessageId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly attachments: readonly Attachment[];
  readonly stage: Stage;
  /** the connection was lost since it was written: it is asked for by id */
  readonly doubtful: boolean;
}

export type Outbox = readonly Outgoing[];

type Next = Stage | "back";

/** From stage and fact to the next stage; "back": out of the box, its text returns to the user. Absent: no change. */
export const TABLE: Readonly<Record<Stage, Readonly<Partial<Record<Fact, Next>>>>> = {
  notSent: { written: "maybeDelivered", lost: "back", refused: "back" },
  maybeDelivered: { acknowledged: "accepted", refused: "back", known: "accepted", unknown: "back", ended: "done" },
  accepted: { ended: "done" },
  done: {},
};

export interface Advanced {
  readonly outbox: Outbox;
  /** prompts that are certainly not at the server, oldest first; they left the outbox */
  readonly back: readonly Outgoing[];
}

export function put(outbox: Outbox, prompt: Omit<Outgoing, "stage" | "doubtful">): Outbox {
  return [...outbox, { ...prompt, stage: "notSent", doubtful: false }];
}

/** One fact about one prompt. */
export function advance(outbox: Outbox, clientMessageId: string, fact: Fact): Advanced {
  return advanceWhere(outbox, fact, (prompt) => prompt.clientMessageId === clientMessageId);
}

/** The connection is gone: what was never written comes back, what was written is in doubt. */
export function lose(outbox: Outbox): Advanced {
  return advanceWhere(outbox, "lost", () => true);
}

function advanceWhere(outbox: Outbox, fact: Fact, which: (prompt: Outgoing) => boolean): Advanced {
  const kept: Outgoing[] = [];
  const back: Outgoing[] = [];
  for (const prompt of outbox) {
    if (!which(prompt)) {
      kept.push(prompt);
      continue;
    }
    const next = TABLE[prompt.stage][fact];
    if (next === "back") back.push(prompt);
    else if (next === undefined) kept.push(fact === "lost" && prompt.stage === "maybeDelivered" ? { ...prompt, doubtful: true } : prompt);
    else if (next !== "done") kept.push({ ...prompt, stage: next, doubtful: false });
  }
  return { outbox: kept, back };
}

/** The prompt of this session that may be written now: the oldest, if none before it is still in doubt. */
export function nextToWrite(outbox: Outbox, sessionId: string): Outgoing | undefined {
  const ofSession = outbox.filter((prompt) => prompt.sessionId === sessionId);
  if (ofSession.some((prompt) => prompt.stage === "maybeDelivered")) return undefined;
  return ofSession.find((prompt) => prompt.stage === "notSent");
}

/** Those whose fate must be asked for by id after a loss. */
export function inDoubt(outbox: Outbox): readonly Outgoing[] {
  return outbox.filter((prompt) => prompt.stage === "maybeDelivered" && prompt.doubtful);
}

/** What the box holds after prompts came back: they stand before what was typed since, with all that was attached. */
export function withReturned(draft: Draft, back: readonly Draft[]): Draft {
  const every = [...back, draft];
  return {
    text: every.map((one) => one.text).filter((text) => text.trim() !== "").join("\n\n"),
    attachments: every.flatMap((one) => one.attachments).reduce<readonly Attachment[]>(withAttachment, []),
  };
}

/** A stored outbox read back after a reload: whatever was written is in doubt; anything malformed is left out. */
export function restored(stored: unknown): Outbox {
  if (!Array.isArray(stored)) return [];
  return stored.filter(isOutgoing).map((prompt) => ({
    ...prompt,
    attachments: restoredAttachments(prompt.attachments),
    doubtful: prompt.stage === "maybeDelivered" || prompt.doubtful,
  }));
}

function isOutgoing(value: unknown): value is Outgoing {
  if (typeof value !== "object" || value === null) return false;
  const found = value as Record<string, unknown>;
  return (
    typeof found["clientMessageId"] === "string" &&
    typeof found["sessionId"] === "string" &&
    typeof found["text"] === "string" &&
    Array.isArray(found["attachments"]) &&
    typeof found["stage"] === "string" &&
    found["stage"] in TABLE
  );
}
