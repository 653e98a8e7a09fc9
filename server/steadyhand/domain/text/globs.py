"""Match paths against patterns in bounded time: at most the length of the pattern times the length of the path.

    *        any characters of one name, or none           ?        one character of a name
    [a-z]    one of these, [!a-z] or [^a-z] none of these  **       as a whole name: any number of folders, or none
    {a,b}    one of these (only in `glob`)                 \\x      x itself

`glob` reads a pattern that a model asks for: without `/` it is one name at any depth, with `/` it is a path from the
folder where the search begins; a path that has the pattern's brackets, braces or backslashes as its own characters
matches too (case 117). `rules` reads an ignore file as git does: the last rule that matches decides, `!`
includes again, `/` at the end matches folders only, `/` elsewhere anchors the path to the file's own folder. Matching
is case-sensitive; a dot at the beginning of a name is an ordinary character. Deliberately absent: regular expressions,
and classes such as `[[:alpha:]]` (a rule that has one is skipped).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from steadyhand_values import frozen, pattern

PATTERN_CHARS_MAX = 1000
ALTERNATIVES_MAX = 100
"""Patterns that the braces of one pattern may expand to."""
RULES_MAX = 10_000
"""Lines that are read of one ignore file; later ones are skipped."""


@frozen
class _Class:
    """A character class, `[…]`."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool


class _Wild(Enum):
    ANY = "?"
    STAR = "*"


_Token: TypeAlias = "str | _Class | _Wild"
_Name = tuple[_Token, ...]
_WILD: Mapping[str, _Token] = {"*": _Wild.STAR, "?": _Wild.ANY}
_SPECIAL = pattern(r"[\[{\\]")
_Path = tuple["_Name | None", ...]
"""None is `**`."""


@frozen
class BadPattern:
    """A pattern that cannot be used. `why` is a clause that continues a sentence about the pattern."""

    why: str


@frozen
class Glob:
    """A parsed pattern; a path matches if one of the alternatives does."""

    alternatives: tuple[_Path, ...]

    def matches(self, path: Sequence[str]) -> bool:
        """Return whether the path matches. `path`: its names, from the folder where the search begins."""
        return any(_path_matches(one, path) for one in self.alternatives)


def glob(pattern: str) -> Glob | BadPattern:
    """Parse a pattern that a model asks for."""
    if not pattern.strip("/"):
        return BadPattern("is empty")
    if len(pattern) > PATTERN_CHARS_MAX:
        return BadPattern(f"is longer than {PATTERN_CHARS_MAX} characters")
    spelled = _without_braces(pattern)
    if spelled is None:
        return BadPattern(f"expands to more than {ALTERNATIVES_MAX} patterns")
    paths: list[_Path] = []
    for one in spelled:
        names = _names(one.removeprefix("./"), escapes=True)
        if names is None:
            return BadPattern("holds a `[` that is not closed")
        paths.append(names if "/" in one.rstrip("/") else (None, *names))
    if _SPECIAL.search(pattern) is not None:  # a name may have these characters itself: `app/[id]/page.tsx`
        literal = _literal_names(pattern.removeprefix("./"))
        paths.append(literal if "/" in pattern.rstrip("/") else (None, *literal))
    return Glob(tuple(paths))


def _literal_names(path: str) -> _Path:
    """Parse a path in which only `*` and `?` are special."""
    parts = [part for part in path.split("/") if part]
    return tuple(None if part == "**" else tuple(_WILD.get(char, char) for char in part) for part in parts)


@frozen
class _IgnoreRule:
    path: _Path
    negated: bool
    folders_only: bool


@frozen
class IgnoreRules:
    """One ignore file.

    Most rules are one plain name or `*.end`; these are looked up, only the others are tried in turn.
    """

    rules: tuple[_IgnoreRule, ...]
    by_name: Mapping[str, tuple[int, ...]]
    by_end: Mapping[str, tuple[int, ...]]
    others: tuple[int, ...]

    def ignores(self, path: Sequence[str], folder: bool) -> bool | None:
        """Return whether a path (its names from the file's own folder) is ignored; None: no rule matches it."""
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

    def without_those_for(self, folders: Sequence[Sequence[str]]) -> IgnoreRules:
        """Return these rules without those that ignore one of these folders, given as for `ignores`."""
        kept = [
            rule
            for rule in self.rules
            if rule.negated or not any(_path_matches(rule.path, folder) for folder in folders)
        ]
        return self if len(kept) == len(self.rules) else _indexed(kept)


NO_RULES = IgnoreRules((), {}, {}, ())


def rules(text: str) -> IgnoreRules:
    """Parse the text of an ignore file. Lines that are no rule are skipped."""
    return _indexed(
        [rule for line in text.split("\n")[:RULES_MAX] if (rule := _rule(line.removesuffix("\r"))) is not None]
    )


def _indexed(found: Sequence[_IgnoreRule]) -> IgnoreRules:
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
    return IgnoreRules(tuple(found), by_name, by_end, tuple(others))


def _rule(line: str) -> _IgnoreRule | None:
    # As in git, trailing blanks are dropped unless a backslash precedes them.
    line = re.sub(r"(?<!\\) +$", "", line) if not re.search(r"\\ +$", line) else re.sub(r"(\\ ) *$", r"\1", line)
    if not line or line.startswith("#") or len(line) > PATTERN_CHARS_MAX:
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
        names = (*names, (_Wild.STAR,))  # `a/**` matches what is in a, not a itself
    return _IgnoreRule(names if anchored else (None, *names), negated, folders_only)


def _plain_name(path: _Path) -> str | None:
    if len(path) == 2 and path[0] is None and path[1] is not None and all(isinstance(t, str) for t in path[1]):
        return "".join(token for token in path[1] if isinstance(token, str))
    return None


def _plain_end(path: _Path) -> str | None:
    """Return `.end` if the rule is `*.end` and the end has no further dot; else None."""
    if len(path) != 2 or path[0] is not None or path[1] is None or path[1][:2] != (_Wild.STAR, "."):
        return None
    rest = path[1][2:]
    if not rest or not all(isinstance(token, str) and token != "." for token in rest):
        return None
    return "." + "".join(token for token in rest if isinstance(token, str))


def _without_braces(pattern: str) -> list[str] | None:
    """Expand the braces; None if there are too many patterns. Braces without a comma are ordinary characters."""
    pending, done = [pattern], list[str]()
    while pending:
        one = pending.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if found is None:
            done.append(one)
        else:
            pending += [one[: found.start()] + part + one[found.end() :] for part in found[1].split(",")]
        if len(pending) + len(done) > ALTERNATIVES_MAX:
            return None
    return done


def _names(path: str, escapes: bool) -> _Path | None:
    """Parse a path; None if it has a class that is not closed or that this module does not support."""
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
    """Parse the class whose content begins at `at`; return it and the position after it."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    chars: list[str | None] = []  # None: a `-` between two characters
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
    """Match greedily and backtrack to the last `**` only.

    That is enough: what follows an earlier `**` already matched at its first possible place.
    """
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
