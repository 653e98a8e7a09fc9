r"""Show characters that a person cannot see, or that change what stands around them, as `\u202e` (row O7, case 146).

    C0, C1, U+007F            a terminal obeys them; in a text of lines LF and tab stay, in a value they are `\n`, `\t`
    U+061C, 200E, 200F, 202A to 202E, 2066 to 2069           they change the order of what is shown
    U+200B to 200D, 2028, 2029, 2060 to 2065, FEFF, FFF9 to FFFB, E0000 to E007F             nobody sees them
    lone surrogates           they are no characters

A character above U+FFFF is `\u{e0041}`. U+200C and U+200D stay between letters of a script that needs them, U+200D also
inside an emoji, and tags stay in the emoji of a flag. The result has no such character, so a second pass changes
nothing. editor-client/src/hiddenCharacters.ts does the same for what the server sends as it is.
"""

from __future__ import annotations

import re
import unicodedata

from steadyhand_values import pattern

ZWNJ, ZWJ = "\u200c", "\u200d"

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_UNSEEN = "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f"
_HIDDEN = pattern(f"[{_CONTROLS}{_UNSEEN}]")
_HIDDEN_IN_VALUE = pattern(f"[\t\n{_CONTROLS}{_UNSEEN}]")
_FLAG = pattern("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_PICTURE = pattern(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001f3fa\U0001f400-\U0001faff]"
)
_BEFORE_JOINER = pattern(rf"{_PICTURE.pattern}\ufe0f?[\U0001f3fb-\U0001f3ff]?\Z")
_JOINING_SCRIPTS = pattern(
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u0fff\u1000-\u109f\u1780-\u18af\u1900-\u1aaf\u1b00-\u1c4f\ua840-\ua87f"
    "\ua8e0-\ua8ff\ua900-\uabff\ufb50-\ufdff\ufe70-\ufefe\U00010a00-\U00010aff\U00010d00-\U00010d3f\U00011000-\U00011fff"
    "\U0001e900-\U0001e95f]"
)
"""Scripts of the Near East, India and South-East Asia, in which a joiner changes the form of letters."""
_NAMES = {"\n": "\\n", "\t": "\\t"}


def show_hidden(text: str) -> str:
    """Return a text of lines in which every character can be seen."""
    return _shown(_HIDDEN, text)


def show_hidden_in_value(value: str) -> str:
    """Return a value, such as a name or a command, on one line in which every character can be seen."""
    return _shown(_HIDDEN_IN_VALUE, value)


def _shown(hidden: re.Pattern[str], text: str) -> str:
    if hidden.search(text) is None:
        return text
    flags = [found.span() for found in _FLAG.finditer(text)]

    def shown(found: re.Match[str]) -> str:
        char, at = found[0], found.start()
        if char in (ZWNJ, ZWJ) and _is_joiner(text, at):
            return char
        if char >= "\U000e0000" and any(start < at < end for start, end in flags):
            return char
        return _NAMES.get(char) or _escape(char)

    return hidden.sub(shown, text)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\u{{{code:x}}}"


def _is_joiner(text: str, at: int) -> bool:
    """Return whether the joiner there belongs to an emoji or stands between letters of a script that needs it."""
    before, behind = text[max(0, at - 3) : at], text[at + 1 : at + 2]
    if not before or not behind:
        return False
    if text[at] == ZWJ and _PICTURE.match(behind) and _BEFORE_JOINER.search(before):
        return True
    return _is_joining_letter(before[-1]) and _is_joining_letter(behind)


def _is_joining_letter(char: str) -> bool:
    return _JOINING_SCRIPTS.match(char) is not None and unicodedata.category(char)[0] in "LM"
