/**
 * The attachments of a prompt: their names, lists of them, and the check of stored ones. Pure.
 *
 * The name identifies an attachment: attaching the same again replaces it. Another version of the extension may have
 * written the stored attachments, so `parseAttachments` checks every member.
 */
import type { Attachment, Range } from "../protocol";

/** The server accepts so many bytes of UTF-8 in one attachment. */
export const ATTACHMENT_TEXT_MAX_BYTES = 262_144;

export function attachmentName(attachment: Attachment): string {
  switch (attachment.kind) {
    case "file":
      return attachment.range === undefined ? attachment.path : `${attachment.path}:${lineRange(attachment.range)}`;
    case "selection":
      return `${fileName(attachment.uri)}:${lineRange(attachment.range)}`;
    case "problems":
      return attachment.uri === undefined ? "problems" : `problems in ${fileName(attachment.uri)}`;
    case "text":
      return attachment.name;
  }
}

/** The list with `added` at its end, without an earlier attachment of the same name. */
export function withAttachment(before: readonly Attachment[], added: Attachment): readonly Attachment[] {
  return [...before.filter((one) => attachmentName(one) !== attachmentName(added)), added];
}

/** The valid attachments of a stored list; an empty list if it is no list. */
export function parseAttachments(stored: unknown): readonly Attachment[] {
  return Array.isArray(stored) ? stored.filter(isAttachment) : [];
}

function isAttachment(value: unknown): value is Attachment {
  if (typeof value !== "object" || value === null) return false;
  const found = value as Record<string, unknown>;
  switch (found["kind"]) {
    case "file":
      return typeof found["path"] === "string" && (found["range"] === undefined || isRange(found["range"]));
    case "selection":
      return typeof found["uri"] === "string" && isRange(found["range"]) && typeof found["text"] === "string";
    case "problems":
      return found["uri"] === undefined || typeof found["uri"] === "string";
    case "text":
      return typeof found["name"] === "string" && typeof found["text"] === "string";
    default:
      return false;
  }
}

function isRange(value: unknown): value is Range {
  const range = value as Partial<Range> | null | undefined;
  return [range?.start, range?.end].every((end) => Number.isInteger(end?.line) && Number.isInteger(end?.character));
}

/** The beginning of the text that fits into `maxBytes` of UTF-8, cut between two characters. */
export function truncateText(text: string, maxBytes = ATTACHMENT_TEXT_MAX_BYTES): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return text;
  let end = maxBytes;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

/** `3` or `3–7`, counted from 1. A range that ends before the first character of a line leaves that line out. */
function lineRange({ start, end }: Range): string {
  const last = end.character === 0 && end.line > start.line ? end.line : end.line + 1;
  return last === start.line + 1 ? `${last}` : `${start.line + 1}–${last}`;
}

function fileName(uri: string): string {
  const name = uri.slice(uri.lastIndexOf("/") + 1);
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
