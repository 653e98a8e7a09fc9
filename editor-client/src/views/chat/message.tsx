/** One message of the conversation: the user's as it was typed, the model's as Markdown, its reasoning folded. */
import { memo } from "preact/compat";
import { useMemo } from "preact/hooks";
import type { JSX } from "preact";
import type { Attachment } from "../../protocol";
import type { Item } from "../../store";
import { Chips } from "./chips";
import { tell } from "./host";
import { Icon } from "./icons";
import { safeHtml } from "./markdown";
import { withoutDigests } from "../../words";

type Said = Extract<Item, { kind: "message" }>;

export const MessageItem = memo(function MessageItem({ said }: { readonly said: Said }): JSX.Element {
  if (said.role === "user") return <UserText text={said.text} attachments={said.attachments ?? []} />;
  if (said.role === "notice") {
    return (
      <div class="note notice" role="note">
        <Icon name="look" />
        <span>{withoutDigests(said.text)}</span>
      </div>
    );
  }
  return (
    <article class={`message assistant${said.withdrawn === true ? " withdrawn" : ""}`} aria-label="Steadyhand" aria-busy={said.live}>
      {said.withdrawn === true && <div class="withdrawn-mark">Withdrawn: the answer broke off and is asked for again.</div>}
      {said.reasoning !== "" && <Reasoning text={said.reasoning} live={said.live && said.text === ""} />}
      {said.text !== "" && <Markdown text={said.text} />}
      {said.live && said.text !== "" && <span class="cursor" aria-hidden="true" />}
    </article>
  );
});

export function UserText({ text, attachments, state }: { readonly text: string; readonly attachments: readonly Attachment[]; readonly state?: string }): JSX.Element {
  return (
    <article class={`message user${state === undefined ? "" : " in-flight"}`} aria-label="You">
      <div class="user-text">{text}</div>
      <Chips attachments={attachments} />
      {state !== undefined && <div class="in-flight-state">{state}</div>}
    </article>
  );
}

function Reasoning({ text, live }: { readonly text: string; readonly live: boolean }): JSX.Element {
  return (
    <details class="reasoning">
      <summary>{live ? "Thinking…" : "Thought"}</summary>
      <div class="reasoning-text">{text}</div>
    </details>
  );
}

export function Markdown({ text }: { readonly text: string }): JSX.Element {
  const html = useMemo(() => safeHtml(text), [text]);
  return <div class="markdown" onClick={onMarkdownClick} dangerouslySetInnerHTML={{ __html: html }} />;
}

function onMarkdownClick(event: MouseEvent): void {
  const target = event.target instanceof Element ? event.target : undefined;
  const link = target?.closest("a");
  const href = link?.getAttribute("href") ?? "";
  if (link && !/^[a-z]+:/i.test(href)) {
    event.preventDefault();
    if (href !== "" && !href.startsWith("#")) tell({ kind: "openFile", path: decodeURIComponent(href.replace(/#.*$/, "")) });
    return;
  }
  const button = target?.closest("button[data-do]");
  const code = button?.closest(".code")?.querySelector("code")?.textContent ?? "";
  if (button?.getAttribute("data-do") === "insert") tell({ kind: "insert", text: code });
  if (button?.getAttribute("data-do") === "copy") {
    void navigator.clipboard.writeText(code).then(() => {
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1_500);
    });
  }
}
