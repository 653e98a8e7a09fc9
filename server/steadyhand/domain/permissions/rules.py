"""Permission rules of the settings: which calls are denied, ask or are allowed, by tool and pattern (row G2).

    write_file             every call of the tool; `*` means every tool
    write_file(src/**)     if its path matches (`domain.text.globs`); without `/` a name at any depth; `src/`: all below
    read_file(/etc/**)     an absolute path                         *(*.pem)           such a path, for any tool
    run_command(make)      exactly this command                     run_command(npm test*)   `*` any text, `\\*` a star

A path is resolved through links before it is compared, relative to the workspace. A tightening rule (deny, ask) matches
when in doubt: one path of several is enough, and neither case nor Unicode form counts (row W12). A loosening rule
(allow) does not match when in doubt: every path must match as it is spelled. `domain.permissions.command_patterns`
compares commands; a rule that only may cover one asks.

A rule for commands compares words, and one program has many names. So denying `run_command` as a whole is a boundary;
denying some of its words is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from steadyhand.domain.permissions.command_patterns import (
    CommandPattern,
    JudgedCommand,
    LooseningView,
    fit_tightening,
    judge_command,
    parse_command_pattern,
)
from steadyhand.domain.permissions.protected_paths import ALWAYS_ASKED_KINDS, PROTECTED, protected_kind
from steadyhand.domain.permissions.secret_names import SECRET
from steadyhand.domain.records.record import Scope
from steadyhand.domain.text.folding import fold, foldings
from steadyhand.domain.text.globs import BadPattern, Glob, glob
from steadyhand_values import frozen, pattern

RULE_CHARS_MAX = 1000
RULES_MAX = 500
"""Rules of one list; later ones are not read."""
ANY_TOOL = "*"

Subject = Literal["path", "command", "none"]
"""What the pattern of a tool is compared with; "none": the tool takes no pattern."""

_FORM = pattern(r"([A-Za-z][A-Za-z0-9_]*|\*)(?:\((.*)\))?", re.DOTALL)


@frozen
class BadRule:
    """A rule that cannot be used. `why` is a clause that continues a sentence about the rule."""

    why: str


@frozen
class _Paths:
    glob: Glob
    folded: tuple[Glob, ...]  # the pattern in each of its folded forms
    absolute: bool  # the pattern begins with `/`
    anywhere: bool  # the pattern is one name, at any depth
    names: frozenset[str]  # of the pattern, between its `/`, folded


@frozen
class PermissionRule:
    """One rule as the user wrote it. Without a pattern it covers every call of its tool."""

    text: str
    tool: str
    pattern: _Paths | CommandPattern | None = None


@frozen
class PermissionRules:
    """The three lists. Deny comes before ask, and ask before allow."""

    allow: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()


NO_RULES = PermissionRules()


@frozen
class Target:
    """The facts of a call that a rule is compared with.

    `root`: absolute path of the session's folder; None: no folder is open. `others`: the workspace's other folders.
    """

    tool: str
    scope: Scope
    root: str | None
    command: str | None
    others: tuple[str, ...] = ()

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders from which relative patterns count (row S11)."""
        return () if self.root is None else (self.root, *self.others)


def parse_rule(text: str, subjects: Mapping[str, Subject]) -> PermissionRule | BadRule:
    """Parse a rule of the settings. `subjects` names every tool that exists."""
    if len(text) > RULE_CHARS_MAX:
        return BadRule(f"is longer than {RULE_CHARS_MAX} characters")
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return BadRule("is neither a tool nor tool(pattern)")
    tool, pattern = found[1], found[2]
    subject = "path" if tool == ANY_TOOL else subjects.get(tool)
    if subject is None:
        return BadRule("names a tool that does not exist")
    if pattern is None:
        return PermissionRule(found[0], tool)
    if not pattern.strip():
        return BadRule("has an empty pattern")
    match subject:
        case "none":
            return BadRule(f"has a pattern, and {tool} takes none")
        case "command":
            return PermissionRule(found[0], tool, parse_command_pattern(pattern))
        case "path":
            paths = _paths(pattern)
            return BadRule(f"has a pattern that {paths.why}") if isinstance(paths, BadPattern) else _rule(found, paths)


def can_allow(rule: PermissionRule) -> bool:
    """Return whether the rule could ever allow a call."""
    return not isinstance(rule.pattern, CommandPattern) or rule.pattern.can_allow()


@frozen
class Tightened:
    """The ask or deny rule that covers a call. Not `is_certain`: the command does not show whether it does."""

    rule: PermissionRule
    is_certain: bool


def find_tightening_rule(rules: Sequence[PermissionRule], target: Target) -> Tightened | None:
    """Return the first of these ask or deny rules that covers the call, else the first that may cover it."""
    wanted = [rule for rule in rules if rule.tool in (ANY_TOOL, target.tool)]
    judged: JudgedCommand | None = None
    perhaps: PermissionRule | None = None
    for rule in wanted:
        match rule.pattern:
            case None:
                return Tightened(rule, is_certain=True)
            case _Paths() as paths:
                if any(_may_fit(paths, path, target.roots) for path in target.scope.paths):
                    return Tightened(rule, is_certain=True)
            case CommandPattern() as line if target.command is not None:
                judged = judged or judge_command(target.command)
                fit = fit_tightening(line, judged)
                if fit == "yes":
                    return Tightened(rule, is_certain=True)
                if fit == "perhaps":
                    perhaps = perhaps or rule
            case _:
                pass  # a pattern for commands does not cover a call without one
    return None if perhaps is None else Tightened(perhaps, is_certain=False)


def first_loosening_rule(rules: Sequence[PermissionRule], target: Target) -> PermissionRule | None:
    """Return the first of these allow rules that certainly covers the call."""
    patterns = [rule.pattern for rule in rules if isinstance(rule.pattern, CommandPattern)]
    view = LooseningView(target.command, patterns) if target.command is not None and patterns else None
    return next((rule for rule in rules if _surely_fits(rule, target, view)), None)


def first_lifting_rule(rules: Sequence[PermissionRule], target: Target, reads: bool) -> PermissionRule | None:
    """Return the first of these allow rules that names the protected or secret names of every path of the call.

    `write_file(.github/workflows/**)` does, `write_file(**)` does not: a name is taken off the list on purpose only.
    """
    return next((rule for rule in rules if _lifts(rule, target, reads)), None)


def _lifts(rule: PermissionRule, target: Target, reads: bool) -> bool:
    if not isinstance(rule.pattern, _Paths) or not _surely_fits(rule, target, None):
        return False
    for path in target.scope.paths:
        own = _names_of(path, target.roots)
        tables = [table for table in ((SECRET,) if reads else (PROTECTED, SECRET)) if table.kind_of(own) is not None]
        if not tables or (not reads and protected_kind(own) in ALWAYS_ASKED_KINDS):
            return False
        if not all(table.is_named_by(rule.pattern.names, own) for table in tables):
            return False
    return True


def _names_of(path: str, roots: Sequence[str]) -> list[str]:
    """Return the names of a path from the outermost folder of the workspace around it on, if there is one."""
    parts = [part for part in path.split("/") if part]
    above = ([part for part in root.split("/") if part] for root in roots)
    depths = (len(names) for names in above if parts[: len(names)] == names)
    return parts[min(depths, default=0) :]


def _rule(found: re.Match[str], paths: _Paths) -> PermissionRule:
    return PermissionRule(found[0], found[1], paths)


def _paths(pattern: str) -> _Paths | BadPattern:
    if any(part in (".", "..") for part in pattern.removeprefix("./").split("/")) or pattern.startswith("~"):
        return BadPattern(
            "fits nothing: a path is compared from the workspace on, or from / on, without `.`, `..` or `~`"
        )
    absolute = pattern.startswith("/")
    whole = pattern + "**" if pattern.endswith("/") else pattern
    exact = glob(whole)
    if isinstance(exact, BadPattern):
        return exact
    folded = tuple(one for one in map(glob, foldings(whole)) if isinstance(one, Glob))  # a fold can become too long
    return _Paths(exact, folded or (exact,), absolute, "/" not in whole, frozenset(fold(whole).split("/")))


def _surely_fits(rule: PermissionRule, target: Target, view: LooseningView | None) -> bool:
    if rule.tool not in (ANY_TOOL, target.tool):
        return False
    match rule.pattern:
        case None:
            return True
        case CommandPattern() as line:
            return view is not None and view.is_covered_by(line)
        case _Paths() as paths:
            every = target.scope.paths
            return bool(every) and all(_path_fits(paths, paths.glob, path, target.roots) for path in every)


def _may_fit(paths: _Paths, path: str, roots: Sequence[str]) -> bool:
    """Return whether the path matches in one of its folded forms."""
    forms = dict.fromkeys((form(path), tuple(map(form, roots))) for form in (str.casefold, fold))
    return any(_path_fits(paths, one, *form) for form in forms for one in paths.folded)


def _path_fits(paths: _Paths, pattern: Glob, path: str, roots: Sequence[str]) -> bool:
    """Return whether the path matches, from one of the folders. `path` and `roots` are folded if the pattern is."""
    parts = [part for part in path.split("/") if part]
    if paths.absolute or (paths.anywhere and not roots):
        return pattern.matches(parts)
    above = [[part for part in root.split("/") if part] for root in roots]
    inside = [names for names in above if parts[: len(names)] == names]
    if inside:
        return any(pattern.matches(parts[len(names) :]) for names in inside)
    return paths.anywhere and pattern.matches(parts)
