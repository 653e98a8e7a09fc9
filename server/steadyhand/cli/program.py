"""One run of the program with a verb: a house without an editor, the verb, and the way out. The exit code.

0 done; 1 refused or failed, with one sentence on stderr; 2 bad flags; 128 + n for signal n. On every way out turns are
cancelled, children ended and journals closed, as when serving.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import anyio
from anyio.abc import TaskGroup

from steadyhand import __version__
from steadyhand.cli import verbs
from steadyhand.cli.flags import FLAG, Flags, Verb, read
from steadyhand.cli.jobs import jobs
from steadyhand.cli.recovery import recovery
from steadyhand.cli.terminal import Terminal
from steadyhand.core.refusal import Refused
from steadyhand.core.settings import Settings
from steadyhand.ports import Clock, Disk, Ids, Models, Processes, TextFilter
from steadyhand.session.house import House
from steadyhand.session.world import World
from steadyhand.tools.catalogue import TOOLS

stop_s_max = 15.0

_VERBS: Mapping[Verb, Callable[[House, Flags, Terminal], Awaitable[int]]] = {
    "sessions": verbs.sessions,
    "show": verbs.show,
    "export": verbs.export,
    "recovery": recovery,
    "jobs": jobs,
    "permissions": verbs.permissions,
    "ask": verbs.ask,
    "doctor": verbs.doctor,
}

log = logging.getLogger(__name__)


class CommandLine:
    """Runs once. `settings`: what flags say, by dotted name → the settings, and a clause for each bad one; `known`: the
    names that `--setting` takes. `state_directory`: what `--state-dir` says, or None → the folder."""

    def __init__(
        self, settings: Callable[[Mapping[str, object]], tuple[Settings, Sequence[str]]], known: Collection[str],
        state_directory: Callable[[str | None], str],
        disk: Disk, processes: Processes, clock: Clock, ids: Ids, models: Models,
        text_filter: TextFilter | None = None,
    ) -> None:  # fmt: skip
        self._settings_of = settings
        self._known = known
        self._state_directory = state_directory
        self._disk = disk
        self._processes = processes
        self._clock = clock
        self._ids = ids
        self._models = models
        self._text_filter = text_filter
        self._signal: int | None = None

    def run(self, arguments: Sequence[str]) -> int:
        flags = read(arguments, self._known)
        keyboard = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        terminal = Terminal(sys.stdout, sys.stderr, keyboard)
        self._settings, faults = self._settings_of(flags.settings)
        if faults:
            terminal.note(f"steadyhand: Some settings are not used and have their defaults: {'; '.join(faults)}.")
            if any(fault.startswith(FLAG) for fault in faults):
                return 2
        try:
            return anyio.run(self._run, flags, terminal)
        except BrokenPipeError:  # whoever read the answer has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1

    async def _run(self, flags: Flags, terminal: Terminal) -> int:
        code = 1
        trouble: BrokenPipeError | None = None
        async with anyio.create_task_group() as tasks:
            house = self._house(flags, terminal, tasks)
            verb = anyio.CancelScope()
            tasks.start_soon(self._follow_signals, verb)
            try:
                with verb:
                    code = await _carried_out(house, flags, terminal)
            except BrokenPipeError as broken:
                trouble = broken
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(stop_s_max):
                    await house.stop()
                tasks.cancel_scope.cancel()
        if trouble is not None:
            raise trouble
        return code if self._signal is None else 128 + self._signal

    def _house(self, flags: Flags, terminal: Terminal, tasks: TaskGroup) -> House:
        def spawn(work: Callable[[], Awaitable[None]], subject: str) -> None:
            tasks.start_soon(_guarded, work, subject)

        world = World(
            disk=self._disk, processes=self._processes, clock=self._clock, ids=self._ids, models=self._models,
            editor=terminal, tools={tool.name: tool for tool in TOOLS}, version=__version__,
            state_directory=self._state_directory(flags.state_directory), spawn=spawn, settings=self._settings,
            text_filter=self._text_filter,
        )  # fmt: skip
        if world.providers is not None:
            world.providers.connect(lambda: world.settings, None)
        return House(world)

    async def _follow_signals(self, verb: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for number in received:
                self._signal = self._signal or int(number)
                verb.cancel()


async def _carried_out(house: House, flags: Flags, terminal: Terminal) -> int:
    try:
        return await _VERBS[flags.verb](house, flags, terminal)
    except Refused as refused:
        terminal.finish()
        if flags.json:
            terminal.answer({"error": {"kind": refused.kind, "message": refused.message, **refused.more}})
        terminal.note(f"steadyhand: {refused.message}")
    except BrokenPipeError:
        raise
    except OSError as error:
        terminal.note(f"steadyhand: The state directory cannot be used ({error.strerror}). Make it readable.")
    return 1


async def _guarded(work: Callable[[], Awaitable[None]], subject: str) -> None:
    try:
        await work()
    except Exception as error:
        log.error("%s failed unexpectedly", subject, exc_info=error)
