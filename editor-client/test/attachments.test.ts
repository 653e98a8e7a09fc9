/** Names, lists and texts of attachments (row G5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attachment } from "../src/protocol";
import { attachmentName, truncateText, withAttachment } from "../src/store/attachments";

const RANGE = { start: { line: 1, character: 4 }, end: { line: 3, character: 0 } };
const SELECTION: Attachment = { kind: "selection", uri: "file:///w/b%20c.py", range: RANGE, text: "x" };

test("each kind of attachment has a name; a file name that is no valid escape is shown as it is", () => {
  const named: readonly (readonly [string, Attachment])[] = [
    ["src/a.py", { kind: "file", path: "src/a.py" }],
    ["src/a.py:2–3", { kind: "file", path: "src/a.py", range: RANGE }],
    ["b c.py:2–3", SELECTION],
    ["problems", { kind: "problems" }],
    ["problems in a.py", { kind: "problems", uri: "file:///w/a.py" }],
    ["problems", { kind: "text", name: "problems", text: "x" }],
    ["problems in untitled:%zz", { kind: "problems", uri: "untitled:%zz" }],
    ["a:5", { kind: "file", path: "a", range: { start: { line: 4, character: 0 }, end: { line: 4, character: 9 } } }],
  ];
  assert.deepEqual(
    named.map(([, attachment]) => attachmentName(attachment)),
    named.map(([name]) => name),
  );
});

test("attaching the same again replaces the earlier one and puts it last", () => {
  const before: readonly Attachment[] = [
    { kind: "file", path: "src/a.py" },
    SELECTION,
    { kind: "file", path: "src/a.py", range: RANGE },
  ];
  const later: Attachment = { ...SELECTION, text: "y" };
  assert.deepEqual(withAttachment(before, later), [before[0], before[2], later]);
});

test("a text above the limit is cut between two characters; a shorter one stays as it is", () => {
  assert.equal(truncateText("abc", 3), "abc");
  assert.equal(truncateText("abcd", 3), "abc");
  assert.equal(truncateText("aé", 2), "a");
  assert.equal(truncateText("a😀b", 5), "a😀");
  assert.equal(truncateText("a😀b", 4), "a");
});
