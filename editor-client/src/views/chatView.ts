/**
 * The chat in the side bar: a webview that shows the state and sends what the user does.
 *
 * Its page loads its own script and style and nothing else: the content security policy allows no network.
 */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { StoreAction } from "../store/actions";
import type { Draft } from "../store/drafts";
import type { DraftStore } from "../store/draftStore";
import type { Store } from "../store/store";
import type { FromWebview, PageReady, ToWebview } from "./webviewMessages";

const CHAT_VIEW_ID = "steadyhand.chat";

export class ChatView implements vscode.WebviewViewProvider, vscode.Disposable {
  private readonly received = new vscode.EventEmitter<FromWebview>();
  readonly onMessage = this.received.event;

  private webviewView: vscode.WebviewView | undefined;
  private isPageReady = false;
  private waiting: ToWebview[] = [];
  private readonly registration: vscode.Disposable;

  constructor(
    private readonly extensionUri: vscode.Uri,
    private readonly store: Store,
    private readonly drafts: DraftStore,
  ) {
    const options = { webviewOptions: { retainContextWhenHidden: true } };
    this.registration = vscode.window.registerWebviewViewProvider(CHAT_VIEW_ID, this, options);
  }

  get isVisible(): boolean {
    return this.webviewView?.visible === true;
  }

  resolveWebviewView(webviewView: vscode.WebviewView): void {
    const { webview } = webviewView;
    this.webviewView = webviewView;
    this.isPageReady = false;
    const localResourceRoots = ["out", "media"].map((folder) => vscode.Uri.joinPath(this.extensionUri, folder));
    webview.options = { enableScripts: true, localResourceRoots };
    webview.onDidReceiveMessage((message: FromWebview | PageReady) => this.receive(message));
    webviewView.onDidDispose(() => {
      this.webviewView = undefined;
      this.isPageReady = false;
    });
    webview.html = this.page(webview);
  }

  /** Show the chat and put the cursor into the message box. */
  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${CHAT_VIEW_ID}.focus`);
    this.post({ kind: "command", command: "focus" });
  }

  showAction(action: StoreAction): void {
    this.post({ kind: "action", action });
  }

  showDraft(draft: Draft): void {
    this.post({ kind: "draft", draft });
  }

  /** After a change of the settings or of the trust in the folder. */
  showSettings(): void {
    const provider = vscode.workspace.getConfiguration("steadyhand").get("model.provider", "practice");
    this.post({ kind: "settings", trusted: vscode.workspace.isTrusted, provider });
  }

  /** Commands and attachments wait until the page is ready. The page asks for everything else itself. */
  post(message: ToWebview): void {
    if (this.isPageReady && this.webviewView !== undefined) void this.webviewView.webview.postMessage(message);
    else if (message.kind === "command" || message.kind === "attach") this.waiting.push(message);
  }

  dispose(): void {
    this.registration.dispose();
    this.received.dispose();
  }

  private receive(message: FromWebview | PageReady): void {
    if (message.kind !== "ready") {
      this.received.fire(message);
      return;
    }
    this.isPageReady = true;
    this.showSettings();
    this.post({ kind: "state", state: this.store.state, draft: this.drafts.current() });
    for (const late of this.waiting.splice(0)) this.post(late);
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("base64url");
    const resource = (...path: string[]): string =>
      webview.asWebviewUri(vscode.Uri.joinPath(this.extensionUri, ...path)).toString();
    const { cspSource } = webview;
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${cspSource}; font-src ${cspSource}`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${resource("media", "chat.css")}">
<title>Steadyhand</title>
</head>
<body>
<div id="root"></div>
<script nonce="${nonce}" src="${resource("out", "chat.js")}"></script>
</body>
</html>`;
  }
}
