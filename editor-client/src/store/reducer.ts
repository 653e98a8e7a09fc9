/**
 * How an action changes the state. Pure.
 *
 * An action about another session or epoch than the active one returns the same `active` object, so a late answer
 * changes nothing on screen (row A9).
 */
import type { Session, Snapshot } from "../protocol";
import type { StoreAction } from "./actions";
import { applyTurnEvent, openConversation } from "./conversation";
import type { ActiveSession, Question, State } from "./state";
import { isOpen } from "./state";

/** So many closed questions stay visible; the oldest disappear first. */
const CLOSED_QUESTIONS_MAX = 3;

export function reduce(state: State, action: StoreAction): State {
  switch (action.kind) {
    case "connectionChanged":
      return { ...state, connection: action.status };
    case "sessionsListed":
      return { ...state, sessions: action.sessions };
    case "sessionOpened":
      return {
        ...without(withSession(state, action.result.session), "restoring"),
        active: openConversation(action),
        review: state.active?.session.sessionId === action.result.session.sessionId ? state.review : [],
      };
    case "sessionLeft":
      return { ...without(without(state, "active"), "restoring"), review: [] };
    case "restoring":
      return action.sessionId !== undefined && hasHistory(state, action.sessionId)
        ? { ...state, restoring: action.sessionId }
        : without(state, "restoring");
    case "turnEvent":
      return updateActive(state, action.turnEvent.sessionId, (active) =>
        applyTurnEvent(active, action.turnEvent, state),
      );
    case "sessionChanged":
      return updateActive(withSession(state, action.session), action.session.sessionId, (active) =>
        applySession(active, action.session),
      );
    case "queueChanged":
      return updateActive(state, action.sessionId, (active) => ({ ...active, queue: action.queue }));
    case "recoveryChanged":
      return updateActive(state, action.snapshot.sessionId, (active) => applySnapshot(active, action.snapshot));
    case "turnCutOff":
      return updateActive(state, action.sessionId, (active) => applyCutOff(active, action.turnId));
    case "usageChanged":
      return updateActive(state, action.sessionId, (active) => ({ ...active, usage: action.usage }));
    case "effectsListed":
      return { ...state, uncertain: action.uncertain, settled: action.settled };
    case "reviewListed":
      return state.active?.session.sessionId === action.sessionId ? { ...state, review: action.files } : state;
    case "outboxChanged":
      return { ...state, outbox: action.outbox };
    case "questionAsked": {
      const others = state.questions.filter((one) => one.askId !== action.question.askId);
      return { ...state, questions: [...others, action.question] };
    }
    case "questionClosed":
      return { ...state, questions: closeQuestion(state.questions, action.askId, action.reason) };
  }
}

function updateActive(state: State, sessionId: string, change: (active: ActiveSession) => ActiveSession): State {
  if (state.active?.session.sessionId !== sessionId) return state;
  const after = change(state.active);
  return after === state.active ? state : { ...state, active: after };
}

/** A session without messages opens at once, so the chat does not say that it restores one (row S5). */
function hasHistory(state: State, sessionId: string): boolean {
  const session = state.sessions.find((one) => one.sessionId === sessionId);
  return session !== undefined && session.updated !== session.created;
}

function without(state: State, key: "active" | "restoring"): State {
  const { [key]: _, ...rest } = state;
  return rest;
}

function withSession(state: State, session: Session): State {
  const isKnown = state.sessions.some((one) => one.sessionId === session.sessionId);
  const sessions = isKnown
    ? state.sessions.map((one) => (one.sessionId === session.sessionId ? session : one))
    : [session, ...state.sessions];
  return { ...state, sessions };
}

/** The session controller reloads the session when the epoch is new, so the items stay until then. */
function applySession(active: ActiveSession, session: Session): ActiveSession {
  const after = { ...active, session };
  if (session.busy) return after;
  const { turnId: _, ...idle } = after;
  return idle;
}

/** Add one note after the last item of the turn, unless a newer turn has items. */
function applyCutOff(active: ActiveSession, turnId: string): ActiveSession {
  const id = `${turnId}-cut-off`;
  const { items } = active;
  if (active.turnId !== undefined || items.at(-1)?.turnId !== turnId || items.some((item) => item.id === id)) {
    return active;
  }
  const ofTurn = items.filter((item) => item.turnId === turnId);
  const [prompt] = ofTurn;
  const canResend =
    ofTurn.length === 1 && prompt?.kind === "message" && prompt.role === "user" && prompt.again === undefined;
  const resend = canResend ? { resend: { text: prompt.text, attachments: prompt.attachments ?? [] } } : {};
  return { ...active, items: [...items, { kind: "cutOff", id, turnId, ...resend }] };
}

/** Take the settlements of calls from the snapshot: one made outside a turn sends no turn event. */
function applySnapshot(active: ActiveSession, snapshot: Snapshot): ActiveSession {
  const settlements = new Map(snapshot.settled.map((one) => [one.attemptId, one.settled]));
  const items = active.items.map((item) => {
    if (item.kind !== "call" || item.call.settled !== undefined) return item;
    const settled = item.call.attemptId === undefined ? undefined : settlements.get(item.call.attemptId);
    return settled === undefined ? item : { ...item, call: { ...item.call, settled } };
  });
  return { ...active, snapshot, items };
}

function closeQuestion(questions: readonly Question[], askId: string, reason: string | undefined): readonly Question[] {
  if (reason === undefined) return questions.filter((one) => one.askId !== askId);
  const marked = questions.map((one) => (one.askId === askId ? { ...one, closedReason: reason } : one));
  const surplus = marked.filter((one) => !isOpen(one)).slice(0, -CLOSED_QUESTIONS_MAX);
  return marked.filter((one) => !surplus.includes(one));
}
