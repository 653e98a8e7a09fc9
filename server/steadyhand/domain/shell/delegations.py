"""Words by which a program that has work of its own starts another one: `git bisect run`, `make SHELL=`, `tar -I`.

A rule that allows `git *` does not allow them (row G2). The table has the programs that developers allow as a whole;
`starters` has those that do nothing but start others. Each subcommand and option here takes a command, or the
name or place of a program. Options may be shortened and joined, so a word counts when in doubt. Deliberately absent:
scripts of the workspace that a program runs by itself (`npm test`, `make`, hooks), and what a setting names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steadyhand.domain.shell.starters import RUNS_CODE, SHELLS, program_of
from steadyhand_values import frozen, pattern

ABBREVIATION_CHARS_MIN = 4
"""Characters of a shortened long option, with its dashes."""
_ASSIGNED = pattern(r"[A-Za-z_][A-Za-z0-9_]*[:+?!]?=.*")
_LETTERS = pattern(r"-[A-Za-z]{2,5}")
"""One-letter options that are joined."""


@frozen
class Delegation:
    """The words of one program, or of one of its subcommands."""

    subcommands: frozenset[str] = frozenset()
    options: tuple[str, ...] = ()
    assigns: bool = False  # `NAME=value` may name a program


def _row(subcommands: str = "", options: str = "", assigns: bool = False) -> Delegation:
    return Delegation(frozenset(subcommands.split()), tuple(options.split()), assigns)


_PACKAGES = _row("exec x dlx explore create init edit config set", "-c --call --script-shell --shell --node-options")
_ENVIRONMENTS = _row("run shell exec x tool", "")
_TRANSFER = _row("", "--upload-pack --exec --receive-pack")
_COMPILER = _row("", "-wrapper -B -specs --specs -fplugin -fuse-ld -Xlinker")

DELEGATIONS: Mapping[str, Delegation] = {
    "bun": _PACKAGES,
    "bundle": _ENVIRONMENTS,
    "cargo": _row("", "--config"),
    "cc": _COMPILER,
    "clang": _COMPILER,
    "cmake": _row("", "-E -P"),
    "conda": _ENVIRONMENTS,
    "direnv": _ENVIRONMENTS,
    "fd": _row("", "-x -X --exec --exec-batch"),
    "g++": _COMPILER,
    "gcc": _COMPILER,
    "gdb": _row("", "-ex -x -iex --eval-command --command --args -args"),
    "git": _row(
        "config credential daemon difftool filter-branch for-each-repo help hook instaweb mergetool"
        " send-email shell web--browse",
        "",
    ),
    "git archive": _row("", "--exec --remote"),
    "git bisect": _row("run"),
    "git clone": _row("", "-u -c --upload-pack --config --template"),
    "git fetch": _TRANSFER,
    "git grep": _row("", "-O --open-files-in-pager"),
    "git init": _row("", "--template"),
    "git ls-remote": _TRANSFER,
    "git pull": _TRANSFER,
    "git push": _TRANSFER,
    "git rebase": _row("", "-x --exec"),
    "git submodule": _row("foreach"),
    "gmake": _row("", "--eval", assigns=True),
    "go": _row("", "-exec -toolexec -vettool --exec --toolexec --vettool"),
    "hatch": _ENVIRONMENTS,
    "just": _row("", "--shell --shell-arg --set --chooser", assigns=True),
    "make": _row("", "--eval", assigns=True),
    "man": _row("", "-P -H -X --pager --html"),
    "mise": _ENVIRONMENTS,
    "nix": _row("run develop shell", ""),
    "npm": _PACKAGES,
    "pdm": _ENVIRONMENTS,
    "pipenv": _ENVIRONMENTS,
    "pnpm": _PACKAGES,
    "poetry": _ENVIRONMENTS,
    "rg": _row("", "--pre --hostname-bin"),
    "rsync": _row("", "-e --rsh --rsync-path"),
    "rye": _ENVIRONMENTS,
    "scp": _row("", "-S -o -D -F"),
    "sftp": _row("", "-S -o -D -F"),
    "sort": _row("", "--compress-program"),
    "tar": _row(
        "",
        "-I -F --use-compress-program --to-command --checkpoint-action --info-script --new-volume-script --rsh-command"
        " --rmt-command",
    ),
    "uv": _ENVIRONMENTS,
    "wget": _row("", "-e --execute --use-askpass"),
    "yarn": _PACKAGES,
    "zip": _row("", "-TT --unzip-command"),
}
"""Program, or program with its subcommand → the words that start another program."""

_GIT_BEFORE = ("-c", "--config-env", "--exec-path", "-p", "--paginate")
_GIT_VALUED = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"})


def delegating_words(words: Sequence[str]) -> frozenset[str]:
    """Return the words of a command that make its program start another one."""
    found: set[str] = set()
    program = program_of(words[0])
    at = 1
    if program == "git":
        while at < len(words) and words[at].startswith("-"):
            if _is_option(words[at], _GIT_BEFORE):
                found.add(words[at])
            at += 2 if words[at] in _GIT_VALUED else 1
    for name, begin in ((program, at), (" ".join((program, *words[at : at + 1])), at + 1)):
        if (row := DELEGATIONS.get(name)) is not None:
            found.update(word for word in words[begin:] if _starts_another(row, word))
            found.update(row.subcommands.intersection(_first_operands(words[begin:])))
    found.update(word for word in words[1:] if _is_program(word))
    return frozenset(found)


def _starts_another(row: Delegation, word: str) -> bool:
    return (row.assigns and _ASSIGNED.fullmatch(word) is not None) or _is_option(word, row.options)


def _first_operands(words: Sequence[str]) -> Iterator[str]:
    """Yield what may be the first operand: one behind an option may be that option's value."""
    for place, word in enumerate(words):
        if not word.startswith("-"):
            yield word
            if place == 0 or not words[place - 1].startswith("-") or "=" in words[place - 1]:
                return


def _is_option(word: str, options: Sequence[str]) -> bool:
    name = word.partition("=")[0]
    for option in options:
        if name == option:
            return True
        if option.startswith("--"):
            if len(name) >= ABBREVIATION_CHARS_MIN and option.startswith(name):
                return True
        elif len(option) == 2 and (word.startswith(option) or (_LETTERS.fullmatch(word) and option[1] in word)):
            return True
    return False


def _is_program(word: str) -> bool:
    """Whether a word, or the value joined to it, is a shell or an interpreter, or tells git to run a command."""
    if "ext::" in word:
        return True
    names = {program_of(word), program_of(word.rpartition("=")[2])}
    return any(name in SHELLS or RUNS_CODE.fullmatch(name) for name in names)
