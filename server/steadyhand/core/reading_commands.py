"""Which commands only read (row B2): a short list, by exact words.

A command is on the list if the shell does nothing with it but split it into words, and each word is known to
be harmless where it stands. Everything else needs no reason to be off the list. The characters are an allow
list: no pipes, redirections, lists, background, substitution, variables, globs (a file may be named like an
option), braces, tildes at a word's beginning, escapes, comments or line ends, quoted or not. Options are
taken exactly as listed, never abbreviated. Listed: `cat`, `ls`, `pwd`, and `git diff`, `git log`, `git
status`, with `--no-pager` before these at most.

What the text cannot say, the caller must: that the paths of `reading_paths` stay inside the workspace and are
regular files or folders (`cat` of a pipe lets its writer go on); that `READING_ENVIRONMENT` is added last;
that for git `git_trouble` is None. Not seen here: shell functions exported by the environment, and a `PATH`
with the workspace in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

import attrs

command_chars_max = 4096

_CONFIGURATION: Mapping[str, str] = {
    "core.fsmonitor": "false",  # may name a program
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "diff.ignoreSubmodules": "dirty",  # a look into a submodule starts a git with its configuration
    "diff.submodule": "short",
    "format.pretty": "medium",  # a format may ask for signatures, which a program checks
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "status.submoduleSummary": "false",
}

READING_ENVIRONMENT: Mapping[str, str] = {
    "GIT_OPTIONAL_LOCKS": "0",  # status and diff do not refresh the index on disk
    "GIT_PAGER": "cat",
    "PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",  # a partial clone fetches nothing (newer git) …
    "GIT_ALLOW_PROTOCOL": "none",  # … and could not (older git)
    "GIT_CONFIG_COUNT": str(len(_CONFIGURATION)),
    **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(_CONFIGURATION)},
    **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_CONFIGURATION.values())},
}
"""Added to the environment of a reading command; it overrides what a repository's own configuration says."""


def is_reading_command(command: str) -> bool:
    """Whether the command, run as it is by a POSIX shell, only reads (see above for what the caller adds)."""
    return _parse(command) is not None


def reading_paths(command: str) -> tuple[str, ...]:
    """What of a reading command may name a path, in order; of git, revisions too. Empty if it is not one."""
    words = _parse(command)
    return () if words is None else words.operands


def is_git(command: str) -> bool:
    """Whether it is a reading command of git, so that `git_trouble` matters."""
    words = _parse(command)
    return words is not None and words.program == "git"


def git_trouble(config: str, gitmodules: bool) -> str | None:
    """Why git is not only reading in a repository; None if it is.

    `config` is the text of the repository's own `.git/config` (the user's own and the system's are trusted),
    which must lie in the workspace; `gitmodules`: whether `.gitmodules` stands beside `.git`. Filters, diff
    drivers and included files may name programs under any name, so `READING_ENVIRONMENT` cannot switch them
    off. This errs towards trouble.
    """
    if gitmodules:
        return "The repository has submodules, whose own configuration may run programs."
    for line in re.split(r"\r\n|\n|\r", config.lower()):
        for section in re.findall(r"\[\s*([-a-z0-9]+)", line):
            if section in _PROGRAM_SECTIONS:
                return f"The repository's configuration has a section [{section}]: it may run programs."
        for key in _PROGRAM_KEYS:
            if re.search(rf"(?:^|[\s\]\ufeff]){key}\s*(?:=|$|[;#])", line):
                return f"The repository's configuration sets {key}: it may run programs or lead elsewhere."
    return None


_PROGRAM_SECTIONS = frozenset({"filter", "include", "includeif", "submodule"})
_PROGRAM_KEYS = (
    "attributesfile",
    "clean",
    "command",
    "external",
    "partialclone",
    "process",
    "promisor",
    "textconv",
    "worktree",
    "worktreeconfig",
)


@attrs.frozen
class Options:
    """What may stand after a command."""

    letters: str = ""  # one-letter options without a value; may be joined
    words: frozenset[str] = frozenset()  # exact words
    prefixes: tuple[str, ...] = ()  # `--option=` with any value
    numbered: tuple[str, ...] = ()  # what a number of at most six digits stands right behind
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
        operands_min=1,  # without one it waits for its input
    ),
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
"""The list: program and, of git, its command → what may stand behind it. docs/protocol.md says the same."""


@attrs.frozen
class _Reading:
    program: str
    operands: tuple[str, ...]


_NUMBER = re.compile("[0-9]{1,6}")
_PLAIN = frozenset(" \t'\"._-/=:,+@^~%")


def plain_words(command: str) -> list[str] | None:
    """The words of one simple command, where a shell does nothing with its text but split it; else None.

    The first may be a variable's assignment. A tilde may still stand for a home folder."""
    if len(command) > command_chars_max or not all(c in _PLAIN or (c.isalnum() and c.isprintable()) for c in command):
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
    # A shell puts a home folder for a tilde at a word's beginning, and in some shells after `=` or `:`.
    if options is None or any(re.search(r"(^|[=:])~", word) for word in words):
        return None
    operands = _operands(words[length:], options)
    if operands is None or len(operands) < options.operands_min:
        return None
    if options.operands_max is not None and len(operands) > options.operands_max:
        return None
    return _Reading(words[0], operands)


def _operands(words: Sequence[str], options: Options) -> tuple[str, ...] | None:
    """What is no option; None if an option is not on the list."""
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
