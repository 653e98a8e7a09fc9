"""A clock, ids and processes that do the same each time.

`FakeClock` advances by a millisecond at each reading, and otherwise only when told. `FakeIds` counts, from a start that
differs between test runs: real commands carry ids as marks, and concurrent test runs must not find, or end, one
another's commands. `FakeProcesses` plays scripted commands and knows the survivors of each mark.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence

import anyio
import anyio.lowlevel
import attrs

from steadyhand.ports.processes import Finished, OrphanProcess
from steadyhand.ports.sandbox import Confinement, SandboxFailed, SandboxStatus

run_mark = f"{os.getpid():08x}"  # read once, so that a fork keeps it
first_moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.timezone.utc)
well_finished = Finished(exit_code=0, signal=None, timed_out=False, left=(), group_empty=True)
ended_by_cancel = Finished(exit_code=None, signal=15, timed_out=False, left=(), group_empty=True)


_own_mark = run_mark


def own_marks() -> None:
    """Give a fork that runs beside others its own ids from now on, all but the first, which tests know."""
    global _own_mark
    _own_mark = f"{os.getpid():08x}"


def id_of(number: int) -> str:
    """The `number`th id that `FakeIds` gives."""
    return f"{run_mark if number == 1 else _own_mark}{number:024x}"


class FakeClock:
    """`ports.Clock`; the first `now` is 2026-01-02T03:04:05.678Z."""

    def __init__(self) -> None:
        self._passed_ms = 0

    def advance(self, seconds: float) -> None:
        self._passed_ms += round(seconds * 1000)

    def now(self) -> str:
        moment = first_moment + datetime.timedelta(milliseconds=self._passed_ms)
        self._passed_ms += 1
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"

    def monotonic_s(self) -> float:
        return self._passed_ms / 1000


class FakeIds:
    """`ports.Ids`: 1, 2, 3 … as 32 hex digits, see `id_of`. `start` keeps two process runs of one test apart."""

    def __init__(self, start: int = 1) -> None:
        self._next = start

    def new(self) -> str:
        made = id_of(self._next)
        self._next += 1
        return made


@attrs.frozen
class Run:
    """A command that was asked for."""

    command: str
    cwd: str
    environment: Mapping[str, str]
    timeout_s: float
    confinement: Confinement | None = None


class FakeSandbox:
    """`ports.Sandbox` that finds what it is told; at first that nothing can be confined here."""

    def __init__(self) -> None:
        self.found = SandboxStatus("none", "none", is_sealable=False, landlock_abi=0, why="This is a fake.")
        self.probed: list[tuple[str, ...]] = []  # the folders of each probe

    def probe(self, folders: Sequence[str] = ()) -> SandboxStatus:
        self.probed.append(tuple(folders))
        return self.found

    def status(self) -> SandboxStatus | None:
        return self.found if self.probed else None


@attrs.define
class Script:
    """What happens when a command runs: output, an effect, then its end, a refusal to start, or no end at all."""

    output: Sequence[bytes] = ()
    finished: Finished = well_finished
    effect: Callable[[Run], None] | None = None
    not_started: OSError | None = None
    hangs: bool = False  # until it is cancelled or `end_all` is called
    after_cancel: Finished = ended_by_cancel
    started: anyio.Event | None = None  # set once it runs


class FakeJob:
    """`ports.Job` from a script."""

    def __init__(
        self, processes: FakeProcesses, script: Script, run: Run, output: Callable[[bytes], None], pid: int
    ) -> None:
        self._processes = processes
        self._script = script
        self._run = run
        self._output = output
        self._wanted = anyio.CancelScope()
        self._over = anyio.Event()
        self.pid = pid
        self.started = f"start-{pid}"

    async def ready(self) -> None:
        await anyio.lowlevel.checkpoint()
        if isinstance(self._script.not_started, SandboxFailed):
            raise self._script.not_started

    async def follow(self) -> Finished:
        try:
            with self._wanted:
                await self._processes.play(self._script, self._run, self._output)
            ended = self._wanted.cancelled_caught or self._script.hangs
            return self._script.after_cancel if ended else self._script.finished
        finally:
            self._over.set()

    async def end(self) -> None:
        self._wanted.cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()


class FakeProcesses:
    """`ports.Processes` from `scripts` (command → script, else `otherwise`), `survivors_of` and `living`."""

    def __init__(
        self,
        scripts: Mapping[str, Script] | None = None,
        otherwise: Script | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.scripts = dict(scripts or {})
        self.otherwise = otherwise
        self.given = dict(environment or {})
        self.runs: list[Run] = []
        self.survivors_of: dict[str, Sequence[OrphanProcess] | None] = {}
        self.untold = False  # True: for no mark can it be told whether it has survivors
        self.living: set[int] = {1}
        self.identity: tuple[int, str, str | None] = (1, "here", "boot-1")
        self.all_ended = 0
        self.ended: list[OrphanProcess] = []
        self.immortal: set[int] = set()
        self.next_pid = 1000
        self.sandbox = FakeSandbox()
        self.folders: tuple[str, ...] = ()
        self.programs: dict[str, str] = {}
        self._end_all = anyio.Event()

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
        run = Run(command, cwd, dict(environment), timeout_s, confinement)
        script = self.scripts.get(command, self.otherwise)
        assert script is not None, f"no script for the command {command!r}"
        self.runs.append(run)
        if script.not_started is not None:
            raise script.not_started
        finished = script.after_cancel
        try:
            await self.play(script, run, output)
            finished = script.after_cancel if script.hangs else script.finished
        finally:
            if ended is not None:
                ended(finished)
        return finished

    def start(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        output: Callable[[bytes], None],
        *,
        confinement: Confinement | None = None,
    ) -> FakeJob:
        run = Run(command, cwd, dict(environment), -1.0 if timeout_s is None else timeout_s, confinement)
        script = self.scripts.get(command, self.otherwise)
        assert script is not None, f"no script for the command {command!r}"
        self.runs.append(run)
        if script.not_started is not None and not isinstance(script.not_started, SandboxFailed):
            raise script.not_started
        self.next_pid += 1
        return FakeJob(self, script, run, output, self.next_pid)

    async def end(self, survivor: OrphanProcess) -> bool:
        self.ended.append(survivor)
        for mark, found in self.survivors_of.items():
            if found is not None and survivor.pid not in self.immortal:
                self.survivors_of[mark] = [one for one in found if one != survivor]
        return survivor.pid not in self.immortal

    async def play(self, script: Script, run: Run, output: Callable[[bytes], None]) -> None:
        if script.started is not None:
            script.started.set()
        for piece in script.output:
            output(piece)
            await anyio.lowlevel.checkpoint()
        if script.effect is not None:
            script.effect(run)
        if script.hangs:
            await self._end_all.wait()

    async def end_all(self) -> None:
        self.all_ended += 1
        self._end_all.set()

    def survivors(self, mark: str) -> Sequence[OrphanProcess] | None:
        return None if self.untold else self.survivors_of.get(mark, ())

    def program(self, name: str, folders: Sequence[str]) -> str | None:
        return self.programs.get(name)

    def alive(self, pid: int) -> bool:
        return pid in self.living

    def started(self, pid: int) -> str:
        return f"start of {pid}" if pid in self.living else ""

    def own_folders(self) -> tuple[str, ...]:
        return self.folders

    def here(self) -> tuple[int, str, str | None]:
        return self.identity

    def environment(self) -> Mapping[str, str]:
        return dict(self.given)
