/**
 * The bound session: what the user does becomes requests, what the server tells becomes happenings.
 *
 * Knows no editor and no connection, only two small ports, so tests drive it with fakes. Binding changes only by an
 * explicit call; an answer that belongs to a binding that is over is dropped. After a reconnection the same session is
 * bound again, prompts in doubt are asked for by id, and nothing is ever sent twice under two ids.
 */
import { randomUUID } from "node:crypto";
import type {
  Attachment,
  Commands,
  Mode,
  ModelChoice,
  Queued,
  RequestsToServer,
  Session,
  SessionOpenResult,
  Snapshot,
  TurnEvent,
} from "./protocol";
import { errorCodes } from "./protocol";
import type { Draft } from "./attachments";
import { EMPTY_DRAFT, restoredDraft, storedDraft } from "./attachments";
import type { Advanced, Outgoing } from "./outbox";
import { advance, inDoubt, lose, nextToWrite, put, restored, withReturned } from "./outbox";
import type { Happened, Link, View } from "./store";
import { EMPTY, missed, promptOf, reduce } from "./store";

/** The server. */
export interface Wire {
  request<Method extends keyof RequestsToServer>(
    method: Method,
    params: RequestsToServer[Method]["params"],
  ): Promise<RequestsToServer[Method]["result"]>;
  command<Name extends keyof Commands>(name: Name, ...args: Commands[Name]["arguments"]): Promise<Commands[Name]["result"]>;
}

/** What survives a reload of the window; vscode.Memento fits. */
export interface Memory {
  get(key: string): unknown;
  update(key: string, value: unknown): PromiseLike<void>;
}

/** How the desk speaks to people. */
export interface Voice {
  happened(happened: Happened, view: View): void;
  /** what the box holds changed by something else than typing */
  box(draft: Draft): void;
  warn(text: string): void;
}

const BOUND = "bound";
const OUTBOX = "outbox";
const tail_default = 200;
const refresh_ms = 60;

export class Desk {
  view: View = EMPTY;
  private binding = 0;
  private tail = tail_default;
  private catchingUp = false;
  private listing: NodeJS.Timeout | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly memory: Memory,
    private readonly voice: Voice,
  ) {
    this.view = { ...EMPTY, outbox: restored(memory.get(OUTBOX)) };
  }

  get boundId(): string | undefined {
    return this.view.bound?.session.sessionId;
  }

  /** The server is there, anew or again. */
  async connected(): Promise<void> {
    this.happen({ kind: "linked", link: { state: "ready" } });
    await this.refreshLists();
    const wanted = this.boundId ?? this.memory.get(BOUND);
    if (typeof wanted === "string" && this.view.sessions.some((session) => session.sessionId === wanted)) await this.bind(wanted);
    await this.settleDoubts();
  }

  /** The connection stands otherwise than ready. */
  disconnected(link: Link): void {
    this.happen({ kind: "linked", link });
    if (link.state === "silent") return;
    for (const question of this.view.questions) {
      const why = "The server ended before it was answered. The call did not run.";
      if (question.gone === undefined) this.happen({ kind: "questionGone", askId: question.askId, why });
    }
    this.take(lose(this.view.outbox));
  }

  // --- sessions ---------------------------------------------------------------------------------------------

  /** Bind a session and read all of it that is shown. */
  async bind(sessionId: string, tail = tail_default): Promise<void> {
    const mine = ++this.binding;
    this.tail = tail;
    if (this.boundId !== sessionId) this.happen({ kind: "restoring", sessionId });
    const read = await this.read(sessionId).catch((error: unknown) => {
      if (mine === this.binding) this.happen({ kind: "restoring" });
      throw error;
    });
    if (mine !== this.binding) return; // another one was asked for meanwhile (case 79)
    const changed = this.boundId !== sessionId;
    this.happen({ kind: "opened", ...read });
    await this.memory.update(BOUND, sessionId);
    if (changed) this.voice.box(this.draft());
    await Promise.all([this.tellUsage(sessionId), this.tellCutOff(sessionId)]);
  }

  /** Read the bound session again, as far as it is shown. */
  async reread(tail = this.tail): Promise<void> {
    if (this.boundId !== undefined) await this.bind(this.boundId, tail);
  }

  async earlier(): Promise<void> {
    await this.reread(this.tail * 10);
  }

  unbind(): void {
    this.binding += 1;
    this.happen({ kind: "unbound" });
    void this.memory.update(BOUND, undefined);
    this.voice.box(this.draft());
  }

  async create(title?: string): Promise<Session> {
    const session = await this.wire.request("steadyhand/session/create", title === undefined ? {} : { title });
    this.happen({ kind: "session", session });
    await this.bind(session.sessionId);
    return session;
  }

  async rename(sessionId: string, title: string): Promise<void> {
    const session = await this.wire.request("steadyhand/session/rename", { sessionId, title });
    this.happen({ kind: "session", session });
  }

  async close(sessionId: string): Promise<void> {
    if (this.boundId === sessionId) this.unbind();
    await this.wire.request("steadyhand/session/close", { sessionId });
    await this.refreshLists();
  }

  async remove(sessionId: string, force: boolean): Promise<void> {
    await this.wire.request("steadyhand/session/delete", force ? { sessionId, force } : { sessionId });
    if (this.boundId === sessionId) this.unbind();
    await this.memory.update(draftKey(sessionId), undefined);
    await this.refreshLists();
  }

  async setMode(mode: Mode): Promise<void> {
    const sessionId = this.boundId ?? (await this.create()).sessionId;
    this.happen({ kind: "session", session: await this.wire.request("steadyhand/session/setMode", { sessionId, mode }) });
  }

  async setModel(model: ModelChoice): Promise<void> {
    const sessionId = this.boundId ?? (await this.create()).sessionId;
    this.happen({ kind: "session", session: await this.wire.request("steadyhand/session/setModel", { sessionId, ...model }) });
  }

  async refreshLists(): Promise<void> {
    const [{ sessions }, effects] = await Promise.all([
      this.wire.request("steadyhand/session/list", {}),
      this.wire.command("steadyhand.recovery.list", {}),
    ]);
    this.happen({ kind: "listed", sessions });
    this.happen({ kind: "uncertain", ...effects });
  }

  // --- drafts -----------------------------------------------------------------------------------------------

  /** The draft of the bound session, or of the one that is not made yet. */
  draft(): Draft {
    return restoredDraft(this.memory.get(draftKey(this.boundId)));
  }

  /** `sessionId`: whose box it was typed in, which may not be the bound one any more. */
  keepDraft(sessionId: string | undefined, draft: Draft): void {
    void this.memory.update(draftKey(sessionId), storedDraft(draft));
  }

  // --- prompts ----------------------------------------------------------------------------------------------

  async send(text: string, attachments: readonly Attachment[]): Promise<void> {
    if (text.trim() === "" || this.view.link.state !== "ready") return;
    this.keepDraft(this.boundId, EMPTY_DRAFT);
    let sessionId = this.boundId;
    try {
      sessionId ??= (await this.create()).sessionId;
    } catch (error) {
      this.giveBack(undefined, [{ text, attachments }]);
      throw error;
    }
    const clientMessageId = randomUUID();
    this.setOutbox(put(this.view.outbox, { clientMessageId, sessionId, text, attachments }));
    await this.writeNext(sessionId);
  }

  async stop(): Promise<void> {
    if (this.boundId !== undefined) await this.wire.command("steadyhand.cancel", { sessionId: this.boundId });
  }

  async editQueued(clientMessageId: string, change: { readonly text: string } | { readonly remove: true }): Promise<void> {
    const sessionId = this.boundId;
    if (sessionId === undefined) return;
    const { queue } = await this.wire.request("steadyhand/queue/edit", { sessionId, clientMessageId, ...change });
    this.queueIs(sessionId, queue);
  }

  async resumeQueue(): Promise<void> {
    const session = this.view.bound?.session;
    if (session?.epoch === undefined) return;
    const { queue } = await this.wire.request("steadyhand/queue/resume", { sessionId: session.sessionId, epoch: session.epoch });
    this.queueIs(session.sessionId, queue);
  }

  private async writeNext(sessionId: string): Promise<void> {
    for (let next = nextToWrite(this.view.outbox, sessionId); next !== undefined; next = nextToWrite(this.view.outbox, sessionId)) {
      this.fact(next.clientMessageId, "written");
      await this.write(next);
    }
  }

  private async write(prompt: Outgoing): Promise<void> {
    try {
      await this.start(prompt, await this.epochOf(prompt.sessionId));
      this.fact(prompt.clientMessageId, "acknowledged");
    } catch (error) {
      if (!isAnswer(error)) return; // no answer: it stays in doubt until it is asked for by id
      this.voice.warn(error.message);
      this.fact(prompt.clientMessageId, "refused");
    }
  }

  private async start(prompt: Outgoing, epoch: string): Promise<void> {
    const { sessionId, clientMessageId, text, attachments } = prompt;
    const plain = { sessionId, epoch, clientMessageId, text };
    try {
      await this.wire.request("steadyhand/turn/start", attachments.length > 0 ? { ...plain, attachments } : plain);
    } catch (error) {
      if (isAnswer(error) && error.code === errorCodes.staleEpoch) {
        const now = (error.data as { epoch?: string } | undefined)?.epoch;
        if (now !== undefined && now !== epoch) return this.start(prompt, now);
      }
      throw error;
    }
  }

  private async epochOf(sessionId: string): Promise<string> {
    const known = this.view.bound?.session;
    if (known?.sessionId === sessionId && known.epoch !== undefined) return known.epoch;
    const { session } = await this.wire.request("steadyhand/session/open", { sessionId, tail: 0 });
    return session.epoch ?? "0".repeat(32); // the server says why it cannot be written to
  }

  private async settleDoubts(): Promise<void> {
    for (const { sessionId, clientMessageId } of inDoubt(this.view.outbox)) {
      try {
        const { known } = await this.wire.request("steadyhand/turn/status", { sessionId, clientMessageId });
        this.fact(clientMessageId, known ? "known" : "unknown");
      } catch (error) {
        if (isAnswer(error)) this.fact(clientMessageId, "unknown");
        else return;
      }
    }
    for (const prompt of this.view.outbox) if (prompt.stage === "accepted") this.forgetAccepted(prompt);
  }

  // --- what the server tells --------------------------------------------------------------------------------

  turnEvent(told: TurnEvent): void {
    if (missed(this.view, told)) {
      void this.catchUp();
      return;
    }
    const { event } = told;
    const unknownPrompt = event.kind === "began" && told.sessionId === this.boundId && promptOf(this.view, event.clientMessageId) === undefined;
    this.happen({ kind: "turn", told });
    if (event.kind === "began") this.fact(event.clientMessageId, "acknowledged", "ended");
    if (unknownPrompt) void this.reread().catch(() => undefined); // another door than ours: the journal has its text
  }

  sessionChanged(session: Session): void {
    const before = this.view.bound?.session;
    this.happen({ kind: "session", session });
    if (before?.sessionId === session.sessionId && before.epoch !== session.epoch && session.epoch !== undefined) {
      void this.reread().catch(() => undefined);
    }
  }

  queueIs(sessionId: string, queue: readonly Queued[]): void {
    this.happen({ kind: "queue", sessionId, queue });
    for (const { clientMessageId } of queue) this.fact(clientMessageId, "acknowledged", "ended");
  }

  snapshotIs(snapshot: Snapshot): void {
    this.happen({ kind: "snapshot", snapshot });
    clearTimeout(this.listing);
    this.listing = setTimeout(() => void this.refreshLists().catch(() => undefined), refresh_ms);
  }

  happen(happened: Happened): void {
    this.view = reduce(this.view, happened);
    this.voice.happened(happened, this.view);
  }

  // --- inside -----------------------------------------------------------------------------------------------

  /** A session, and the events of its running turn, whose message is in no journal yet. */
  private async read(sessionId: string): Promise<{ opened: SessionOpenResult; events: readonly TurnEvent[]; number?: number }> {
    const opened = await this.wire.request("steadyhand/session/open", { sessionId, tail: this.tail });
    const { epoch } = opened.session;
    if (epoch === undefined || !opened.session.busy) return { opened, events: [] };
    const lacking = await this.wire.request("steadyhand/turn/events", { sessionId, epoch, after: 0 });
    return { opened, events: lacking.events, number: lacking.next };
  }

  private async catchUp(): Promise<void> {
    const bound = this.view.bound;
    if (this.catchingUp || bound?.session.epoch === undefined) return;
    this.catchingUp = true;
    try {
      const { sessionId, epoch } = bound.session;
      const lacking = await this.wire.request("steadyhand/turn/events", { sessionId, epoch, after: bound.number ?? 0 });
      if (lacking.reset) await this.reread();
      else for (const told of lacking.events) this.happen({ kind: "turn", told });
    } catch {
      // The connection is gone; everything is read again when it is back.
    } finally {
      this.catchingUp = false;
    }
  }

  private async tellUsage(sessionId: string): Promise<void> {
    try {
      this.happen({ kind: "usage", sessionId, usage: await this.wire.request("steadyhand/usage", { sessionId }) });
    } catch {
      // A session without numbers shows none.
    }
  }

  /** A last turn without an end: the server died in it, which its messages alone do not say. */
  private async tellCutOff(sessionId: string): Promise<void> {
    const bound = this.view.bound;
    const prompt = bound?.items.findLast((item) => item.kind === "message" && item.role === "user");
    if (bound?.session.sessionId !== sessionId || bound.session.busy || prompt?.kind !== "message" || prompt.clientMessageId === undefined) return;
    try {
      const { state, turnId } = await this.wire.request("steadyhand/turn/status", { sessionId, clientMessageId: prompt.clientMessageId });
      if (state === "interrupted" && turnId !== undefined) this.happen({ kind: "cutOff", sessionId, turnId });
    } catch {
      // Without an answer nothing is claimed.
    }
  }

  private fact(clientMessageId: string, ...facts: Parameters<typeof advance>[2][]): void {
    for (const fact of facts) this.take(advance(this.view.outbox, clientMessageId, fact));
  }

  private forgetAccepted(prompt: Outgoing): void {
    this.fact(prompt.clientMessageId, "ended");
  }

  private take(advanced: Advanced): void {
    this.setOutbox(advanced.outbox);
    for (const prompt of advanced.back) this.giveBack(prompt.sessionId, [prompt]);
  }

  private giveBack(sessionId: string | undefined, back: readonly Draft[]): void {
    const draft = withReturned(restoredDraft(this.memory.get(draftKey(sessionId))), back);
    this.keepDraft(sessionId, draft);
    if (sessionId === this.boundId) this.voice.box(draft);
  }

  private setOutbox(outbox: readonly Outgoing[]): void {
    if (outbox.length === this.view.outbox.length && outbox.every((prompt, at) => prompt === this.view.outbox[at])) return;
    void this.memory.update(OUTBOX, outbox);
    this.happen({ kind: "outbox", outbox });
  }
}

function draftKey(sessionId: string | undefined): string {
  return `draft:${sessionId ?? ""}`;
}

interface Answered extends Error {
  readonly code: number;
  readonly data?: unknown;
}

/** JSON-RPC's own words and the server's; what lies between is said by the client library when nobody answered. */
const ours = { first: -32061, last: -32050 };
const general = -32600;

/** Whether the server answered with an error; anything else is a lost connection. */
export function isAnswer(error: unknown): error is Answered {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "number") return false;
  return error.code <= general || (error.code >= ours.first && error.code <= ours.last);
}
