/**
 * The messages between the extension and the chat's webview: two closed unions. Each side handles all that it gets.
 *
 * The webview gets the complete state when its page is ready, and each `StoreAction` after that.
 */
import type { Action, Attachment, Mode, OptionId, UserAnswer } from "../protocol";
import type { StoreAction } from "../store/actions";
import type { Draft } from "../store/drafts";
import type { State } from "../store/state";

export type ToWebview =
  | { readonly kind: "state"; readonly state: State; readonly draft: Draft }
  | {
      readonly kind: "settings";
      /** whether the folder is trusted */
      readonly trusted: boolean;
      /** the provider of new sessions */
      readonly provider: string;
    }
  | { readonly kind: "action"; readonly action: StoreAction }
  /** replaces the content of the message box */
  | { readonly kind: "draft"; readonly draft: Draft }
  | { readonly kind: "attach"; readonly attachment: Attachment }
  /** `request`: the number of the request that it answers */
  | { readonly kind: "completions"; readonly request: number; readonly paths: readonly string[] }
  | { readonly kind: "command"; readonly command: "focus" | "send" };

export type FromWebview =
  | { readonly kind: "draft"; readonly sessionId: string | undefined; readonly draft: Draft }
  | { readonly kind: "send"; readonly text: string; readonly attachments: readonly Attachment[] }
  /** a text for the running turn */
  | { readonly kind: "steer"; readonly text: string }
  /** the failed request of the last turn again; `text`: its prompt */
  | { readonly kind: "sendAgain"; readonly turnId: string; readonly text: string }
  | { readonly kind: "stop" }
  | { readonly kind: "answer"; readonly askId: string; readonly option: OptionId; readonly note: string }
  | { readonly kind: "answerUser"; readonly askId: string; readonly answer: UserAnswer }
  | { readonly kind: "queueEdit"; readonly clientMessageId: string; readonly text: string }
  | { readonly kind: "queueRemove"; readonly clientMessageId: string }
  | { readonly kind: "queueResume" }
  | { readonly kind: "openSession"; readonly sessionId: string }
  | { readonly kind: "newSession" }
  | {
      readonly kind: "sessionCommand";
      readonly command: "rename" | "delete" | "export" | "fork" | "close";
      readonly sessionId: string;
    }
  | { readonly kind: "showEarlier" }
  | { readonly kind: "setMode"; readonly mode: Mode }
  | { readonly kind: "chooseModel" }
  | { readonly kind: "decide"; readonly action: Action; readonly attemptId: string }
  | { readonly kind: "showUncertain" }
  | { readonly kind: "openFile"; readonly path: string }
  | { readonly kind: "openDiff"; readonly turnId: string; readonly path: string }
  | { readonly kind: "insert"; readonly text: string }
  | { readonly kind: "completeFile"; readonly request: number; readonly query: string }
  | { readonly kind: "attachSelection" }
  | { readonly kind: "attachProblems" }
  | { readonly kind: "saveAndContinue"; readonly path: string; readonly turnId: string }
  | { readonly kind: "manageTrust" }
  | { readonly kind: "setApiKey" }
  | { readonly kind: "startServer" }
  | { readonly kind: "showLog" };

/** The first message of the page: it can receive messages now. */
export interface PageReady {
  readonly kind: "ready";
}
