/** A unified diff, coloured by line and folded when it is long. The signs at the lines say the same as the colours. */
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { showHidden } from "../../hiddenCharacters";
import { hunkLabel } from "../../labels";

const LINES_SHOWN_MAX = 24;

export function Diff({ text }: { readonly text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  const lines = text
    .replace(/\n$/, "")
    .split("\n")
    .filter((line) => !/^(---|\+\+\+) /.test(line));
  const shown = isWhole ? lines : lines.slice(0, LINES_SHOWN_MAX);
  return (
    <div class="diff" role="group" aria-label="Changes" tabIndex={0}>
      <pre>
        {shown.map((line, at) => (
          <span key={at} class={`line ${lineClass(line)}`}>
            {line === "" ? " " : hunkLabel(showHidden(line))}
            {"\n"}
          </span>
        ))}
      </pre>
      {lines.length > shown.length && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          Show all {lines.length} lines
        </button>
      )}
    </div>
  );
}

function lineClass(line: string): string {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  if (line.startsWith("@@")) return "hunk";
  return "context";
}
