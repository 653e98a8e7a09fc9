/**
 * A call as a card that updates in place: what it is, how it stands, and, unfolded, its arguments, reply and files.
 *
 * What needs the user, or may be half done, is loud; what went well is one quiet line.
 */
import { memo } from "preact/compat";
import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Call, CallState, Settled, Uncertain } from "../../protocol";
import { ACTION, ACTION_HINT, CHANGE, SETTLED, STATE, callReason, standing, subject, verb } from "../../words";
import { tell } from "./host";
import type { IconName } from "./icons";
import { Icon } from "./icons";

const reply_chars_max = 4_000;

const MARK: Readonly<Record<CallState, IconName | "spinner">> = {
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

const SETTLED_MARK: Readonly<Record<Settled, IconName>> = {
  checked_present: "check",
  checked_absent: "refused",
  user_confirmed: "check",
  model_confirmed: "check",
  waived: "question",
  restored: "undo",
  superseded: "move",
};

export const CallItem = memo(function CallItem({ call, uncertain }: { readonly call: Call; readonly uncertain: Uncertain | undefined }): JSX.Element {
  const mark = MARK[call.state];
  const doubt = call.state === "unknown" && call.settled === undefined;
  return (
    <div class={`call ${call.settled === undefined ? call.state : `settled ${call.settled}`}`}>
    <details>
      <summary>
        <span class="call-mark">{mark === "spinner" ? <span class="spinner" /> : <Icon name={call.settled === undefined ? mark : SETTLED_MARK[call.settled]} />}</span>
        <span class="call-title">
          <Title call={call} />
        </span>
        <span class="call-state">
          <How call={call} />
        </span>
      </summary>
      <div class="call-body">
        {call.reason !== undefined && call.reason !== "" && <p class="call-reason">{callReason(call.reason)}</p>}
        {(call.files ?? []).map((file) => (
          <FileRow key={file.path} turnId={call.turnId} path={file.path} what={CHANGE[file.change]} />
        ))}
        <Arguments text={call.arguments} />
        {call.reply !== undefined && call.reply.text !== "" && <Reply text={call.reply.text} truncated={call.reply.truncated} bytes={call.reply.bytes} />}
      </div>
    </details>
    {doubt && uncertain !== undefined && <Doubt uncertain={uncertain} />}
    </div>
  );
});

/** A command by its line; everything else by what it touches. */
function Title({ call }: { readonly call: Call }): JSX.Element {
  const line = call.tool === "run_command" ? entries(call.arguments).find(([name]) => name === "command")?.[1] : undefined;
  return (
    <>
      <span class="call-tool">{line === undefined ? verb(call.tool) : "Run"}</span> {line ?? subject(call)}
    </>
  );
}

function How({ call }: { readonly call: Call }): JSX.Element {
  if (call.settled !== undefined) return <>{SETTLED[call.settled]}</>;
  if (call.state === "running" && call.started !== undefined) return <Elapsed since={call.started} />;
  return <>{call.state === "returned" ? files(call) : STATE[call.state]}</>;
}

/** “Save first” once more: the way on after a call that was refused for unsaved text, since nobody saved it then. */
export function SaveFirst({ call }: { readonly call: Call }): JSX.Element | null {
  const paths = "paths" in call.scope ? call.scope.paths : [];
  const said = `${call.reason ?? ""} ${call.reply?.text ?? ""}`;
  const path = paths.find((one) => said.includes(`${one} has unsaved changes`)) ?? (said.includes("unsaved changes") ? paths[0] : undefined);
  if (path === undefined || !["refused", "failed", "notRun"].includes(call.state)) return null;
  return (
    <div class="call-aside">
      <span>
        <b>{path}</b> has unsaved changes. It was left alone.
      </span>
      <button type="button" class="button" onClick={() => tell({ kind: "saveAndGoOn", path, turnId: call.turnId })}>
        Save and go on
      </button>
    </div>
  );
}

/** An uncertain effect with its standing and what can be done with it. */
export function Doubt({ uncertain }: { readonly uncertain: Uncertain }): JSX.Element {
  return (
    <div class="call-aside doubt">
      <span>{sentence(standing(uncertain))}.</span>
      {uncertain.actions.length > 0 && (
        <span class="buttons">
          {uncertain.actions.map((action) => (
            <button
              type="button"
              key={action}
              class={uncertain.actions.length === 1 ? "button" : "button secondary"}
              title={ACTION_HINT[action]}
              onClick={() => tell({ kind: "recover", action, attemptId: uncertain.attemptId })}
            >
              {ACTION[action]}
            </button>
          ))}
        </span>
      )}
    </div>
  );
}

export function FileRow({ turnId, path, what }: { readonly turnId: string; readonly path: string; readonly what: string }): JSX.Element {
  return (
    <div class="file-row">
      <Icon name="file" />
      <button type="button" class="link path" onClick={() => tell({ kind: "openFile", path })} title={`Open ${path}`}>
        {path}
      </button>
      <span class="faint">{what}</span>
      <button type="button" class="link" onClick={() => tell({ kind: "openDiff", turnId, path })} aria-label={`Open diff of ${path}`}>
        diff
      </button>
    </div>
  );
}

export function Arguments({ text }: { readonly text: string }): JSX.Element {
  const rows = entries(text);
  return (
    <dl class="arguments">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Reply({ text, truncated, bytes }: { readonly text: string; readonly truncated: boolean; readonly bytes: number }): JSX.Element {
  const cut = text.length > reply_chars_max;
  return (
    <>
      <pre class="reply" tabIndex={0}>
        {cut ? text.slice(0, reply_chars_max) : text}
      </pre>
      {(cut || truncated) && <p class="faint">Not all of it: {bytes.toLocaleString()} bytes.</p>}
    </>
  );
}

function Elapsed({ since }: { readonly since: string }): JSX.Element {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / 1_000));
  const text = seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return <span aria-hidden="true">{text}</span>;
}

function files(call: Call): string {
  const changed = call.files ?? [];
  return changed.length === 1 && changed[0] !== undefined ? CHANGE[changed[0].change] : changed.length > 1 ? `${changed.length} files` : "";
}

function entries(text: string): [string, string][] {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) {
      return Object.entries(parsed).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value, undefined, 1)]);
    }
  } catch {
    // Arguments that were never JSON are shown as they came.
  }
  return [["arguments", text]];
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
