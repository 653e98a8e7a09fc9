/** How the window stores a draft (row D2; case 77). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Attachment } from "../src/protocol";
import { EMPTY_DRAFT, parseDraft, serializeDraft } from "../src/store/drafts";

const RANGE = { start: { line: 1, character: 4 }, end: { line: 3, character: 0 } };
const FILE: Attachment = { kind: "file", path: "src/a.py" };
const ALL: readonly Attachment[] = [
  FILE,
  { kind: "file", path: "src/a.py", range: RANGE },
  { kind: "selection", uri: "file:///w/b%20c.py", range: RANGE, text: "x" },
  { kind: "problems" },
  { kind: "problems", uri: "file:///w/a.py" },
  { kind: "text", name: "problems", text: "x" },
];

test("a stored draft is read back complete, also one of an older version; invalid parts are dropped", () => {
  for (const draft of [{ text: "half", attachments: [] }, { text: "", attachments: ALL }, EMPTY_DRAFT]) {
    assert.deepEqual(parseDraft(JSON.parse(JSON.stringify(serializeDraft(draft) ?? null))), draft);
  }
  assert.equal(serializeDraft(EMPTY_DRAFT), undefined);
  assert.deepEqual(parseDraft("text alone"), { text: "text alone", attachments: [] });
  const invalid = [{ kind: "file" }, { kind: "selection", uri: "x", text: "x", range: {} }, { kind: "image" }, null, 1];
  assert.deepEqual(parseDraft({ text: 1, attachments: [FILE, ...invalid] }), { text: "", attachments: [FILE] });
  assert.deepEqual(parseDraft({ text: "x", attachments: "no list" }), { text: "x", attachments: [] });
});
