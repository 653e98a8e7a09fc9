/**
 * The delivery of prompts to the server, as a table of stages and facts. Pure (rows D1, D2).
 *
 * A prompt is *not sent* while it waits for the one before it, *maybe delivered* from the moment it is written to the
 * connection, *accepted* when the server says that it is durable, and *done* when its turn ended. The prompts of a
 * session go one at a time. A prompt returns to the message box, with its attachments, only when it is certain that the
 * server does not have it: the server refused it, the extension never wrote it, or the server, asked for its id after a
 * lost connection, does not know it. A second send under the same id starts no second turn.
 */
import type { Attachment } from "../protocol";
import { parseAttachments, withAttachment } from "./attachments";
import type { Draft } from "./drafts";

export type DeliveryStage = "notSent" | "maybeDelivered" | "accepted" | "done";

export type DeliveryFact =
  | "written" // the extension gave it to the connection
  | "acknowledged" // the server says that it is durable
  | "refused" // the server answered with an error, so it does not have the prompt
  | "lost" // the connection ended, or no answer came
  | "known" // asked for the id, the server has it
  | "unknown" // asked for the id, the server does not have it
  | "ended"; // its turn ended, or the user removed it from the queue

export interface OutgoingPrompt {
  readonly clientMessageId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** the turn whose failed request is sent again; the text is that turn's */
  readonly again?: string;
  /** the turn that the text is for, instead of a turn of its own (row S8) */
  readonly steers?: string;
  readonly stage: DeliveryStage;
  /** the connection was lost after the write; the server has to be asked for the id */
  readonly inDoubt: boolean;
}

export type Outbox = readonly OutgoingPrompt[];

/** "returned": the prompt leaves the outbox, and its text returns to the message box. */
type NextStage = DeliveryStage | "returned";

/** From stage and fact to the next stage. Absent: the fact changes nothing. */
export const DELIVERY: Readonly<Record<DeliveryStage, Readonly<Partial<Record<DeliveryFact, NextStage>>>>> = {
  notSent: { written: "maybeDelivered", lost: "returned", refused: "returned" },
  maybeDelivered: {
    acknowledged: "accepted",
    refused: "returned",
    known: "accepted",
    unknown: "returned",
    ended: "done",
  },
  accepted: { ended: "done" },
  done: {},
};

export interface DeliveryResult {
  readonly outbox: Outbox;
  /** prompts that left the outbox and that the server certainly does not have, oldest first */
  readonly returned: readonly OutgoingPrompt[];
}

export function addPrompt(outbox: Outbox, prompt: Omit<OutgoingPrompt, "stage" | "inDoubt">): Outbox {
  return [...outbox, { ...prompt, stage: "notSent", inDoubt: false }];
}

/** Apply a fact about one prompt. */
export function advance(outbox: Outbox, clientMessageId: string, fact: DeliveryFact): DeliveryResult {
  return advanceWhere(outbox, fact, (prompt) => prompt.clientMessageId === clientMessageId);
}

/** The connection ended: prompts that were not written return, those that were written are in doubt. */
export function loseConnection(outbox: Outbox): DeliveryResult {
  return advanceWhere(outbox, "lost", () => true);
}

function advanceWhere(
  outbox: Outbox,
  fact: DeliveryFact,
  isMeant: (prompt: OutgoingPrompt) => boolean,
): DeliveryResult {
  const remaining: OutgoingPrompt[] = [];
  const returned: OutgoingPrompt[] = [];
  for (const prompt of outbox) {
    if (!isMeant(prompt)) {
      remaining.push(prompt);
      continue;
    }
    const next = DELIVERY[prompt.stage][fact];
    if (next === "returned") returned.push(prompt);
    else if (next === undefined) {
      const inDoubt = prompt.inDoubt || (fact === "lost" && prompt.stage === "maybeDelivered");
      remaining.push(inDoubt === prompt.inDoubt ? prompt : { ...prompt, inDoubt });
    } else if (next !== "done") remaining.push({ ...prompt, stage: next, inDoubt: false });
  }
  return { outbox: remaining, returned };
}

/** The oldest unsent prompt of the session, unless an earlier one still waits for its answer. */
export function nextPromptToWrite(outbox: Outbox, sessionId: string): OutgoingPrompt | undefined {
  const ofSession = outbox.filter((prompt) => prompt.sessionId === sessionId);
  if (ofSession.some((prompt) => prompt.stage === "maybeDelivered")) return undefined;
  return ofSession.find((prompt) => prompt.stage === "notSent");
}

/** The prompts whose ids the server has to be asked for. */
export function promptsInDoubt(outbox: Outbox): readonly OutgoingPrompt[] {
  return outbox.filter((prompt) => prompt.stage === "maybeDelivered" && prompt.inDoubt);
}

/** The draft after prompts returned: their texts before the text typed since, with all attachments. */
export function mergeReturned(draft: Draft, returned: readonly Draft[]): Draft {
  const all = [...returned, draft];
  return {
    text: all
      .map((one) => one.text)
      .filter((text) => text.trim() !== "")
      .join("\n\n"),
    attachments: all.flatMap((one) => one.attachments).reduce<readonly Attachment[]>(withAttachment, []),
  };
}

/** The outbox that was stored before a reload of the window: written prompts are in doubt; invalid ones are dropped. */
export function parseOutbox(stored: unknown): Outbox {
  if (!Array.isArray(stored)) return [];
  return stored.filter(isOutgoingPrompt).map(({ again, steers, ...prompt }) => ({
    clientMessageId: prompt.clientMessageId,
    sessionId: prompt.sessionId,
    text: prompt.text,
    attachments: parseAttachments(prompt.attachments),
    ...(typeof again === "string" ? { again } : {}),
    ...(typeof steers === "string" ? { steers } : {}),
    stage: prompt.stage,
    inDoubt: prompt.stage === "maybeDelivered",
  }));
}

function isOutgoingPrompt(value: unknown): value is OutgoingPrompt {
  if (typeof value !== "object" || value === null) return false;
  const found = value as Record<string, unknown>;
  return (
    typeof found["clientMessageId"] === "string" &&
    typeof found["sessionId"] === "string" &&
    typeof found["text"] === "string" &&
    Array.isArray(found["attachments"]) &&
    typeof found["stage"] === "string" &&
    found["stage"] in DELIVERY
  );
}
