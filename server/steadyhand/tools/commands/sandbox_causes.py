"""What is known before a confined command that will make it fail: a git directory outside the writable folders, a
folder of another user (rows O1, O3). Reads only; blocks.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from steadyhand.domain.permissions.sandbox_folders import CACHES, is_at_or_above
from steadyhand.domain.settings import SandboxNetwork
from steadyhand.ports.disk import Folder
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.prepared_command import Cause
from steadyhand.tools.workspace.paths import one_line, open_folder, parts_of
from steadyhand_values import frozen

GIT_FOLDER = ".git"
POINTER_BYTES_MAX = 8 * 1024
ALTERNATIVE = "Propose the command again with `unconfined` and say why; the user is asked."
_NO_NETWORK = (
    *("Network is unreachable", "Could not resolve host", "Temporary failure in name resolution", "EAI_AGAIN"),
    *("dial tcp", "failed to lookup address", "Name or service not known", "Unknown host"),
)
_OTHERS_MAY_WRITE = 0o002


@frozen
class GitDirectory:
    """Where git keeps the repository of a folder. `is_known`: the repository itself says that it belongs here."""

    path: str  # that of all its work trees, absolute
    is_known: bool


def git_directory(tool_context: ToolContext, folder: str) -> GitDirectory | None:
    """Return the git directory that git would use in a folder; None: there is none, or it cannot be told."""
    parts = parts_of(folder)
    for length in range(len(parts), -1, -1):
        try:
            with open_folder(tool_context, parts[:length]) as above:
                seen = tool_context.disk.look(above, GIT_FOLDER)
                if seen is None:
                    continue
                place = "/" + "/".join((*parts[:length], GIT_FOLDER))
                if seen.kind == "folder":
                    return GitDirectory(place, is_known=True)
                pointer = _text(tool_context, above, GIT_FOLDER)
        except OSError:
            return None
        if not pointer.startswith("gitdir: "):
            return None
        own = posixpath.normpath(posixpath.join(posixpath.dirname(place), pointer.removeprefix("gitdir: ")))
        return _pointed_at(tool_context, own, place)
    return None


def _pointed_at(tool_context: ToolContext, own: str, pointer: str) -> GitDirectory | None:
    """`own`: the folder that the file `.git` at `pointer` names. A linked worktree is named in it too."""
    try:
        with open_folder(tool_context, parts_of(own)) as folder:
            common = posixpath.join(own, _text_or_nothing(tool_context, folder, "commondir") or ".")
            back = _text_or_nothing(tool_context, folder, "gitdir")
    except OSError:
        return GitDirectory(own, is_known=False)
    return GitDirectory(posixpath.normpath(common), is_known=back == pointer)


def _text_or_nothing(tool_context: ToolContext, folder: Folder, name: str) -> str:
    return _text(tool_context, folder, name) if tool_context.disk.look(folder, name) is not None else ""


def _text(tool_context: ToolContext, folder: Folder, name: str) -> str:
    return tool_context.disk.read(folder, name, POINTER_BYTES_MAX).decode("utf-8", "surrogateescape").rstrip("\n")


def known_causes(
    tool_context: ToolContext, git: GitDirectory | None, roots: Sequence[str], user: int | None, network: SandboxNetwork
) -> tuple[Cause, ...]:
    """Return what will make a command fail, each with the words of an output that show that it did.

    `user`: the numeric id of who runs commands."""
    found: list[Cause] = []
    if network == "deny":
        found.append(
            Cause(
                _NO_NETWORK,
                "The sandbox has no network, because sandbox.network is `deny`; the user can set it to `allow`."
                f" {ALTERNATIVE}",
            )
        )
    home = tool_context.processes.environment().get("HOME", "").rstrip("/")
    caches = [f"{home}/{name}" for name in CACHES] if home else []
    closed = tuple(f"{cache}/" for cache in caches if not any(is_at_or_above(root, cache) for root in roots))
    if closed:
        found.append(
            Cause(
                closed,
                "In the sandbox the caches in the home folder are read-only; the user can add one to the setting"
                f" sandbox.write. {ALTERNATIVE}",
                also=("Read-only file system", "Permission denied"),
            )
        )
    if git is not None and not any(is_at_or_above(root, git.path) for root in roots):
        found.append(
            Cause(
                ("Read-only file system", "not a git repository"),
                f"The git directory {one_line(git.path)} is outside the session's folders, so in the sandbox git can at"
                f" most read it: committing, checking out and fetching fail. {ALTERNATIVE}",
                is_git=True,
            )
        )
    if user == 0 and (foreign := [root for root in roots if _belongs_to_another(tool_context, root)]):
        found.append(
            Cause(
                ("Permission denied",),
                f"{one_line(foreign[0])} belongs to another user, and in the sandbox root has no right to write there."
                f" Run the server as that user, or give the folder to root. {ALTERNATIVE}",
            )
        )
    return tuple(found)


def _belongs_to_another(tool_context: ToolContext, folder: str) -> bool:
    parts = parts_of(folder)
    if not parts:
        return False
    try:
        with open_folder(tool_context, parts[:-1]) as above:
            seen = tool_context.disk.look(above, parts[-1])
    except OSError:
        return False
    return seen is not None and seen.uid != 0 and not seen.mode & _OTHERS_MAY_WRITE
