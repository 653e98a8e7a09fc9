/** Names, drafts and texts of what is attached (row G5; case 77). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Problem } from "../src/attachments";
import { EMPTY_DRAFT, attachmentName, fitted, problemsText, problems_listed_max, restoredDraft, storedDraft, withAttachment } from "../src/attachments";
import type { Attachment } from "../src/protocol";

const range = { start: { line: 1, character: 4 }, end: { line: 3, character: 0 } };
const ALL: readonly Attachment[] = [
  { kind: "file", path: "src/a.py" },
  { kind: "file", path: "src/a.py", range },
  { kind: "selection", uri: "file:///w/b%20c.py", range, text: "x" },
  { kind: "problems" },
  { kind: "problems", uri: "file:///w/a.py" },
  { kind: "text", name: "problems", text: "x" },
];

test("each kind has a name a person can tell it by; a name that is no proper escape is shown as it is", () => {
  assert.deepEqual(ALL.map(attachmentName), ["src/a.py", "src/a.py:2–3", "b c.py:2–3", "problems", "problems in a.py", "problems"]);
  assert.equal(attachmentName({ kind: "problems", uri: "untitled:%zz" }), "problems in untitled:%zz");
  const line = { start: { line: 4, character: 0 }, end: { line: 4, character: 9 } };
  assert.equal(attachmentName({ kind: "file", path: "a", range: line }), "a:5");
});

test("attached again, it replaces the one of its name and stands last", () => {
  const later: Attachment = { kind: "selection", uri: "file:///w/b%20c.py", range, text: "y" };
  assert.deepEqual(withAttachment(ALL.slice(0, 3), later), [...ALL.slice(0, 2), later]);
});

test("a draft is stored and read back whole, as an older version stored it too; what is malformed is left out", () => {
  for (const draft of [{ text: "half", attachments: [] }, { text: "", attachments: ALL }, EMPTY_DRAFT]) {
    assert.deepEqual(restoredDraft(JSON.parse(JSON.stringify(storedDraft(draft) ?? null))), draft);
  }
  assert.equal(storedDraft(EMPTY_DRAFT), undefined);
  assert.deepEqual(restoredDraft("text alone"), { text: "text alone", attachments: [] });
  const odd = [ALL[0], { kind: "file" }, { kind: "selection", uri: "x", text: "x", range: {} }, { kind: "image" }, null, 1];
  assert.deepEqual(restoredDraft({ text: 1, attachments: odd }), { text: "", attachments: [ALL[0]] });
  assert.deepEqual(restoredDraft({ text: "x", attachments: "no list" }), { text: "x", attachments: [] });
});

test("a text is cut at the bound, between two characters, and only if it has to be", () => {
  assert.equal(fitted("abc", 3), "abc");
  assert.equal(fitted("abcd", 3), "abc");
  assert.equal(fitted("aé", 2), "a");
  assert.equal(fitted("a😀b", 5), "a😀");
  assert.equal(fitted("a😀b", 4), "a");
});

test("problems: the gravest first, one a line, of those beyond the bound the number", () => {
  const problem = (severity: Problem["severity"], path: string, line: number, message: string): Problem => ({ path, line, column: 1, severity, message });
  const text = problemsText([
    problem("warning", "a.py", 2, "unused\n  name"),
    { ...problem("error", "b.py", 9, "undefined"), source: "pyright" },
    problem("error", "a.py", 3, "syntax"),
  ]);
  assert.equal(text, "a.py:3:1: error: syntax\nb.py:9:1: error: undefined [pyright]\na.py:2:1: warning: unused name");
  const many = Array.from({ length: problems_listed_max + 2 }, (_, at) => problem("hint", "a.py", at + 1, "x"));
  const lines = problemsText(many).split("\n");
  assert.deepEqual([lines.length, lines.at(-1)], [problems_listed_max + 1, "and 2 more"]);
});
