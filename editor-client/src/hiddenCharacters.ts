/**
 * Characters that nobody sees, or that change what stands around them, shown as `\u202e`. The server does the same for
 * titles, questions and file names (`domain/text/hidden_characters.py`); arguments, replies and chat text come as they
 * are. Joiners stay inside an emoji and between letters of a script that needs them, tags in the emoji of a flag.
 */

const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
const UNSEEN =
  "\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb\\u{d800}-\\u{dfff}\\u{e0000}-\\u{e007f}";
const HIDDEN = new RegExp(`[${CONTROLS}${UNSEEN}]`, "gu");
const HIDDEN_IN_VALUE = new RegExp(`[\\t\\n${CONTROLS}${UNSEEN}]`, "gu");
const FLAG = /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f}/gu;
const BEFORE_JOINER = /\p{Extended_Pictographic}\ufe0f?[\u{1f3fb}-\u{1f3ff}]?$/u;
const PICTURE = /^\p{Extended_Pictographic}/u;
const JOINING_SCRIPTS = [
  "\\u0600-\\u08ff\\u0900-\\u0dff\\u0f00-\\u0fff\\u1000-\\u109f\\u1780-\\u18af\\u1900-\\u1aaf\\u1b00-\\u1c4f",
  "\\ua840-\\ua87f\\ua8e0-\\ua8ff\\ua900-\\uabff\\ufb50-\\ufdff\\ufe70-\\ufefe\\u{10a00}-\\u{10aff}",
  "\\u{10d00}-\\u{10d3f}\\u{11000}-\\u{11fff}\\u{1e900}-\\u{1e95f}",
].join("");
const JOINING_LETTER = `(?=[${JOINING_SCRIPTS}])[\\p{L}\\p{M}]`;
const ENDS_WITH_LETTER = new RegExp(`${JOINING_LETTER}$`, "u");
const BEGINS_WITH_LETTER = new RegExp(`^${JOINING_LETTER}`, "u");
const CONTEXT_CHARS = 6; // of a sequence before a joiner: a picture, a selector and a skin tone, in UTF-16

/** A text of lines in which every character can be seen. */
export function showHidden(text: string): string {
  return shown(HIDDEN, text);
}

/** A value, such as a command or a name, on one line in which every character can be seen. */
export function showHiddenInValue(value: string): string {
  return shown(HIDDEN_IN_VALUE, value);
}

function shown(hidden: RegExp, text: string): string {
  if (text.search(hidden) < 0) return text;
  const flags = [...text.matchAll(FLAG)].map(({ index, 0: flag }) => [index, index + flag.length] as const);
  return text.replace(hidden, (char: string, at: number) => {
    if ((char === "\u200c" || char === "\u200d") && isJoiner(text, at)) return char;
    if (flags.some(([start, end]) => start < at && at < end)) return char;
    if (char === "\n") return "\\n";
    return char === "\t" ? "\\t" : escapeCharacter(char);
  });
}

function escapeCharacter(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Whether the joiner belongs to an emoji, or stands between letters of a script that needs it. */
function isJoiner(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - CONTEXT_CHARS), at);
  const behind = text.slice(at + 1, at + 3);
  if (text[at] === "\u200d" && PICTURE.test(behind) && BEFORE_JOINER.test(before)) return true;
  return ENDS_WITH_LETTER.test(before) && BEGINS_WITH_LETTER.test(behind);
}
