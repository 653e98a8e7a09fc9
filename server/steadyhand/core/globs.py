"""Patterns for paths, matched in bounded time: no pattern, however made, takes longer than its length times the name's.

    *        any characters of one name, also none         ?        one character of a name
    [a-z]    one of these, [!a-z] or [^a-z] none of them   **       as a whole name: any number of folders, also none
    {a,b}    one of these (`glob` alone)                   \\x      x itself (`rule` alone)

`glob` reads what a model asks for: a pattern without `/` is one name at any depth, one with `/` a path from where the
search begins. `rules` reads an ignore file as git does: the last rule that fits decides, `!` takes back, `/` at the end
means folders, `/` before it a path from the file's own folder. Case counts, a name's beginning with a dot does not.
Deliberately absent: classes such as `[[:alpha:]]`, whose rules are passed over, and regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeAlias

import attrs

pattern_chars_max = 1000
alternatives_max = 100
"""Patterns that braces may stand for together."""
rules_max = 10_000
"""Of one ignore file; what stands after them is not read."""


@attrs.frozen
class _Class:
    """`[…]`."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool


class _Wild(Enum):
    ANY = "?"
    STAR = "*"


_Token: TypeAlias = "str | _Class | _Wild"
_Name = tuple[_Token, ...]
_Path = tuple["_Name | None", ...]
"""None is `**`."""


@attrs.frozen
class BadPattern:
    """`why` is a clause for a sentence on the pattern."""

    why: str


@attrs.frozen
class Glob:
    """What a path may look like, in one of several ways."""

    alternatives: tuple[_Path, ...]

    def matches(self, path: Sequence[str]) -> bool:
        """`path`: the names from where the search begins."""
        return any(_path_matches(one, path) for one in self.alternatives)


def glob(pattern: str) -> Glob | BadPattern:
    """A pattern as a model asks for it."""
    if not pattern.strip("/"):
        return BadPattern("is empty")
    if len(pattern) > pattern_chars_max:
        return BadPattern(f"is longer than {pattern_chars_max} characters")
    spelled = _without_braces(pattern)
    if spelled is None:
        return BadPattern(f"stands for more than {alternatives_max} patterns")
    paths: list[_Path] = []
    for one in spelled:
        names = _names(one.removeprefix("./"), escapes=False)
        if names is None:
            return BadPattern("holds a `[` that is not closed")
        paths.append(names if "/" in one.rstrip("/") else (None, *names))
    return Glob(tuple(paths))


@attrs.frozen
class _Rule:
    path: _Path
    negated: bool
    folders_only: bool


@attrs.frozen
class Rules:
    """One ignore file. Most rules are one plain name or `*.end`; those are looked up, the rest is tried."""

    rules: tuple[_Rule, ...]
    by_name: Mapping[str, tuple[int, ...]]
    by_end: Mapping[str, tuple[int, ...]]
    others: tuple[int, ...]

    def ignores(self, path: Sequence[str], folder: bool) -> bool | None:
        """Whether a path (names from the file's own folder) is ignored; None: no rule says anything of it."""
        name = path[-1]
        dot = name.rfind(".")
        likely = (*self.by_name.get(name, ()), *(self.by_end.get(name[dot:], ()) if dot >= 0 else ()))
        usable = [at for at in likely if folder or not self.rules[at].folders_only]
        last = max(usable, default=-1)
        for at in reversed(self.others):
            if at < last:
                break
            rule = self.rules[at]
            if (folder or not rule.folders_only) and _path_matches(rule.path, path):
                last = at
                break
        return None if last < 0 else not self.rules[last].negated


NO_RULES = Rules((), {}, {}, ())


def rules(text: str) -> Rules:
    """An ignore file's text; lines that are no rule are passed over."""
    found = [rule for line in text.split("\n")[:rules_max] if (rule := _rule(line.removesuffix("\r"))) is not None]
    by_name: dict[str, tuple[int, ...]] = {}
    by_end: dict[str, tuple[int, ...]] = {}
    others: list[int] = []
    for at, rule in enumerate(found):
        name, end = _plain_name(rule.path), _plain_end(rule.path)
        if name is not None:
            by_name[name] = (*by_name.get(name, ()), at)
        elif end is not None:
            by_end[end] = (*by_end.get(end, ()), at)
        else:
            others.append(at)
    return Rules(tuple(found), by_name, by_end, tuple(others))


def _rule(line: str) -> _Rule | None:
    # A blank at the end counts only behind a backslash.
    line = re.sub(r"(?<!\\) +$", "", line) if not re.search(r"\\ +$", line) else re.sub(r"(\\ ) *$", r"\1", line)
    if not line or line.startswith("#") or len(line) > pattern_chars_max:
        return None
    negated = line.startswith("!")
    body = line[1:] if negated else line
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    names = _names(body.removeprefix("/"), escapes=True)
    if not names:
        return None
    if names[-1] is None and len(names) > 1:
        names = (*names, (_Wild.STAR,))  # `a/**` is what stands in a, not a itself
    return _Rule(names if anchored else (None, *names), negated, folders_only)


def _plain_name(path: _Path) -> str | None:
    if len(path) == 2 and path[0] is None and path[1] is not None and all(isinstance(t, str) for t in path[1]):
        return "".join(token for token in path[1] if isinstance(token, str))
    return None


def _plain_end(path: _Path) -> str | None:
    """`*.end`, where the end holds no further dot."""
    if len(path) != 2 or path[0] is not None or path[1] is None or path[1][:2] != (_Wild.STAR, "."):
        return None
    rest = path[1][2:]
    if not rest or not all(isinstance(token, str) and token != "." for token in rest):
        return None
    return "." + "".join(token for token in rest if isinstance(token, str))


def _without_braces(pattern: str) -> list[str] | None:
    """Every pattern that the braces stand for; None if they are too many. Braces that are none stand for themselves."""
    pending, done = [pattern], list[str]()
    while pending:
        one = pending.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            pending += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
        if len(pending) + len(done) > alternatives_max:
            return None
    return done


def _names(path: str, escapes: bool) -> _Path | None:
    """None for a class that is not closed, or of a kind that is not known here."""
    found: list[_Name | None] = []
    for part in path.split("/"):
        if part == "**":
            if not found or found[-1] is not None:
                found.append(None)
        elif part:
            name = _name(part, escapes)
            if name is None:
                return None
            found.append(name)
    return tuple(found)


def _name(text: str, escapes: bool) -> _Name | None:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            if tokens[-1:] != [_Wild.STAR]:
                tokens.append(_Wild.STAR)
        elif char == "?":
            tokens.append(_Wild.ANY)
        elif char == "[":
            read = _class(text, at, escapes)
            if read is None:
                return None
            one, at = read
            tokens.append(one)
        elif char == "\\" and escapes:
            if at == len(text):
                return None
            tokens.append(text[at])
            at += 1
        else:
            tokens.append(char)
    return tuple(tokens)


def _class(text: str, at: int, escapes: bool) -> tuple[_Class, int] | None:
    """The class whose inside begins at `at`, and where it ends."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    chars: list[str | None] = []  # None is a `-` between two
    first = at
    while at < len(text):
        char = text[at]
        if char == "]" and at > first:
            return _Class(_ranges(chars), negated), at + 1
        if text[at : at + 2] == "[:":
            return None
        if char == "\\" and escapes:
            at += 1
            chars.append(text[at] if at < len(text) else None)
        elif char == "-" and at > first and text[at + 1 : at + 2] not in ("]", ""):
            chars.append(None)
        else:
            chars.append(char)
        at += 1
    return None


def _ranges(chars: Sequence[str | None]) -> tuple[tuple[str, str], ...]:
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(chars):
        first = chars[at] or "-"
        if chars[at + 1 : at + 2] == [None] and at + 2 < len(chars):
            ranges.append((first, chars[at + 2] or "-"))
            at += 3
        else:
            ranges.append((first, first))
            at += 1
    return tuple(ranges)


def _path_matches(pattern: _Path, path: Sequence[str]) -> bool:
    """Greedy, going back to the last `**` alone: with anything between two of them that is enough."""
    at = place = 0
    star, resumed = -1, 0
    while place < len(path):
        part = pattern[at] if at < len(pattern) else ()
        if at < len(pattern) and part is None:
            star, resumed = at, place
            at += 1
        elif at < len(pattern) and part is not None and _name_matches(part, path[place]):
            at += 1
            place += 1
        elif star >= 0:
            resumed += 1
            at, place = star + 1, resumed
        else:
            return False
    return all(part is None for part in pattern[at:])


def _name_matches(pattern: _Name, name: str) -> bool:
    at = place = 0
    star, resumed = -1, 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == _Wild.STAR:
            star, resumed = at, place
            at += 1
        elif at < len(pattern) and _one_matches(pattern[at], name[place]):
            at += 1
            place += 1
        elif star >= 0:
            resumed += 1
            at, place = star + 1, resumed
        else:
            return False
    return all(token == _Wild.STAR for token in pattern[at:])


def _one_matches(token: _Token, char: str) -> bool:
    if isinstance(token, _Class):
        return any(first <= char <= last for first, last in token.ranges) != token.negated
    return token in (_Wild.ANY, char)
