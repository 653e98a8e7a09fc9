/**
 * Answers of a model that try to leave the chat: the table is tests/hostile/markdown.json, one attempt a line.
 *
 * What the chat would show is parsed as a browser parses it, with scripts on. Whatever an attempt must not do, nothing
 * runs, no element or attribute outside of the list is there, and nothing is loaded.
 */
import "./dom";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { JSDOM } from "jsdom";
import { safeHtml } from "../src/views/chat/markdown";

interface Attempt {
  readonly name: string;
  /** A text and how often it stands before `text`. */
  readonly before?: readonly [string, number];
  readonly text: string;
  /** What must hold: nothing runs and nothing is loaded, as for all; or besides, only text or no link is shown. */
  readonly must: "nothing runs" | "no image" | "text alone" | "no link";
}

const ATTRIBUTES = ["href", "class", "data-action", "type", "start", "aria-label"];
const OWN_ACTIONS = ["copy", "insert"];
const LOADS = "img,script,iframe,object,embed,link,style,video,audio,source,svg,math,form,input,base,meta,template";
const LINK_PROTOCOLS = ["http:", "https:", "mailto:"];
const TEXT_ELEMENTS = ["P", "BR", "STRONG", "EM"];
const RENDER_MAX_MS = 10_000;

const table = path.join(process.cwd(), "..", "tests", "hostile", "markdown.json");
const attempts = JSON.parse(fs.readFileSync(table, "utf8")) as readonly Attempt[];

test("hostile Markdown: the table has at least 60 attempts with names of their own", () => {
  assert.ok(attempts.length >= 60);
  assert.equal(new Set(attempts.map(({ name }) => name)).size, attempts.length);
});

for (const { name, before, text, must } of attempts) {
  test(`hostile Markdown: ${name} (${must})`, () => {
    const begun = Date.now();
    const html = safeHtml((before === undefined ? "" : before[0].repeat(before[1])) + text);
    assert.ok(Date.now() - begun < RENDER_MAX_MS);
    const page = new JSDOM(`<body>${html}</body>`, { runScripts: "dangerously" });
    const body = page.window.document.body;
    assert.equal((page.window as unknown as { ran?: boolean }).ran, undefined, "something ran");
    assert.equal(body.querySelector(LOADS), null, html.slice(0, 500));
    for (const element of body.querySelectorAll("*")) checkElement(element);
    if (must === "text alone") assert.deepEqual(elementsOf(body, TEXT_ELEMENTS), []);
    if (must === "no link") assert.equal(body.querySelector("a[href]"), null);
    page.window.close();
  });
}

function checkElement(element: Element): void {
  for (const { name, value } of element.attributes) {
    assert.ok(ATTRIBUTES.includes(name), `${element.tagName} has ${name}`);
    if (name === "href") assert.ok(LINK_PROTOCOLS.includes(new URL(value, "https://chat.example/").protocol), value);
    if (name === "data-action") assert.ok(OWN_ACTIONS.includes(value) && element.closest(".code-bar") !== null);
  }
}

/** The names of the elements that are not among these. */
function elementsOf(body: Element, allowed: readonly string[]): string[] {
  return [...body.querySelectorAll("*")].map(({ tagName }) => tagName).filter((name) => !allowed.includes(name));
}
