/** What the chat shows before the first prompt of a session. */
import type { JSX } from "preact";
import { postToExtension } from "./extensionHost";

const EXAMPLES: readonly string[] = [
  'write notes.md with "# Notes\\n\\n- tea\\n"',
  "append - coffee to notes.md",
  "run ls -l",
];

interface Props {
  readonly isConnected: boolean;
  /** new sessions use the practice model */
  readonly isPractice: boolean;
}

export function Welcome({ isConnected, isPractice }: Props): JSX.Element {
  return (
    <main class="conversation welcome" tabIndex={0} aria-label="Conversation">
      <h1>What would you like to do?</h1>
      <p>Every change is logged before it is made. If one is interrupted, you see what happened and decide.</p>
      {isPractice && (
        <>
          <p class="faint">
            This is the practice model. It needs no key and no network. It is not an AI: it follows a few fixed
            commands. Try one:
          </p>
          <div class="examples">
            {EXAMPLES.map((text) => (
              <button
                type="button"
                key={text}
                class="example"
                disabled={!isConnected}
                onClick={() => postToExtension({ kind: "send", text, attachments: [] })}
              >
                {text}
              </button>
            ))}
          </div>
        </>
      )}
    </main>
  );
}
