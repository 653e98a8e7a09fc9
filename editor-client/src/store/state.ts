/**
 * The state that the views show. The extension holds it and sends each change to the chat as a `StoreAction`; the chat
 * holds a copy. Both sides change it with `reduce` alone, so their copies stay equal.
 */
import type {
  Attachment,
  Call,
  ChangedInCall,
  ChangedPath,
  CompactionNote,
  Message,
  PermissionAskParams,
  PlanItem,
  Queued,
  Reason,
  ReviewFile,
  Session,
  Snapshot,
  TurnEvent,
  Uncertain,
  Usage,
  UserAskParams,
} from "../protocol";
import type { Draft } from "./drafts";
import type { OutgoingPrompt } from "./outbox";

/** The connection to the server, with a sentence for the user unless it is ready. */
export type ConnectionStatus =
  | { readonly state: "starting"; readonly text: string }
  | { readonly state: "ready" }
  /** the server runs but does not answer */
  | { readonly state: "silent"; readonly text: string }
  /** the server ended; the extension starts it again */
  | { readonly state: "lost"; readonly text: string }
  /** the server ended; the user has to start it again */
  | { readonly state: "stopped"; readonly text: string };

/** One entry of the conversation. */
export type Item =
  | {
      readonly kind: "message";
      readonly id: string;
      readonly turnId: string;
      readonly role: Message["role"];
      readonly text: string;
      readonly reasoning: string;
      /** the model is still writing it */
      readonly live: boolean;
      /** the server asked the model again, so this text no longer counts; a reload of the session removes it */
      readonly withdrawn?: true;
      readonly attachments?: readonly Attachment[];
      readonly clientMessageId?: string;
      /** of a user message: the turn whose failed request it sends again; its text is that turn's */
      readonly again?: string;
    }
  | { readonly kind: "call"; readonly id: string; readonly turnId: string; readonly call: Call }
  | {
      readonly kind: "note";
      readonly id: string;
      readonly turnId: string;
      readonly level: "notice" | "warning";
      readonly text: string;
      /** of a warning */
      readonly code?: string;
    }
  /** The conversation was compacted: for the model `text` stands in the place of what is above. */
  | {
      readonly kind: "compaction";
      readonly id: string;
      readonly turnId: string;
      readonly text: string;
      readonly note: CompactionNote;
    }
  /** The server ended during this turn. `resend`: the prompt of the turn, if none of its calls had begun. */
  | { readonly kind: "cutOff"; readonly id: string; readonly turnId: string; readonly resend?: Draft }
  | {
      readonly kind: "ended";
      readonly id: string;
      readonly turnId: string;
      /** absent: the item was built from the calls in the journal, which does not hold the reason */
      readonly reason?: Reason;
      readonly changed: readonly ChangedPath[];
      /** paths that the answer names as written and that no call changed */
      readonly unclaimed: readonly string[];
      /** files that changed while commands of the turn ran, by them or by somebody else */
      readonly during: readonly ChangedInCall[];
      /** protected names that are new or changed after commands of the turn */
      readonly protectedNames: readonly string[];
      /** the text of the prompt whose request failed, so that it can be sent again */
      readonly failed?: string;
    };

/** A question of the server to the user. */
export interface Question {
  readonly askId: string;
  readonly sessionId: string;
  readonly turnId: string;
  readonly about:
    | { readonly kind: "permission"; readonly request: PermissionAskParams }
    | { readonly kind: "user"; readonly request: UserAskParams };
  /** why it needs no answer any more; absent while it is open */
  readonly closedReason?: string;
}

/** The session that the chat shows. */
export interface ActiveSession {
  readonly session: Session;
  readonly items: readonly Item[];
  /** the session has messages before the first item */
  readonly more: boolean;
  readonly queue: readonly Queued[];
  readonly snapshot: Snapshot;
  readonly plan: readonly PlanItem[];
  readonly usage?: Usage;
  /** count of records in the journal that cannot be read */
  readonly damaged: number;
  /** number of the last event; undefined: any number may come next */
  readonly number?: number;
  /** the turn that runs now */
  readonly turnId?: string;
}

export interface State {
  readonly connection: ConnectionStatus;
  readonly sessions: readonly Session[];
  /** absent: the chat shows a session that does not exist yet */
  readonly active?: ActiveSession;
  /** id of a session with a history that is being loaded and is not active yet */
  readonly restoring?: string;
  readonly outbox: readonly OutgoingPrompt[];
  readonly questions: readonly Question[];
  /** effects of all sessions */
  readonly uncertain: readonly Uncertain[];
  readonly settled: readonly Uncertain[];
  /** what the active session changed, with what is under review; URIs as the editor spells them */
  readonly review: readonly ReviewFile[];
}

export const INITIAL_STATE: State = {
  connection: { state: "starting", text: "Starting…" },
  sessions: [],
  outbox: [],
  questions: [],
  uncertain: [],
  settled: [],
  review: [],
};

/** Whether an event of the active session and epoch arrived although events before it did not. */
export function hasMissedEvents({ active }: State, turnEvent: TurnEvent): boolean {
  return (
    active?.session.sessionId === turnEvent.sessionId &&
    active.session.epoch === turnEvent.epoch &&
    active.number !== undefined &&
    turnEvent.number > active.number + 1
  );
}

/** A sent or queued prompt, by its id. The text may differ from the one sent, because the user can edit the queue. */
export function findPrompt(state: State, clientMessageId: string): (Draft & { readonly again?: string }) | undefined {
  const sent = state.outbox.find((prompt) => prompt.clientMessageId === clientMessageId);
  const found = sent ?? state.active?.queue.find((prompt) => prompt.clientMessageId === clientMessageId);
  if (found === undefined) return undefined;
  const again = sent?.again === undefined ? {} : { again: sent.again };
  return { text: found.text, attachments: found.attachments ?? [], ...again };
}

/** The name of a session in a list. */
export function sessionName(session: Session): string {
  return session.title.trim() === "" ? "New session" : session.title;
}

/** Whether it waits for the running turn to take it; it is paused only until then (row S8). */
export function isForRunningTurn(prompt: Queued, active: ActiveSession): boolean {
  return active.session.busy && prompt.steers !== undefined && prompt.steers === active.turnId;
}

/** Whether something waits until the user resumes the queue (row S9). */
export function isQueuePaused(active: ActiveSession): boolean {
  return active.queue.some((prompt) => prompt.paused && !isForRunningTurn(prompt, active));
}

export function isOpen(question: Question): boolean {
  return question.closedReason === undefined;
}
