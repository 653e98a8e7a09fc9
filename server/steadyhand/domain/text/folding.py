"""Fold names and paths so that spellings which some file system takes for one name become equal (row W12). Pure.

Folded: Unicode form NFC, letter case, and characters without width. The file systems of macOS and Windows, a folder of
ext4 that ignores case, and network shares each take some of these for equal. A fold is only for comparisons that may
err towards "the same": overlap, protected names, rules that ask or deny. What allows something compares names exactly.
Deliberately absent: finding out which file system folds, and short names of Windows such as `PROGRA~1`.
"""

from __future__ import annotations

import unicodedata

from steadyhand_values import pattern

_IGNORABLE = pattern(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Unicode's Default_Ignorable_Code_Point. Linux (fs/unicode) and HFS+ leave such characters out of a comparison."""


def fold(text: str) -> str:
    """Return a name or a path in folded form: two that a file system may take for one become equal."""
    if text.isascii():
        return text.lower()
    return compose(compose(_IGNORABLE.sub("", text)).casefold())


def foldings(text: str) -> tuple[str, ...]:
    """Return the folded form of a text that is searched for pieces, and before it the text in folded case alone.

    Composing joins a letter to the mark behind it, so a piece that ends with the letter would not be found any more."""
    return tuple(dict.fromkeys((text.casefold(), fold(text))))


def compose(text: str) -> str:
    """Return a name in Unicode form NFC."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def differ_in_form_alone(first: str, second: str) -> bool:
    """Return whether two different names are the same characters, composed in one and decomposed in the other."""
    return first != second and compose(first) == compose(second)
