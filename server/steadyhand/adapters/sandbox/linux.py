"""`ports.Sandbox` of Linux: bubblewrap, and Landlock alone where bubblewrap does not work (rows O1, O2).

Versions and files do not tell what works, a real child does: containers often have namespaces and refuse only `/proc`.
So the probe runs a child with the arguments of a real one, and keeps the answer until a child could not be confined.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from steadyhand.adapters.sandbox.bubblewrap import Bubblewrap, bubblewrap_launch, find_bubblewrap
from steadyhand.adapters.sandbox.landlock import (
    ABI_MIN,
    landlock_abi,
    landlock_limits,
    rules_for_command,
    rules_for_reading,
    rules_inside_bubblewrap,
)
from steadyhand.adapters.sandbox.launch import (
    Channels,
    Command,
    Launch,
    Restrictions,
    failure_text,
    launcher_arguments,
    own_variables,
)
from steadyhand.adapters.sandbox.mounts import plan_mounts, require_folders
from steadyhand.adapters.sandbox.places import interpreter
from steadyhand.adapters.sandbox.readable import readable_places
from steadyhand.adapters.sandbox.seccomp import FilterPurpose, system_call_filter
from steadyhand.ports.sandbox import Confinement, SandboxFailed, SandboxKind, SandboxStatus
from steadyhand_values import frozen

PROBE_S_MAX = 10.0
STRENGTH: Mapping[SandboxKind, int] = {"none": 0, "landlock": 1, "bubblewrap": 2}
REPORT_BYTES_MAX = 16 * 1024
_PROBED = Command(("/bin/sh", "-c", ":"), "/", {})


@frozen
class _Means:
    """What the last probe found to confine with."""

    bubblewrap: Bubblewrap | None
    landlock_abi: int  # 0 also if it is too old
    machine: str


class LinuxSandbox:
    """`ports.Sandbox`. `environment` is the server's own, which names what is hidden."""

    def __init__(self, environment: Callable[[], Mapping[str, str]]) -> None:
        self._environment = environment
        self._means = _Means(None, 0, os.uname().machine)
        self._status: SandboxStatus | None = None
        self._is_stale = False
        self._probing = threading.Lock()

    def status(self) -> SandboxStatus | None:
        return self._status

    def probe(self, folders: Sequence[str] = ()) -> SandboxStatus:
        """Look for a sandbox, once and again after a failure. What worked before stays demanded in this process: where
        it is gone, a command fails, and the next one looks again."""
        with self._probing:
            if self._status is None or self._is_stale:
                self._is_stale = False
                found = self._probe(folders)
                if self._status is not None and STRENGTH[found.kind] < STRENGTH[self._status.kind]:
                    self._is_stale = True  # a passing failure must not weaken the commands that follow
                else:
                    self._status = found
            return self._status

    def note_failure(self) -> None:
        """A confined child could not be set up: the next probe looks again."""
        self._is_stale = True

    def launch(self, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        """Return how to spawn a confined child. Raises SandboxFailed or another OSError."""
        return self._launch(self._means, confinement, command, channels)

    def _launch(self, means: _Means, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        if confinement.kind == "landlock":
            return self._landlock_launch(means, confinement, command, channels)
        if means.bubblewrap is None:
            raise SandboxFailed("bubblewrap did not work when it was tried.")
        plan = plan_mounts(confinement, self._environment(), command.environment)
        inside = command if confinement.is_reading else _with_temporary(command, "/tmp")
        rules = rules_inside_bubblewrap(means.landlock_abi, plan.writable) if means.landlock_abi else None
        purpose: FilterPurpose = "reading" if confinement.is_reading else "command"
        restrictions = Restrictions(
            rules,
            system_call_filter(means.machine, purpose),
            drops_capabilities=False,
            ends_with=None,
            stays=True,
        )
        return bubblewrap_launch(means.bubblewrap, plan, confinement, inside, channels, restrictions)

    def _landlock_launch(self, means: _Means, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        abi, temporary = means.landlock_abi, confinement.temporary
        if not abi:
            raise SandboxFailed("Landlock did not work when it was tried.")
        require_folders(confinement)
        purpose: FilterPurpose = "reading" if confinement.is_reading else "command"
        if confinement.is_reading:
            rules = rules_for_reading(abi, readable_places(confinement, self._environment(), command.environment))
        else:
            writable = [*confinement.folders, *confinement.write, *([temporary] if temporary is not None else [])]
            rules = rules_for_command(abi, [os.path.realpath(path) for path in writable], confinement.network == "deny")
            command = command if temporary is None else _with_temporary(command, temporary)
        restrictions = Restrictions(
            rules,
            system_call_filter(means.machine, purpose),
            drops_capabilities=True,
            ends_with=os.getpid(),
            stays=False,
        )
        arguments, order = launcher_arguments(command, channels, restrictions, interpreter())
        return Launch(arguments, "/proc/self/exe", own_variables(command.environment), (order,), is_namespace=False)

    def _probe(self, folders: Sequence[str]) -> SandboxStatus:
        """Find what works. Children that are started meanwhile use what the last probe found."""
        machine = os.uname().machine
        has_filter = system_call_filter(machine, "command") is not None
        abi = landlock_abi()
        landlock_trouble = (
            f"This kernel has Landlock ABI {abi}; {ABI_MIN} is needed."
            if abi < ABI_MIN
            else self._try("landlock", _Means(None, abi, machine))
        )
        means = _Means(None, 0 if landlock_trouble else abi, machine)
        program = self._find_bubblewrap(folders, means)
        trouble = program if isinstance(program, str) else None
        found = None if isinstance(program, str) else program
        self._means = means = _Means(found, means.landlock_abi, machine)
        works = means.landlock_abi > 0
        kind: SandboxKind = "bubblewrap" if found is not None else "landlock" if works else "none"
        reading: SandboxKind = "landlock" if works and has_filter else "bubblewrap" if found is not None else "none"
        is_sealable = found is not None and works and has_filter and found.disables_user_namespaces
        return SandboxStatus(
            kind,
            reading,
            is_sealable,
            means.landlock_abi,
            trouble or (None if is_sealable else _not_sealed(found, has_filter, landlock_trouble)),
            os.geteuid(),
            _limits(kind, means, has_filter),
        )

    def _find_bubblewrap(self, folders: Sequence[str], means: _Means) -> Bubblewrap | str:
        """Return the program if it works; else one sentence why not."""
        found = find_bubblewrap(self._environment().get("PATH", os.defpath), folders)
        if isinstance(found, str):
            return found
        if not found.disables_user_namespaces and os.geteuid() == 0:
            return f"{found.program} is older than 0.8 and cannot confine root."
        trouble = self._try("bubblewrap", _Means(found, means.landlock_abi, means.machine))
        return found if trouble is None else f"bubblewrap does not work here: {trouble}"

    def _try(self, kind: Literal["bubblewrap", "landlock"], means: _Means) -> str | None:
        """Run a child with the arguments of a real one; return None if it ran, else why not."""
        try:
            folder = os.path.realpath(tempfile.mkdtemp(prefix="steadyhand-probe-"))
        except OSError as trouble:
            return f"no folder for a trial could be made: {trouble}."
        try:
            inside, own = os.path.join(folder, "inside"), os.path.join(folder, "own")
            for path in (os.path.join(inside, ".git", "hooks"), own):
                os.makedirs(path)
            confinement = Confinement(kind, (inside,), own, protected=(os.path.join(inside, ".git"),))
            return _run_probe(lambda channels: self._launch(means, confinement, _PROBED, channels))
        except OSError as trouble:
            return f"{trouble}."
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _run_probe(launch_of: Callable[[Channels], Launch]) -> str | None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull, "wb", buffering=0) as output:
        launch = launch_of(Channels(output.fileno(), theirs.fileno()))
        try:
            child = subprocess.Popen(
                launch.arguments,
                executable=launch.executable,
                cwd="/",
                env=dict(launch.environment),
                stdin=subprocess.DEVNULL,
                stdout=theirs.fileno(),
                stderr=theirs.fileno(),
                pass_fds=(*launch.descriptors, output.fileno(), theirs.fileno()),
                start_new_session=True,
            )
        finally:
            launch.close()
        theirs.close()
        ours.settimeout(PROBE_S_MAX)
        said = b""
        try:
            while b"exited 0" not in said and len(said) < REPORT_BYTES_MAX and (piece := ours.recv(REPORT_BYTES_MAX)):
                said += piece
        except TimeoutError:
            said += b"\nit did not end in time"
        child.kill()
        child.wait()
    lines = said.decode(errors="replace").split("\n")
    if "ready" in lines and ("exited 0" in lines or not launch.is_namespace):
        return None
    return failure_text(lines)


def _with_temporary(command: Command, folder: str) -> Command:
    return Command(command.arguments, command.cwd, {**command.environment, "TMPDIR": folder})


def _not_sealed(found: Bubblewrap | None, has_filter: bool, landlock_trouble: str | None) -> str | None:
    if landlock_trouble is not None:
        return landlock_trouble
    if not has_filter:
        return "Steadyhand has no system call filter for this machine."
    if found is not None and not found.disables_user_namespaces:
        return f"{found.program} is older than 0.8 and leaves user namespaces to the command."
    return None


def _limits(kind: SandboxKind, means: _Means, has_filter: bool) -> tuple[str, ...]:
    found = []
    if kind == "landlock":
        found.append(
            "Landlock alone does not stop UDP, changes of mode and owner, reading of secret places, and writes to"
            " protected names."
        )
        abi = means.landlock_abi
        found += [f"This kernel's Landlock (ABI {abi}) does not stop {what}." for what in landlock_limits(abi).values()]
    if means.bubblewrap is not None and not means.bubblewrap.binds_descriptors:
        found.append(
            "This bubblewrap mounts folders by path: a program outside that replaces one by a link at that moment"
            " chooses what becomes writable."
        )
    if kind != "none" and not has_filter:
        found.append("Without a system call filter, a command can connect to the Unix sockets that it can see.")
    if os.geteuid() == 0:
        found.append("As root, only bubblewrap hides this server's environment and memory from a command.")
    if kind != "none" and os.geteuid() == 0:
        found.append(
            "A confined command of root has no capabilities: it cannot write what only another user may write."
        )
    return tuple(found)
