/** The page: holds the folded view, draws it once a frame, and hands messages to where they belong. */
import { render } from "preact";
import { EMPTY_DRAFT } from "../../attachments";
import { EMPTY, reduce } from "../../store";
import type { View } from "../../store";
import type { ToChat } from "../bridge";
import type { Doing } from "./app";
import { App } from "./app";
import type { Incoming } from "./composer";
import { tell } from "./host";

let view: View = EMPTY;
let trusted = true;
let provider = "practice";
let incoming: Incoming = { box: { draft: EMPTY_DRAFT, at: 0 }, completions: { asked: 0, paths: [] }, attachment: undefined };
let doing: Doing | undefined;
let drawing = false;
let stamp = 0;

function receive(message: ToChat): void {
  switch (message.kind) {
    case "view":
      ({ view, trusted, provider } = message);
      incoming = { ...incoming, box: { draft: message.draft, at: ++stamp } };
      break;
    case "happened":
      view = reduce(view, message.happened);
      break;
    case "box":
      incoming = { ...incoming, box: { draft: message.draft, at: ++stamp } };
      break;
    case "attach":
      incoming = { ...incoming, attachment: message.attachment };
      break;
    case "completions":
      incoming = { ...incoming, completions: message };
      break;
    case "do":
      doing = { what: message.what, at: ++stamp };
      break;
  }
  draw();
}

function draw(): void {
  if (drawing) return;
  drawing = true;
  // Not requestAnimationFrame: a hidden page gets none, and its state must not lag behind when it is shown.
  setTimeout(() => {
    drawing = false;
    const root = document.getElementById("root");
    if (root !== null) render(<App view={view} trusted={trusted} provider={provider} incoming={incoming} doing={doing} attachmentTaken={taken} />, root);
  }, 16);
}

function taken(): void {
  incoming = { ...incoming, attachment: undefined };
}

addEventListener("message", (event: MessageEvent<ToChat>) => receive(event.data));
draw();
tell({ kind: "ready" });
