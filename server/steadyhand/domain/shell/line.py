"""Every command that a line of shell text may run: its own simple commands, and those that they start (case 115)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from steadyhand.domain.shell.reader import SimpleCommand, read_shell_line
from steadyhand.domain.shell.starters import (
    HAS_SUBCOMMANDS,
    RUNS_CODE,
    names_no_command,
    program_of,
    reads_commands,
    started_by,
    without_leading_options,
)
from steadyhand_values import define, frozen, pattern

STARTED_DEPTH_MAX = 8
"""Commands that start commands that start commands."""
POSSIBLE_MAX = 4_000
"""Places of one line where a command may begin that its program would start."""
WORDS_BEHIND_MAX = 40
"""Words behind such a place that are compared."""
COMMAND_CHARS_MAX = 4096
"""Of a command that a pattern with `*` can allow."""

_SHELL_TEXT = pattern(r"[\s;&|<>$`(){}'\"\\]")
_NAMES = pattern(r"[\w./+-]+")
_PLAIN = frozenset(" \t'\"._-/=:,+@^~%")


@frozen
class RunnableCommands:
    """What a line may run.

    `certain`: the words of each command that stands in the line or that a known starter starts. `possible`: the words
    from each place on where a command may begin, if the program in front of it starts what it names. Not `is_clear`:
    any other command may run too.
    """

    certain: tuple[tuple[str, ...], ...]
    possible: tuple[tuple[str, ...], ...]
    is_clear: bool


@define
class _Collected:
    certain: list[tuple[str, ...]] = attrs.field(factory=list)
    possible: list[tuple[str, ...]] = attrs.field(factory=list)
    is_clear: bool = True


def runnable_commands(text: str) -> RunnableCommands:
    """Return every command that the text may run. It never raises."""
    found = _Collected()
    _collect_text(text, found, 0)
    return RunnableCommands(tuple(found.certain), tuple(found.possible), found.is_clear)


def plain_command(text: str) -> SimpleCommand | None:
    """Return the one simple command that the text is, of words that every shell reads alike; None for any other text.

    It has no redirection, expansion, glob, escape, comment or line end, quoted or not.
    """
    if len(text) > COMMAND_CHARS_MAX or not is_plain_text(text):
        return None
    line = read_shell_line(text)
    if not line.is_clear or len(line.commands) != 1 or not line.commands[0].words:
        return None
    return line.commands[0]


def is_plain_text(text: str) -> bool:
    """Return whether the text has only characters of plain commands."""
    return all(char in _PLAIN or (char.isalnum() and char.isprintable()) for char in text)


def _collect_text(text: str, found: _Collected, depth: int) -> None:
    if depth > STARTED_DEPTH_MAX:
        found.is_clear = False
        return
    line = read_shell_line(text)
    found.is_clear = found.is_clear and line.is_clear
    for command in line.commands:
        if command.words:
            _collect_words(command.words, command.input_texts, found, depth)
    if any(command.words and reads_commands(command.words) for command in line.commands):
        for command in line.commands:  # what may be piped into that shell
            for piped in _texts_written(command):
                _collect_text(piped, found, depth + 1)


def _texts_written(command: SimpleCommand) -> Iterator[str]:
    """Yield the texts that a command is shown to write to its output."""
    yield from command.input_texts
    if command.words and program_of(command.words[0]) in ("echo", "printf"):
        yield " ".join(command.words[1:])


def _collect_words(words: tuple[str, ...], input_texts: Sequence[str], found: _Collected, depth: int) -> None:
    if depth > STARTED_DEPTH_MAX:
        found.is_clear = False
        return
    found.certain.append(words)
    if (plain := without_leading_options(words)) is not None:
        found.certain.append(plain)
    started = started_by(words, input_texts)
    if started is not None:
        found.is_clear = found.is_clear and (started.is_clear or bool(started.commands))
        for one in started.commands:
            _collect_words(one, (), found, depth + 1)
        for text in started.texts:
            _collect_text(text, found, depth + 1)
    if started is None or not started.is_clear:
        for one in _possible_starts(words, input_texts, depth):
            if len(found.possible) >= POSSIBLE_MAX:
                found.is_clear = False
                return
            found.possible.append(one)


def _possible_starts(words: tuple[str, ...], input_texts: Sequence[str], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the words from each place on where the program's own command may begin."""
    if names_no_command(words):
        return
    program = program_of(words[0])
    runs_code = RUNS_CODE.fullmatch(program) is not None
    own = _subcommand_place(words) if program in HAS_SUBCOMMANDS else None
    for at in range(1, len(words)):
        for piece in _pieces(words[at]):
            if _SHELL_TEXT.search(piece) is not None:
                yield from _words_in(piece, runs_code, depth)
            elif at != own:
                yield (piece, *words[at + 1 : at + 1 + WORDS_BEHIND_MAX])
    for text in input_texts:
        yield from _words_in(text, runs_code, depth)


def _subcommand_place(words: Sequence[str]) -> int | None:
    return next((at for at in range(1, len(words)) if not words[at].startswith("-")), None)


def _pieces(word: str) -> Iterator[str]:
    """Yield the parts of a word that may be a command: the word, a joined value."""
    if not word.startswith("-"):
        yield word
    elif not word.startswith("--") and len(word) > 2:
        yield word[2:]
    value = word
    while "=" in value:
        value = value.partition("=")[2]
        if value:
            yield value.lstrip("!")  # git runs the text of an alias that begins so


def _words_in(text: str, is_code: bool, depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the commands in a text that a program may give to a shell, or that code of another language may start."""
    inner = _Collected()
    _collect_text(text, inner, depth + 1)
    yield from inner.certain
    yield from inner.possible
    if is_code:
        names = _NAMES.findall(text)
        for at in range(len(names)):
            yield tuple(names[at : at + 1 + WORDS_BEHIND_MAX])
