/** One message of the conversation: the user's as it was typed, the model's as Markdown with its reasoning folded. */
import type { JSX } from "preact";
import { memo } from "preact/compat";
import { useMemo, useRef } from "preact/hooks";
import { showHidden } from "../../hiddenCharacters";
import { withoutDigests } from "../../labels";
import type { Attachment } from "../../protocol";
import type { Item } from "../../store/state";
import { AttachmentChips } from "./attachmentChips";
import { postToExtension } from "./extensionHost";
import { GrowingMarkdown } from "./growingMarkdown";
import { Icon } from "./icons";
import { safeHtml } from "./markdown";

const COPIED_MS = 1_500;

type Message = Extract<Item, { kind: "message" }>;

export const MessageItem = memo(function MessageItem({ message }: { readonly message: Message }): JSX.Element {
  const { role, text, attachments = [], again } = message;
  switch (role) {
    case "user":
      if (again !== undefined) return <div class="note notice">Tried again</div>;
      return <UserText text={text} attachments={attachments} />;
    case "notice":
      return (
        <div class="note notice" role="note">
          <Icon name="search" />
          <span>{showHidden(withoutDigests(text))}</span>
        </div>
      );
    case "assistant":
      return <AssistantMessage message={message} />;
  }
});

function AssistantMessage({ message }: { readonly message: Message }): JSX.Element {
  const { text, reasoning, live, withdrawn = false } = message;
  return (
    <article class={`message assistant${withdrawn ? " withdrawn" : ""}`} aria-label="Steadyhand" aria-busy={live}>
      {withdrawn && <div class="withdrawn-mark">Withdrawn: the answer was cut off, so the model is asked again.</div>}
      {reasoning !== "" && <Reasoning text={reasoning} live={live && text === ""} />}
      {text !== "" && (live ? <LiveMarkdown text={text} /> : <Markdown text={text} />)}
      {live && text !== "" && <span class="cursor" aria-hidden="true" />}
    </article>
  );
}

interface UserTextProps {
  readonly text: string;
  readonly attachments: readonly Attachment[];
  /** while the server has not accepted it */
  readonly delivery?: string;
}

export function UserText({ text, attachments, delivery }: UserTextProps): JSX.Element {
  return (
    <article class={`message user${delivery === undefined ? "" : " in-flight"}`} aria-label="You">
      <div class="user-text">{showHidden(text)}</div>
      <AttachmentChips attachments={attachments} />
      {delivery !== undefined && <div class="in-flight-state">{delivery}</div>}
    </article>
  );
}

function Reasoning({ text, live }: { readonly text: string; readonly live: boolean }): JSX.Element {
  return (
    <details class="reasoning">
      <summary>{live ? "Thinking…" : "Reasoning"}</summary>
      <div class="reasoning-text">{showHidden(text)}</div>
    </details>
  );
}

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const html = useMemo(() => safeHtml(showHidden(text)), [text]);
  return <div class="markdown" onClick={onMarkdownClick} dangerouslySetInnerHTML={{ __html: html }} />;
}

/** The same while the text grows: what can no longer change is drawn once. */
export function LiveMarkdown({ text }: { readonly text: string }): JSX.Element {
  const growing = useRef(new GrowingMarkdown());
  const pieces = useMemo(() => growing.current.update(text), [text]);
  return (
    <div class="markdown" onClick={onMarkdownClick}>
      {pieces.map((piece, place) =>
        piece.kind === "html" ? (
          <HtmlPiece key={`html ${place}`} html={piece.html} />
        ) : (
          <CodePiece key={`code ${place}`} language={piece.language} parts={piece.parts} />
        ),
      )}
    </div>
  );
}

const HtmlPiece = memo(function HtmlPiece({ html }: { readonly html: string }): JSX.Element {
  return <div class="piece" dangerouslySetInnerHTML={{ __html: html }} />;
});

interface CodePieceProps {
  readonly language: string;
  readonly parts: readonly string[];
}

/** A code block that is being written; it looks like one of `safeHtml`. */
function CodePiece({ language, parts }: CodePieceProps): JSX.Element {
  return (
    <div class="code">
      <div class="code-bar">
        <span>{language}</span>
        <button type="button" data-action="copy" aria-label="Copy code">
          Copy
        </button>
        <button type="button" data-action="insert" aria-label="Insert code at the cursor">
          Insert
        </button>
      </div>
      <pre>
        <code>{parts}</code>
      </pre>
    </div>
  );
}

function onMarkdownClick(event: MouseEvent): void {
  const target = event.target instanceof Element ? event.target : undefined;
  const link = target?.closest("a");
  if (link) openLink(event, link.getAttribute("href") ?? "");
  const button = target?.closest("button[data-action]");
  if (button) runCodeAction(button);
}

/** A link without a scheme names a file. VS Code opens the others. */
function openLink(event: MouseEvent, href: string): void {
  if (/^[a-z]+:/i.test(href)) return;
  event.preventDefault();
  if (href === "" || href.startsWith("#")) return;
  postToExtension({ kind: "openFile", path: decodeURIComponent(href.replace(/#.*$/, "")) });
}

function runCodeAction(button: Element): void {
  const code = button.closest(".code")?.querySelector("code")?.textContent ?? "";
  if (button.getAttribute("data-action") === "insert") {
    postToExtension({ kind: "insert", text: code });
    return;
  }
  void navigator.clipboard.writeText(code).then(() => {
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), COPIED_MS);
  });
}
