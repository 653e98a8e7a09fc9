"""Read `.editorconfig` files: which `charset` a file is said to have (row W10). Pure.

A pattern is matched in time that is bounded by its length times the length of the path; the reason why no library does
it is docs/decisions/0055-we-read-editorconfig-ourselves.md. The tests compare this module with the library of the
EditorConfig project. A line that is neither a section nor a property is passed over. Only `charset` and `root` count.

    *        any characters of one name           ?            one character of a name
    **       any characters, also /              [abc] [!abc]  one of these, none of these
    {a,b}    one of these                        {1..9}        a whole number in this range, without leading zeros
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import pairwise
from typing import TypeAlias

from steadyhand_values import frozen, pattern

PATTERN_CHARS_MAX = 1000
PATTERNS_MAX = 100
"""Patterns that the braces of one pattern may expand to; a section with more matches nothing."""
SECTIONS_MAX = 1000
"""Sections that are read of one file; later ones are skipped."""
STEPS_MAX = 1_000_000
"""Of all patterns of one file for one path; where they do not suffice, the file says nothing."""
UNSET = "unset"

_COMMENT = pattern(r"\s[;#]")
_SECTION = pattern(r"\s*\[(.+)\]\s*(?:[;#].*)?$")
_PROPERTY = pattern(r"\s*([^:=\s][^:=]*?)\s*[:=]\s*(.*)$")
_RANGE = pattern(r"([+-]?\d{1,18})\.\.([+-]?\d{1,18})$")
_NUMBER = pattern(r"[+-]?\d{1,18}")


class _Wild(Enum):
    ONE = "?"
    NAME = "*"
    ANY = "**"
    FOLDERS = "/**/"


@frozen
class _Class:
    chars: str
    ranges: tuple[tuple[str, str], ...]
    negated: bool


@frozen
class _Range:
    least: int
    most: int


_Token: TypeAlias = "str | _Wild | _Class | _Range"


@frozen
class _Section:
    pattern: str
    charset: str


class _OutOfSteps(Exception):
    """The patterns of a file take too long."""


class _Steps:
    """Counts what matching costs."""

    def __init__(self) -> None:
        self._left = STEPS_MAX

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise _OutOfSteps


@frozen
class EditorConfig:
    """One file."""

    is_root: bool
    sections: tuple[_Section, ...]  # those that set a charset

    def charset(self, path: Sequence[str]) -> str | None:
        """Return what the last fitting section says, in small letters; None: nothing. `path`: from its folder on."""
        text, steps = "/" + "/".join(path), _Steps()
        with suppress(_OutOfSteps):
            for section in reversed(self.sections):
                if any(_matches(one, text, steps) for one in _patterns(section.pattern, steps)):
                    return section.charset
        return None


def parse_editorconfig(text: str) -> EditorConfig:
    """Return what a file says. It never fails."""
    is_root = False
    section: str | None = None
    found: list[_Section] = []
    count = 0
    for line in text.removeprefix("\ufeff").split("\n"):
        if not line.strip() or line.lstrip()[0] in "#;":
            continue
        header = _SECTION.match(line)
        if header is not None:
            count += 1
            if count > SECTIONS_MAX:
                break
            section = header[1]
            continue
        member = _PROPERTY.match(line)
        if member is None:
            continue
        name, value = member[1].lower(), _COMMENT.split(member[2], maxsplit=1)[0].strip().lower()
        if section is None:
            is_root = value == "true" if name == "root" else is_root
        elif name == "charset":
            found.append(_Section(section, value))
    return EditorConfig(is_root, tuple(found))


def charset_of(files: Sequence[tuple[EditorConfig, Sequence[str]]]) -> str | None:
    """Return the charset of a file; None: nobody says one, or it is `unset`.

    `files`: the nearest first, each with the path of the file from its folder on."""
    for one, path in files:
        said = one.charset(path)
        if said is not None:
            return None if said in ("", UNSET) else said
        if one.is_root:
            break
    return None


def _patterns(section: str, steps: _Steps) -> Iterator[tuple[_Token, ...]]:
    """Yield the patterns of a section, from the folder of its file on; none if it cannot be used."""
    if len(section) > PATTERN_CHARS_MAX:
        return
    before = "" if section.startswith("/") else "/" if "/" in section else "/**/"
    for one in _without_braces(section, steps) or ():
        steps.take(len(one))
        yield _tokens(before + one)


def _without_braces(text: str, steps: _Steps) -> list[str] | None:
    """Return the pattern once for each choice of its braces; None: too many. Braces without a comma stay."""
    spelled, done = [text], [""]
    while spelled:
        left: list[str] = []
        for one in spelled:
            steps.take(len(one))
            choice = _first_choice(one)
            if choice is None:
                done.append(one)
                continue
            start, stop, choices = choice
            left += [one[:start] + each + one[stop:] for each in choices]
        if len(left) + len(done) > PATTERNS_MAX:
            return None
        spelled = left
    return done[1:]


def _first_choice(text: str) -> tuple[int, int, list[str]] | None:
    """Return the place of the first braces with a comma, and what stands between the commas."""
    starts: list[tuple[int, list[int]]] = []
    at = 0
    while at < len(text):
        match text[at]:
            case "\\":
                at += 1
            case "{":
                starts.append((at, []))
            case "," if starts:
                starts[-1][1].append(at)
            case "}" if starts:
                start, commas = starts.pop()
                if commas:
                    cuts = [start, *commas, at]
                    return start, at + 1, [text[a + 1 : b] for a, b in pairwise(cuts)]
        at += 1
    return None


def _tokens(text: str) -> tuple[_Token, ...]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        char, rest = text[at], text[at:]
        if rest.startswith("/**/"):
            found.append(_Wild.FOLDERS)
            at += 4
        elif char == "*":
            found.append(_Wild.ANY if rest.startswith("**") else _Wild.NAME)
            at += 2 if rest.startswith("**") else 1
        elif char == "?":
            found.append(_Wild.ONE)
            at += 1
        elif char == "[" and (read := _class(text, at)) is not None:
            found.append(read[0])
            at = read[1]
        elif char == "{" and (numbers := _RANGE.match(text[at + 1 : max(at, text.find("}", at))])) is not None:
            found.append(_Range(int(numbers[1]), int(numbers[2])))
            at = text.index("}", at) + 1
        else:
            escaped = char == "\\" and at + 1 < len(text)
            found.append(text[at + 1] if escaped else char)
            at += 2 if escaped else 1
    return tuple(found)


def _class(text: str, at: int) -> tuple[_Class, int] | None:
    """Return the class that begins there, and the position after it; None: the bracket is an ordinary character."""
    stop = text.find("]", at + 1)
    inner = text[at + 1 : stop]
    negated = inner[:1] in ("!", "^")
    inner = inner[negated:]
    if stop < 0 or "/" in inner or not inner:
        return None
    chars, ranges, place = "", [], 0
    while place < len(inner):
        if inner[place + 1 : place + 2] == "-" and place + 2 < len(inner):
            ranges.append((inner[place], inner[place + 2]))
            place += 3
        else:
            chars += inner[place]
            place += 1
    return _Class(chars, tuple(ranges), negated), stop + 1


def _matches(tokens: Sequence[_Token], path: str, steps: _Steps) -> bool:
    """Match the whole path. Each pair of a token and a position is tried once."""
    tried: set[tuple[int, int]] = set()
    to_try = [(0, 0)]
    while to_try:
        state = to_try.pop()
        if state in tried:
            continue
        tried.add(state)
        steps.take(1)
        token, at = state
        if token == len(tokens):
            if at == len(path):
                return True
            continue
        to_try += _next_states(tokens[token], token, at, path)
    return False


def _next_states(token: _Token, number: int, at: int, path: str) -> list[tuple[int, int]]:
    char = path[at : at + 1]
    match token:
        case _Wild.ONE:
            return [(number + 1, at + 1)] if char and char != "/" else []
        case _Wild.NAME | _Wild.ANY:
            stays = char and (char != "/" or token is _Wild.ANY)
            return [(number + 1, at), (number, at + 1)] if stays else [(number + 1, at)]
        case _Wild.FOLDERS:
            if char != "/":
                return []
            ends = [place for place in range(at + 1, len(path)) if path[place] == "/"]
            return [(number + 1, at + 1), *((number + 1, place + 1) for place in ends)]
        case _Range():
            return [(number + 1, stop) for stop in _number_ends(token, at, path)]
        case _Class():
            is_in = char in token.chars or any(first <= char <= last for first, last in token.ranges)
            return [(number + 1, at + 1)] if char and char != "/" and is_in is not token.negated else []
        case str():
            return [(number + 1, at + 1)] if char == token else []


def _number_ends(token: _Range, at: int, path: str) -> list[int]:
    """Return the positions at which a number of the range can end."""
    found = _NUMBER.match(path, at)
    if found is None:
        return []
    ends: list[int] = []
    for stop in range(at + 1, found.end() + 1):
        text = path[at:stop]
        if text[-1].isdigit() and text[0] != "0" and token.least <= int(text) <= token.most:
            ends.append(stop)
    return ends
