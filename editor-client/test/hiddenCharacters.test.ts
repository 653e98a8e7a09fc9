/** Hidden characters of arguments, replies and chat text are shown (row O7), as the server shows them elsewhere. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { showHidden, showHiddenInValue } from "../src/hiddenCharacters";

interface Table {
  readonly stays: readonly string[];
  readonly shown: readonly (readonly [string, string])[];
}

const TABLE = JSON.parse(readFileSync("../tests/domain/text/hidden_characters.json", "utf8")) as Table;

test("a text that can be seen stays as it is", () => {
  for (const text of TABLE.stays) assert.equal(showHidden(text), text);
});

test("a hidden character is shown by its code, as in the server", () => {
  for (const [text, shown] of TABLE.shown) assert.equal(showHidden(text), shown);
});

test("a value is on one line", () => {
  assert.equal(showHiddenInValue("a\nb\tc\r\n"), "a\\nb\\tc\\u000d\\n");
});

test("no hidden character of the list is left, and a second pass changes nothing", () => {
  const ranges = [
    [0x00, 0x08],
    [0x0b, 0x1f],
    [0x7f, 0x9f],
    [0x61c, 0x61c],
    [0x200b, 0x200f],
    [0x2028, 0x202e],
    [0x2060, 0x2069],
    [0xfeff, 0xfeff],
    [0xfff9, 0xfffb],
    [0xd800, 0xdbff],
    [0xe0000, 0xe007f],
  ] as const;
  for (const [first, last] of ranges) {
    for (let code = first; code <= last; code += 1) {
      const char = String.fromCodePoint(code);
      const shown = showHidden(`a${char}b`);
      assert.ok(!shown.includes(char), code.toString(16));
      assert.equal(showHidden(shown), shown);
    }
  }
});
