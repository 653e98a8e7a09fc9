/** The header of the chat: the title of the session, and the list of all sessions with the commands for each. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { capitalize } from "../../labels";
import type { Session } from "../../protocol";
import type { State } from "../../store/state";
import { sessionName } from "../../store/state";
import { postToExtension } from "./extensionHost";
import { Icon } from "./icons";

const COMMANDS = ["rename", "export", "fork", "close", "delete"] as const;

interface SessionHeaderProps {
  readonly state: State;
  readonly isOpen: boolean;
  readonly setOpen: (isOpen: boolean) => void;
}

export function SessionHeader({ state, isOpen, setOpen }: SessionHeaderProps): JSX.Element {
  const session = state.active?.session;
  const list = useRef<HTMLDivElement>(null);
  const title = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    if (list.current?.contains(document.activeElement) === true) title.current?.focus();
    setOpen(false);
  };
  useEffect(() => {
    if (isOpen) list.current?.querySelector<HTMLElement>("[data-session]")?.focus();
  }, [isOpen]);
  return (
    <header class="session-header" onKeyDown={(event) => event.key === "Escape" && close()}>
      <button
        type="button"
        ref={title}
        class="subtle title"
        aria-expanded={isOpen}
        aria-haspopup="true"
        onClick={() => setOpen(!isOpen)}
        title="All sessions"
      >
        <span class="title-text">{session === undefined ? "New session" : sessionName(session)}</span>
        <Icon name="down" />
      </button>
      {isOpen && (
        <div class="sessions" ref={list} role="group" aria-label="Sessions">
          <button
            type="button"
            class="subtle session-new"
            onClick={() => {
              postToExtension({ kind: "newSession" });
              setOpen(false);
            }}
          >
            <Icon name="add" /> New session
          </button>
          {state.sessions.length === 0 && <p class="faint empty">No sessions yet.</p>}
          {state.sessions.map((one) => (
            <SessionRow
              key={one.sessionId}
              session={one}
              isActive={one.sessionId === session?.sessionId}
              close={() => setOpen(false)}
            />
          ))}
        </div>
      )}
    </header>
  );
}

interface SessionRowProps {
  readonly session: Session;
  readonly isActive: boolean;
  readonly close: () => void;
}

function SessionRow({ session, isActive, close }: SessionRowProps): JSX.Element {
  const [isExpanded, setExpanded] = useState(false);
  const { sessionId } = session;
  const name = sessionName(session);
  return (
    <div class={`session-row${isActive ? " active" : ""}`}>
      <button
        type="button"
        class="subtle session-open"
        data-session={sessionId}
        aria-current={isActive}
        onClick={() => {
          postToExtension({ kind: "openSession", sessionId });
          close();
        }}
      >
        <span class="session-name">{name}</span>
        <span class="faint session-facts">{sessionFacts(session)}</span>
      </button>
      <button
        type="button"
        class="subtle square"
        aria-label={`More for ${name}`}
        aria-expanded={isExpanded}
        onClick={() => setExpanded(!isExpanded)}
      >
        <Icon name="more" />
      </button>
      {isExpanded && (
        <div class="session-actions">
          {COMMANDS.map((command) => (
            <button
              type="button"
              key={command}
              class="link"
              onClick={() => {
                postToExtension({ kind: "sessionCommand", command, sessionId });
                close();
              }}
            >
              {capitalize(command)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function sessionFacts({ uncertain, parked, busy, readOnly, updated }: Session): string {
  const facts = [
    ...(uncertain > 0 ? [`${uncertain} uncertain`] : []),
    ...(parked ? ["asks you"] : busy ? ["running"] : []),
    ...(readOnly === undefined ? [] : ["read-only"]),
    timeSince(updated),
  ];
  return facts.join(" · ");
}

function timeSince(time: string): string {
  const minutes = Math.floor((Date.now() - Date.parse(time)) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h`;
  return new Date(time).toLocaleDateString();
}
