/** The whole chat: header, banners, conversation, and the composer below it. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { State } from "../../store/state";
import { ConnectionBanner, PlanPanel, QueuePanel, SessionBanner, TrustBanner, UncertainBanner } from "./banners";
import type { ComposerInput } from "./composer";
import { Composer } from "./composer";
import { Conversation } from "./conversation";
import { SessionHeader } from "./sessionHeader";

/** A command of the palette for the page. `stamp` makes two equal commands different. */
export interface PageCommand {
  readonly command: "focus" | "send";
  readonly stamp: number;
}

interface Props {
  readonly state: State;
  /** whether the folder is trusted */
  readonly trusted: boolean;
  /** the provider of new sessions */
  readonly provider: string;
  readonly input: ComposerInput;
  readonly command: PageCommand | undefined;
  readonly onAttached: () => void;
}

export function App({ state, trusted, provider, input, command, onAttached }: Props): JSX.Element {
  const [isListOpen, setListOpen] = useState(false);
  const textArea = useRef<HTMLTextAreaElement>(null);
  const send = useRef<() => void>(() => undefined);
  useEffect(() => {
    if (command?.command === "focus") textArea.current?.focus();
    if (command?.command === "send") send.current();
  }, [command]);
  const { active, connection } = state;
  return (
    <div class="app">
      <SessionHeader state={state} isOpen={isListOpen} setOpen={setListOpen} />
      <ConnectionBanner connection={connection} />
      {!trusted && <TrustBanner />}
      {active !== undefined && <SessionBanner active={active} />}
      <Conversation key={active?.session.sessionId ?? ""} state={state} isPractice={provider === "practice"} />
      <footer>
        <UncertainBanner count={state.uncertain.length} />
        {active !== undefined && <PlanPanel plan={active.plan} />}
        {active !== undefined && <QueuePanel active={active} />}
        <Composer
          active={active}
          connection={connection}
          trusted={trusted}
          provider={provider}
          input={input}
          onAttached={onAttached}
          textArea={textArea}
          send={send}
        />
      </footer>
    </div>
  );
}
