/**
 * Markdown of an answer that is still being written: what can no longer change is rendered once.
 *
 * Only the last top-level block of a text can still change when more of it comes. The blocks before it become pieces of
 * about `PIECE_CHARS`, which stay as they are. A code block that is not closed yet is not parsed again: its whole lines
 * become pieces, too. A link whose definition comes later stays text until the answer is whole; then all of it is
 * rendered at once by `safeHtml`.
 */
import { showHidden } from "../../hiddenCharacters";
import { safeHtml, topLevelBlocks } from "./markdown";

const PIECE_CHARS = 8_192;
const COMPARED_CHARS = 64;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\n`]*)$/;

/** One part of an answer, in the order of the text. */
export type MarkdownPiece =
  | { readonly kind: "html"; readonly html: string }
  | { readonly kind: "code"; readonly language: string; readonly parts: readonly string[] };

/** A code block without its end. */
interface OpenFence {
  readonly marker: string;
  readonly language: string;
  readonly parts: string[];
}

export class GrowingMarkdown {
  /** How many characters were parsed or searched; tests count them. */
  charactersRead = 0;
  private closed: string[] = [];
  /** Definitions of links in the blocks that are closed. */
  private environment: { references?: object } = {};
  private text = "";
  /** Where the text begins that can still change. */
  private openAt = 0;
  /** Up to where its whole lines were parsed. */
  private parsedTo = 0;
  private fence: OpenFence | undefined;

  /** The pieces of this text, which usually begins with the text before. */
  update(text: string): readonly MarkdownPiece[] {
    if (!this.isContinuedBy(text)) this.forget();
    this.text = text;
    while (this.fence === undefined ? this.closeBlocks() : this.readFence(this.fence));
    const pieces: MarkdownPiece[] = this.closed.map((html) => ({ kind: "html", html }));
    const rest = this.text.slice(this.openAt);
    this.charactersRead += rest.length;
    if (this.fence !== undefined) {
      const { marker, language, parts } = this.fence;
      const isOver = rest === "" || isEnd(rest, marker);
      pieces.push({ kind: "code", language, parts: isOver ? [...parts] : [...parts, showHidden(rest)] });
    } else if (rest !== "") {
      pieces.push({ kind: "html", html: this.render(rest, { references: { ...this.environment.references } }) });
    }
    return pieces;
  }

  private isContinuedBy(text: string): boolean {
    const end = this.text.slice(-COMPARED_CHARS);
    return text.startsWith(end, this.text.length - end.length);
  }

  private forget(): void {
    Object.assign(this, { closed: [], environment: {}, text: "", openAt: 0, parsedTo: 0, fence: undefined });
  }

  /** Close all blocks but the last one, among those whose lines are whole. Returns whether a code block is open now. */
  private closeBlocks(): boolean {
    const end = this.text.lastIndexOf("\n") + 1;
    if (end <= this.parsedTo) return false;
    this.parsedTo = end;
    const whole = this.text.slice(this.openAt, end);
    this.charactersRead += whole.length;
    const last = topLevelBlocks(showHidden(whole)).at(-1);
    if (last === undefined) return false;
    const lines = whole.split("\n");
    const before = lines.slice(0, last.line).map((line) => `${line}\n`);
    if (before.length > 0) this.close(before.join(""));
    const opening = lines[last.line] ?? "";
    const [, marker = "", info = ""] = (last.isFence ? FENCE.exec(opening) : null) ?? [];
    if (marker === "") return false;
    this.openAt += opening.length + 1;
    this.fence = { marker, language: showHidden(info.trim().split(/\s+/)[0] ?? ""), parts: [] };
    return true;
  }

  private close(text: string): void {
    this.openAt += text.length;
    addTo(this.closed, this.render(text));
  }

  /** Take the whole lines of a code block. Returns whether its end came. */
  private readFence({ marker, language, parts }: OpenFence): boolean {
    for (let end = this.text.indexOf("\n", this.openAt); end >= 0; end = this.text.indexOf("\n", this.openAt)) {
      const line = this.text.slice(this.openAt, end);
      this.charactersRead += line.length;
      this.openAt = end + 1;
      if (isEnd(line, marker)) {
        const content = parts.join("");
        addTo(this.closed, this.render(`${marker}${language}\n${content}${marker}\n`));
        this.fence = undefined;
        this.parsedTo = this.openAt;
        return true;
      }
      addTo(parts, `${showHidden(line)}\n`);
    }
    return false;
  }

  private render(text: string, environment: object = this.environment): string {
    this.charactersRead += text.length;
    return safeHtml(showHidden(text), environment);
  }
}

/** Add a text to the last of these, or as a new one if that would become too long. */
function addTo(texts: string[], text: string): void {
  const last = texts.at(-1);
  if (last !== undefined && last.length + text.length <= PIECE_CHARS) texts[texts.length - 1] = last + text;
  else texts.push(text);
}

/** Whether this line ends a code block that begins with `marker`. */
function isEnd(line: string, marker: string): boolean {
  const [, closing = "", rest = ""] = FENCE.exec(line) ?? [];
  return closing.startsWith(marker) && rest.trim() === "";
}
