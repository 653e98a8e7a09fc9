"""Find the programs that the server starts for itself, outside every workspace (row O4; case 143).

A workspace must not choose them: a folder of PATH may be inside it, as an active virtual environment is, or a link on
the way to the program may be. So each folder and link that leads to the program is compared with the workspace folders,
by name, and the workspace folders with all their links resolved.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence

LINKS_MAX = 40
"""As many as Linux follows for one path."""
SHELL = "/bin/sh"


def trusted_program(name: str, search_path: str, folders: Sequence[str]) -> str | None:
    """Return the program's path with all links resolved; None if PATH has it nowhere outside `folders`."""
    forbidden = [os.path.realpath(folder) for folder in folders] + [os.path.normpath(folder) for folder in folders]
    for place in search_path.split(os.pathsep):
        if not os.path.isabs(place):
            continue
        try:
            steps = list(_steps(os.path.join(place, name)))
        except OSError:
            continue
        found = steps[-1]
        if any(is_inside(step, folder) for step in steps for folder in forbidden):
            continue
        if os.path.isfile(found) and os.access(found, os.X_OK):
            return found
    return None


def is_inside(path: str, folder: str) -> bool:
    """Whether an absolute, normal path is the folder or in it; nothing is resolved."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _steps(path: str) -> Iterator[str]:
    """Yield the path of every link on the way, and last the path without links. OSError if it leads nowhere."""
    left = [part for part in path.split("/") if part not in ("", ".")][::-1]
    here, links = "/", 0
    while left:
        part = left.pop()
        if part == "..":
            here = os.path.dirname(here)
            continue
        entry = os.path.join(here, part)
        if not os.path.islink(entry):
            here = entry
            continue
        yield entry
        links += 1
        if links > LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        target = os.readlink(entry)
        here = "/" if target.startswith("/") else here
        left += [part for part in target.split("/") if part not in ("", ".")][::-1]
    os.stat(here)
    yield here
