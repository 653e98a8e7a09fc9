"""The sentences that the practice model understands: one a line, and nothing is guessed (row P5).

    show FILE · write FILE with TEXT · append TEXT to FILE · replace A with B in FILE · move A to B · delete FILE
    find PATTERN · search TEXT · run CMD · crash · say TEXT
    together: (the lines after it go out as one batch)

Names and texts may be in double quotes with \\" \\\\ \\n, and then contain anything. A name without quotes ends at a
blank. A TEXT without quotes is the rest of the line in `write … with`, `search`, `find` and `say`; elsewhere it ends at
the first keyword that follows. A word that begins with a quote must end with one: `write f with "abc` is not
understood, because a forgotten quote is likelier than a literal one. Blanks beside a keyword belong to nothing; other
blanks at a line's end belong to an unquoted TEXT or CMD. Keywords are lower case. Lines end with LF or CRLF.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

from steadyhand_values import frozen

Verb = Literal["show", "write", "append", "replace", "move", "delete", "find", "search", "run", "crash"]


@frozen
class Sentence:
    """A sentence that makes a call. `words`: its names and texts in the order of the line."""

    line: str  # as written, without blanks at both ends
    verb: Verb
    words: tuple[str, ...]


@frozen
class Say:
    """A sentence that answers with its text and makes no call."""

    text: str


@frozen
class NotUnderstood:
    """A line that is no sentence."""

    line: str


@frozen
class Batch:
    """Sentences whose calls go out together; usually one."""

    sentences: tuple[Sentence, ...]


Step: TypeAlias = "Batch | Say | NotUnderstood"


def parse_sentences(text: str) -> tuple[Step, ...]:
    """Return the steps in order. Lines below `together:` that make no call come before their batch."""
    steps: list[Step] = []
    together: list[Sentence] | None = None
    for ended in [*text.split("\n"), ""]:
        line = ended.removesuffix("\r").lstrip(_BLANKS)
        stripped = line.rstrip(_BLANKS)
        if stripped in ("", "together:"):
            if together:
                steps.append(Batch(tuple(together)))
            together = [] if stripped else None
            continue
        read = _sentence(line)
        if not isinstance(read, Sentence):
            steps.append(read)
        elif together is None:
            steps.append(Batch((read,)))
        else:
            together.append(read)
    if together:
        steps.append(Batch(tuple(together)))
    return tuple(steps)


_BLANKS = " \t"
_Kind = Literal["name", "text", "rest", "command"]

_SHAPES: Mapping[Verb, tuple[tuple[_Kind, str], ...]] = {  # each word with the keyword that follows it
    "show": (("name", ""),),
    "write": (("name", "with"), ("rest", "")),
    "append": (("text", "to"), ("name", "")),
    "replace": (("text", "with"), ("text", "in"), ("name", "")),
    "move": (("name", "to"), ("name", "")),
    "delete": (("name", ""),),
    "find": (("rest", ""),),
    "search": (("rest", ""),),
    "run": (("command", ""),),
    "crash": (),
}


def _sentence(line: str) -> Sentence | Say | NotUnderstood:
    first = re.match("[^ \t]+", line)
    verb = first[0] if first else ""
    rest = line[len(verb) :].lstrip(_BLANKS)
    if verb == "say" and (said := _word(rest, "rest", "")) is not None:
        return Say(said[0])
    for known, shape in _SHAPES.items():
        if verb == known and (words := _words(rest, shape)) is not None:
            return Sentence(line.rstrip(_BLANKS), known, words)
    return NotUnderstood(line.rstrip(_BLANKS))


def _words(rest: str, shape: tuple[tuple[_Kind, str], ...]) -> tuple[str, ...] | None:
    words: list[str] = []
    for kind, keyword in shape:
        taken = _word(rest, kind, keyword)
        if taken is None:
            return None
        word, rest = taken
        words.append(word)
    return None if rest.strip(_BLANKS) else tuple(words)


def _word(rest: str, kind: _Kind, keyword: str) -> tuple[str, str] | None:
    """Return the word at the beginning and the text after its keyword; None if the line does not fit."""
    if kind == "command":
        return (rest, "") if rest else None
    if rest.startswith('"'):
        quoted = re.match(r'"((?:[^"\\]|\\["\\n])*)"', rest)
        if quoted is None:
            return None
        return _after(_unescape(quoted[1]), rest[quoted.end() :], keyword)
    if kind == "name":
        word = re.match("[^ \t]*", rest)
        end = word.end() if word else 0
    elif kind == "text":
        follows = re.search(rf"[ \t]{keyword}[ \t]", rest)
        end = follows.start() if follows else 0
    else:
        return (rest, "") if rest else None
    return _after(rest[:end].rstrip(_BLANKS), rest[end:], keyword) if end else None


def _after(word: str, rest: str, keyword: str) -> tuple[str, str] | None:
    """Return the word if its keyword follows or, where no keyword is expected, if only blanks follow."""
    stripped = rest.lstrip(_BLANKS)
    if not keyword:
        return None if stripped else (word, "")
    if stripped == rest or not re.match(rf"{keyword}[ \t]", stripped):
        return None
    return word, stripped[len(keyword) :].lstrip(_BLANKS)


_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def _unescape(text: str) -> str:
    return re.sub(r'\\["\\n]', lambda match: _ESCAPED[match[0]], text)
