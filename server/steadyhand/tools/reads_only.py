"""Whether a command, in this workspace and environment, only reads (row B2).

`core.reading_commands` judges the text. What the text cannot say is judged here: its paths lead to files and folders
of the workspace, the program will be the system's own, and the repository's configuration runs nothing. Every doubt
makes it an ordinary command.
"""

from __future__ import annotations

import re

from steadyhand.core.reading_commands import git_trouble, is_git, is_reading_command, reading_paths
from steadyhand.ports import Folder
from steadyhand.tools.place import Located, display, entered, locate, parts_of
from steadyhand.tools.tool import Ground

config_bytes_max = 256 * 1024
_inside_parts = {"HEAD", "objects", "refs"}  # what makes a folder a repository without a `.git`
_leading_variables = re.compile(r"BASH_FUNC_.*|BASH_ENV|ENV|LD_.*|DYLD_.*|SHELLOPTS|BASHOPTS")
"""Variables that would make another program of the same words."""
_harmless_to_git = re.compile(
    r"GIT_(ASKPASS|EDITOR|SEQUENCE_EDITOR|TERMINAL_PROMPT|OPTIONAL_LOCKS|PAGER|SSL_.*|SSH.*|HTTP_.*|AUTHOR_.*|COMMITTER_.*)"
)
"""What changes nothing about status, diff and log; any other variable of git's makes it an ordinary command."""


def only_reads(ground: Ground, command: str, cwd: Located) -> bool:
    """Whether the command may run as a reading; `READING_ENVIRONMENT` must be added then. Reads only."""
    if ground.root is None or not cwd.inside or not is_reading_command(command):
        return False
    try:
        return (
            _programs_are_the_systems(ground, is_git(command))
            and all(_stays_inside(ground, cwd, path, is_git(command)) for path in reading_paths(command))
            and (not is_git(command) or _git_only_reads(ground, cwd))
        )
    except OSError:
        return False


def _programs_are_the_systems(ground: Ground, git: bool) -> bool:
    environment = ground.environment({})
    if any(_leading_variables.fullmatch(name) for name in environment):
        return False
    if git and any(name.startswith("GIT_") and not _harmless_to_git.fullmatch(name) for name in environment):
        return False
    root = parts_of(ground.root or "/")
    folders = environment.get("PATH", "").split(":")
    return all(folder.startswith("/") and parts_of(folder)[: len(root)] != root for folder in folders)


def _stays_inside(ground: Ground, cwd: Located, path: str, git: bool) -> bool:
    here = display(ground.root, cwd.resolved)
    located = locate(ground, path if path.startswith("/") else f"{here}/{path}")
    if not isinstance(located, Located) or not located.inside or located.in_state_directory:
        return False
    # What git is given may be a revision, which is no path at all.
    return located.kind in ("file", "folder") or (git and located.kind is None)


def _git_only_reads(ground: Ground, cwd: Located) -> bool:
    """Whether git finds a plain repository of the workspace, as git searches: from here upwards."""
    root = parts_of(ground.root or "/")
    for length in range(len(cwd.parts), len(root) - 1, -1):
        with entered(ground, cwd.parts[:length]) as folder:
            seen = ground.disk.look(folder, ".git")
            if seen is not None:
                return seen.kind == "folder" and _repository_only_reads(ground, folder)
            if all(ground.disk.look(folder, name) is not None for name in _inside_parts):
                return False
    return False


def _repository_only_reads(ground: Ground, folder: Folder) -> bool:
    gitmodules = ground.disk.look(folder, ".gitmodules") is not None
    repository = ground.disk.enter(folder, ".git")
    try:
        for name in ("commondir", "config.worktree"):
            if ground.disk.look(repository, name) is not None:
                return False
        raw = ground.disk.read(repository, "config", config_bytes_max + 1)
    finally:
        ground.disk.close(repository)
    return len(raw) <= config_bytes_max and git_trouble(raw.decode("utf-8", "replace"), gitmodules) is None
