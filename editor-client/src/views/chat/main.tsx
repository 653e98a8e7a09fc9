/** The page: keeps its copy of the state, applies the extension's messages, and draws once a frame. */
import { render } from "preact";
import { EMPTY_DRAFT } from "../../store/drafts";
import { reduce } from "../../store/reducer";
import type { State } from "../../store/state";
import { INITIAL_STATE } from "../../store/state";
import type { ToWebview } from "../webviewMessages";
import type { PageCommand } from "./app";
import { App } from "./app";
import type { ComposerInput } from "./composer";
import { postToExtension } from "./extensionHost";

const FRAME_MS = 16;

let state: State = INITIAL_STATE;
let trusted = true;
let provider = "practice";
let input: ComposerInput = {
  draft: { value: EMPTY_DRAFT, stamp: 0 },
  completions: { request: 0, paths: [] },
  attachment: undefined,
};
let command: PageCommand | undefined;
let isDrawPending = false;
let stamp = 0;

function receive(message: ToWebview): void {
  switch (message.kind) {
    case "state":
      state = message.state;
      input = { ...input, draft: { value: message.draft, stamp: ++stamp } };
      break;
    case "settings":
      ({ trusted, provider } = message);
      break;
    case "action":
      state = reduce(state, message.action);
      break;
    case "draft":
      input = { ...input, draft: { value: message.draft, stamp: ++stamp } };
      break;
    case "attach":
      input = { ...input, attachment: message.attachment };
      break;
    case "completions":
      input = { ...input, completions: message };
      break;
    case "command":
      command = { command: message.command, stamp: ++stamp };
      break;
  }
  scheduleDraw();
}

/** Not requestAnimationFrame: a hidden page gets no frames, and it must be up to date when it is shown. */
function scheduleDraw(): void {
  if (isDrawPending) return;
  isDrawPending = true;
  setTimeout(() => {
    isDrawPending = false;
    draw();
  }, FRAME_MS);
}

function draw(): void {
  const root = document.getElementById("root");
  if (root === null) return;
  const props = { state, trusted, provider, input, command, onAttached };
  render(<App {...props} />, root);
}

/** The message box has taken the attachment. */
function onAttached(): void {
  input = { ...input, attachment: undefined };
}

addEventListener("message", (event: MessageEvent<ToWebview>) => receive(event.data));
scheduleDraw();
postToExtension({ kind: "ready" });
