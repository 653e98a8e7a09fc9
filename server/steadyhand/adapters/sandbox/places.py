"""Places that a confined child does not see, and what stays visible inside them (row O1).

Other programs of the user listen on sockets in the folders for temporary files and run time, and keep credentials in
fixed places of the home folder. All paths returned are resolved and exist.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steadyhand.adapters.programs import is_inside
from steadyhand_values import frozen

SECRET_PLACES = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".netrc", ".git-credentials"),
    *(".npmrc", ".pypirc", ".vault-token", ".config/gh", ".config/gcloud", ".mozilla", ".config/google-chrome"),
    *(".config/chromium", ".local/share/keyrings"),
)
"""In the home folder."""
OWN_TEMPORARY = ("/tmp", "/var/tmp")
"""Folders in whose place a child has its own."""
RUN_TIME_FOLDERS = ("/run", "/var/run")
FOLDER_VARIABLES = ("XDG_RUNTIME_DIR", "TMPDIR")
SOCKET_VARIABLES = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST")
SOCKET_VARIABLE_PREFIX = "VSCODE_IPC_HOOK"
RESOLVER = "/etc/resolv.conf"
_NEVER_HIDDEN = (
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib64",
    "/opt",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
    "/var",
)


@frozen
class HiddenPlaces:
    """What a child does not see."""

    folders: frozenset[str]  # an empty folder is in their place
    files: frozenset[str]  # an empty file is in their place


def home_folders(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the home folder that HOME names and the one of the user's account."""
    named = [environment.get("HOME", "")]
    with contextlib.suppress(KeyError):  # a user without an account, as in many containers
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    return tuple(dict.fromkeys(os.path.realpath(home) for home in named if os.path.isabs(home) and home != "/"))


def hidden_places(environment: Mapping[str, str], more: Iterable[str], roots: Sequence[str] = ()) -> HiddenPlaces:
    """Return what is hidden from a child of a server with this environment; `more`: the caller's own places.

    What a variable names below one of the resolved `roots` is not hidden: it is part of what the child works on."""
    homes = home_folders(environment)
    named = [*RUN_TIME_FOLDERS, *more]
    named += [os.path.join(home, place) for home in homes for place in SECRET_PLACES]
    named += _named_by(environment, homes, roots)
    found = {os.path.realpath(place) for place in named}
    return HiddenPlaces(
        frozenset(place for place in found if os.path.isdir(place)),
        frozenset(place for place in found if os.path.exists(place) and not os.path.isdir(place)),
    )


def _named_by(environment: Mapping[str, str], homes: Sequence[str], roots: Sequence[str]) -> Iterator[str]:
    for name in FOLDER_VARIABLES:
        folder = environment.get(name, "")
        if os.path.isabs(folder) and _can_be_hidden(folder, homes, roots):
            yield folder
    for name, value in environment.items():
        if name in SOCKET_VARIABLES or name.startswith(SOCKET_VARIABLE_PREFIX):
            for socket in _socket_paths(value):
                folder = os.path.dirname(socket)
                yield folder if _can_be_hidden(folder, homes, roots) else socket


def _can_be_hidden(folder: str, homes: Sequence[str], roots: Sequence[str]) -> bool:
    """Whether a child can work without it: a system folder, one that holds the home folder, and one in a root, it
    needs."""
    real = os.path.realpath(folder)
    if real in _NEVER_HIDDEN or any(is_inside(real, root) for root in roots):
        return False
    return not any(is_inside(home, real) for home in homes)


def _socket_paths(value: str) -> Iterator[str]:
    """Yield the absolute paths in `PATH`, `unix://PATH`, and D-Bus addresses (`unix:path=PATH,guid=…;…`)."""
    for address in value.split(";"):
        for part in address.split(","):
            for beginning in ("unix://", "unix:path=", "path=", ""):
                if part.startswith(beginning + "/"):
                    yield os.path.normpath(part[len(beginning) :])
                    break


def program_folders(search_path: str, hidden: frozenset[str]) -> list[str]:
    """Return the folders of PATH; in place of `…/bin` its parent, which holds what its programs need, unless the parent
    is hidden itself.
    """
    found = []
    for folder in search_path.split(os.pathsep):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            continue
        real = os.path.realpath(folder)
        parent = os.path.dirname(real)
        can_show_parent = os.path.basename(real) == "bin" and parent != "/" and parent not in hidden
        found.append(parent if can_show_parent and parent not in OWN_TEMPORARY else real)
    return found


def interpreter() -> str:
    """Return the path of the program that runs this process, which also runs the launcher (row O4)."""
    try:
        found = os.readlink("/proc/self/exe")
    except OSError:
        found = ""
    # An update may have replaced the file.
    return found if os.path.exists(found) else os.path.realpath(sys.executable)


def server_folders() -> list[str]:
    """Return where this server is installed: a command that could write there would choose what runs next (row O4)."""
    return list(dict.fromkeys((sys.prefix, sys.exec_prefix)))


def interpreter_folders() -> list[str]:
    """Return where the interpreter and its standard library are."""
    folder = os.path.dirname(interpreter())
    own = os.path.dirname(folder) if os.path.basename(folder) == "bin" else folder
    return list(dict.fromkeys((own, sys.base_prefix, sys.base_exec_prefix)))
