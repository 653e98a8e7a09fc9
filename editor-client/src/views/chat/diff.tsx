/** A unified diff, coloured by line and folded when it is long. The colours are said by the signs too. */
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { hunk } from "../../words";

const lines_shown_max = 24;

export function Diff({ text }: { readonly text: string }): JSX.Element {
  const [whole, setWhole] = useState(false);
  const lines = text.replace(/\n$/, "").split("\n").filter((line) => !/^(---|\+\+\+) /.test(line));
  const shown = whole ? lines : lines.slice(0, lines_shown_max);
  return (
    <div class="diff" role="group" aria-label="Changes" tabIndex={0}>
      <pre>
        {shown.map((line, at) => (
          <span key={at} class={`line ${kindOf(line)}`}>
            {line === "" ? " " : hunk(line)}
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

function kindOf(line: string): string {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  if (line.startsWith("@@")) return "place";
  return "same";
}
