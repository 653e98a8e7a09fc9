/** The problems that the editor reports, as the text of an attachment. Pure. */
import { truncateText } from "./attachments";

/** So many problems are listed; for the others the text gives their count. */
export const PROBLEMS_LISTED_MAX = 200;

const SEVERITIES = ["error", "warning", "information", "hint"] as const;

/** One diagnostic of the editor. `line` and `column` count from 1. */
export interface Problem {
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly severity: (typeof SEVERITIES)[number];
  readonly message: string;
  readonly source?: string;
}

/** One problem a line, errors first. */
export function problemsText(problems: readonly Problem[]): string {
  const sorted = [...problems].sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      a.path.localeCompare(b.path) ||
      a.line - b.line,
  );
  const lines = sorted.slice(0, PROBLEMS_LISTED_MAX).map(problemLine);
  const more = sorted.length - lines.length;
  return truncateText([...lines, ...(more > 0 ? [`and ${more} more`] : [])].join("\n"));
}

function problemLine({ path, line, column, severity, message, source }: Problem): string {
  const from = source === undefined ? "" : ` [${source}]`;
  return `${path}:${line}:${column}: ${severity}: ${message.replaceAll(/\s+/g, " ").trim()}${from}`;
}
