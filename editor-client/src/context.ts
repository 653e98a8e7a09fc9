/**
 * The parts of the extension, built in four phases. A part gets parts of its own phase and of earlier ones alone; the
 * lint rules check the same for imports:
 *
 * 1. *store*: the state.
 * 2. *client*: the connection to the server, and the documents that it provides.
 * 3. *views*: show the store.
 * 4. *controllers*: send what the user does in the views to the server, and put what the server says into the store.
 */
import * as vscode from "vscode";
import type { ServerApi } from "./client/serverApi";
import { ServerConnection } from "./client/serverConnection";
import { ChatController } from "./controllers/chatController";
import { PromptController } from "./controllers/promptController";
import { QuestionController } from "./controllers/questionController";
import { RecoveryController } from "./controllers/recoveryController";
import { ReviewController } from "./controllers/reviewController";
import { RewindController } from "./controllers/rewindController";
import { ServerEvents } from "./controllers/serverEvents";
import { SessionController } from "./controllers/sessionController";
import { SessionDialogs } from "./controllers/sessionDialogs";
import { REVIEW_UI, REWIND_UI } from "./editor/reviewUi";
import { DoctorPage } from "./editor/doctorPage";
import { InspectionDocuments } from "./editor/inspectionDocuments";
import { DraftStore } from "./store/draftStore";
import { Inspections } from "./store/inspections";
import type { Memory } from "./store/memory";
import { OUTBOX_KEY } from "./store/memory";
import { parseOutbox } from "./store/outbox";
import { Store } from "./store/store";
import { ChangeMarks } from "./views/changeMarks";
import { ChatView } from "./views/chatView";
import { RecoveryTree } from "./views/recoveryTree";
import { StatusItem } from "./views/statusItem";

export interface Context {
  readonly extension: vscode.ExtensionContext;
  readonly output: vscode.LogOutputChannel;
  readonly store: Stores;
  readonly client: Client;
  readonly views: Views;
  readonly controllers: Controllers;
}

export interface Stores {
  readonly state: Store;
  readonly drafts: DraftStore;
  readonly inspections: Inspections;
  readonly memory: Memory;
}

export interface Client {
  readonly connection: ServerConnection;
  readonly documents: InspectionDocuments;
}

export interface Views {
  readonly changes: ChangeMarks;
  readonly chat: ChatView;
  readonly tree: RecoveryTree;
  readonly status: StatusItem;
  readonly doctor: DoctorPage;
}

export interface Controllers {
  readonly chat: ChatController;
  readonly dialogs: SessionDialogs;
  readonly events: ServerEvents;
  readonly prompts: PromptController;
  readonly questions: QuestionController;
  readonly recovery: RecoveryController;
  readonly review: ReviewController;
  readonly rewind: RewindController;
  readonly sessions: SessionController;
}

export function buildContext(extension: vscode.ExtensionContext): Context {
  const output = vscode.window.createOutputChannel("Steadyhand", { log: true });
  const store = buildStores(extension);
  const client = buildClient(extension, output, store);
  const views = buildViews(extension, store);
  const controllers = buildControllers(output, store, client, views);
  return { extension, output, store, client, views, controllers };
}

function buildStores({ workspaceState }: vscode.ExtensionContext): Stores {
  const state = new Store({ outbox: parseOutbox(workspaceState.get(OUTBOX_KEY)) });
  const drafts = new DraftStore(state, workspaceState);
  return { state, drafts, inspections: new Inspections(), memory: workspaceState };
}

function buildClient(extension: vscode.ExtensionContext, output: vscode.LogOutputChannel, { state }: Stores): Client {
  const probe = (server: ServerApi): Promise<unknown> | undefined => {
    const sessionId = state.activeId;
    return sessionId === undefined ? undefined : server.request("steadyhand/usage", { sessionId });
  };
  const connection = new ServerConnection(extension, output, probe);
  return { connection, documents: new InspectionDocuments(connection) };
}

function buildViews({ extensionUri }: vscode.ExtensionContext, { state, drafts, inspections }: Stores): Views {
  return {
    changes: new ChangeMarks(extensionUri),
    chat: new ChatView(extensionUri, state, drafts),
    tree: new RecoveryTree(inspections),
    status: new StatusItem(),
    doctor: new DoctorPage(),
  };
}

function buildControllers(
  output: vscode.LogOutputChannel,
  { state: store, drafts, inspections, memory }: Stores,
  { connection, documents }: Client,
  { chat }: Views,
): Controllers {
  const warn = (text: string): void => void vscode.window.showWarningMessage(text);
  const sessions = new SessionController(connection, store, memory, drafts);
  const dialogs = new SessionDialogs(connection, store, sessions);
  const prompts = new PromptController(connection, store, memory, drafts, sessions, warn);
  const events = new ServerEvents(store, sessions, prompts);
  const questions = new QuestionController(store, sessions, chat);
  const recovery = new RecoveryController(connection, store, inspections, sessions, documents);
  const review = new ReviewController(connection, store, REVIEW_UI);
  const rewind = new RewindController(connection, store, REWIND_UI);
  const chatController = new ChatController({
    connection,
    store,
    drafts,
    sessions,
    dialogs,
    prompts,
    questions,
    recovery,
    documents,
    chat,
    output,
  });
  return { chat: chatController, dialogs, events, prompts, questions, recovery, review, rewind, sessions };
}
