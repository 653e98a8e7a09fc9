/**
 * What passes between the extension and its chat: two closed unions, each handled whole on its side.
 *
 * The chat gets one whole view when it is made, and each happening after that; it folds them with `reduce`.
 */
import type { Draft } from "../attachments";
import type { Action, Attachment, Mode, OptionId, UserAnswer } from "../protocol";
import type { Happened, View } from "../store";

export type ToChat =
  | { readonly kind: "view"; readonly view: View; readonly draft: Draft; readonly trusted: boolean; readonly provider: string }
  | { readonly kind: "happened"; readonly happened: Happened }
  /** what the box holds, replaced */
  | { readonly kind: "box"; readonly draft: Draft }
  | { readonly kind: "attach"; readonly attachment: Attachment }
  | { readonly kind: "completions"; readonly asked: number; readonly paths: readonly string[] }
  | { readonly kind: "do"; readonly what: "focus" | "send" | "sessions" };

export type FromChat =
  | { readonly kind: "ready" }
  | { readonly kind: "draft"; readonly sessionId: string | undefined; readonly draft: Draft }
  | { readonly kind: "send"; readonly text: string; readonly attachments: readonly Attachment[] }
  | { readonly kind: "stop" }
  | { readonly kind: "answer"; readonly askId: string; readonly option: OptionId; readonly note: string }
  | { readonly kind: "answerUser"; readonly askId: string; readonly answer: UserAnswer }
  | { readonly kind: "queueEdit"; readonly clientMessageId: string; readonly text: string }
  | { readonly kind: "queueRemove"; readonly clientMessageId: string }
  | { readonly kind: "queueResume" }
  | { readonly kind: "bind"; readonly sessionId: string }
  | { readonly kind: "new" }
  | { readonly kind: "sessionDo"; readonly what: "rename" | "delete" | "export" | "close"; readonly sessionId: string }
  | { readonly kind: "earlier" }
  | { readonly kind: "mode"; readonly mode: Mode }
  | { readonly kind: "model" }
  | { readonly kind: "recover"; readonly action: Action; readonly attemptId: string }
  | { readonly kind: "showUncertain" }
  | { readonly kind: "openFile"; readonly path: string }
  | { readonly kind: "openDiff"; readonly turnId: string; readonly path: string }
  | { readonly kind: "insert"; readonly text: string }
  | { readonly kind: "complete"; readonly asked: number; readonly query: string }
  | { readonly kind: "attachSelection" }
  | { readonly kind: "attachProblems" }
  | { readonly kind: "saveAndGoOn"; readonly path: string; readonly turnId: string }
  | { readonly kind: "manageTrust" }
  | { readonly kind: "setKey" }
  | { readonly kind: "startServer" }
  | { readonly kind: "showLog" };
