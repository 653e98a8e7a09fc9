/**
 * Sessions: opens one in the chat, loads its state, and sends what the user does with sessions.
 *
 * Only an explicit call changes the active session. The answer to an earlier open request is dropped when the user has
 * opened another session meanwhile.
 */
import type { ServerApi } from "../client/serverApi";
import type { Mode, ModelChoice, Queued, Session, Snapshot } from "../protocol";
import type { SessionOpened } from "../store/actions";
import type { DraftStore } from "../store/draftStore";
import type { Memory } from "../store/memory";
import { ACTIVE_SESSION_KEY } from "../store/memory";
import type { Store } from "../store/store";

/** So many messages of a session are loaded when it opens; each request for earlier ones loads ten times as many. */
const LOADED_MESSAGES_DEFAULT = 200;
const EARLIER_FACTOR = 10;
/** Snapshots of one resolution arrive together: the lists are loaded once, after the last of them. */
const REFRESH_DELAY_MS = 60;

export class SessionController {
  /** Called when the active session was opened and its folder is gone (row S10). */
  onFolderGone: (session: Session) => void = () => undefined;

  private openRequests = 0;
  private loadedMessages = LOADED_MESSAGES_DEFAULT;
  private isCatchingUp = false;
  private refreshTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly server: ServerApi,
    private readonly store: Store,
    private readonly memory: Memory,
    private readonly drafts: DraftStore,
  ) {}

  // --- the active session -------------------------------------------------------------------------------------

  /** Load a session and make it the active one. */
  async open(sessionId: string, loadedMessages = LOADED_MESSAGES_DEFAULT): Promise<void> {
    const request = ++this.openRequests;
    this.loadedMessages = loadedMessages;
    if (this.store.activeId !== sessionId) this.store.dispatch({ kind: "restoring", sessionId });
    const loaded = await this.load(sessionId).catch((error: unknown) => {
      if (request === this.openRequests) this.store.dispatch({ kind: "restoring" });
      throw error;
    });
    if (request !== this.openRequests) return; // the user opened another session meanwhile (case 79)
    const isOther = this.store.activeId !== sessionId;
    this.store.dispatch(loaded);
    await this.memory.update(ACTIVE_SESSION_KEY, sessionId);
    if (isOther) this.drafts.showCurrent();
    const { session } = loaded.result;
    if (isOther && session.workspaceGone === true) this.onFolderGone(session);
    await Promise.all([this.loadUsage(sessionId), this.findCutOffTurn(sessionId)]);
  }

  /** Open the session that was active before the connection was lost or the window was reloaded. */
  async reopenLast(): Promise<void> {
    const last = this.store.activeId ?? this.memory.get(ACTIVE_SESSION_KEY);
    if (typeof last !== "string") return;
    if (this.store.state.sessions.some((session) => session.sessionId === last)) await this.open(last);
  }

  /** Load the active session again, with as many messages as are shown. */
  async reload(loadedMessages = this.loadedMessages): Promise<void> {
    if (this.store.activeId !== undefined) await this.open(this.store.activeId, loadedMessages);
  }

  async showEarlier(): Promise<void> {
    await this.reload(this.loadedMessages * EARLIER_FACTOR);
  }

  /** Leave the active session; the chat shows one that does not exist yet. */
  leave(): void {
    this.openRequests += 1;
    this.store.dispatch({ kind: "sessionLeft" });
    void this.memory.update(ACTIVE_SESSION_KEY, undefined);
    this.drafts.showCurrent();
  }

  async create(): Promise<Session> {
    const session = await this.server.request("steadyhand/session/create", {});
    this.store.dispatch({ kind: "sessionChanged", session });
    await this.open(session.sessionId);
    return session;
  }

  /** Id of the active session; creates one if there is none. */
  async requireActive(): Promise<string> {
    return this.store.activeId ?? (await this.create()).sessionId;
  }

  async setMode(mode: Mode): Promise<void> {
    const sessionId = await this.requireActive();
    const session = await this.server.request("steadyhand/session/setMode", { sessionId, mode });
    this.store.dispatch({ kind: "sessionChanged", session });
  }

  async setModel(model: ModelChoice): Promise<void> {
    const sessionId = await this.requireActive();
    const session = await this.server.request("steadyhand/session/setModel", { sessionId, ...model });
    this.store.dispatch({ kind: "sessionChanged", session });
  }

  // --- any session --------------------------------------------------------------------------------------------

  async rename(sessionId: string, title: string): Promise<void> {
    const session = await this.server.request("steadyhand/session/rename", { sessionId, title });
    this.store.dispatch({ kind: "sessionChanged", session });
  }

  /** Bind a session to another folder; it goes on there under a new epoch (row S10). */
  async rebind(sessionId: string, workspace: string): Promise<void> {
    this.sessionChanged(await this.server.request("steadyhand/session/rebind", { sessionId, workspace }));
  }

  /** Make a new session with the history of this one and show it. Without a turn it gets the whole history (row S3). */
  async fork(sessionId: string, turnId?: string): Promise<void> {
    const params = turnId === undefined ? { sessionId } : { sessionId, turnId };
    const session = await this.server.request("steadyhand/session/fork", params);
    this.store.dispatch({ kind: "sessionChanged", session });
    await this.open(session.sessionId);
  }

  async close(sessionId: string): Promise<void> {
    if (this.store.activeId === sessionId) this.leave();
    await this.server.request("steadyhand/session/close", { sessionId });
    await this.refreshLists();
  }

  async remove(sessionId: string, force: boolean): Promise<void> {
    await this.server.request("steadyhand/session/delete", force ? { sessionId, force } : { sessionId });
    if (this.store.activeId === sessionId) this.leave();
    await this.drafts.remove(sessionId);
    await this.refreshLists();
  }

  /** Load the lists of sessions and of uncertain effects. */
  async refreshLists(): Promise<void> {
    const [{ sessions }, effects] = await Promise.all([
      this.server.request("steadyhand/session/list", {}),
      this.server.command("steadyhand.recovery.list", {}),
    ]);
    this.store.dispatch({ kind: "sessionsListed", sessions });
    this.store.dispatch({ kind: "effectsListed", ...effects });
  }

  // --- changes that the server reports --------------------------------------------------------------------------

  /** A new epoch means that another process may have changed the session, so it is loaded again. */
  sessionChanged(session: Session): void {
    const before = this.store.state.active?.session;
    this.store.dispatch({ kind: "sessionChanged", session });
    const isSame = before?.sessionId === session.sessionId;
    if (isSame && before.epoch !== session.epoch && session.epoch !== undefined) this.reloadIfConnected();
  }

  queueChanged(sessionId: string, queue: readonly Queued[]): void {
    this.store.dispatch({ kind: "queueChanged", sessionId, queue });
  }

  recoveryChanged(snapshot: Snapshot): void {
    this.store.dispatch({ kind: "recoveryChanged", snapshot });
    clearTimeout(this.refreshTimer);
    this.refreshTimer = setTimeout(() => void this.refreshLists().catch(() => undefined), REFRESH_DELAY_MS);
  }

  /** A lost connection is no error here: everything is loaded again when it is back. */
  reloadIfConnected(): void {
    void this.reload().catch(() => undefined);
  }

  /** Ask the server for events of the active session that did not arrive. */
  async loadMissedEvents(): Promise<void> {
    const { active } = this.store.state;
    if (this.isCatchingUp || active?.session.epoch === undefined) return;
    this.isCatchingUp = true;
    try {
      const { sessionId, epoch } = active.session;
      const page = await this.server.request("steadyhand/turn/events", { sessionId, epoch, after: active.number ?? 0 });
      if (page.reset) await this.reload();
      else for (const turnEvent of page.events) this.store.dispatch({ kind: "turnEvent", turnEvent });
    } catch {
      // The connection is lost. Everything is loaded again when it is back.
    } finally {
      this.isCatchingUp = false;
    }
  }

  // --- load -----------------------------------------------------------------------------------------------------

  /** The session, and the events of its running turn: the journal does not hold its last message yet. */
  private async load(sessionId: string): Promise<SessionOpened> {
    const result = await this.server.request("steadyhand/session/open", { sessionId, tail: this.loadedMessages });
    const { epoch, busy } = result.session;
    if (epoch === undefined || !busy) return { kind: "sessionOpened", result, events: [] };
    const page = await this.server.request("steadyhand/turn/events", { sessionId, epoch, after: 0 });
    return { kind: "sessionOpened", result, events: page.events, number: page.next };
  }

  private async loadUsage(sessionId: string): Promise<void> {
    try {
      const usage = await this.server.request("steadyhand/usage", { sessionId });
      this.store.dispatch({ kind: "usageChanged", sessionId, usage });
    } catch {
      // The chat then shows no usage.
    }
  }

  /** Find out whether the server ended during the last turn; the messages of a session do not say it. */
  private async findCutOffTurn(sessionId: string): Promise<void> {
    const { active } = this.store.state;
    const prompt = active?.items.findLast((item) => item.kind === "message" && item.role === "user");
    if (active?.session.sessionId !== sessionId || active.session.busy) return;
    if (prompt?.kind !== "message" || prompt.clientMessageId === undefined) return;
    const { clientMessageId } = prompt;
    try {
      const { state, turnId } = await this.server.request("steadyhand/turn/status", { sessionId, clientMessageId });
      if (state === "interrupted" && turnId !== undefined) {
        this.store.dispatch({ kind: "turnCutOff", sessionId, turnId });
      }
    } catch {
      // Without an answer the chat says nothing.
    }
  }
}
