"""A state directory that cannot be used: one sentence that names the path and what is wrong with it (case 171).

`require_usable` tries it, and creates it if it is missing. `refusal_of` turns the error of any operation below it into
a refusal. The sentence names the first part of the path that is at fault. Blocks; called in a thread.
"""

from __future__ import annotations

import errno

from steadyhand.domain.errors import Refused
from steadyhand.ports.disk import Disk
from steadyhand.session.context import SessionContext
from steadyhand.session.private_state import sessions_path
from steadyhand.tools.workspace.paths import one_line

PATH_CHARS_MAX = 240
REMEDY = (
    "correct that, or choose another folder with --state-dir, STEADYHAND_STATE_DIR or the setting"
    " steadyhand.stateDirectory"
)

_FAULTS = {
    errno.EACCES: "this user has no permission for {}",
    errno.EPERM: "this user has no permission for {}",
    errno.EROFS: "the file system of {} is read-only",
    errno.ENAMETOOLONG: "that path is longer than this system allows",
    errno.ENOSPC: "the disk of {} is full",
    errno.EDQUOT: "the disk quota of this user is used up at {}",
}


def require_usable(context: SessionContext) -> None:
    """Raise Refused unless the state directory can be opened and no other user controls it (row O5).

    It is created if it is missing, its sessions are not."""
    disk = context.disk
    try:
        disk.close(context.private_state.open())
    except FileNotFoundError:
        try:
            disk.close(context.private_state.make_root())
        except OSError as error:
            raise refusal_of(context, error) from error
    except OSError as error:
        raise refusal_of(context, error) from error
    try:
        disk.close(context.private_state.open_sessions())
    except FileNotFoundError:
        if disk.look_path(sessions_path(context.state_directory)) is not None:  # a link that leads nowhere
            raise refusal_of(context, FileNotFoundError(errno.ENOENT, "No such file or directory")) from None
    except OSError as error:
        raise refusal_of(context, error) from error


def refusal_of(context: SessionContext, error: OSError) -> Refused:
    """Return the refusal of a request that needs the state directory."""
    text = sentence_of(context.disk, context.state_directory, error)
    return Refused("journalBroken", text, {"readOnly": {"reason": "disk", "text": text}})


def sentence_of(disk: Disk, path: str, error: OSError) -> str:
    """Return why the state directory cannot be used, and what to do."""
    return f"The state directory {shown_path(path)} cannot be used, because {_fault(disk, path, error)}; {REMEDY}."


def shown_path(path: str) -> str:
    """Return a path for a sentence: on one line, and not longer than an error answer has room for."""
    return one_line(path, PATH_CHARS_MAX)


def _fault(disk: Disk, path: str, error: OSError) -> str:
    """Return a clause on the first part of the path, or of the path of its sessions, that is at fault."""
    reached = "/"
    wanted = [part for part in sessions_path(path).split("/") if part]
    for number in range(1, len(wanted) + 1):
        place = "/" + "/".join(wanted[:number])
        try:
            seen = disk.look_path(place)
        except OSError as trouble:
            return _clause(trouble, reached)
        if seen is None:
            break
        if seen.kind == "link":
            if (why := _link_fault(disk, place, seen.target or "")) is not None:
                return why
        elif seen.kind != "folder":
            what = "a file" if seen.kind == "file" else "a pipe, socket or device"
            return f"{shown_path(place)} is {what} and no folder"
        reached = place
    return _clause(error, reached)


def _link_fault(disk: Disk, place: str, target: str) -> str | None:
    try:
        disk.close(disk.open_folder(place))
    except FileNotFoundError:
        return f"{shown_path(place)} is a link to {shown_path(target)}, where nothing is"
    except NotADirectoryError:
        return f"{shown_path(place)} is a link to {shown_path(target)}, which is no folder"
    except OSError as trouble:
        return _clause(trouble, place)
    return None


def _clause(error: OSError, place: str) -> str:
    known = _FAULTS.get(error.errno or 0)
    if known is not None:
        return known.format(shown_path(place))
    return f"the system says about {shown_path(place)}: {error.strerror or error}"
