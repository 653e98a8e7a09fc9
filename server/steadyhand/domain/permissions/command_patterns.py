r"""Compare the pattern of a rule for commands with what a command line may run (row G2, cases 115 and 116).

A pattern is a text in which `*` stands for any text and `\` before a character for that character. A rule that denies
or asks compares it with the line as it is written and with each command that the line may run, folded (row W12), with
and without the folder of the program. `perhaps` means that the line does not show enough: a variable may be the word,
or a program may start the command that its words name.

A rule that allows compares a pattern with `*` only with one simple command. A star behind a letter or digit ends the
word there: `git diff*` is `git diff` and `git diff x`, not `git difftool`. No word that the pattern does not name may
lead out of the workspace or to a protected or secret name, also where it is joined to an option. A command that starts
another one is covered only if the pattern names that one too, also where it starts it by a subcommand or an option of
its own (`delegations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from steadyhand.domain.permissions.protected_paths import is_protected_name
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.shell.delegations import delegating_words
from steadyhand.domain.shell.line import RunnableCommands, is_plain_text, plain_command, runnable_commands
from steadyhand.domain.shell.sink import UNKNOWN
from steadyhand.domain.shell.starters import program_of, started_by, starts_others
from steadyhand.domain.text.folding import fold, foldings
from steadyhand_values import frozen, pattern

Fit = Literal["yes", "perhaps", "no"]

STARTED_ALLOWED_MAX = 2
"""Commands that a command starts, one inside the other, that rules can allow."""

_VALUE_ENDS = pattern(r"[=:,@]")
_OPTION_BEFORE_ROOT = pattern(r"-[A-Za-z0-9]+[/~]")


@frozen
class CommandPattern:
    """A pattern for commands: the texts between its stars."""

    between: tuple[str, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the pattern has no star."""
        return len(self.between) == 1

    def fits(self, text: str) -> bool:
        """Return whether the pattern is the text."""
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

    def may_fit(self, text: str) -> bool:
        """Return whether the pattern may be the text once its unknown pieces are known. They may also be nothing."""
        before, unknown, _ = text.partition(UNKNOWN)
        if not unknown:
            return False
        behind = text.rpartition(UNKNOWN)[2]
        first, last = self.between[0], self.between[-1]
        begins, ends = first.startswith(before.rstrip(" ")), last.endswith(behind.lstrip(" "))
        if self.is_exact:
            return begins and ends
        return (begins or before.startswith(first)) and (ends or behind.endswith(last))

    def can_allow(self) -> bool:
        """Return whether a plain command could ever fit: the pattern is exact, or its texts are of plain characters."""
        return self.is_exact or all(is_plain_text(part) for part in self.between)

    def foldings(self) -> tuple[CommandPattern, ...]:
        """Return the pattern in each of its folded forms."""
        forms = (tuple(form(part) for part in self.between) for form in (str.casefold, fold))
        return tuple(CommandPattern(between) for between in dict.fromkeys(forms))


def parse_command_pattern(text: str) -> CommandPattern:
    """Parse a pattern; every text is one."""
    parts, at = [""], 0
    while at < len(text):
        char = text[at]
        if char == "\\" and at + 1 < len(text):
            at += 1
            parts[-1] += text[at]
        elif char == "*":
            parts.append("")
        else:
            parts[-1] += char
        at += 1
    return CommandPattern(tuple(parts))


@frozen
class JudgedCommand:
    """A command line, read once for all rules that may tighten. Each text stands there in each of its folded forms."""

    whole: tuple[str, ...]  # the line as it is written
    texts: tuple[str, ...]  # the commands that it runs
    possible: tuple[tuple[str, ...], ...]
    is_clear: bool


def judge_command(command: str) -> JudgedCommand:
    """Read a command line for rules that deny or ask."""
    found: RunnableCommands = runnable_commands(command)
    texts = dict.fromkeys(form for words in found.certain for text in _spellings(words) for form in foldings(text))
    possible = dict.fromkeys(tuple(map(form, words)) for words in found.possible for form in (str.casefold, fold))
    return JudgedCommand(foldings(command), tuple(texts), tuple(possible), found.is_clear)


def fit_tightening(wanted: CommandPattern, judged: JudgedCommand) -> Fit:
    """Return whether a rule that denies or asks covers the command."""
    forms = wanted.foldings()
    if any(form.fits(text) for form in forms for text in (*judged.whole, *judged.texts)):
        return "yes"
    if not judged.is_clear or any(form.may_fit(text) for form in forms for text in judged.texts):
        return "perhaps"
    return "perhaps" if any(_may_begin(form, words) for form in forms for words in judged.possible) else "no"


class LooseningView:
    """A command line, read once for all rules that allow. `patterns`: those of all rules that allow commands."""

    def __init__(self, command: str, patterns: Sequence[CommandPattern], depth: int = 0) -> None:
        self._command = command
        self._patterns = patterns
        self._depth = depth
        self._plain = plain_command(command)
        self._started = started_by(self._plain.words) if self._plain is not None else None
        self._to_be_named = self._words_to_be_named()
        self._starting = self._words_that_start()
        self._covered: dict[tuple[str, ...], bool] = {}

    def is_covered_by(self, wanted: CommandPattern) -> bool:
        """Return whether a rule surely covers the command."""
        if wanted.is_exact:
            return wanted.fits(self._command)
        plain = self._plain
        if plain is None or not wanted.fits(self._command) or not _stars_end_words(wanted, self._command):
            return False
        named = {word for part in wanted.between for word in part.split()}
        if not self._to_be_named <= named:
            return False
        begun = tuple(word for word in named if word.endswith("="))  # `make CC=*` names what it assigns
        if any(word not in named and not word.startswith(begun) for word in self._starting):
            return False
        return not starts_others(plain.words) or self._covers_started(wanted, plain.words)

    def _words_to_be_named(self) -> frozenset[str]:
        """Return the words that a pattern covers only if it has them itself."""
        if self._plain is None:
            return frozenset()
        return frozenset([*self._plain.assignments, *filter(leads_elsewhere, set(self._plain.words))])

    def _words_that_start(self) -> frozenset[str]:
        """Return the words by which a program with work of its own starts another one."""
        if self._plain is None or starts_others(self._plain.words):
            return frozenset()
        return delegating_words(self._plain.words)

    def _covers_started(self, wanted: CommandPattern, words: Sequence[str]) -> bool:
        """Return whether what the command starts is named by the pattern itself, or covered by a rule of its own."""
        started = self._started
        if started is None or not started.is_clear or started.texts:
            return False
        for inner in started.commands:
            head = " ".join(words[: len(words) - len(inner) + 1])
            is_named = UNKNOWN not in inner and wanted.between[0].startswith(head) and not starts_others(inner)
            if not is_named and not self._is_inner_covered(inner):
                return False
        return True

    def _is_inner_covered(self, inner: tuple[str, ...]) -> bool:
        if UNKNOWN in inner or self._depth >= STARTED_ALLOWED_MAX:
            return False
        if inner not in self._covered:
            view = LooseningView(" ".join(inner), self._patterns, self._depth + 1)
            self._covered[inner] = any(view.is_covered_by(one) for one in self._patterns)
        return self._covered[inner]


def leads_elsewhere(word: str) -> bool:
    """Return whether a word may lead out of the workspace, or to a protected or secret name.

    A value may be joined to an option (`-C..`), follow `=`, `:`, `,` or `@`, or stand behind a sign (`@file`, `+x`).
    """
    if _OPTION_BEFORE_ROOT.match(word):  # an option with its value: `-o/etc/x`
        return True
    return any(_is_elsewhere(value, is_joined=word[:1] in ("-", "+")) for value in _VALUE_ENDS.split(word))


def _is_elsewhere(value: str, is_joined: bool) -> bool:
    if value.startswith(("/", "~")):
        return True
    first, *others = value.split("/")
    names = [*others, *(first[at:] for at in range(len(first) if is_joined else 1))]
    return any(name == ".." or is_protected_name(name) or looks_secret([name]) for name in names)


def _spellings(words: tuple[str, ...]) -> Iterator[str]:
    yield " ".join(words)
    if "/" in words[0]:
        yield " ".join([program_of(words[0]), *words[1:]])


def _may_begin(wanted: CommandPattern, words: tuple[str, ...]) -> bool:
    """Return whether these words may be a command that the pattern covers.

    A pattern that begins with a star was compared with the whole command already.
    """
    first = wanted.between[0]
    if not first:
        return False
    program = program_of(words[0])
    if UNKNOWN not in program and not program.startswith(first.split(" ", 1)[0]):
        return False
    text = " ".join([program, *words[1:], UNKNOWN])  # the program may add words of its own
    return wanted.fits(text) or wanted.may_fit(text)


def _stars_end_words(wanted: CommandPattern, command: str) -> bool:
    """Return whether each star behind a letter or digit stands at the end of a word of the command."""
    at = 0
    for part in wanted.between[:-1]:
        found = command.find(part, at)
        at = found + len(part)
        if part and part[-1].isalnum() and at < len(command) and not command[at].isspace():
            return False
    return True
