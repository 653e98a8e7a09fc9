/**
 * Prompts: sends them, follows their delivery, and edits the queue.
 *
 * A prompt keeps one id through all sends. After a lost connection the controller asks the server for the id of each
 * prompt in doubt; a prompt that the server does not have returns to the message box.
 */
import { randomUUID } from "node:crypto";
import type { ServerApi } from "../client/serverApi";
import { isServerError } from "../client/serverApi";
import type { Attachment, Queued } from "../protocol";
import { errorCodes } from "../protocol";
import { EMPTY_DRAFT } from "../store/drafts";
import type { DraftStore } from "../store/draftStore";
import type { Memory } from "../store/memory";
import { OUTBOX_KEY } from "../store/memory";
import type { DeliveryFact, DeliveryResult, Outbox, OutgoingPrompt } from "../store/outbox";
import { addPrompt, advance, loseConnection, nextPromptToWrite, promptsInDoubt } from "../store/outbox";
import type { Store } from "../store/store";
import type { SessionController } from "./sessionController";

/** The server refuses it and says why. */
const NO_EPOCH = "0".repeat(32);

export class PromptController {
  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly memory: Memory,
    private readonly drafts: DraftStore,
    private readonly sessions: SessionController,
    private readonly warn: (text: string) => void,
  ) {}

  async send(text: string, attachments: readonly Attachment[]): Promise<void> {
    if (text.trim() === "" || this.store.state.connection.state !== "ready") return;
    this.drafts.keep(this.store.activeId, EMPTY_DRAFT);
    let sessionId: string;
    try {
      sessionId = await this.sessions.requireActive();
    } catch (error) {
      this.drafts.takeBack(undefined, [{ text, attachments }]);
      throw error;
    }
    const clientMessageId = randomUUID();
    this.setOutbox(addPrompt(this.store.state.outbox, { clientMessageId, sessionId, text, attachments }));
    await this.writeWaiting(sessionId);
  }

  /** Send the failed request of the last turn again, as it was (case 114). `text`: the prompt of that turn. */
  async sendAgain(turnId: string, text: string): Promise<void> {
    const session = this.store.state.active?.session;
    if (session === undefined || session.busy || this.store.state.connection.state !== "ready") return;
    const { sessionId } = session;
    const prompt = { clientMessageId: randomUUID(), sessionId, text, attachments: [], again: turnId };
    this.setOutbox(addPrompt(this.store.state.outbox, prompt));
    await this.writeWaiting(sessionId);
  }

  /** Send a text for the running turn, which its next request takes (row S8). Without such a turn it is a prompt. */
  async steer(text: string): Promise<void> {
    const { active, connection } = this.store.state;
    if (active?.turnId === undefined) return this.send(text, []);
    if (text.trim() === "" || connection.state !== "ready") return;
    const { sessionId } = active.session;
    this.drafts.keep(sessionId, EMPTY_DRAFT);
    const prompt = { clientMessageId: randomUUID(), sessionId, text, attachments: [], steers: active.turnId };
    this.setOutbox(addPrompt(this.store.state.outbox, prompt));
    await this.writeWaiting(sessionId);
  }

  /** Stop the running turn of the active session. */
  async stop(): Promise<void> {
    const sessionId = this.store.activeId;
    if (sessionId !== undefined) await this.server.command("steadyhand.cancel", { sessionId });
  }

  // --- the queue ------------------------------------------------------------------------------------------------

  async editQueued(
    clientMessageId: string,
    change: { readonly text: string } | { readonly remove: true },
  ): Promise<void> {
    const sessionId = this.store.activeId;
    if (sessionId === undefined) return;
    const { queue } = await this.server.request("steadyhand/queue/edit", { sessionId, clientMessageId, ...change });
    this.queueChanged(sessionId, queue);
  }

  async resumeQueue(): Promise<void> {
    const session = this.store.state.active?.session;
    if (session?.epoch === undefined) return;
    const { sessionId, epoch } = session;
    const { queue } = await this.server.request("steadyhand/queue/resume", { sessionId, epoch });
    this.queueChanged(sessionId, queue);
  }

  /** A queued prompt is durable, and the queue shows it from now on. */
  queueChanged(sessionId: string, queue: readonly Queued[]): void {
    this.sessions.queueChanged(sessionId, queue);
    for (const { clientMessageId } of queue) this.finish(clientMessageId);
  }

  // --- delivery -------------------------------------------------------------------------------------------------

  /** The turn of the prompt began, or a turn took the text: it is durable, and the conversation shows it now. */
  turnBegan(clientMessageId: string): void {
    this.finish(clientMessageId);
  }

  connectionLost(): void {
    this.applyDelivery(loseConnection(this.store.state.outbox));
  }

  /** Ask the server for the prompts in doubt, after the connection is back. */
  async lookUpPromptsInDoubt(): Promise<void> {
    for (const { sessionId, clientMessageId } of promptsInDoubt(this.store.state.outbox)) {
      try {
        const { known } = await this.server.request("steadyhand/turn/status", { sessionId, clientMessageId });
        this.recordFact(clientMessageId, known ? "known" : "unknown");
      } catch (error) {
        if (!isServerError(error)) return;
        this.recordFact(clientMessageId, "unknown");
      }
    }
    for (const { stage, clientMessageId } of this.store.state.outbox) {
      if (stage === "accepted") this.recordFact(clientMessageId, "ended");
    }
  }

  private async writeWaiting(sessionId: string): Promise<void> {
    const next = (): OutgoingPrompt | undefined => nextPromptToWrite(this.store.state.outbox, sessionId);
    for (let prompt = next(); prompt !== undefined; prompt = next()) {
      this.recordFact(prompt.clientMessageId, "written");
      await this.write(prompt);
    }
  }

  private async write(prompt: OutgoingPrompt): Promise<void> {
    try {
      await this.deliver(prompt, await this.epochOf(prompt.sessionId));
      this.recordFact(prompt.clientMessageId, "acknowledged");
    } catch (error) {
      if (!isServerError(error)) return; // no answer: the prompt stays in doubt
      this.warn(error.message);
      this.recordFact(prompt.clientMessageId, "refused");
    }
  }

  private async request(prompt: OutgoingPrompt, epoch: string): Promise<void> {
    const { sessionId, clientMessageId, text, attachments, again, steers } = prompt;
    const params = { sessionId, epoch, clientMessageId, text };
    if (steers !== undefined) {
      await this.server.request("steadyhand/turn/steer", { ...params, turnId: steers });
      return;
    }
    await this.server.request("steadyhand/turn/start", {
      ...params,
      ...(attachments.length > 0 ? { attachments } : {}),
      ...(again === undefined ? {} : { again }),
    });
  }

  private async deliver(prompt: OutgoingPrompt, epoch: string): Promise<void> {
    try {
      await this.request(prompt, epoch);
    } catch (error) {
      if (isServerError(error) && error.code === errorCodes.staleEpoch) {
        const currentEpoch = (error.data as { epoch?: string } | undefined)?.epoch;
        if (currentEpoch !== undefined && currentEpoch !== epoch) return this.deliver(prompt, currentEpoch);
      }
      throw error;
    }
  }

  private async epochOf(sessionId: string): Promise<string> {
    const active = this.store.state.active?.session;
    if (active?.sessionId === sessionId && active.epoch !== undefined) return active.epoch;
    const { session } = await this.server.request("steadyhand/session/open", { sessionId, tail: 0 });
    return session.epoch ?? NO_EPOCH;
  }

  /** The prompt is shown elsewhere from now on, so it leaves the outbox. */
  private finish(clientMessageId: string): void {
    this.recordFact(clientMessageId, "acknowledged");
    this.recordFact(clientMessageId, "ended");
  }

  private recordFact(clientMessageId: string, fact: DeliveryFact): void {
    this.applyDelivery(advance(this.store.state.outbox, clientMessageId, fact));
  }

  private applyDelivery({ outbox, returned }: DeliveryResult): void {
    this.setOutbox(outbox);
    for (const prompt of returned) this.drafts.takeBack(prompt.sessionId, [prompt]);
  }

  private setOutbox(outbox: Outbox): void {
    const before = this.store.state.outbox;
    if (outbox.length === before.length && outbox.every((prompt, index) => prompt === before[index])) return;
    void this.memory.update(OUTBOX_KEY, outbox);
    this.store.dispatch({ kind: "outboxChanged", outbox });
  }
}
