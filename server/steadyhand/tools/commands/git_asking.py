"""Questions that the server asks git before a command of the model runs: what is configured, and which protected files
the command would replace (rows O1, O2).

git runs confined for reading. A question that it does not answer counts as not asked.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence

import attrs

from steadyhand.domain.permissions.git_reading import (
    ASKING_ENVIRONMENT,
    READING_ENVIRONMENT,
    GitConfiguration,
    parse_configuration,
    reading_environment,
)
from steadyhand.domain.permissions.sandbox_folders import is_at_or_above
from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.shell.git_changes import git_questions
from steadyhand.domain.views.render import display_path
from steadyhand.ports.sandbox import Confinement
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import one_line, parts_of

ASKING_S_MAX = 10.0
ANSWER_BYTES_MAX = 4 * 1024 * 1024
GIT_FOLDER = ".git"
NAMED_MAX = 20
"""Files that a reply names."""
NAME_CHARS_MAX = 120


async def ask_git(
    tool_context: ToolContext, text: str, folder: str, environment: Mapping[str, str], confinement: Confinement
) -> bytes | None:
    """Return what a shell text prints that only asks git; None: it failed, did not end in time, or printed too much."""
    pieces: list[bytes] = []
    size = 0

    def add(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        if size <= ANSWER_BYTES_MAX:
            pieces.append(piece)

    try:
        ended = await tool_context.processes.run(
            text, folder, {**tool_context.environment({}), **environment}, ASKING_S_MAX, add, confinement=confinement
        )
    except OSError:
        return None
    return b"".join(pieces) if ended.exit_code == 0 and size <= ANSWER_BYTES_MAX else None


async def configured_for_reading(
    tool_context: ToolContext, text: str, folder: str, confinement: Confinement
) -> tuple[Mapping[str, str], Confinement]:
    """Return the variables and the confinement with which git reads here: with the user's configuration where git can
    say what it names, else without it. `text` lists the configuration."""
    for environment in (ASKING_ENVIRONMENT, READING_ENVIRONMENT):
        listed = await ask_git(tool_context, text, folder, environment, confinement)
        found = None if listed is None else parse_configuration(listed)
        if found is not None:
            readable = (*confinement.readable, *_pattern_files(tool_context, found))
            left_out = {} if environment is ASKING_ENVIRONMENT else READING_ENVIRONMENT
            variables = {**left_out, **reading_environment(found)}
            return variables, attrs.evolve(confinement, readable=readable)
    return READING_ENVIRONMENT, confinement


def _pattern_files(tool_context: ToolContext, found: GitConfiguration) -> list[str]:
    """The files of patterns that the user names, in the home folder and with no secret's name."""
    home = tool_context.processes.environment().get("HOME", "")
    paths = [posixpath.join(home, path[2:]) if path.startswith("~/") else path for path in found.files]
    return [
        path
        for path in paths
        if posixpath.isabs(home)
        and is_at_or_above(home, path)
        and not is_at_or_above(tool_context.state_directory, path)
        and not any(looks_secret(parts_of(path)[:length]) for length in range(1, len(parts_of(path)) + 1))
    ]


async def replaced_protected_files(
    tool_context: ToolContext, line: str, folder: str, confinement: Confinement | None
) -> tuple[str, ...]:
    """Return the protected files (absolute) that a confined command line would make git replace, as far as its words
    show that. git cannot replace them, because they are mount points, and it would stop in the middle."""
    if confinement is None or confinement.kind != "bubblewrap":
        return ()
    tops = [path for path in confinement.protected if GIT_FOLDER not in path.split("/")]
    questions = git_questions(line) if tops else ()
    program = tool_context.processes.program("git", confinement.folders) if questions else None
    status = tool_context.processes.sandbox.status()
    if program is None or status is None or status.reading == "none":
        return ()
    reading = Confinement(
        kind=status.reading,
        folders=confinement.folders,
        hidden=confinement.hidden,
        visible=confinement.visible,
        is_reading=True,
    )
    found: dict[str, None] = {}
    for place in dict.fromkeys(question.folder for question in questions):
        words = [question.words for question in questions if question.folder == place]
        there = posixpath.normpath(posixpath.join(folder, place))
        text = _asking_text(program, there, words)
        answer = await ask_git(tool_context, text, folder, READING_ENVIRONMENT, reading)
        found.update((path, None) for path in _named(answer or b""))
    return tuple(path for path in found if any(is_at_or_above(top, path) for top in tops))


def _asking_text(program: str, folder: str, questions: Sequence[tuple[str, ...]]) -> str:
    """The text prints the top folder of the repository, a NUL, and the answers. An error is no answer."""
    git = f"{shlex.quote(program)} --no-pager -C {shlex.quote(folder)}"
    asked = [f"{git} {shlex.join(words)} 2>/dev/null" for words in questions]
    return "; ".join([f"{git} rev-parse --show-toplevel 2>/dev/null && printf '\\0' || exit 1", *asked, "true"])


def _named(answer: bytes) -> list[str]:
    top, _, names = answer.partition(b"\n\0")
    folder = top.decode("utf-8", "surrogateescape")
    return [posixpath.join(folder, name.decode("utf-8", "surrogateescape")) for name in names.split(b"\0") if name]


def would_replace_text(tool_context: ToolContext, paths: Sequence[str]) -> str:
    """Return the reply where git would replace these protected files, and nothing ran."""
    names = [one_line(display_path(path, tool_context.root), NAME_CHARS_MAX) for path in paths]
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return (
        "The command was not started; nothing ran. git would replace protected files, which no command can change in"
        f" the sandbox: {', '.join(names[:NAMED_MAX])}{more}. To replace them, propose the command again with"
        " `unconfined` and say why; the user is asked."
    )
