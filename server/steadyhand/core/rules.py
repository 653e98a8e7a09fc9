"""Rules of the settings: which calls are denied, asked about or allowed, by tool and pattern (row G2).

    write_file             every call of the tool; `*` stands for every tool
    write_file(src/**)     where its path fits, by `core.globs`; without `/` a name at any depth, `src/` what is below
    read_file(/etc/**)     an absolute path                         *(*.pem)           such a path of any tool
    run_command(make)      that very command                        run_command(npm test*)   `*` any text, `\\*` a star

A path is compared where it leads, links followed, from the workspace on. A rule that tightens errs towards fitting: one
path of several is enough, case does not count, and of a command each part that a shell may run by itself is tried. A
rule that loosens errs the other way: every path must fit, and with a `*` only one simple command does, whose words name
nothing protected and nothing outside. A rule for commands looks at words, and a program has many names: denying
`run_command` as a whole is a wall, denying some of its words is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import attrs

from steadyhand.core.globs import BadPattern, Glob, glob
from steadyhand.core.protected import asks_always
from steadyhand.core.reading_commands import plain_words
from steadyhand.core.record import Scope

rule_chars_max = 1000
rules_max = 500
"""Of one list; what stands after them is not read."""
ANY_TOOL = "*"

Subject = Literal["path", "command", "none"]
"""What a tool's pattern is compared with; none: the tool takes no pattern."""

_FORM = re.compile(r"([A-Za-z][A-Za-z0-9_]*|\*)(?:\((.*)\))?", re.DOTALL)
_PARTS = re.compile(r"[;&|<>(){}`\r\n]|\$\(")
"""What may end one command of a shell's line and begin another, quoted or not."""
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=.*", re.DOTALL)
_BEFORE_A_COMMAND = {
    *("!", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "command", "builtin"),
    *("env", "sudo", "doas", "nohup", "nice"),
}


@attrs.frozen
class BadRule:
    """`why` is a clause for a sentence on the rule."""

    why: str


@attrs.frozen
class _Paths:
    glob: Glob
    folded: Glob  # of the pattern without regard to case
    absolute: bool  # begins with `/`
    anywhere: bool  # one name, at any depth


@attrs.frozen
class _Line:
    """The texts between the stars of a pattern for commands."""

    between: tuple[str, ...]

    @property
    def exact(self) -> bool:
        return len(self.between) == 1

    def fits(self, text: str) -> bool:
        first, *middle = self.between
        if not middle:
            return text == first
        last = middle.pop()
        if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
            return False
        at, end = len(first), len(text) - len(last)
        for part in middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    def folded(self) -> _Line:
        return _Line(tuple(part.casefold() for part in self.between))


@attrs.frozen
class Rule:
    """One rule as the user wrote it. Without a pattern it is for every call of its tool."""

    text: str
    tool: str
    pattern: _Paths | _Line | None = None


@attrs.frozen
class Rules:
    """deny before ask before allow."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


NO_RULES = Rules()


@attrs.frozen
class Target:
    """What a call is about. `root`: the workspace, absolute; None where no folder is open."""

    tool: str
    scope: Scope
    root: str | None
    command: str | None


def parse(text: str, subjects: Mapping[str, Subject]) -> Rule | BadRule:
    """A rule of the settings; `subjects`: every tool there is."""
    if len(text) > rule_chars_max:
        return BadRule(f"is longer than {rule_chars_max} characters")
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return BadRule("is neither a tool nor tool(pattern)")
    tool, pattern = found[1], found[2]
    subject = "path" if tool == ANY_TOOL else subjects.get(tool)
    if subject is None:
        return BadRule("names no tool there is")
    if pattern is None:
        return Rule(found[0], tool)
    if not pattern.strip():
        return BadRule("has an empty pattern")
    match subject:
        case "none":
            return BadRule(f"has a pattern, and {tool} takes none")
        case "command":
            return Rule(found[0], tool, _line(pattern))
        case "path":
            paths = _paths(pattern)
            return BadRule(f"has a pattern that {paths.why}") if isinstance(paths, BadPattern) else _rule(found, paths)


def tightening(rules: Sequence[Rule], target: Target) -> Rule | None:
    """The first of these rules, of `ask` or `deny`, that may be meant for the call."""
    return next((rule for rule in rules if _may_fit(rule, target)), None)


def loosening(rules: Sequence[Rule], target: Target) -> Rule | None:
    """The first of these rules, of `allow`, that surely is meant for the call."""
    return next((rule for rule in rules if _surely_fits(rule, target)), None)


def _rule(found: re.Match[str], paths: _Paths) -> Rule:
    return Rule(found[0], found[1], paths)


def _line(pattern: str) -> _Line:
    parts, at = [""], 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\" and at + 1 < len(pattern):
            at += 1
            parts[-1] += pattern[at]
        elif char == "*":
            parts.append("")
        else:
            parts[-1] += char
        at += 1
    return _Line(tuple(parts))


def _paths(pattern: str) -> _Paths | BadPattern:
    absolute = pattern.startswith("/")
    whole = pattern + "**" if pattern.endswith("/") else pattern
    exact, folded = glob(whole), glob(whole.casefold())
    if isinstance(exact, BadPattern):
        return exact
    assert isinstance(folded, Glob), "case makes no pattern bad"
    return _Paths(exact, folded, absolute, "/" not in whole)


def _may_fit(rule: Rule, target: Target) -> bool:
    if rule.tool not in (ANY_TOOL, target.tool):
        return False
    match rule.pattern:
        case None:
            return True
        case _Line() as line:
            return target.command is not None and _may_run(line.folded(), target.command.casefold())
        case _Paths() as paths:
            return any(_path_fits(paths, paths.folded, path.casefold(), target.root) for path in target.scope.paths)


def _surely_fits(rule: Rule, target: Target) -> bool:
    if rule.tool not in (ANY_TOOL, target.tool):
        return False
    match rule.pattern:
        case None:
            return True
        case _Line() as line:
            return target.command is not None and line.fits(target.command) and _harmless(line, target.command)
        case _Paths() as paths:
            every = target.scope.paths
            return bool(every) and all(_path_fits(paths, paths.glob, path, target.root) for path in every)


def _path_fits(paths: _Paths, pattern: Glob, path: str, root: str | None) -> bool:
    """`path` is folded where the pattern is."""
    parts = [part for part in path.split("/") if part]
    if paths.absolute or (paths.anywhere and root is None):
        return pattern.matches(parts)
    above = [part for part in (root or "").split("/") if part]
    if pattern is paths.folded:
        above = [part.casefold() for part in above]
    inside = root is not None and parts[: len(above)] == above
    if inside:
        return pattern.matches(parts[len(above) :])
    return paths.anywhere and pattern.matches(parts)


def _may_run(line: _Line, command: str) -> bool:
    return line.fits(command) or any(line.fits(part) for part in _commands_in(command))


def _commands_in(command: str) -> Iterator[str]:
    """What a shell may run by itself, blanks made one, without what may stand before a program and without its folder.
    Too many rather than too few."""
    for part in _PARTS.split(command):
        words = part.split()
        while words and (words[0] in _BEFORE_A_COMMAND or _ASSIGNMENT.fullmatch(words[0])):
            words.pop(0)
        if words:
            yield " ".join(words)
            yield " ".join([words[0].rpartition("/")[2], *words[1:]])


def _harmless(line: _Line, command: str) -> bool:
    """Whether a star stands for nothing but words of one simple command, none of which the pattern does not name and
    that leads out of the workspace or to a protected path."""
    if line.exact:
        return True
    words = plain_words(command)
    if words is None:
        return False
    named = {word for part in line.between for word in part.split()}
    return not any(_leads_elsewhere(word) for word in words if word not in named)


def _leads_elsewhere(word: str) -> bool:
    if re.match(r"-[A-Za-z0-9]+[/~]", word):  # an option with its value: `-o/etc/x`
        return True
    for value in re.split(r"[=:,]", word):
        names = value.split("/")
        if value.startswith(("/", "~")) or ".." in names or any(asks_always(name) for name in names):
            return True
    return False
