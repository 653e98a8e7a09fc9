/** The problems of the editor as the text of an attachment (row G5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Problem } from "../src/store/problems";
import { PROBLEMS_LISTED_MAX, problemsText } from "../src/store/problems";

function makeProblem(severity: Problem["severity"], path: string, line: number, message: string): Problem {
  return { path, line, column: 1, severity, message };
}

test("problems: one a line, errors first, and the count of those above the limit", () => {
  const text = problemsText([
    makeProblem("warning", "a.py", 2, "unused\n  name"),
    { ...makeProblem("error", "b.py", 9, "undefined"), source: "pyright" },
    makeProblem("error", "a.py", 3, "syntax"),
  ]);
  const expected = [
    "a.py:3:1: error: syntax",
    "b.py:9:1: error: undefined [pyright]",
    "a.py:2:1: warning: unused name",
  ];
  assert.deepEqual(text.split("\n"), expected);
  const many = Array.from({ length: PROBLEMS_LISTED_MAX + 2 }, (_, index) => {
    return makeProblem("hint", "a.py", index + 1, "x");
  });
  const lines = problemsText(many).split("\n");
  assert.deepEqual([lines.length, lines.at(-1)], [PROBLEMS_LISTED_MAX + 1, "and 2 more"]);
});
