/** The page's channel to the extension. */
import type { FromWebview, PageReady } from "../webviewMessages";

declare function acquireVsCodeApi(): { postMessage(message: FromWebview | PageReady): void };

const api = acquireVsCodeApi();

export function postToExtension(message: FromWebview | PageReady): void {
  api.postMessage(message);
}
