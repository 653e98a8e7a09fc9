/** The banners above the conversation, and the panels above the message box: uncertain effects, plan, queue. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { showHidden } from "../../hiddenCharacters";
import { countEffects } from "../../labels";
import type { PlanItem, Queued } from "../../protocol";
import type { ActiveSession, ConnectionStatus } from "../../store/state";
import { isForRunningTurn, isQueuePaused } from "../../store/state";
import { AttachmentChips } from "./attachmentChips";
import { postToExtension } from "./extensionHost";
import { Icon } from "./icons";

export function ConnectionBanner({ connection }: { readonly connection: ConnectionStatus }): JSX.Element | null {
  if (connection.state === "ready") return null;
  const isStarting = connection.state === "starting" || connection.state === "lost";
  return (
    <div class={`banner ${connection.state}`} role="status">
      {isStarting ? <span class="spinner" /> : <Icon name="warning" />}
      <span class="banner-text">{connection.text}</span>
      {connection.state === "stopped" && (
        <button type="button" class="button" onClick={() => postToExtension({ kind: "startServer" })}>
          Start again
        </button>
      )}
      {!isStarting && (
        <button type="button" class="link" onClick={() => postToExtension({ kind: "showLog" })}>
          Show log
        </button>
      )}
    </div>
  );
}

export function TrustBanner(): JSX.Element {
  return (
    <div class="banner untrusted" role="status">
      <Icon name="shield" />
      <span class="banner-text">This folder is not trusted. The agent can only read here.</span>
      <button type="button" class="link" onClick={() => postToExtension({ kind: "manageTrust" })}>
        Trust…
      </button>
    </div>
  );
}

export function UncertainBanner({ count }: { readonly count: number }): JSX.Element | null {
  if (count === 0) return null;
  return (
    <div class="banner uncertain" role="status">
      <Icon name="warning" />
      <span class="banner-text">{countEffects(count)} uncertain.</span>
      <button type="button" class="link" onClick={() => postToExtension({ kind: "showUncertain" })}>
        Show
      </button>
    </div>
  );
}

/** Why the session is read-only, and how many records of its journal are damaged. */
export function SessionBanner({ active }: { readonly active: ActiveSession }): JSX.Element | null {
  const { session, damaged } = active;
  const texts = [
    ...(session.readOnly === undefined ? [] : [session.readOnly.text]),
    ...(damaged === 0 ? [] : [damagedRecordsText(damaged)]),
  ];
  if (texts.length === 0) return null;
  return (
    <div class="banner stopped" role="status">
      <Icon name="warning" />
      <span class="banner-text">{texts.join(" ")}</span>
    </div>
  );
}

function damagedRecordsText(count: number): string {
  const [subject, content] = count === 1 ? ["1 record", "its content"] : [`${count} records`, "their content"];
  return `${subject} of the journal cannot be read; ${content} may be missing here.`;
}

export function PlanPanel({ plan }: { readonly plan: readonly PlanItem[] }): JSX.Element | null {
  if (plan.length === 0) return null;
  const doneCount = plan.filter((item) => item.state === "done").length;
  return (
    <details class="plan">
      <summary>
        Plan: {doneCount} of {plan.length} done
      </summary>
      <ul>
        {plan.map(({ state, text }, index) => (
          <li key={index} class={state}>
            {showHidden(text)}
            <span class="sr-only"> ({state})</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

export function QueuePanel({ active }: { readonly active: ActiveSession }): JSX.Element | null {
  const { queue } = active;
  if (queue.length === 0) return null;
  const isPaused = isQueuePaused(active);
  return (
    <div class="queue" role="group" aria-label="Queue">
      <div class="queue-head">
        <span>{isPaused ? "Queue paused" : "Queued"}</span>
        {isPaused && (
          <button type="button" class="button" onClick={() => postToExtension({ kind: "queueResume" })}>
            Resume
          </button>
        )}
      </div>
      {queue.map((prompt) => (
        <QueueRow key={prompt.clientMessageId} prompt={prompt} isForTurn={isForRunningTurn(prompt, active)} />
      ))}
    </div>
  );
}

interface QueueRowProps {
  readonly prompt: Queued;
  /** the running turn takes it with its next step */
  readonly isForTurn: boolean;
}

function QueueRow({ prompt, isForTurn }: QueueRowProps): JSX.Element {
  /** undefined while the user does not edit it */
  const [text, setText] = useState<string>();
  const { clientMessageId } = prompt;
  const save = (): void => {
    if (text !== undefined && text.trim() !== "" && text !== prompt.text) {
      postToExtension({ kind: "queueEdit", clientMessageId, text });
    }
    setText(undefined);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Escape") setText(undefined);
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      save();
    }
  };
  return (
    <div class="queue-row">
      {text === undefined ? (
        <div class="queue-text">
          {isForTurn && <span class="faint">With the next step: </span>}
          {showHidden(prompt.text)}
          <AttachmentChips attachments={prompt.attachments ?? []} />
        </div>
      ) : (
        <textarea
          rows={2}
          value={text}
          aria-label="Edit queued message"
          ref={(area) => area?.focus()}
          onInput={(event) => setText(event.currentTarget.value)}
          onBlur={save}
          onKeyDown={onKeyDown}
        />
      )}
      <button
        type="button"
        class="subtle square"
        aria-label="Edit queued message"
        title="Edit"
        onClick={() => setText(prompt.text)}
      >
        <Icon name="edit" />
      </button>
      <button
        type="button"
        class="subtle square"
        aria-label="Remove queued message"
        title="Remove"
        onClick={() => postToExtension({ kind: "queueRemove", clientMessageId })}
      >
        <Icon name="close" />
      </button>
    </div>
  );
}
