"""bubblewrap: its arguments for one child, and whether its program may be used (row O1).

Mounts are made in the order of the arguments, and a later one lies on an earlier one. Namespaces are named one by one,
so that a missing one is an error. `--cap-drop ALL` and the read-only `/proc` matter for root: with capabilities it
could mount everything writable again, and without any it still owns the files of `/proc/sys`.

The folders that are mounted are opened first, no link followed, and given as descriptors: whoever replaces one by a
link in between does not choose what becomes writable. A bubblewrap without `--bind-fd` mounts them by path.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Sequence

from steadyhand.adapters.programs import is_inside, trusted_program
from steadyhand.adapters.sandbox.launch import (
    Channels,
    Command,
    Launch,
    Restrictions,
    launcher_arguments,
    memory_file,
    own_variables,
)
from steadyhand.adapters.sandbox.mounts import MountPlan
from steadyhand.adapters.sandbox.places import interpreter
from steadyhand.ports.sandbox import Confinement, SandboxFailed
from steadyhand_values import frozen

PROGRAM = "bwrap"
USUAL_FOLDERS = ("/usr/bin", "/usr/local/bin", "/bin", "/run/current-system/sw/bin")
"""Where it is looked for besides PATH."""
HELP_S_MAX = 10.0


@frozen
class Bubblewrap:
    """The program and what it can do."""

    program: str
    binds_descriptors: bool  # it knows `--bind-fd`
    disables_user_namespaces: bool  # it knows `--disable-userns`, since 0.8


def find_bubblewrap(search_path: str, folders: Sequence[str]) -> Bubblewrap | str:
    """Return the program outside these workspace folders; else one sentence why none is used. Runs its `--help`."""
    program = trusted_program(PROGRAM, os.pathsep.join((search_path, *USUAL_FOLDERS)), folders)
    if program is None:
        return "bubblewrap (bwrap) is not installed outside the workspace."
    if _gains_privileges(program):
        return f"{program} runs with more privileges than the user (setuid or capabilities) and is not used."
    try:
        described = subprocess.run(
            [program, "--help"],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HELP_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as trouble:
        return f"{program} does not run: {trouble}."
    options = (described.stdout + described.stderr).split()
    return Bubblewrap(program, b"--bind-fd" in options, b"--disable-userns" in options)


def _gains_privileges(program: str) -> bool:
    if os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID):
        return True
    try:
        return bool(os.getxattr(program, "security.capability"))
    except OSError:
        return False


def bubblewrap_launch(
    bubblewrap: Bubblewrap,
    plan: MountPlan,
    confinement: Confinement,
    command: Command,
    channels: Channels,
    restrictions: Restrictions,
) -> Launch:
    """Return how to spawn the command in bubblewrap. Raises SandboxFailed if a folder was replaced meanwhile."""
    if any(is_inside(bubblewrap.program, os.path.realpath(folder)) for folder in confinement.folders):
        raise SandboxFailed(f"{bubblewrap.program} is inside the workspace.")
    opened: list[int] = []
    try:
        arguments = _namespaces(bubblewrap, confinement)
        arguments += _mount_arguments(bubblewrap, plan, opened, confinement.is_reading)
        inner, order = launcher_arguments(command, channels, restrictions, interpreter())
        opened.append(order)
        given = memory_file(b"\0".join(os.fsencode(argument) for argument in arguments) + b"\0")
        opened.append(given)
        status = os.dup(channels.report)  # bubblewrap closes this one in the child
        opened.append(status)
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise
    return Launch(
        (bubblewrap.program, "--args", str(given), "--json-status-fd", str(status), "--", *inner),
        None,
        own_variables(command.environment),
        tuple(opened),
        is_namespace=True,
    )


def _namespaces(bubblewrap: Bubblewrap, confinement: Confinement) -> list[str]:
    return [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *(() if confinement.network == "allow" and not confinement.is_reading else ("--unshare-net",)),
        *(("--disable-userns",) if bubblewrap.disables_user_namespaces else ()),
        *("--cap-drop", "ALL", "--die-with-parent", "--new-session"),
    ]


def _mount_arguments(bubblewrap: Bubblewrap, plan: MountPlan, opened: list[int], is_reading: bool) -> list[str]:
    """The arguments of the mounts; the descriptors that they name are added to `opened`."""
    top = next((mount for mount in plan.mounts if mount.path == "/"), None)
    arguments = ["--bind" if top is not None and top.kind == "writable" else "--ro-bind", "/", "/"]
    arguments += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    for mount in plan.mounts:
        if mount.path == "/":
            continue
        if mount.kind == "empty_folder":
            arguments += ["--tmpfs", mount.path]
        elif mount.kind == "empty_file":
            opened.append(os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC))
            arguments += ["--ro-bind-data", str(opened[-1]), mount.path]
        else:
            option = "--bind" if mount.kind == "writable" else "--ro-bind"
            source = mount.source or mount.path
            if bubblewrap.binds_descriptors:
                opened.append(open_exactly(source))
                arguments += [f"{option}-fd", str(opened[-1]), mount.path]
            else:
                arguments += [option, source, mount.path]
    if is_reading:
        arguments += ["--remount-ro", "/dev"]
    # Last, because the mount points inside an empty folder are made in it.
    for mount in plan.mounts:
        if mount.kind == "empty_folder":
            arguments += ["--remount-ro", mount.path]
    return arguments


def open_exactly(path: str) -> int:
    """Return a descriptor (O_PATH) of a path. Raises SandboxFailed if a component is a link or missing."""
    parts = [part for part in path.split("/") if part]
    folder = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        try:
            inner = os.open(
                part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | (0 if last else os.O_DIRECTORY), dir_fd=folder
            )
        except OSError as trouble:
            raise SandboxFailed(f"{path} changed while the sandbox was set up: {trouble.strerror}.") from trouble
        finally:
            os.close(folder)
        folder = inner
    if stat.S_ISLNK(os.fstat(folder).st_mode):  # O_PATH opens a link itself
        os.close(folder)
        raise SandboxFailed(f"{path} became a link while the sandbox was set up: {os.strerror(errno.ELOOP)}.")
    return folder
