/** The drafts of all sessions, each stored under the id of its session. */
import type { Draft } from "./drafts";
import { parseDraft, serializeDraft } from "./drafts";
import type { Memory } from "./memory";
import { draftKey } from "./memory";
import { mergeReturned } from "./outbox";
import type { Store } from "./store";

export class DraftStore {
  private readonly listeners: ((draft: Draft) => void)[] = [];

  constructor(
    private readonly store: Store,
    private readonly memory: Memory,
  ) {}

  /** The draft of the active session, or of the one that does not exist yet. */
  current(): Draft {
    return this.read(this.store.activeId);
  }

  /** `sessionId`: where the user typed it; another session may be active now. */
  keep(sessionId: string | undefined, draft: Draft): void {
    void this.memory.update(draftKey(sessionId), serializeDraft(draft));
  }

  async remove(sessionId: string): Promise<void> {
    await this.memory.update(draftKey(sessionId), undefined);
  }

  /** Show the draft of the session that became active. */
  showCurrent(): void {
    this.show(this.current());
  }

  /** Put returned prompts before the text that the user typed since. */
  takeBack(sessionId: string | undefined, returned: readonly Draft[]): void {
    const draft = mergeReturned(this.read(sessionId), returned);
    this.keep(sessionId, draft);
    if (sessionId === this.store.activeId) this.show(draft);
  }

  /** The listener replaces the content of the message box. It is not called while the user types. */
  onReplaced(listener: (draft: Draft) => void): void {
    this.listeners.push(listener);
  }

  private show(draft: Draft): void {
    for (const listener of this.listeners) listener(draft);
  }

  private read(sessionId: string | undefined): Draft {
    return parseDraft(this.memory.get(draftKey(sessionId)));
  }
}
