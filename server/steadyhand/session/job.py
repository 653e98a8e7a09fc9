"""The background commands of a session: those this process started, and those a crash left behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import attrs

from steadyhand.domain.records import record
from steadyhand.domain.records.record import JobEnd
from steadyhand.ports.processes import BackgroundProcess, Finished, OrphanProcess
from steadyhand.tools.commands.job_output import JobOutput
from steadyhand.tools.commands.sandbox_hints import SandboxHints
from steadyhand_values import define, frozen


@define(eq=False)
class RunningJob:
    """A command that this process started.

    `over` is set when its end is recorded. `finished` is None then if following it failed.
    """

    job_id: str
    attempt_id: str
    call_id: str
    title: str
    job: BackgroundProcess
    output: JobOutput
    hints: SandboxHints
    clear: Callable[[], None]  # removes what the command leaves of its own; called in a thread after its end
    over: anyio.Event = attrs.field(factory=anyio.Event)
    finished: Finished | None = None
    ending: JobEnd | None = None  # why this process ends it; None: it does not


@frozen
class LeftJob:
    """A command that a crash left. `alive`: the processes that carry its mark; None: this system cannot tell."""

    job: record.Job
    alive: tuple[OrphanProcess, ...] | None


@frozen
class LeftCommand:
    """An uncertain command of the foreground whose processes outlived a crash."""

    attempt_id: str
    title: str
    alive: tuple[OrphanProcess, ...]


class SessionJobs:
    """The jobs of one session by their ids, and what a crash left running."""

    def __init__(self) -> None:
        self._running: dict[str, RunningJob] = {}
        self._left: dict[str, LeftJob] = {}
        self._left_commands: tuple[LeftCommand, ...] = ()

    @property
    def running(self) -> Mapping[str, RunningJob]:
        """Jobs that this process started; ended ones stay until they are forgotten. They end with the session (E5)."""
        return self._running

    @property
    def left(self) -> Mapping[str, LeftJob]:
        """Jobs that a crash left behind, as opening the session found them."""
        return self._left

    @property
    def left_commands(self) -> tuple[LeftCommand, ...]:
        """Commands of the foreground that a crash left running, as opening the session found them."""
        return self._left_commands

    def keep_left_commands(self, found: tuple[LeftCommand, ...]) -> None:
        """Take in what opening the session found."""
        self._left_commands = found

    def add(self, job: RunningJob) -> None:
        """Take in a job that was just started."""
        self._running[job.job_id] = job

    def forget(self, job_id: str) -> None:
        """Drop an ended job; the ledger still knows that it ended."""
        del self._running[job_id]

    def add_left(self, left: LeftJob) -> None:
        """Take in a job that a crash left."""
        self._left[left.job.job_id] = left

    def forget_left(self, job_id: str) -> None:
        """Drop a job that a crash left, once it is gone."""
        self._left.pop(job_id, None)
