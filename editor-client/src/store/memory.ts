/** What the extension stores for the window, so that a reload keeps it. */

/** `vscode.Memento` implements it; tests use a map. */
export interface Memory {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

/** Id of the active session. */
export const ACTIVE_SESSION_KEY = "activeSession";
export const OUTBOX_KEY = "outbox";

/** `sessionId`: undefined for a session that does not exist yet. */
export function draftKey(sessionId: string | undefined): string {
  return `draft:${sessionId ?? ""}`;
}
