"""Decide which commands only read (row B2): a short list, compared word by word.

A command is on the list if a shell only splits it into words, and each word is known to be harmless at its position.
Everything else is off the list without a reason. The allowed characters are listed too: no pipes, redirections, lists,
background, substitution, variables, globs (a file may be named like an option), braces, tildes at a word's beginning,
escapes, comments or line ends, quoted or not. Options must be spelled as listed, never abbreviated. The list has `cat`,
`head`, `tail`, `wc`, `ls`, `pwd`, `git diff`, `git log` and `git status`; only `--no-pager` may precede the subcommand
of git. The plainest forms of the first six are answered by the server itself (`ANSWERED_FORMS`); all else of the list
runs confined for reading, and `pinned_words` names the repository for git (row O2).

The caller must check what the text cannot show: the paths of `reading_paths` are inside the workspace and are regular
files or folders (`cat` of a pipe lets its writer continue); for git, what `git_reading` says. Not detected: shell
functions that the environment exports, and a `PATH` that contains the workspace.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from steadyhand_values import frozen, pattern

COMMAND_CHARS_MAX = 4096


def is_reading_command(command: str) -> bool:
    """Return whether a POSIX shell that runs this command only reads (see above for what the caller must check)."""
    return _parse(command) is not None


def reading_paths(command: str) -> tuple[str, ...]:
    """Return the words that may name a path, in order; for git these include revisions. Empty for other commands."""
    words = _parse(command)
    return () if words is None else words.operands


def reading_program(command: str) -> str:
    """Return the name of the program of a reading command; empty for other commands."""
    words = _parse(command)
    return "" if words is None else words.program


def is_git(command: str) -> bool:
    """Return whether it is a reading command of git, so that `git_trouble` applies."""
    words = _parse(command)
    return words is not None and words.program == "git"


@frozen
class Options:
    """The words that may follow a command."""

    letters: str = ""  # one-letter options without a value; may be joined
    words: frozenset[str] = frozenset()  # exact words
    prefixes: tuple[str, ...] = ()  # `--option=` followed by any value
    numbered: tuple[str, ...] = ()  # a number of at most six digits follows directly
    number_follows: frozenset[str] = frozenset()  # options whose number is the next word
    operands_min: int = 0
    operands_max: int | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DIFF_WORDS = _words(
    "-p -u --patch -s --no-patch --stat --shortstat --numstat --summary --name-only --name-status "
    "--raw -z --patch-with-stat -w -b --ignore-all-space --ignore-space-change --ignore-blank-lines "
    "--ignore-space-at-eol --minimal --patience --histogram --word-diff --no-color --color=never "
    "--no-ext-diff --no-textconv -M --find-renames --no-renames -R"
)
_LOG_FORMATS = _words("oneline short medium full fuller reference raw")

LISTED: Mapping[tuple[str, ...], Options] = {
    ("cat",): Options(
        letters="AbeEnstTuv",
        words=_words(
            "--number --number-nonblank --show-all --show-ends --show-tabs --show-nonprinting --squeeze-blank"
        ),
        operands_min=1,  # without a file it reads from stdin
    ),
    ("head",): Options(numbered=("-",), number_follows=frozenset({"-n"}), operands_min=1),
    ("tail",): Options(numbered=("-",), number_follows=frozenset({"-n"}), operands_min=1),
    ("wc",): Options(letters="lwcm", operands_min=1),
    ("ls",): Options(
        letters="1aAcCdFghiklmnopqrRsStuUxX",
        words=_words(
            "--all --almost-all --classify --color=never --directory --group-directories-first "
            "--human-readable --inode --no-group --numeric-uid-gid --recursive --reverse --size"
        ),
    ),
    ("pwd",): Options(letters="LP", operands_max=0),
    ("git", "status"): Options(
        letters="sbz",
        words=_words(
            "--short --branch --show-stash --porcelain --porcelain=v1 --porcelain=v2 --long -uno "
            "-unormal -uall --untracked-files=no --untracked-files=normal --untracked-files=all "
            "--ignored --ahead-behind --no-ahead-behind --renames --no-renames"
        ),
    ),
    ("git", "diff"): Options(
        words=_DIFF_WORDS | _words("--cached --staged --merge-base --exit-code --quiet --check"),
        numbered=("-U", "--unified="),
    ),
    ("git", "log"): Options(
        words=_DIFF_WORDS
        | _words(
            "--oneline --graph --decorate --no-decorate --all --branches --tags --reverse "
            "--first-parent --merges --no-merges --abbrev-commit --follow -i --date=iso --date=short "
            "--date=relative --date=human"
        )
        | {f"--{option}={name}" for option in ("pretty", "format") for name in _LOG_FORMATS},
        prefixes=("--since=", "--after=", "--until=", "--before=", "--author=", "--grep="),
        numbered=("-", "-n", "--max-count=", "-U", "--unified="),
        number_follows=frozenset({"-n"}),
    ),
}
"""Program (for git also its subcommand) → the words that may follow. docs/protocol.md has the same table."""


ANSWERED_FORMS = ("cat FILE…", "head [-n N] FILE", "tail [-n N] FILE", "wc -l FILE…", "pwd", "ls [DIR]")
"""What the server answers itself, without a program; docs/protocol.md has the same list."""
LINES_DEFAULT = 10


@frozen
class AnsweredCommand:
    """A command in one of `ANSWERED_FORMS`. `lines`: of `head` and `tail`."""

    program: Literal["cat", "head", "tail", "wc", "pwd", "ls"]
    paths: tuple[str, ...] = ()
    lines: int = LINES_DEFAULT


def answered_command(command: str) -> AnsweredCommand | None:
    """Return the command if it has one of the forms that the server answers itself."""
    reading = _parse(command)
    words = plain_words(command)
    if reading is None or not words or "--" in words or "-" in words:
        return None
    program, *rest = words
    match program, rest:
        case ("cat", [*paths]) if not _has_options(paths):
            return AnsweredCommand("cat", tuple(paths))
        case ("wc", ["-l", *paths]) if paths and not _has_options(paths):
            return AnsweredCommand("wc", tuple(paths))
        case ("pwd", []):
            return AnsweredCommand("pwd")
        case ("ls", [*paths]) if len(paths) <= 1 and not _has_options(paths):
            return AnsweredCommand("ls", tuple(paths))
        case ("head" | "tail" as which, [path]) if not _has_options([path]):
            return AnsweredCommand("head" if which == "head" else "tail", (path,))
        case ("head" | "tail" as which, ["-n", number, path]) if not _has_options([path]):
            return AnsweredCommand("head" if which == "head" else "tail", (path,), int(number))
        case _:
            return None


def _has_options(words: Sequence[str]) -> bool:
    return any(word.startswith("-") for word in words)


def pinned_words(command: str, program: str, repository: str | None = None) -> list[str]:
    """Return the words of a reading command with the program's absolute path; for git with its repository named, so
    that it searches for none and enters no submodule. `repository`: the folder that holds `.git`, absolute.
    """
    words = plain_words(command)
    assert words, "a reading command has words"
    if repository is None:
        return [program, *words[1:]]
    pager = ["--no-pager"] if words[1] == "--no-pager" else []
    subcommand, *rest = words[1 + len(pager) :]
    return [
        program,
        *pager,
        *place_words(repository),
        subcommand,
        "--ignore-submodules=dirty",
        *_WITHOUT_PROGRAMS[subcommand],
        *rest,
    ]


def place_words(repository: str) -> list[str]:
    """Return the options of git that name a repository. `repository`: the folder that holds `.git`, absolute."""
    return [f"--git-dir={repository}/.git", f"--work-tree={repository}"]


_WITHOUT_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "status": (),
    "diff": ("--no-ext-diff", "--no-textconv"),
    "log": ("--no-ext-diff", "--no-textconv"),
}
"""Subcommand of git → options that keep it from running other programs; they follow it."""


@frozen
class _Reading:
    program: str
    operands: tuple[str, ...]


_NUMBER = pattern("[0-9]{1,6}")
_PLAIN = frozenset(" \t'\"._-/=:,+@^~%")


def plain_words(command: str) -> list[str] | None:
    """Return the words of one simple command that a shell only splits; None for any other command.

    The first word may assign a variable. A tilde at a word's beginning may still mean a home folder.
    """
    if len(command) > COMMAND_CHARS_MAX or not all(c in _PLAIN or (c.isalnum() and c.isprintable()) for c in command):
        return None
    try:
        return shlex.split(command)
    except ValueError:
        return None


def _parse(command: str) -> _Reading | None:
    words = plain_words(command)
    if words is None:
        return None
    if words[:2] == ["git", "--no-pager"]:
        del words[1]
    length = 2 if words[:1] == ["git"] else 1
    options = LISTED.get(tuple(words[:length]))
    # A shell expands a tilde to a home folder at a word's beginning, and some shells after `=` or `:` too.
    if options is None or any(re.search(r"(^|[=:])~", word) for word in words):
        return None
    operands = _operands(words[length:], options)
    if operands is None or len(operands) < options.operands_min:
        return None
    if options.operands_max is not None and len(operands) > options.operands_max:
        return None
    return _Reading(words[0], operands)


def _operands(words: Sequence[str], options: Options) -> tuple[str, ...] | None:
    """Return the words that are no options; None if an option is not listed."""
    operands: list[str] = []
    rest: Iterator[str] = iter(words)
    for word in rest:
        if word == "--":
            operands += rest
        elif not word.startswith("-"):
            operands.append(word)
        elif word in options.number_follows:
            if not _NUMBER.fullmatch(next(rest, "")):
                return None
        elif not _allowed(word, options):
            return None
    return tuple(operands)


def _allowed(word: str, options: Options) -> bool:
    if word in options.words or word.startswith(options.prefixes or "\n"):
        return True
    if any(word.startswith(start) and _NUMBER.fullmatch(word, len(start)) for start in options.numbered):
        return True
    return len(word) > 1 and all(letter in options.letters for letter in word[1:])
