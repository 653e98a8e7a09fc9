"""Child processes: run and end them, and find those that a crash left running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from steadyhand.ports.sandbox import Confinement, Sandbox
from steadyhand_values import frozen


@frozen
class Finished:
    """How a child ended."""

    exit_code: int | None  # None: ended by a signal
    signal: int | None  # None: it exited by itself
    timed_out: bool
    left: tuple[str, ...]  # processes of its group that were left and have been ended, each "pid command"
    group_empty: bool  # False: a process of the group could not be ended


@frozen
class OrphanProcess:
    """A living process that carries an attempt's mark."""

    pid: int
    started: str  # opaque; together with the pid it names one process
    command: str  # at most 200 characters


class BackgroundProcess(Protocol):
    """A command that runs in the background. Whoever starts it calls `follow` once, in a task of its own."""

    @property
    def pid(self) -> int:
        """The process id of its shell."""
        ...

    @property
    def started(self) -> str:
        """Opaque; together with the pid it names one process. Empty if the system does not tell."""
        ...

    async def ready(self) -> None:
        """Wait until the command runs; at once without a confinement. Called at most once, before `follow`.

        Raises SandboxFailed if its sandbox could not be set up; then nothing ran, and nothing is left to follow or end.
        A cancel ends it, and nothing is left either.
        """
        ...

    async def follow(self) -> Finished:
        """Pass on its output until it ends, end what it left, and return how it ended.

        A cancel ends it, as in `run`.
        """
        ...

    async def end(self) -> None:
        """End it and what it started. Returns when `follow` is over; bounded in time."""
        ...


class Processes(Protocol):
    """Child processes.

    Each runs in a session and process group of its own and is ended with the process that started it. A confined child
    ends with this process even if this process is killed. `run` and `start` must be called on the main thread.
    """

    @property
    def sandbox(self) -> Sandbox:
        """How this system confines children."""
        ...

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        """Return the absolute path of a program that the server starts for itself (row O4).

        It is looked up in PATH. The path, every link on the way and the file at their end are outside the workspace
        `folders`. None: there is no such program.
        """
        ...

    async def run(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float,
        output: Callable[[bytes], None],
        *,
        ended: Callable[[Finished], None] | None = None,
        confinement: Confinement | None = None,
    ) -> Finished:
        """Run a shell command to its end; both output streams go to `output` as they come.

        With a confinement it runs in that sandbox or not at all: SandboxFailed is raised if the sandbox could not be
        set up. Then nothing ran and `ended` is not called.

        Returns when the process has ended and a short grace period for its output is over. A cancel ends the whole
        group, waits for it (bounded), and is then raised. If the process was spawned, `ended` is called exactly once
        with how it ended, before this returns or raises. If it was not spawned, this raises FileNotFoundError or
        another OSError.
        """
        ...

    def start(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        output: Callable[[bytes], None],
        *,
        confinement: Confinement | None = None,
    ) -> BackgroundProcess:
        """Start a shell command and return at once. `timeout_s` None: no limit. OSError if it cannot be started.

        With a confinement the caller must await `ready` next.
        """
        ...

    async def end_all(self) -> None:
        """End every child of this process and wait for them; bounded in time."""
        ...

    def survivors(self, mark: str) -> Sequence[OrphanProcess] | None:
        """Return the processes with `STEADYHAND_ATTEMPT_ID=<mark>` in their environment; None: not known here."""
        ...

    async def end(self, survivor: OrphanProcess) -> bool:
        """End this one process and no other; return whether it is gone. Bounded in time."""
        ...

    def alive(self, pid: int) -> bool:
        """Return whether a process with this pid exists; true if the system does not tell."""
        ...

    def started(self, pid: int) -> str:
        """Return when the process with this pid started: opaque, together with the pid it names one process. Empty if
        there is none or the system does not tell."""
        ...

    def own_folders(self) -> tuple[str, ...]:
        """Return the folders that this process loads its code from, absolute and with links resolved: the prefix of its
        interpreter, the interpreter's folder, and its site-packages. A change there changes what runs as the server."""
        ...

    def here(self) -> tuple[int, str, str | None]:
        """Return this process's pid, the host name, and the boot id (None if the system has none)."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the environment that this process was started with."""
        ...
