"""Say how the nearest place of a file differs from a text that is not in it, so that the next try can be right.

Only differences that a reader overlooks count: blanks, tabs, invisible characters, quotation marks, dashes, combining
marks, line ends. Without them the text must be there exactly. Nothing is ever changed at such a place.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Literal

from steadyhand_values import pattern

COMPARED_CHARS_MAX = 4 * 1024 * 1024
"""A longer file is not searched for a near place."""
SHOWN_CHARS_MAX = 200
"""Of each of the two lines."""

Kind = Literal["blanks", "invisible characters", "quotation marks", "dashes", "combining marks"]
KINDS: tuple[Kind, ...] = ("blanks", "invisible characters", "quotation marks", "dashes", "combining marks")

_BLANKS = " \t\f\v\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
_INVISIBLE = "\xad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_QUOTES = "'\"`\xb4\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\xab\xbb\u2033"
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_TABLES: Mapping[Kind, Mapping[int, str | None]] = {
    "blanks": dict.fromkeys(map(ord, _BLANKS)),
    "invisible characters": dict.fromkeys(map(ord, _INVISIBLE)),
    "quotation marks": dict.fromkeys(map(ord, _QUOTES), "'"),
    "dashes": dict.fromkeys(map(ord, _DASHES), "-"),
    "combining marks": {},
}
_HIDDEN = pattern(f"[{_BLANKS[4:]}{_INVISIBLE}\u0300-\u036f]")
_ENDS = pattern("\n|\r")


def nearest_difference(text: str, old: str) -> str | None:
    """Return a sentence about the first place that differs only in what readers overlook; None: there is none.

    Both are LF views: a CR in `text` is a line end of its own kind."""
    if len(text) > COMPARED_CHARS_MAX or len(old) > COMPARED_CHARS_MAX:
        return None
    wanted = _folded(old.replace("\r", "\n"), KINDS)
    searched = _folded(text.replace("\r", "\n"), KINDS)
    before = len(wanted) - len(wanted.lstrip("\n"))
    core = wanted.strip("\n")
    if not core:
        return None
    at = searched.find(wanted)
    if at < 0:
        at = searched.find(core)
        old = old.replace("\r", "\n").strip("\n")
        before = 0
    if at < 0:
        return None
    first = searched.count("\n", 0, at + before) - before
    return _describe(text, old, first)


def _describe(text: str, old: str, first: int) -> str | None:
    """Return the sentence; `first` is the number of line ends before the place."""
    lines, ends = _ENDS.split(text), _ENDS.findall(text)
    wanted = old.replace("\r", "\n").split("\n")
    for number, meant in enumerate(wanted):
        found = lines[first + number]
        is_last = number == len(wanted) - 1
        kinds = _kinds(found, meant, number == 0, is_last)
        if kinds:
            what = _joined(["tabs" if kind == "blanks" and "\t" in found + meant else kind for kind in kinds])
            return (
                f"The old text is not in the file. Line {first + number + 1} is the nearest and differs in {what}: the"
                f" file has {_shown(found)}, the old text has {_shown(meant)}. Copy it as it stands in the file."
            )
    for number in range(len(wanted) - 1):
        if ends[first + number] == "\r" and "\r" not in old:
            return (
                f"The old text is not in the file. Line {first + number + 1} is the nearest and differs in its line"
                " end: the file has a lone CR (\\r) there, the old text has LF (\\n). Copy it as it stands in the file."
            )
    return None


def _kinds(found: str, meant: str, is_first: bool, is_last: bool) -> list[Kind]:
    """Return in what a line of the file and a line of the old text differ; none where they fit as they are."""
    if _fits(found, meant, is_first, is_last):
        return []
    different: list[Kind] = []
    for kind in KINDS:
        others = tuple(one for one in KINDS if one != kind)
        if not _fits(_folded(found, others), _folded(meant, others), is_first, is_last):
            different.append(kind)
    return different


def _fits(found: str, meant: str, is_first: bool, is_last: bool) -> bool:
    if is_first and is_last:
        return meant in found
    if is_first:
        return found.endswith(meant)
    return found.startswith(meant) if is_last else found == meant


def _folded(text: str, kinds: tuple[Kind, ...]) -> str:
    """Return the text without the differences of these kinds. It keeps its line ends."""
    table: dict[int, str | None] = {}
    for kind in kinds:
        table.update(_TABLES[kind])
    if "combining marks" in kinds and not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text.translate(table)


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _shown(line: str) -> str:
    """Return a line in quotation marks, with what nobody sees as an escape."""
    cut = line if len(line) <= SHOWN_CHARS_MAX else line[:SHOWN_CHARS_MAX] + "…"
    quoted = json.dumps(cut, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
