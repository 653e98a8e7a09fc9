/**
 * A call as a card that updates in place: tool, subject and state; unfolded, its arguments, reply and files.
 *
 * A call that needs the user, or that may be incomplete, stands out. A finished call is one line.
 */
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useEffect, useState } from "preact/hooks";
import { showHidden, showHiddenInValue } from "../../hiddenCharacters";
import {
  ACTION_HINTS,
  ACTION_LABELS,
  CALL_STATE_LABELS,
  callReasonLabel,
  callSubject,
  capitalize,
  CHANGE_LABELS,
  changedDuringLabel,
  effectStatus,
  exitFailure,
  sandboxLabel,
  SETTLED_LABELS,
  toolVerb,
} from "../../labels";
import type { Call, CallState, ChangedDuring, Settled, Uncertain } from "../../protocol";
import { postToExtension } from "./extensionHost";
import type { IconName } from "./icons";
import { Icon } from "./icons";

const REPLY_MAX_CHARS = 4_000;

const CALL_STATE_ICONS: Readonly<Record<CallState, IconName | "spinner">> = {
  proposed: "dot",
  waiting: "question",
  running: "spinner",
  returned: "check",
  failed: "close",
  stopped: "stop",
  refused: "refused",
  notRun: "refused",
  unknown: "warning",
};

const SETTLED_ICONS: Readonly<Record<Settled, IconName>> = {
  checked_present: "check",
  checked_absent: "refused",
  user_confirmed: "check",
  model_confirmed: "check",
  waived: "question",
  restored: "undo",
  superseded: "move",
};

interface CallCardProps {
  readonly call: Call;
  /** the effect of the call, while the snapshot lists it */
  readonly uncertain: Uncertain | undefined;
}

export const CallCard = memo(function CallCard({ call, uncertain }: CallCardProps): JSX.Element {
  const { state, settled, reason, files = [], reply, turnId, changedDuring } = call;
  const shownState = exitFailure(call) === undefined ? state : "failed";
  const icon = settled === undefined ? CALL_STATE_ICONS[shownState] : SETTLED_ICONS[settled];
  return (
    <div class={`call ${settled === undefined ? shownState : `settled ${settled}`}`}>
      <details>
        <summary>
          <span class="call-icon">{icon === "spinner" ? <span class="spinner" /> : <Icon name={icon} />}</span>
          <span class="call-title">
            <CallTitle call={call} />
          </span>
          <SandboxMarker call={call} />
          <span class="call-state">
            <CallStatus call={call} />
          </span>
        </summary>
        <div class="call-body">
          {reason !== undefined && reason !== "" && <p class="call-reason">{callReasonLabel(reason)}</p>}
          {files.map(({ path, change }) => (
            <FileRow key={path} turnId={turnId} path={path} change={CHANGE_LABELS[change]} />
          ))}
          {changedDuring !== undefined && <ChangedWhileItRan during={changedDuring} />}
          <Arguments text={call.arguments} />
          {reply !== undefined && reply.text !== "" && (
            <Reply text={reply.text} truncated={reply.truncated} bytes={reply.bytes} />
          )}
        </div>
      </details>
      {state === "unknown" && settled === undefined && uncertain !== undefined && (
        <UncertainEffect uncertain={uncertain} />
      )}
    </div>
  );
});

/** For a command its text; for every other tool what it works on. */
function CallTitle({ call }: { readonly call: Call }): JSX.Element {
  const isCommand = call.tool === "run_command";
  const command = isCommand ? argumentEntries(call.arguments).find(([name]) => name === "command")?.[1] : undefined;
  return (
    <>
      <span class="call-tool">{command === undefined ? toolVerb(call.tool) : "Run"}</span>{" "}
      {command === undefined ? callSubject(call) : showHiddenInValue(command)}
    </>
  );
}

/** A word for a command that is not confined; how a confined one is confined is in its tooltip. */
function SandboxMarker({ call }: { readonly call: Call }): JSX.Element | null {
  const label = sandboxLabel(call);
  if (label === undefined) return null;
  const isConfined = call.sandbox !== undefined;
  return (
    <span
      class={`call-marker${isConfined ? "" : " open"}`}
      title={
        isConfined || call.unconfined === true ? `This command runs ${label}.` : "No sandbox confines this command."
      }
    >
      {isConfined ? "sandbox" : label}
    </span>
  );
}

/** The files that changed while a command ran. The server does not know who changed them. */
function ChangedWhileItRan({ during }: { readonly during: ChangedDuring }): JSX.Element | null {
  const { files, more } = during;
  if (files.length === 0) return null;
  return (
    <div class="changed-during">
      <p class="faint">{changedDuringLabel(during)}:</p>
      {files.map(({ path, change }) => (
        <SeenFileRow key={path} path={path} change={CHANGE_LABELS[change]} />
      ))}
      {more > 0 && <p class="faint">and {more} more</p>}
    </div>
  );
}

/** A file that somebody changed. There is no diff of ours to open. */
export function SeenFileRow({ path, change }: Omit<FileRowProps, "turnId">): JSX.Element {
  return (
    <div class="file-row">
      <FileLink path={path} change={change} />
    </div>
  );
}

/** A file that a click opens, and what happened to it. */
function FileLink({ path, change }: Omit<FileRowProps, "turnId">): JSX.Element {
  const shownPath = showHiddenInValue(path);
  return (
    <>
      <Icon name="file" />
      <button
        type="button"
        class="link path"
        onClick={() => postToExtension({ kind: "openFile", path })}
        title={`Open ${shownPath}`}
      >
        {shownPath}
      </button>
      <span class="faint">{change}</span>
    </>
  );
}

function CallStatus({ call }: { readonly call: Call }): JSX.Element {
  if (call.settled !== undefined) return <>{SETTLED_LABELS[call.settled]}</>;
  if (call.state === "running" && call.started !== undefined) return <Elapsed since={call.started} />;
  const failure = exitFailure(call);
  if (failure !== undefined) return <>{failure}</>;
  return <>{call.state === "returned" ? changedFilesLabel(call) : CALL_STATE_LABELS[call.state]}</>;
}

/** After a call that was refused because the file has unsaved text: a button that saves the file and continues. */
export function SaveFirst({ call }: { readonly call: Call }): JSX.Element | null {
  const paths = "paths" in call.scope ? call.scope.paths : [];
  const text = `${call.reason ?? ""} ${call.reply?.text ?? ""}`;
  const namedPath = paths.find((one) => text.includes(`${one} has unsaved changes`));
  const path = namedPath ?? (text.includes("unsaved changes") ? paths[0] : undefined);
  if (path === undefined || !["refused", "failed", "notRun"].includes(call.state)) return null;
  return (
    <div class="call-notice">
      <span>
        <b>{showHiddenInValue(path)}</b> has unsaved changes, so it was not changed.
      </span>
      <button
        type="button"
        class="button"
        onClick={() => postToExtension({ kind: "saveAndContinue", path, turnId: call.turnId })}
      >
        Save and continue
      </button>
    </div>
  );
}

/** The status of an uncertain effect, and a button for each action. */
export function UncertainEffect({ uncertain }: { readonly uncertain: Uncertain }): JSX.Element {
  const { actions, attemptId } = uncertain;
  return (
    <div class="call-notice">
      <span>{capitalize(effectStatus(uncertain))}.</span>
      {actions.length > 0 && (
        <span class="buttons">
          {actions.map((action) => (
            <button
              type="button"
              key={action}
              class={actions.length === 1 ? "button" : "button secondary"}
              title={ACTION_HINTS[action]}
              onClick={() => postToExtension({ kind: "decide", action, attemptId })}
            >
              {ACTION_LABELS[action]}
            </button>
          ))}
        </span>
      )}
    </div>
  );
}

interface FileRowProps {
  readonly turnId: string;
  readonly path: string;
  readonly change: string;
}

export function FileRow({ turnId, path, change }: FileRowProps): JSX.Element {
  return (
    <div class="file-row">
      <FileLink path={path} change={change} />
      <button
        type="button"
        class="link"
        onClick={() => postToExtension({ kind: "openDiff", turnId, path })}
        aria-label={`Open diff of ${showHiddenInValue(path)}`}
        title="Compare with the file before this turn"
      >
        diff
      </button>
    </div>
  );
}

/** The arguments of a call, one a row. */
export function Arguments({ text }: { readonly text: string }): JSX.Element {
  return (
    <dl class="arguments">
      {argumentEntries(text).map(([name, value]) => (
        <div key={name}>
          <dt>{showHiddenInValue(name)}</dt>
          <dd>{showHidden(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

interface ReplyProps {
  readonly text: string;
  readonly truncated: boolean;
  /** the size of the whole reply */
  readonly bytes: number;
}

function Reply({ text, truncated, bytes }: ReplyProps): JSX.Element {
  const isCut = text.length > REPLY_MAX_CHARS;
  return (
    <>
      <pre class="reply" tabIndex={0}>
        {showHidden(isCut ? text.slice(0, REPLY_MAX_CHARS) : text)}
      </pre>
      {(isCut || truncated) && <p class="faint">This is the beginning of {bytes.toLocaleString()} bytes.</p>}
    </>
  );
}

function Elapsed({ since }: { readonly since: string }): JSX.Element {
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(since)) / 1_000));
  const text = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return <span aria-hidden="true">{text}</span>;
}

function changedFilesLabel({ files = [] }: Call): string {
  const [first] = files;
  if (first === undefined) return "";
  return files.length === 1 ? CHANGE_LABELS[first.change] : `${files.length} files`;
}

/** Name and value of each argument. Arguments that are no JSON object are shown as they are. */
function argumentEntries(text: string): [string, string][] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      return Object.entries(parsed).map(([name, value]) => {
        return [name, typeof value === "string" ? value : JSON.stringify(value, undefined, 1)];
      });
    }
  } catch {
    // The model wrote no JSON.
  }
  return [["arguments", text]];
}
