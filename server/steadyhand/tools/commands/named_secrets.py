"""Which files with a secret's name a command names (case 137; decision 60). Looks at names only; blocks.

A command that names such a file probably reads it, so it asks in every mode, as `read_file` does. This is no boundary:
a glob, a script or a program's own default names nothing here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.shell.line import runnable_commands
from steadyhand.domain.shell.reader import read_shell_line
from steadyhand.domain.shell.sink import UNKNOWN
from steadyhand.domain.shell.starters import RUNS_CODE, program_of
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, locate_for_call, parts_of
from steadyhand_values import pattern

WORDS_MAX = 2_000
"""Different pieces of a command that are looked at."""

_IN_WORD = pattern(r"[=:,@]")
"""What a value in a word may stand behind."""
_IN_CODE = pattern(r"[\s;&|<>()'\"`$\\{}\[\]=:,@!]+")
"""What ends a path in the code of another language."""


def names_secret(tool_context: ToolContext, cwd: ResolvedPath, command: str) -> bool:
    """Return whether the command names a file with a secret's name that exists in the workspace, or one outside."""
    folders = [cwd.resolved]
    for words in runnable_commands(command).certain:
        if words[0] == "cd" and len(words) == 2 and UNKNOWN not in words[1]:
            folders.append(posixpath.join(folders[-1], words[1]))
    return any(_is_secret_file(tool_context, folders, word) for word in _secret_words(command))


def _secret_words(command: str) -> list[str]:
    found: dict[str, None] = {}
    for word in islice(dict.fromkeys(_pieces(command)), WORDS_MAX):
        for text in (word, re.sub("^-[A-Za-z](?=.)", "", word)):  # `-f.env`
            if text and UNKNOWN not in text and looks_secret(parts_of(text)):
                found[text] = None
    return list(found)


def _pieces(command: str) -> Iterator[str]:
    """Yield what may be a path: words and the values in them, targets of redirections, and all of a program's code."""
    line = runnable_commands(command)
    for words in line.certain:
        for word in words:
            yield word
            yield from (_IN_CODE if _runs_code(words) else _IN_WORD).split(word)
    for one in read_shell_line(command).commands:
        yield from (redirection.target for redirection in one.redirections if not redirection.is_input_text)
        if one.words and _runs_code(one.words):
            yield from (piece for text in one.input_texts for piece in _IN_CODE.split(text))
    if not line.is_clear:
        yield from _IN_CODE.split(command)


def _runs_code(words: Sequence[str]) -> bool:
    return RUNS_CODE.fullmatch(program_of(words[0])) is not None


def _is_secret_file(tool_context: ToolContext, folders: list[str], word: str) -> bool:
    if word.startswith("//"):  # of an address
        return False
    for folder in folders:
        located = locate_for_call(tool_context, posixpath.normpath(posixpath.join(folder, word)))
        if not isinstance(located, ResolvedPath):
            return True
        is_allowed = tool_context.allows_secret(located.resolved)
        if not located.is_inside or word.startswith("~"):  # whether it exists there is not told (case 125)
            return not is_allowed
        is_secret = located.kind == "file" or (located.kind == "folder" and looks_secret((*parts_of(word), "file")))
        if is_secret and not is_allowed:
            return True
    return False
