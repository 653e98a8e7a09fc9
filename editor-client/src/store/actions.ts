/** Everything that can change the state: a closed union, which `reduce` handles completely. */
import type {
  Queued,
  ReviewFile,
  Session,
  SessionOpenResult,
  Snapshot,
  TurnEvent,
  Uncertain,
  Usage,
} from "../protocol";
import type { OutgoingPrompt } from "./outbox";
import type { ConnectionStatus, Question } from "./state";

export type StoreAction =
  | { readonly kind: "connectionChanged"; readonly status: ConnectionStatus }
  | { readonly kind: "sessionsListed"; readonly sessions: readonly Session[] }
  | SessionOpened
  | { readonly kind: "sessionLeft" }
  /** without an id: the load failed */
  | { readonly kind: "restoring"; readonly sessionId?: string }
  | { readonly kind: "turnEvent"; readonly turnEvent: TurnEvent }
  | { readonly kind: "sessionChanged"; readonly session: Session }
  | { readonly kind: "queueChanged"; readonly sessionId: string; readonly queue: readonly Queued[] }
  | { readonly kind: "recoveryChanged"; readonly snapshot: Snapshot }
  | { readonly kind: "turnCutOff"; readonly sessionId: string; readonly turnId: string }
  | { readonly kind: "usageChanged"; readonly sessionId: string; readonly usage: Usage }
  | {
      readonly kind: "effectsListed";
      readonly uncertain: readonly Uncertain[];
      readonly settled: readonly Uncertain[];
    }
  | { readonly kind: "reviewListed"; readonly sessionId: string; readonly files: readonly ReviewFile[] }
  | { readonly kind: "outboxChanged"; readonly outbox: readonly OutgoingPrompt[] }
  | { readonly kind: "questionAsked"; readonly question: Question }
  /** without a reason: the user answered it */
  | { readonly kind: "questionClosed"; readonly askId: string; readonly reason?: string };

/** `events`: those of the running turn, whose last message the journal does not hold yet. */
export interface SessionOpened {
  readonly kind: "sessionOpened";
  readonly result: SessionOpenResult;
  readonly events: readonly TurnEvent[];
  readonly number?: number;
}
