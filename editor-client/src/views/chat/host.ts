/** The page's one way to the extension. */
import type { FromChat } from "../bridge";

declare function acquireVsCodeApi(): { postMessage(message: FromChat): void };

const api = acquireVsCodeApi();

export function tell(message: FromChat): void {
  api.postMessage(message);
}
