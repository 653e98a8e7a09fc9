"""Which files of the work tree a command of git would replace, as questions to git itself (row O1, decision 59).

A question is a command of git that only reads and prints names, each with a NUL behind it. Together the names are at
least those that the command would write, as far as its words show it. A question that git cannot answer (a word is a
path and no revision) counts as none. Deliberately absent: what the words do not show (patches, bisecting, a
continued rebase, aliases, what a fetch brings), and commands that scripts start.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence

from steadyhand.domain.shell.line import runnable_commands
from steadyhand.domain.shell.sink import UNKNOWN
from steadyhand.domain.shell.starters import program_of, without_leading_options
from steadyhand_values import frozen

QUESTIONS_MAX = 12
"""Questions of one command line."""
_DIFF = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_STASH = "stash@{0}"


@frozen
class GitQuestion:
    """One question: the words behind `git`, and the folder to ask in, relative to that of the command line."""

    words: tuple[str, ...]
    folder: str = "."


@frozen
class _Operands:
    """The words of a subcommand that are no options, before and behind `--`."""

    before: tuple[str, ...]
    paths: tuple[str, ...]
    has_dashes: bool  # it has `--`
    options: frozenset[str]
    values: Mapping[str, str]  # of the options that take one


def git_questions(line: str) -> tuple[GitQuestion, ...]:
    """Return what to ask before a command line; empty if no command of git in it is known to replace files."""
    found: dict[GitQuestion, None] = {}
    folder, repeated = ".", None
    for words in runnable_commands(line).certain:
        if words == repeated:  # the same command, without its leading options
            continue
        repeated = without_leading_options(words)
        if words[0] == "cd" and len(words) == 2 and UNKNOWN not in words[1]:
            folder = posixpath.join(folder, words[1])
        elif program_of(words[0]) == "git":
            found.update((GitQuestion(one, inner), None) for inner, one in _questions_of(words[1:], folder))
    return tuple(found)[:QUESTIONS_MAX]


def _questions_of(words: Sequence[str], folder: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-C", "-c") and rest:
            value = rest.pop(0)
            folder = posixpath.join(folder, value) if option == "-C" else folder
        elif option not in ("--no-pager", "-P", "--no-optional-locks"):
            return  # another repository or work tree
    if not rest or any(UNKNOWN in word for word in (folder, *rest)):
        return
    rule = _SUBCOMMANDS.get(rest[0])
    if rule is not None:
        valued, ask = rule
        for question in ask(_operands_of(rest[1:], frozenset(valued.split()))):
            yield folder, question


def _operands_of(words: Sequence[str], valued: frozenset[str]) -> _Operands:
    before: list[str] = []
    options: set[str] = set()
    values: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            return _Operands(tuple(before), tuple(rest), True, frozenset(options), values)
        if word == "-" or not word.startswith("-"):
            before.append(word)
            continue
        name, equals, value = word.partition("=")
        options.add(name)
        if name in valued:
            values[name] = value if equals or not rest else rest.pop(0)
    return _Operands(tuple(before), (), False, frozenset(options), values)


def _differs(*revisions: str, paths: Sequence[str] = ()) -> tuple[str, ...]:
    """The names that differ: between two revisions, or between one (none: the index) and the work tree."""
    return (*_DIFF, "--end-of-options", *revisions, "--", *paths) if revisions else (*_DIFF, "--", *paths)


def _revision(word: str) -> str:
    return "@{-1}" if word == "-" else word


def _checkout(found: _Operands) -> Iterator[tuple[str, ...]]:
    if found.options & {"-f", "--force", "--discard-changes"}:
        yield _differs("HEAD")
    words = tuple(_revision(word) for word in found.before)
    if found.has_dashes and found.paths:
        yield _differs(*words[:1], paths=found.paths)
    elif len(words) == 1:
        yield _differs("HEAD", words[0])
        yield _differs("HEAD", f"refs/remotes/origin/{words[0]}")  # git makes a branch of that name from it
        if not found.has_dashes:
            yield _differs(paths=words)
    elif words:
        yield _differs(words[0], paths=words[1:])
        yield _differs(paths=words)


def _restore(found: _Operands) -> Iterator[tuple[str, ...]]:
    is_staged = bool(found.options & {"-S", "--staged"})
    if is_staged and not found.options & {"-W", "--worktree"}:
        return
    source = found.values.get("-s") or found.values.get("--source") or ("HEAD" if is_staged else "")
    yield _differs(*([source] if source else []), paths=(*found.before, *found.paths))


def _reset(found: _Operands) -> Iterator[tuple[str, ...]]:
    if found.options & {"--hard", "--merge", "--keep"}:
        yield _differs(found.before[0] if found.before else "HEAD")


def _merge(found: _Operands) -> Iterator[tuple[str, ...]]:
    if "--abort" in found.options:
        yield _differs("HEAD")
    if not found.options & {"--continue", "--quit"}:
        for revision in found.before or ("@{upstream}",):
            yield _differs(f"HEAD...{_revision(revision)}")


def _rebase(found: _Operands) -> Iterator[tuple[str, ...]]:
    if found.options & {"--continue", "--skip", "--quit", "--edit-todo", "--show-current-patch"}:
        return
    if "--abort" in found.options:
        yield _differs("HEAD", "ORIG_HEAD")
        return
    onto = found.values.get("--onto")
    for revision in (*([onto] if onto else []), *(found.before or ("@{upstream}",))):
        yield _differs("HEAD", _revision(revision))


def _pick(found: _Operands) -> Iterator[tuple[str, ...]]:
    for revision in found.before:
        yield _differs(revision) if ".." in revision else _differs(f"{revision}^", revision)


def _pull(found: _Operands) -> Iterator[tuple[str, ...]]:
    yield _differs("HEAD...@{upstream}")


def _stash(found: _Operands) -> Iterator[tuple[str, ...]]:
    action, *rest = found.before or ("push",)
    if action in ("pop", "apply", "branch"):
        named = rest[1:] if action == "branch" else rest
        stash = f"stash@{{{named[0]}}}" if named and named[0].isdigit() else named[0] if named else _STASH
        yield _differs(f"{stash}^", stash)
    elif action in ("push", "save"):
        yield _differs("HEAD", paths=(*found.paths, *(rest if action == "push" else ())))
        if found.options & {"-u", "--include-untracked", "-a", "--all"}:
            yield ("ls-files", "--others", "--full-name", "-z")


_Asks = Callable[[_Operands], Iterator[tuple[str, ...]]]
_CREATE = "-b -B -c -C --create --force-create --orphan --conflict"
_MESSAGES = "-m -F -s -X --strategy --strategy-option --message --file --into-name --cleanup"
_SUBCOMMANDS: Mapping[str, tuple[str, _Asks]] = {
    "checkout": (_CREATE, _checkout),
    "cherry-pick": ("-m --mainline -s -X --strategy --strategy-option --cleanup", _pick),
    "merge": (_MESSAGES, _merge),
    "pull": (_MESSAGES, _pull),
    "rebase": ("--onto -x --exec -s -X --strategy --strategy-option -C --whitespace", _rebase),
    "reset": ("", _reset),
    "restore": ("-s --source --conflict", _restore),
    "revert": ("-m --mainline -X --strategy --strategy-option --cleanup", _pick),
    "stash": ("-m --message", _stash),
    "switch": (_CREATE, _checkout),
}
"""Subcommand → its options that take a value, and its questions."""
