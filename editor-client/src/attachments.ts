/**
 * What is attached to a prompt, on this side of the wire: names, drafts, and texts made to fit. Pure.
 *
 * An attachment is told from another by its name: attaching the same again replaces it. What is read back from the
 * window's memory is looked at, since another version may have written it.
 */
import type { Attachment, Range } from "./protocol";

/** What stands in the box and is not sent. */
export interface Draft {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

export const EMPTY_DRAFT: Draft = { text: "", attachments: [] };

/** The server's bound of the text of one attachment, in bytes of UTF-8. */
export const attachment_text_bytes_max = 262_144;
/** Problems that are listed one by one; of the others the number is said. */
export const problems_listed_max = 200;

export function attachmentName(attachment: Attachment): string {
  switch (attachment.kind) {
    case "file":
      return attachment.range === undefined ? attachment.path : `${attachment.path}:${lines(attachment.range)}`;
    case "selection":
      return `${fileName(attachment.uri)}:${lines(attachment.range)}`;
    case "problems":
      return attachment.uri === undefined ? "problems" : `problems in ${fileName(attachment.uri)}`;
    case "text":
      return attachment.name;
  }
}

/** A list with this one in it, in the place of one of the same name. */
export function withAttachment(before: readonly Attachment[], added: Attachment): readonly Attachment[] {
  return [...before.filter((one) => attachmentName(one) !== attachmentName(added)), added];
}

/** A stored draft read back: a text alone, or a text with what was attached; anything else is none. */
export function restoredDraft(stored: unknown): Draft {
  if (typeof stored === "string") return { text: stored, attachments: [] };
  if (typeof stored !== "object" || stored === null) return EMPTY_DRAFT;
  const { text, attachments } = stored as Record<string, unknown>;
  return { text: typeof text === "string" ? text : "", attachments: restoredAttachments(attachments) };
}

/** How a draft is stored; undefined for an empty one. */
export function storedDraft(draft: Draft): string | Draft | undefined {
  if (draft.attachments.length > 0) return draft;
  return draft.text === "" ? undefined : draft.text;
}

export function restoredAttachments(stored: unknown): readonly Attachment[] {
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

/** The beginning of a text that one attachment may hold, cut between two characters; the same text where all fits. */
export function fitted(text: string, bytes_max = attachment_text_bytes_max): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= bytes_max) return text;
  let end = bytes_max;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return new TextDecoder().decode(bytes.subarray(0, end));
}

/** One diagnostic as it is told. `line` and `column` count from 1. */
export interface Problem {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly severity: "error" | "warning" | "information" | "hint";
  readonly message: string;
  readonly source?: string;
}

const SEVERITIES = ["error", "warning", "information", "hint"] as const;

/** What the editor reports, the gravest first, as the text that is attached: the server sees no other server's. */
export function problemsText(problems: readonly Problem[]): string {
  const sorted = [...problems].sort(
    (a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || a.path.localeCompare(b.path) || a.line - b.line,
  );
  const listed = sorted.slice(0, problems_listed_max).map(problemLine);
  const more = sorted.length - listed.length;
  const text = [...listed, ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
  return fitted(text);
}

function problemLine({ path, line, column, severity, message, source }: Problem): string {
  const from = source === undefined ? "" : ` [${source}]`;
  return `${path}:${line}:${column}: ${severity}: ${message.replaceAll(/\s+/g, " ").trim()}${from}`;
}

function lines({ start, end }: Range): string {
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
