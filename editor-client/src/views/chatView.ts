/**
 * The chat in the sidebar: a webview that shows the folded view and sends back what the user does.
 *
 * Its page loads nothing but its own script and style: the content security policy allows a nonce and no network.
 * Nothing is decided here; each message of the page is one call of `ChatDeeds`.
 */
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Draft } from "../attachments";
import type { Happened, View } from "../store";
import type { FromChat, ToChat } from "./bridge";

export const chatViewId = "steadyhand.chat";

export interface ChatDeeds {
  whole(): { readonly view: View; readonly draft: Draft };
  on(message: Exclude<FromChat, { kind: "ready" }>): Promise<void>;
}

export class ChatView implements vscode.WebviewViewProvider {
  private shown: vscode.WebviewView | undefined;
  private ready = false;
  private waiting: ToChat[] = [];

  constructor(
    private readonly extension: vscode.Uri,
    private readonly deeds: ChatDeeds,
    private readonly failed: (error: unknown) => void,
  ) {}

  get visible(): boolean {
    return this.shown?.visible === true;
  }

  resolveWebviewView(shown: vscode.WebviewView): void {
    this.shown = shown;
    this.ready = false;
    const root = vscode.Uri.joinPath(this.extension, "out");
    shown.webview.options = { enableScripts: true, localResourceRoots: [root, vscode.Uri.joinPath(this.extension, "media")] };
    shown.webview.onDidReceiveMessage((message: FromChat) => this.receive(message));
    shown.onDidDispose(() => {
      this.shown = undefined;
      this.ready = false;
    });
    shown.webview.html = this.page(shown.webview);
  }

  /** Show it and put the cursor into its box. */
  async focus(): Promise<void> {
    await vscode.commands.executeCommand(`${chatViewId}.focus`);
    this.post({ kind: "do", what: "focus" });
  }

  happened(happened: Happened): void {
    if (this.ready) this.post({ kind: "happened", happened });
  }

  /** Kept until the page is there. */
  post(message: ToChat): void {
    if (this.ready && this.shown !== undefined) void this.shown.webview.postMessage(message);
    else if (message.kind === "do" || message.kind === "attach") this.waiting.push(message);
  }

  /** Show everything anew. */
  renew(): void {
    const provider = vscode.workspace.getConfiguration("steadyhand").get("model.provider", "practice");
    if (this.ready) this.post({ kind: "view", ...this.deeds.whole(), trusted: vscode.workspace.isTrusted, provider });
  }

  private receive(message: FromChat): void {
    if (message.kind === "ready") {
      this.ready = true;
      this.renew();
      for (const late of this.waiting.splice(0)) this.post(late);
      return;
    }
    this.deeds.on(message).catch(this.failed);
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString("base64url");
    const script = webview.asWebviewUri(vscode.Uri.joinPath(this.extension, "out", "chat.js")).toString();
    const style = webview.asWebviewUri(vscode.Uri.joinPath(this.extension, "media", "chat.css")).toString();
    const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; font-src ${webview.cspSource}`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Steadyhand</title>
</head>
<body>
<div id="root"></div>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
  }
}
