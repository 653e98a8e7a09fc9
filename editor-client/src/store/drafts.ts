/** The text and the attachments in the message box that are not sent yet, and how the window stores them. Pure. */
import type { Attachment } from "../protocol";
import { parseAttachments } from "./attachments";

export interface Draft {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

export const EMPTY_DRAFT: Draft = { text: "", attachments: [] };

/** A stored draft: a text, or a text with attachments. Anything else gives the empty draft. */
export function parseDraft(stored: unknown): Draft {
  if (typeof stored === "string") return { text: stored, attachments: [] };
  if (typeof stored !== "object" || stored === null) return EMPTY_DRAFT;
  const { text, attachments } = stored as Record<string, unknown>;
  return { text: typeof text === "string" ? text : "", attachments: parseAttachments(attachments) };
}

/** The value to store; undefined for an empty draft. */
export function serializeDraft(draft: Draft): string | Draft | undefined {
  if (draft.attachments.length > 0) return draft;
  return draft.text === "" ? undefined : draft.text;
}
