/**
 * A question of the server as a card: a permission with the change it would make, a call that an uncertain effect holds
 * back, or a question of the model. Buttons and their numbers answer it. A closed question says what happened to it.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { CALL_STATE_LABELS, callSubject, callVerb, withoutTitle } from "../../labels";
import type { CallState, OptionId, PermissionAskParams, Uncertain, UserAskParams } from "../../protocol";
import type { Question } from "../../store/state";
import { isOpen } from "../../store/state";
import { Arguments, UncertainEffect } from "./callCard";
import { Diff } from "./diff";
import { postToExtension } from "./extensionHost";
import { Icon } from "./icons";

const REJECTING: ReadonlySet<OptionId> = new Set(["reject", "refuse"]);
/** Grants that outlast the session look like links in a row of their own, so nobody takes them for the usual answer. */
const LASTING: ReadonlySet<OptionId> = new Set(["workspace", "user"]);

function buttonClass(option: OptionId, index: number): string {
  if (index === 0) return "button";
  if (REJECTING.has(option)) return "button danger";
  return LASTING.has(option) ? "link" : "button secondary";
}

interface QuestionCardProps {
  readonly question: Question;
  /** the state of the call that the question is about, once it is known */
  readonly callState: CallState | undefined;
  /** the uncertain effects of the session */
  readonly effects: readonly Uncertain[];
  readonly nameOfSession: (sessionId: string) => string;
}

export function QuestionCard({ question, callState, effects, nameOfSession }: QuestionCardProps): JSX.Element {
  if (!isOpen(question)) return <ClosedQuestion question={question} callState={callState} />;
  const { about } = question;
  return about.kind === "permission" ? (
    <PermissionQuestion request={about.request} effects={effects} nameOfSession={nameOfSession} />
  ) : (
    <UserQuestion request={about.request} />
  );
}

function ClosedQuestion({ question, callState }: Pick<QuestionCardProps, "question" | "callState">): JSX.Element {
  const { about, closedReason } = question;
  const title = about.kind === "permission" ? about.request.title : about.request.question;
  return (
    <div class="note" role="note">
      <Icon name="question" />
      <span>
        “{title}” no longer needs an answer. {closedReason}
        {callState !== undefined && ` The call: ${CALL_STATE_LABELS[callState]}.`}
      </span>
    </div>
  );
}

// --- permission ---------------------------------------------------------------------------------------------------

interface PermissionProps {
  readonly request: PermissionAskParams;
  readonly effects: readonly Uncertain[];
  readonly nameOfSession: (sessionId: string) => string;
}

function PermissionQuestion({ request, effects, nameOfSession }: PermissionProps): JSX.Element {
  const { askId, title, tool, text, diff = "", options, uncertain: blocking = [], sessionId } = request;
  const [note, setNote] = useState("");
  const [isNoteOpen, setNoteOpen] = useState(false);
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), []);
  const isHeldBack = blocking.length > 0;
  const answer = (option: OptionId): void => {
    if (card.current?.contains(document.activeElement) === true) focusMessageBox(); // the card disappears
    postToExtension({ kind: "answer", askId, option, note });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const option = options[Number(event.key) - 1];
    const isTyping = event.target instanceof HTMLInputElement;
    if (option === undefined || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    answer(option.id);
  };
  const buttons = options.map(({ id, label }, index) => ({
    isLasting: LASTING.has(id),
    element: (
      <button
        type="button"
        key={id}
        class={buttonClass(id, index)}
        onClick={() => answer(id)}
        title={`${label} (${index + 1})`}
      >
        {label}
      </button>
    ),
  }));
  const usual = buttons.filter(({ isLasting }) => !isLasting).map(({ element }) => element);
  const lasting = buttons.filter(({ isLasting }) => isLasting).map(({ element }) => element);
  return (
    <section
      class={`question${isHeldBack ? " held" : ""}`}
      role="alertdialog"
      aria-label={`Steadyhand asks: ${title}`}
      ref={card}
      tabIndex={-1}
      onKeyDown={onKeyDown}
    >
      <h2>
        <Icon name={isHeldBack ? "warning" : "question"} />
        <span>
          {isHeldBack ? "Held back: " : ""}
          {callVerb(request)} <b>{callSubject(request)}</b>
        </span>
      </h2>
      {isHeldBack ? (
        <p class="question-text">
          This may change the same files as an earlier effect that is still uncertain. Settle that effect first, or
          refuse this call.
        </p>
      ) : (
        text !== undefined && <p class="question-text">{withoutTitle(text, title)}</p>
      )}
      {diff !== "" ? <Diff text={diff} /> : tool === "run_command" && <Arguments text={request.arguments} />}
      {blocking.map((effect) => (
        <BlockingEffect
          key={effect.attemptId}
          effect={effects.find((one) => one.attemptId === effect.attemptId) ?? effect}
          otherSession={effect.sessionId === sessionId ? undefined : nameOfSession(effect.sessionId)}
        />
      ))}
      {isNoteOpen && (
        <label class="note-field">
          <span>What should the model know?</span>
          <input
            type="text"
            value={note}
            onInput={(event) => setNote(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Enter" && answer("reject")}
            ref={(input) => input?.focus()}
          />
        </label>
      )}
      <div class="buttons">
        {usual}
        {!isNoteOpen && options.some(({ id }) => id === "reject") && (
          <button type="button" class="link" onClick={() => setNoteOpen(true)}>
            Reject with a note…
          </button>
        )}
      </div>
      {lasting.length > 0 && <div class="buttons lasting">{lasting}</div>}
    </section>
  );
}

interface BlockingEffectProps {
  readonly effect: Uncertain;
  /** the name of the session that the effect belongs to, if it is another one */
  readonly otherSession: string | undefined;
}

/** An effect that holds the call back. The buttons of the question decide about it, so it has none. */
function BlockingEffect({ effect, otherSession }: BlockingEffectProps): JSX.Element {
  return (
    <div class="blocking">
      <div class="blocking-title">
        <Icon name="warning" /> {callVerb(effect)} {callSubject(effect)}
        {otherSession !== undefined && <span class="faint"> in {otherSession}</span>}
      </div>
      <UncertainEffect uncertain={{ ...effect, actions: [] }} />
    </div>
  );
}

function focusMessageBox(): void {
  document.querySelector<HTMLElement>(".composer > .box textarea")?.focus();
}

// --- question of the model ------------------------------------------------------------------------------------------

function UserQuestion({ request }: { readonly request: UserAskParams }): JSX.Element {
  const { askId, question, options = [] } = request;
  const [text, setText] = useState("");
  const answer = (chosen: string): void => postToExtension({ kind: "answerUser", askId, answer: { answer: chosen } });
  const isEmpty = text.trim() === "";
  return (
    <section class="question" role="alertdialog" aria-label={`Question: ${question}`}>
      <h2>
        <Icon name="question" />
        <span>{question}</span>
      </h2>
      {options.length === 0 && (
        <input
          type="text"
          aria-label="Your answer"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && !isEmpty && answer(text)}
        />
      )}
      <div class="buttons">
        {options.map((option) => (
          <button type="button" key={option} class="button secondary" onClick={() => answer(option)}>
            {option}
          </button>
        ))}
        {options.length === 0 && (
          <button type="button" class="button" disabled={isEmpty} onClick={() => answer(text)}>
            Answer
          </button>
        )}
        <button
          type="button"
          class="link"
          onClick={() => postToExtension({ kind: "answerUser", askId, answer: { dismissed: true } })}
        >
          Dismiss
        </button>
      </div>
    </section>
  );
}
