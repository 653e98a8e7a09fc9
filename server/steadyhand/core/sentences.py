"""The sentences of the practice model: one a line, nothing guessed.

    show FILE · write FILE with TEXT · append TEXT to FILE · replace A with B in FILE · move A to B · delete
    FILE find PATTERN · search TEXT · run CMD · say TEXT · together: (before lines that go out as one batch)

Names and texts may stand in double quotes with \\" \\\\ \\n, and then hold anything. A name without quotes
ends at a blank. A TEXT without quotes is the rest of the line in `write … with`, `search`, `find` and `say`;
elsewhere it ends at the first keyword that follows. What begins with a quote must end with one: `write f with
"abc` is not understood, since a quote forgotten is likelier than a quote meant. Blanks beside a keyword
belong to nothing; others at a line's end do to an unquoted TEXT or CMD. Keywords are lower case. Lines end
with LF or CRLF.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

Verb = Literal["show", "write", "append", "replace", "move", "delete", "find", "search", "run"]


@attrs.frozen
class Sentence:
    """A sentence that calls. `words`: its names and texts in the order of the line."""

    line: str  # as written, without blanks at both ends
    verb: Verb
    words: tuple[str, ...]


@attrs.frozen
class Say:
    text: str


@attrs.frozen
class NotUnderstood:
    line: str


@attrs.frozen
class Batch:
    """Sentences whose calls go out together; usually one."""

    sentences: tuple[Sentence, ...]


Step: TypeAlias = "Batch | Say | NotUnderstood"


def parse(text: str) -> tuple[Step, ...]:
    """The steps in order. Lines of a `together:` that do not call stand before their batch."""
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
    return tuple(words)


def _word(rest: str, kind: _Kind, keyword: str) -> tuple[str, str] | None:
    """The word at the beginning and what follows its keyword; None if it is not as it should be."""
    if kind == "command":
        return (rest, "") if rest else None
    if rest.startswith('"'):
        quoted = re.match(r'"((?:[^"\\]|\\["\\n])*)"', rest)
        if quoted is None:
            return None
        return _after(_unescaped(quoted[1]), rest[quoted.end() :], keyword)
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
    """The word, if its keyword follows, or where there is none nothing but blanks."""
    stripped = rest.lstrip(_BLANKS)
    if not keyword:
        return None if stripped else (word, "")
    if stripped == rest or not re.match(rf"{keyword}[ \t]", stripped):
        return None
    return word, stripped[len(keyword) :].lstrip(_BLANKS)


_ESCAPED = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


def _unescaped(text: str) -> str:
    return re.sub(r'\\["\\n]', lambda match: _ESCAPED[match[0]], text)
