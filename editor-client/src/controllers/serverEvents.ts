/** Passes what the server reports, and its end and start, to the controllers. */
import type { ServerNotification } from "../client/serverApi";
import type { TurnEvent } from "../protocol";
import type { ConnectionStatus } from "../store/state";
import { findPrompt, hasMissedEvents, isOpen } from "../store/state";
import type { Store } from "../store/store";
import type { PromptController } from "./promptController";
import type { SessionController } from "./sessionController";

const SERVER_ENDED = "The server ended before you answered. The call did not run.";

export class ServerEvents {
  constructor(
    private readonly store: Store,
    private readonly sessions: SessionController,
    private readonly prompts: PromptController,
  ) {}

  /** Rejects if the lists or the session cannot be loaded after a start. */
  async statusChanged(status: ConnectionStatus): Promise<void> {
    const { connection } = this.store.state;
    this.store.dispatch({ kind: "connectionChanged", status });
    if (status.state === "silent") return;
    if (status.state !== "ready") this.serverEnded();
    else if (connection.state !== "silent") await this.serverStarted();
  }

  receive({ method, params }: ServerNotification): void {
    switch (method) {
      case "steadyhand/turn/event":
        this.turnEvent(params);
        return;
      case "steadyhand/recovery/changed":
        this.sessions.recoveryChanged(params);
        return;
      case "steadyhand/session/changed":
        this.sessions.sessionChanged(params);
        return;
      case "steadyhand/queue/changed":
        this.prompts.queueChanged(params.sessionId, params.queue);
        return;
    }
  }

  private async serverStarted(): Promise<void> {
    await this.sessions.refreshLists();
    await this.sessions.reopenLast();
    await this.prompts.lookUpPromptsInDoubt();
  }

  private serverEnded(): void {
    for (const { askId } of this.store.state.questions.filter(isOpen)) {
      this.store.dispatch({ kind: "questionClosed", askId, reason: SERVER_ENDED });
    }
    this.prompts.connectionLost();
  }

  private turnEvent(turnEvent: TurnEvent): void {
    if (hasMissedEvents(this.store.state, turnEvent)) {
      void this.sessions.loadMissedEvents();
      return;
    }
    const { event, sessionId } = turnEvent;
    if (event.kind !== "began") {
      this.store.dispatch({ kind: "turnEvent", turnEvent });
      if (event.kind === "steered") this.prompts.turnBegan(event.clientMessageId);
      return;
    }
    const isKnown = findPrompt(this.store.state, event.clientMessageId) !== undefined;
    this.store.dispatch({ kind: "turnEvent", turnEvent });
    this.prompts.turnBegan(event.clientMessageId);
    // Another window or program sent the prompt, so the text is in the journal alone.
    if (!isKnown && sessionId === this.store.activeId) this.sessions.reloadIfConnected();
  }
}
