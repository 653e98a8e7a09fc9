"""Decide whether a command is read-only in this workspace and environment, and how it is then carried out (rows B2,
O2).

`domain.permissions.readonly_commands` judges the text. The rest is judged here: its paths are files and folders of the
workspace, the program is the system's own, and the repository's configuration runs nothing. The plainest forms are
answered by the server. All others run confined for reading; where this system cannot do that, or the setting switches
the sandbox off, they are ordinary commands. In any doubt the command counts as an ordinary one.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping

import attrs

from steadyhand.domain.permissions.git_reading import CONFIGURATION_WORDS, git_trouble
from steadyhand.domain.permissions.readonly_commands import (
    AnsweredCommand,
    answered_command,
    is_git,
    is_reading_command,
    pinned_words,
    place_words,
    reading_paths,
    reading_program,
)
from steadyhand.ports.disk import Folder
from steadyhand.ports.sandbox import Confinement
from steadyhand.tools.commands.answered import is_answerable, locate_operand, must_ask
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, open_folder, parts_of, root_depth
from steadyhand_values import frozen, pattern

CONFIG_BYTES_MAX = 256 * 1024
_BARE_REPOSITORY_NAMES = {"HEAD", "objects", "refs"}  # a folder with these names is a repository without `.git`
_LEADING_VARIABLES = pattern(r"BASH_FUNC_.*|BASH_ENV|ENV|LD_.*|DYLD_.*|SHELLOPTS|BASHOPTS")
"""Variables that make the same words run another program."""
_HARMLESS_TO_GIT = pattern(
    r"GIT_(ASKPASS|EDITOR|SEQUENCE_EDITOR|MERGE_AUTOEDIT|TERMINAL_PROMPT|OPTIONAL_LOCKS|PAGER|SSL_.*|SSH.*|HTTP_.*|AUTHOR_.*|COMMITTER_.*)"
)
"""These do not affect status, diff and log; with any other variable of git's the command is an ordinary one."""


@frozen
class Reading:
    """How a command that only reads is carried out.

    `answer`: the server answers it. Else `text` is run with `environment` and the confinement; of git after
    `configuration_text` has listed what is configured (`git_asking.configured_for_reading`).
    """

    answer: AnsweredCommand | None = None
    text: str = ""
    confinement: Confinement | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    configuration_text: str = ""  # empty: it is not git


def plan_reading(tool_context: ToolContext, command: str, cwd: ResolvedPath) -> Reading | None:
    """Return how the command is carried out as a read; None: it is an ordinary command. Reads only; blocks, because it
    may have to find out what this system can confine."""
    if tool_context.root is None or not cwd.is_inside or not is_reading_command(command):
        return None
    try:
        plain = answered_command(command)
        if plain is not None and is_answerable(tool_context, cwd, plain):
            return Reading(answer=plain)
        return _plan_confined(tool_context, command, cwd)
    except OSError:
        return None


def _plan_confined(tool_context: ToolContext, command: str, cwd: ResolvedPath) -> Reading | None:
    git = is_git(command)
    if git and not tool_context.is_trusted():
        return None
    if tool_context.sandbox().mode == "off" or not _has_system_programs(tool_context, git):
        return None
    if not all(_is_path_inside(tool_context, cwd, path, git) for path in reading_paths(command)):
        return None
    repository = _find_readonly_repository(tool_context, cwd) if git else None
    if git and repository is None:
        return None
    folders = tool_context.folders
    program = tool_context.processes.program(reading_program(command), folders)
    kind = tool_context.processes.sandbox.probe(folders).reading
    if program is None or kind == "none":
        return None
    confinement = Confinement(kind=kind, folders=folders, hidden=(tool_context.state_directory,), is_reading=True)
    text = shlex.join(pinned_words(command, program, repository))
    if repository is None:
        return Reading(None, text, confinement)
    above = {"GIT_CEILING_DIRECTORIES": posixpath.dirname(repository)}
    listing = [program, *place_words(repository), *CONFIGURATION_WORDS]
    return Reading(None, text, confinement, above, shlex.join(listing))


def _has_system_programs(tool_context: ToolContext, git: bool) -> bool:
    environment = tool_context.environment({})
    if any(_LEADING_VARIABLES.fullmatch(name) for name in environment):
        return False
    if git and any(name.startswith("GIT_") and not _HARMLESS_TO_GIT.fullmatch(name) for name in environment):
        return False
    roots = [parts_of(folder) for folder in tool_context.folders]
    folders = environment.get("PATH", "").split(":")
    return all(
        folder.startswith("/") and not any(parts_of(folder)[: len(root)] == root for root in roots)
        for folder in folders
    )


def _is_path_inside(tool_context: ToolContext, cwd: ResolvedPath, path: str, git: bool) -> bool:
    located = locate_operand(tool_context, cwd, path)
    if located is None:
        return False
    if must_ask(tool_context, located):
        return False
    # An argument of git may be a revision, which is not a path.
    return located.kind in ("file", "folder") or (git and located.kind is None)


def _find_readonly_repository(tool_context: ToolContext, cwd: ResolvedPath) -> str | None:
    """Return the folder with the `.git` that git would find, searching from this folder upwards, if that is a plain
    repository of the workspace; None: git does not only read there.
    """
    for length in range(len(cwd.parts), root_depth(tool_context, cwd.parts) - 1, -1):
        with open_folder(tool_context, cwd.parts[:length]) as folder:
            seen = tool_context.disk.look(folder, ".git")
            if seen is not None:
                is_plain = seen.kind == "folder" and _is_repository_readonly(tool_context, folder)
                return "/" + "/".join(cwd.parts[:length]) if is_plain else None
            if all(tool_context.disk.look(folder, name) is not None for name in _BARE_REPOSITORY_NAMES):
                return None
    return None


def _is_repository_readonly(tool_context: ToolContext, folder: Folder) -> bool:
    gitmodules = tool_context.disk.look(folder, ".gitmodules") is not None
    repository = tool_context.disk.enter(folder, ".git")
    try:
        for name in ("commondir", "config.worktree"):
            if tool_context.disk.look(repository, name) is not None:
                return False
        raw = tool_context.disk.read(repository, "config", CONFIG_BYTES_MAX + 1)
    finally:
        tool_context.disk.close(repository)
    return len(raw) <= CONFIG_BYTES_MAX and git_trouble(raw.decode("utf-8", "replace"), gitmodules) is None
