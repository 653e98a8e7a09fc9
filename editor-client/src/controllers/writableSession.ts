/** The open session, where something can be decided in it; else the sentence that says why not. */
import type { Session } from "../protocol";

export interface WritableSession {
  readonly sessionId: string;
  readonly epoch: string;
}

export function writableSession(session: Session | undefined): WritableSession | string {
  if (session === undefined) return "No session is open. Open one first.";
  const { sessionId, epoch, readOnly } = session;
  if (readOnly !== undefined) return readOnly.text;
  return epoch === undefined ? "This session is read-only. Open it again." : { sessionId, epoch };
}
