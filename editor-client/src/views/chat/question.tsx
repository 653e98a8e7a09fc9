/**
 * A question of the server: a permission with what will happen and a diff, a call held back by an uncertain effect,
 * or a question of the model. Answered by buttons or by their number; a stale one says what became of it.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import type { CallState, OptionId, PermissionAskParams, Uncertain, UserAskParams } from "../../protocol";
import type { Question } from "../../store";
import { STATE, subject, untitled, verb } from "../../words";
import { Arguments, Doubt } from "./call";
import { Diff } from "./diff";
import { tell } from "./host";
import { Icon } from "./icons";

const QUIET: ReadonlySet<OptionId> = new Set(["reject", "refuse"]);
/** What reaches far stands back, so that nobody takes it for the next best. */
const FAR: ReadonlySet<OptionId> = new Set(["workspace", "user"]);

function looks(option: OptionId, at: number): string {
  if (at === 0) return "button";
  if (QUIET.has(option)) return "button danger";
  return FAR.has(option) ? "link" : "button secondary";
}

interface Props {
  readonly question: Question;
  /** how the call stands that is asked about, once that is known */
  readonly call: CallState | undefined;
  readonly uncertain: readonly Uncertain[];
  /** how a session is called */
  readonly sessionOf: (sessionId: string) => string;
}

export function QuestionCard({ question, call, uncertain, sessionOf }: Props): JSX.Element {
  if (question.gone !== undefined) {
    const title = question.about.kind === "permission" ? question.about.asked.title : question.about.asked.question;
    return (
      <div class="note" role="note">
        <Icon name="question" />
        <span>
          “{title}” needs no answer any more. {question.gone}
          {call !== undefined && ` The call: ${STATE[call]}.`}
        </span>
      </div>
    );
  }
  return question.about.kind === "permission" ? <Permission asked={question.about.asked} uncertain={uncertain} sessionOf={sessionOf} /> : <Asked asked={question.about.asked} />;
}

function Permission({ asked, uncertain, sessionOf }: { readonly asked: PermissionAskParams; readonly uncertain: readonly Uncertain[]; readonly sessionOf: (sessionId: string) => string }): JSX.Element {
  const [note, setNote] = useState("");
  const [noting, setNoting] = useState(false);
  const card = useRef<HTMLElement>(null);
  useEffect(() => card.current?.scrollIntoView({ block: "nearest" }), []);
  const held = asked.uncertain !== undefined && asked.uncertain.length > 0;
  const answer = (option: OptionId): void => {
    if (card.current?.contains(document.activeElement) === true) focusBox(); // the focus would be lost with the card
    tell({ kind: "answer", askId: asked.askId, option, note });
  };
  const choices = asked.options.map((option, at) => ({ option, at }));
  const choice = ({ option, at }: (typeof choices)[number]): JSX.Element => (
    <button type="button" key={option.id} class={looks(option.id, at)} onClick={() => answer(option.id)} title={`${option.label} (${at + 1})`}>
      {option.label}
    </button>
  );
  const onKey = (event: KeyboardEvent): void => {
    const option = asked.options[Number(event.key) - 1];
    if (option === undefined || event.target instanceof HTMLInputElement || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    answer(option.id);
  };
  return (
    <section class={`question ${held ? "held" : ""}`} role="alertdialog" aria-label={`Steadyhand asks: ${asked.title}`} ref={card} tabIndex={-1} onKeyDown={onKey}>
      <h2>
        <Icon name={held ? "warning" : "question"} />
        <span>
          {held ? "Held back: " : ""}
          {verb(asked.tool)} <b>{subject(asked)}</b>
        </span>
      </h2>
      {held ? (
        <p class="question-text">It may touch the same files as an earlier effect that is still uncertain. Settle that one, or refuse this call.</p>
      ) : (
        asked.text !== undefined && <p class="question-text">{untitled(asked.text, asked.title)}</p>
      )}
      {asked.diff !== undefined && asked.diff !== "" ? <Diff text={asked.diff} /> : asked.tool === "run_command" && <Arguments text={asked.arguments} />}
      {(asked.uncertain ?? []).map((one) => {
        const now = uncertain.find((known) => known.attemptId === one.attemptId) ?? one;
        return (
          <div class="waits-for" key={one.attemptId}>
            <div class="waits-title">
              <Icon name="warning" /> {verb(now.tool)} {subject(now)}
              {now.sessionId !== asked.sessionId && <span class="faint"> in {sessionOf(now.sessionId)}</span>}
            </div>
            <Doubt uncertain={{ ...now, actions: [] }} />
          </div>
        );
      })}
      {noting && (
        <label class="note-field">
          <span>What should the model know?</span>
          <input type="text" value={note} onInput={(event) => setNote(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && answer("reject")} ref={(input) => input?.focus()} />
        </label>
      )}
      <div class="buttons">
        {choices.filter(({ option }) => !FAR.has(option.id)).map(choice)}
        {!noting && asked.options.some((option) => option.id === "reject") && (
          <button type="button" class="link" onClick={() => setNoting(true)}>
            Reject with a note…
          </button>
        )}
      </div>
      {choices.some(({ option }) => FAR.has(option.id)) && <div class="buttons far">{choices.filter(({ option }) => FAR.has(option.id)).map(choice)}</div>}
    </section>
  );
}

function focusBox(): void {
  document.querySelector<HTMLElement>(".composer > .box textarea")?.focus();
}

function Asked({ asked }: { readonly asked: UserAskParams }): JSX.Element {
  const [text, setText] = useState("");
  const options = asked.options ?? [];
  const answer = (given: string): void => tell({ kind: "answerUser", askId: asked.askId, answer: { answer: given } });
  return (
    <section class="question" role="alertdialog" aria-label={`Question: ${asked.question}`}>
      <h2>
        <Icon name="question" />
        <span>{asked.question}</span>
      </h2>
      {options.length === 0 && (
        <input type="text" aria-label="Your answer" value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => event.key === "Enter" && text.trim() !== "" && answer(text)} />
      )}
      <div class="buttons">
        {options.map((option) => (
          <button type="button" key={option} class="button secondary" onClick={() => answer(option)}>
            {option}
          </button>
        ))}
        {options.length === 0 && (
          <button type="button" class="button" disabled={text.trim() === ""} onClick={() => answer(text)}>
            Answer
          </button>
        )}
        <button type="button" class="link" onClick={() => tell({ kind: "answerUser", askId: asked.askId, answer: { dismissed: true } })}>
          Dismiss
        </button>
      </div>
    </section>
  );
}
