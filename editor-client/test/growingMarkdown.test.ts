/** Markdown of a growing answer: each delta costs the same, and the end looks like the whole (issue 17). */
import "./dom";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { showHidden } from "../src/hiddenCharacters";
import { GrowingMarkdown } from "../src/views/chat/growingMarkdown";
import { safeHtml } from "../src/views/chat/markdown";

const TEXTS: readonly string[] = [
  "# Title\n\nA paragraph\nof two lines.\n\n- one\n\n  more of one\n- two\n\nText behind the list.\n",
  "Before\n\n```ts\nconst a = `x`;\n\n# no title\n~~~\n```\n\nBehind\n\n~~~\nunclosed\n",
  "````md\n```\ninside\n```\n````\ntext right behind\n---\n***\nmore\n",
  "> quote\n> ```\n> code in it\n\nout\n\n1. one\n   ```\n   code\n   ```\n2. two\n\n```\nx\n```\n```\ny\n```\n",
  [
    "a | b\n--- | ---\n1 | 2\n\ntext\nx | y\n--- | ---\n3 | 4\n\n",
    "    indented code\n\n    more\n\n[x]: https://a.example\n\nsee [x]\n",
  ].join(""),
  "Hidden \u202e and \u{1f469}\u200d\u{1f4bb}\n\n```\n\u202e in code\n<b>&amp;\n```\n* * *\nend",
];

const PAGE = new JSDOM("");

/** The elements and texts of some HTML, without the wrapping of pieces. */
function shape(html: string): string {
  const body = PAGE.window.document.body;
  body.innerHTML = html;
  return body.innerHTML.replace(/\s*\n\s*/g, "\n").trim();
}

function htmlOf(growing: GrowingMarkdown, text: string): string {
  return growing
    .update(text)
    .map((piece) =>
      piece.kind === "html" ? piece.html : safeHtml(`~~~~~~~~~${piece.language}\n${piece.parts.join("")}`),
    )
    .join("");
}

for (const [number, text] of TEXTS.entries()) {
  test(`growing Markdown: text ${number + 1} is at each length what the whole would be`, () => {
    const growing = new GrowingMarkdown();
    for (let length = 1; length <= text.length; length += 1) {
      const shown = text.slice(0, length);
      assert.equal(shape(htmlOf(growing, shown)), shape(safeHtml(showHidden(shown))), JSON.stringify(shown));
    }
  });
}

test("growing Markdown: a text that does not go on is made again", () => {
  const growing = new GrowingMarkdown();
  htmlOf(growing, "One\n\nTwo\n\n```\ncode\n");
  assert.equal(shape(htmlOf(growing, "Other\n\ntext\n")), shape(safeHtml("Other\n\ntext\n")));
});

const BLOCKS: Readonly<Record<string, string>> = {
  paragraphs: "A paragraph with **strong** words and `code` of about one hundred characters, as a model writes it.\n\n",
  "code in one block": "    const value = await somethingThatIsCalled(with, some, arguments);\n",
};

for (const [what, block] of Object.entries(BLOCKS)) {
  test(`growing Markdown: the work of a delta does not grow with the answer (${what})`, () => {
    const growing = new GrowingMarkdown();
    let text = what.startsWith("code") ? "```ts\n" : "";
    const costs: number[] = [];
    for (let delta = 0; delta < 4_000; delta += 1) {
      const at = (delta * 9) % block.length;
      text += (block + block).slice(at, at + 9);
      const before = growing.charactersRead;
      growing.update(text);
      costs.push(growing.charactersRead - before);
    }
    const late = Math.max(...costs.slice(-500));
    assert.ok(late <= 6 * block.length, `${late} characters for one delta`);
    const early = costs.slice(0, 500).reduce((sum, one) => sum + one);
    assert.ok(costs.slice(-500).reduce((sum, one) => sum + one) <= 1.2 * early);
  });
}

test("growing Markdown: a hostile answer that grows runs and loads nothing", () => {
  const table = path.join(process.cwd(), "..", "tests", "hostile", "markdown.json");
  const attempts = JSON.parse(fs.readFileSync(table, "utf8")) as readonly { readonly text: string }[];
  for (const { text } of attempts) {
    const growing = new GrowingMarkdown();
    for (let length = 1; length < Math.min(text.length, 300) + 149; length += 149) {
      const html = htmlOf(growing, text.slice(0, length));
      const page = new JSDOM(`<body>${html}</body>`, { runScripts: "dangerously" });
      assert.equal((page.window as unknown as { ran?: boolean }).ran, undefined, "something ran");
      assert.equal(
        page.window.document.querySelector("img,script,iframe,object,embed,link,style,svg,form"),
        null,
        html,
      );
      page.window.close();
    }
  }
});
