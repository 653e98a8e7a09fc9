/**
 * Markdown to safe HTML: markdown-it without raw HTML, then DOMPurify with a short list of tags.
 *
 * The page loads nothing: an image becomes its alternative text. A code block gets the buttons Copy and Insert, whose
 * `data-action` says what a click does.
 */
import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";

const markdown = new MarkdownIt({ html: false, linkify: false, breaks: true });

markdown.renderer.rules.fence = (tokens, index) => {
  const token = tokens[index];
  return codeBlock(token?.content ?? "", token?.info.trim().split(/\s+/)[0] ?? "");
};
markdown.renderer.rules.code_block = (tokens, index) => codeBlock(tokens[index]?.content ?? "", "");
markdown.renderer.rules.image = (tokens, index) => markdown.utils.escapeHtml(tokens[index]?.content ?? "");

const ALLOWED_TAGS = [
  "a",
  "blockquote",
  "br",
  "button",
  "code",
  "del",
  "div",
  "em",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "hr",
  "li",
  "ol",
  "p",
  "pre",
  "s",
  "span",
  "strong",
  "table",
  "tbody",
  "td",
  "th",
  "thead",
  "tr",
  "ul",
];

/** `environment`: the definitions of links before this text; those in it are added. */
export function safeHtml(text: string, environment: object = {}): string {
  return DOMPurify.sanitize(markdown.render(text, environment), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "class", "data-action", "type", "start", "aria-label"],
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|[^a-z]|[a-z+.-]+(?:[^a-z+.\-:]|$))/i,
  });
}

/** The blocks that are in no other block: the line at which each begins, counted from 0. */
export function topLevelBlocks(text: string): { readonly line: number; readonly isFence: boolean }[] {
  return markdown
    .parse(text, {})
    .filter(({ level, nesting, map }) => level === 0 && nesting >= 0 && map !== null)
    .map(({ map, type }) => ({ line: map?.[0] ?? 0, isFence: type === "fence" }));
}

function codeBlock(content: string, language: string): string {
  const { escapeHtml } = markdown.utils;
  return (
    `<div class="code"><div class="code-bar"><span>${escapeHtml(language)}</span>` +
    `<button type="button" data-action="copy" aria-label="Copy code">Copy</button>` +
    `<button type="button" data-action="insert" aria-label="Insert code at the cursor">Insert</button></div>` +
    `<pre><code>${escapeHtml(content.replace(/\n$/, ""))}</code></pre></div>`
  );
}
