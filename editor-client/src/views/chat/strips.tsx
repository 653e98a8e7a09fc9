/** The strips between conversation and box: how the connection stands, what is uncertain, the plan, the queue. */
import { useState } from "preact/hooks";
import type { JSX } from "preact";
import type { PlanItem, Queued } from "../../protocol";
import type { Bound, View } from "../../store";
import { effects } from "../../words";
import { Chips } from "./chips";
import { tell } from "./host";
import { Icon } from "./icons";

export function LinkStrip({ view }: { readonly view: View }): JSX.Element | null {
  const { link } = view;
  if (link.state === "ready") return null;
  const waits = link.state === "starting" || link.state === "lost";
  return (
    <div class={`strip ${link.state}`} role="status">
      {waits ? <span class="spinner" /> : <Icon name="warning" />}
      <span class="strip-text">{link.text}</span>
      {link.state === "stopped" && (
        <button type="button" class="button" onClick={() => tell({ kind: "startServer" })}>
          Start again
        </button>
      )}
      {!waits && (
        <button type="button" class="link" onClick={() => tell({ kind: "showLog" })}>
          Log
        </button>
      )}
    </div>
  );
}

export function TrustStrip(): JSX.Element {
  return (
    <div class="strip untrusted" role="status">
      <Icon name="shield" />
      <span class="strip-text">This folder is not trusted: the agent only reads here.</span>
      <button type="button" class="link" onClick={() => tell({ kind: "manageTrust" })}>
        Trust…
      </button>
    </div>
  );
}

export function DoubtStrip({ view }: { readonly view: View }): JSX.Element | null {
  const count = view.uncertain.length;
  if (count === 0) return null;
  return (
    <div class="strip doubtful" role="status">
      <Icon name="warning" />
      <span class="strip-text">{effects(count)} uncertain.</span>
      <button type="button" class="link" onClick={() => tell({ kind: "showUncertain" })}>
        Show
      </button>
    </div>
  );
}

export function SessionStrip({ bound }: { readonly bound: Bound }): JSX.Element | null {
  const { readOnly } = bound.session;
  const texts = [
    ...(readOnly === undefined ? [] : [readOnly.text]),
    ...(bound.damaged > 0 ? [`${bound.damaged} damaged ${bound.damaged === 1 ? "record" : "records"} in its journal; what they held may be missing here.`] : []),
  ];
  if (texts.length === 0) return null;
  return (
    <div class="strip stopped" role="status">
      <Icon name="warning" />
      <span class="strip-text">{texts.join(" ")}</span>
    </div>
  );
}

export function PlanStrip({ plan }: { readonly plan: readonly PlanItem[] }): JSX.Element | null {
  if (plan.length === 0) return null;
  const done = plan.filter((item) => item.state === "done").length;
  return (
    <details class="plan">
      <summary>
        Plan: {done} of {plan.length} done
      </summary>
      <ul>
        {plan.map((item, at) => (
          <li key={at} class={item.state}>
            {item.text}
            <span class="sr-only"> ({item.state})</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

export function QueueStrip({ queue }: { readonly queue: readonly Queued[] }): JSX.Element | null {
  if (queue.length === 0) return null;
  const paused = queue.some((prompt) => prompt.paused);
  return (
    <div class="queue" role="group" aria-label="Queue">
      <div class="queue-head">
        <span>{paused ? "Paused since the restart" : "Next in the queue"}</span>
        {paused && (
          <button type="button" class="button" onClick={() => tell({ kind: "queueResume" })}>
            Resume
          </button>
        )}
      </div>
      {queue.map((prompt) => (
        <QueueRow key={prompt.clientMessageId} prompt={prompt} />
      ))}
    </div>
  );
}

function QueueRow({ prompt }: { readonly prompt: Queued }): JSX.Element {
  const [text, setText] = useState<string>();
  const { clientMessageId } = prompt;
  const keep = (): void => {
    if (text !== undefined && text.trim() !== "" && text !== prompt.text) tell({ kind: "queueEdit", clientMessageId, text });
    setText(undefined);
  };
  return (
    <div class="queue-row">
      {text === undefined ? (
        <div class="queue-text">
          {prompt.text}
          <Chips attachments={prompt.attachments ?? []} />
        </div>
      ) : (
        <textarea
          rows={2}
          value={text}
          aria-label="Edit queued message"
          ref={(area) => area?.focus()}
          onInput={(event) => setText(event.currentTarget.value)}
          onBlur={keep}
          onKeyDown={(event) => {
            if (event.key === "Escape") setText(undefined);
            if (event.key === "Enter" && !event.shiftKey) {
              event.preventDefault();
              keep();
            }
          }}
        />
      )}
      <button type="button" class="quiet square" aria-label="Edit queued message" title="Edit" onClick={() => setText(prompt.text)}>
        <Icon name="edit" />
      </button>
      <button type="button" class="quiet square" aria-label="Remove queued message" title="Remove" onClick={() => tell({ kind: "queueRemove", clientMessageId })}>
        <Icon name="close" />
      </button>
    </div>
  );
}
