/**
 * The items of a conversation: built from the journal when a session opens, then changed by turn events. Pure.
 *
 * Events are numbered within an epoch. An event that came before is ignored; `hasMissedEvents` detects a gap, and the
 * session controller asks the server for the missing events (row D3).
 */
import type { Call, ChangedInCall, ChangedPath, Event, Message, Reason, TurnEvent } from "../protocol";
import type { SessionOpened } from "./actions";
import type { ActiveSession, Item, State } from "./state";
import { findPrompt } from "./state";

// --- open a session -------------------------------------------------------------------------------------------

export function openConversation({ result, events, number }: SessionOpened): ActiveSession {
  const { session, messages, more, snapshot, queue, damaged } = result;
  const runningTurn = session.busy ? events.at(-1)?.turnId : undefined;
  const start: ActiveSession = {
    session,
    items: withTurnEnds(messages.flatMap(itemsOfMessage), runningTurn),
    more,
    queue,
    snapshot,
    plan: [],
    damaged,
    ...(number === undefined ? {} : { number }),
    ...(runningTurn === undefined ? {} : { turnId: runningTurn }),
  };
  // The journal holds complete messages alone. The events hold the one that the model is still writing.
  const knownIds = new Set(start.items.map((item) => item.id));
  return events
    .filter((turnEvent) => turnEvent.turnId === runningTurn)
    .reduce((active, turnEvent) => applyEarlierEvent(active, turnEvent.event, turnEvent.turnId, knownIds), start);
}

function applyEarlierEvent(
  active: ActiveSession,
  event: Event,
  turnId: string,
  knownIds: ReadonlySet<string>,
): ActiveSession {
  if ("messageId" in event && knownIds.has(event.messageId)) return active;
  if (event.kind === "began" || event.kind === "ended") return active;
  if (event.kind === "told" && active.items.some((item) => isSameNotice(item, event.text, turnId))) return active;
  return applyEvent(active, event, turnId, `${turnId}-opening-${active.items.length}`, undefined);
}

/** Whether the journal has given the message already that the event tells of. */
function isSameNotice(item: Item, text: string, turnId: string): boolean {
  return item.kind === "message" && item.role === "notice" && item.turnId === turnId && item.text === text;
}

function itemsOfMessage(message: Message): Item[] {
  if (message.compaction !== undefined) {
    const { messageId, turnId, text, compaction } = message;
    return [{ kind: "compaction", id: messageId, turnId, text, note: compaction }];
  }
  const calls = (message.calls ?? []).map(callItem);
  if (message.text === "" && (message.reasoning ?? "") === "") return calls;
  const item: Item = {
    kind: "message",
    id: message.messageId,
    turnId: message.turnId,
    role: message.role,
    text: message.text,
    reasoning: message.reasoning ?? "",
    live: false,
    ...(message.attachments === undefined ? {} : { attachments: message.attachments }),
    ...(message.clientMessageId === undefined ? {} : { clientMessageId: message.clientMessageId }),
    ...(message.again === undefined ? {} : { again: message.again }),
  };
  return [item, ...calls];
}

/** Add an end after each turn that changed files, built from its calls: the journal holds no list of files. */
function withTurnEnds(items: readonly Item[], runningTurn: string | undefined): readonly Item[] {
  const after: Item[] = [];
  items.forEach((item, index) => {
    after.push(item);
    const { turnId } = item;
    if (items[index + 1]?.turnId === turnId || turnId === runningTurn) return;
    const ofTurn = items.filter((one) => one.turnId === turnId);
    const changed = changedFiles(ofTurn);
    const during = filesChangedDuring(ofTurn);
    if (changed.length > 0 || during.length > 0) {
      const id = `${turnId}-ended-${index}`;
      after.push({ kind: "ended", id, turnId, changed, unclaimed: [], during, protectedNames: [] });
    }
  });
  return after;
}

function changedFiles(items: readonly Item[]): readonly ChangedPath[] {
  const byPath = new Map<string, ChangedPath>();
  for (const item of items) {
    for (const file of item.kind === "call" ? (item.call.files ?? []) : []) {
      const earlier = byPath.get(file.path);
      const change = earlier?.change === "created" && file.change === "modified" ? "created" : file.change;
      byPath.set(file.path, { path: file.path, change, ...(file.from === undefined ? {} : { from: file.from }) });
    }
  }
  return [...byPath.values()];
}

function filesChangedDuring(items: readonly Item[]): readonly ChangedInCall[] {
  return items.flatMap((item) => {
    if (item.kind !== "call") return [];
    const { callId, changedDuring } = item.call;
    return (changedDuring?.files ?? []).map(({ path, change }) => ({ path, change, callId }));
  });
}

// --- turn events ----------------------------------------------------------------------------------------------

export function applyTurnEvent(active: ActiveSession, turnEvent: TurnEvent, state: State): ActiveSession {
  const { event, turnId, number } = turnEvent;
  if (active.session.epoch !== turnEvent.epoch) return active;
  if (active.number !== undefined && number <= active.number) return active;
  return { ...applyEvent(active, event, turnId, `${turnId}-${number}`, state), number };
}

function applyEvent(
  active: ActiveSession,
  event: Event,
  turnId: string,
  itemId: string,
  state: State | undefined,
): ActiveSession {
  switch (event.kind) {
    case "began":
      return beginTurn(active, event.clientMessageId, turnId, state);
    case "text":
    case "reasoning":
      return { ...active, turnId, items: appendText(active.items, event, turnId) };
    case "call":
      return { ...active, items: upsertCall(active.items, event.call) };
    case "plan":
      return { ...active, plan: event.items };
    case "usage":
      return { ...active, usage: event.usage };
    case "warning":
      return {
        ...active,
        items: [
          ...withoutEarlierCount(withdrawLiveText(active.items, event.code, turnId), event.code, turnId),
          noteItem(event, turnId, itemId),
        ],
      };
    case "notice":
    case "told":
      return { ...active, items: [...active.items, noteItem(event, turnId, itemId)] };
    case "compacted":
      return { ...active, items: [...active.items, compactionItem(event, turnId)] };
    case "steered":
      return steer(active, event, turnId);
    case "ended":
      return endTurn(active, event, turnId, itemId);
  }
}

function beginTurn(
  active: ActiveSession,
  clientMessageId: string,
  turnId: string,
  state: State | undefined,
): ActiveSession {
  const isShown = active.items.some((item) => item.kind === "message" && item.clientMessageId === clientMessageId);
  const prompt = state === undefined ? undefined : findPrompt(state, clientMessageId);
  if (isShown || prompt === undefined) return { ...active, turnId, plan: [] };
  const message: Item = {
    kind: "message",
    id: clientMessageId,
    turnId,
    role: "user",
    ...prompt,
    reasoning: "",
    live: false,
    clientMessageId,
  };
  return { ...active, turnId, plan: [], items: [...active.items, message] };
}

/** The turn takes a text of the user: from now on it stands in the conversation. */
function steer(active: ActiveSession, event: Extract<Event, { kind: "steered" }>, turnId: string): ActiveSession {
  const { clientMessageId, text } = event;
  if (active.items.some((item) => item.kind === "message" && item.clientMessageId === clientMessageId)) return active;
  const message: Item = {
    kind: "message",
    id: clientMessageId,
    turnId,
    role: "user",
    text,
    reasoning: "",
    live: false,
    clientMessageId,
  };
  return { ...active, items: [...active.items.map((item) => finishText(item, turnId)), message] };
}

function appendText(
  items: readonly Item[],
  event: Extract<Event, { kind: "text" | "reasoning" }>,
  turnId: string,
): readonly Item[] {
  const index = items.findLastIndex((item) => item.id === event.messageId);
  const before = items[index];
  if (before?.kind !== "message") {
    const text = event.kind === "text" ? event.delta : "";
    const reasoning = event.kind === "reasoning" ? event.delta : "";
    return [...items, { kind: "message", id: event.messageId, turnId, role: "assistant", text, reasoning, live: true }];
  }
  const after: Item =
    event.kind === "text"
      ? { ...before, text: before.text + event.delta, live: true }
      : { ...before, reasoning: before.reasoning + event.delta, live: true };
  return items.with(index, after);
}

function noteItem(event: Extract<Event, { kind: "warning" | "notice" | "told" }>, turnId: string, id: string): Item {
  const code = event.kind === "warning" ? { code: event.code } : {};
  const level = event.kind === "warning" ? "warning" : "notice";
  return { kind: "note", id, turnId, level, text: event.text, ...code };
}

function compactionItem(event: Extract<Event, { kind: "compacted" }>, turnId: string): Item {
  const { messageId, text, before, after, automatic } = event;
  return { kind: "compaction", id: messageId, turnId, text, note: { before, after, automatic } };
}

/** The repeats of a request are one line that counts: a newer count replaces the one before (case 114). */
function withoutEarlierCount(items: readonly Item[], code: string, turnId: string): readonly Item[] {
  if (code !== "askedAgain") return items;
  return items.filter((item) => item.kind !== "note" || item.code !== code || item.turnId !== turnId);
}

/** The server asks the model again: withdraw the text that the model was writing (row T6). */
function withdrawLiveText(items: readonly Item[], code: string, turnId: string): readonly Item[] {
  if (code !== "askedAgain" && code !== "withoutReasoning") return items;
  return items.map((item) =>
    item.kind === "message" && item.live && item.turnId === turnId ? { ...item, live: false, withdrawn: true } : item,
  );
}

function upsertCall(items: readonly Item[], call: Call): readonly Item[] {
  const index = items.findLastIndex((one) => one.id === call.callId);
  if (index >= 0) return items.with(index, callItem(call));
  return [...items.map((one) => finishText(one, call.turnId)), callItem(call)];
}

function callItem(call: Call): Item {
  return { kind: "call", id: call.callId, turnId: call.turnId, call };
}

function endTurn(
  active: ActiveSession,
  event: Extract<Event, { kind: "ended" }>,
  turnId: string,
  id: string,
): ActiveSession {
  const { reason, changed, unclaimed = [], during = [], protected: protectedNames = [] } = event;
  const items = active.items.map((item) => finishText(item, turnId));
  const { turnId: runningTurn, ...rest } = active;
  const stillRunning = runningTurn === undefined || runningTurn === turnId ? {} : { turnId: runningTurn };
  const seen = { during, protectedNames, ...failedPrompt(items, reason, turnId) };
  const ended: Item = { kind: "ended", id, turnId, reason, changed, unclaimed, ...seen };
  return { ...rest, items: [...items, ended], ...stillRunning };
}

/** The prompt of a turn whose last request failed: the server can send that request again (case 114). */
function failedPrompt(items: readonly Item[], reason: Reason, turnId: string): { readonly failed?: string } {
  if (reason !== "modelFailed" && reason !== "cut") return {};
  const prompt = items.find((item) => item.kind === "message" && item.role === "user" && item.turnId === turnId);
  return prompt?.kind === "message" ? { failed: prompt.text } : {};
}

/** A message is complete when another item of its turn follows it. */
function finishText(item: Item, turnId: string): Item {
  return item.kind === "message" && item.live && item.turnId === turnId ? { ...item, live: false } : item;
}
