/** The head of the chat: which session is bound, the list of the others, and what can be done with each. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { Session } from "../../protocol";
import type { View } from "../../store";
import { sessionName } from "../../store";
import { tell } from "./host";
import { Icon } from "./icons";

export function Head({ view, open, setOpen }: { readonly view: View; readonly open: boolean; readonly setOpen: (open: boolean) => void }): JSX.Element {
  const session = view.bound?.session;
  const list = useRef<HTMLDivElement>(null);
  const title = useRef<HTMLButtonElement>(null);
  const shut = (): void => {
    if (list.current?.contains(document.activeElement) === true) title.current?.focus();
    setOpen(false);
  };
  useEffect(() => {
    if (open) list.current?.querySelector<HTMLElement>("[data-session]")?.focus();
  }, [open]);
  return (
    <header class="head" onKeyDown={(event) => event.key === "Escape" && shut()}>
      <button type="button" ref={title} class="quiet title" aria-expanded={open} aria-haspopup="true" onClick={() => setOpen(!open)} title="All sessions">
        <span class="title-text">{session === undefined ? "New session" : sessionName(session)}</span>
        <Icon name="down" />
      </button>
      {open && (
        <div class="sessions" ref={list} role="group" aria-label="Sessions">
          <button
            type="button"
            class="quiet session-new"
            onClick={() => {
              tell({ kind: "new" });
              setOpen(false);
            }}
          >
            <Icon name="add" /> New session
          </button>
          {view.sessions.length === 0 && <p class="faint empty">No sessions yet.</p>}
          {view.sessions.map((one) => (
            <SessionRow key={one.sessionId} session={one} bound={one.sessionId === session?.sessionId} close={() => setOpen(false)} />
          ))}
        </div>
      )}
    </header>
  );
}

function SessionRow({ session, bound, close }: { readonly session: Session; readonly bound: boolean; readonly close: () => void }): JSX.Element {
  const [more, setMore] = useState(false);
  const { sessionId } = session;
  return (
    <div class={`session-row${bound ? " bound" : ""}`}>
      <button
        type="button"
        class="quiet session-open"
        data-session={sessionId}
        aria-current={bound}
        onClick={() => {
          tell({ kind: "bind", sessionId });
          close();
        }}
      >
        <span class="session-name">{sessionName(session)}</span>
        <span class="faint session-facts">{facts(session)}</span>
      </button>
      <button type="button" class="quiet square" aria-label={`More for ${sessionName(session)}`} aria-expanded={more} onClick={() => setMore(!more)}>
        <Icon name="more" />
      </button>
      {more && (
        <div class="session-deeds">
          {(["rename", "export", "close", "delete"] as const).map((what) => (
            <button
              type="button"
              key={what}
              class="link"
              onClick={() => {
                tell({ kind: "sessionDo", what, sessionId });
                close();
              }}
            >
              {what.charAt(0).toUpperCase() + what.slice(1)}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function facts(session: Session): string {
  const found = [
    ...(session.uncertain > 0 ? [`${session.uncertain} uncertain`] : []),
    ...(session.parked ? ["asks you"] : session.busy ? ["at work"] : []),
    ...(session.readOnly === undefined ? [] : ["read-only"]),
    ago(session.updated),
  ];
  return found.join(" · ");
}

function ago(time: string): string {
  const minutes = Math.floor((Date.now() - Date.parse(time)) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h`;
  return new Date(time).toLocaleDateString();
}
