"""Run one verb of the command line: build a session registry without an editor, run the verb, stop. Returns the exit
code.

0 done; 1 refused or failed, with one sentence on stderr; 2 invalid flags; 128 + n for signal n. In every case turns are
cancelled, children ended and journals closed, as in the server.
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
from steadyhand.cli import commands
from steadyhand.cli.arguments import FLAG, CommandArguments, Verb, parse_arguments
from steadyhand.cli.jobs import jobs
from steadyhand.cli.recovery import recovery
from steadyhand.cli.terminal import Terminal
from steadyhand.domain.errors import Refused
from steadyhand.domain.settings import Settings
from steadyhand.ports.disk import Disk
from steadyhand.ports.encodings import DetectEncodings, no_detection
from steadyhand.ports.model import Models
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids, TextFilter
from steadyhand.session.service.build_context import build_context
from steadyhand.session.service.known_doubts import KnownDoubts
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.storage.state_directory import require_usable, sentence_of
from steadyhand.tools.registry import TOOLS

STOP_S_MAX = 15.0  # until turns, children and journals have ended
OTHER_OWNER_WAIT_S = 1.0
"""How long an effect waits for an unsettled session of the workspace that another process owns."""

_VERBS: Mapping[Verb, Callable[[SessionRegistry, CommandArguments, Terminal], Awaitable[int]]] = {
    "sessions": commands.sessions,
    "show": commands.show,
    "export": commands.export,
    "recovery": recovery,
    "jobs": jobs,
    "permissions": commands.permissions,
    "ask": commands.ask,
    "doctor": commands.doctor,
}

WITHOUT_STATE = frozenset({"doctor"})
"""Verbs that work without a state directory; the doctor says what is wrong with it."""

log = logging.getLogger(__name__)


class CommandLine:
    """Runs once. `settings`: dotted name → value from the flags → the settings, and a clause for each invalid one.

    `known`: the names that `--setting` accepts. `state_directory`: the value of `--state-dir`, or None → the folder.
    """

    def __init__(
        self,
        settings: Callable[[Mapping[str, object]], tuple[Settings, Sequence[str]]],
        known: Collection[str],
        state_directory: Callable[[str | None], str],
        disk: Disk,
        processes: Processes,
        clock: Clock,
        ids: Ids,
        models: Models,
        text_filter: TextFilter | None = None,
        detect: DetectEncodings = no_detection,
    ) -> None:
        self._read_settings = settings
        self._known_settings = known
        self._state_directory = state_directory
        self._disk = disk
        self._processes = processes
        self._clock = clock
        self._ids = ids
        self._models = models
        self._text_filter = text_filter
        self._detect = detect
        self._signal: int | None = None

    def run(self, arguments: Sequence[str]) -> int:
        """Run the command line and return the exit code."""
        flags = parse_arguments(arguments, self._known_settings)
        keyboard = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
        terminal = Terminal(sys.stdout, sys.stderr, keyboard)
        self._settings, faults = self._read_settings(flags.settings)
        if faults:
            terminal.write_note(f"steadyhand: Some settings are invalid, so their defaults apply: {'; '.join(faults)}.")
            if any(fault.startswith(FLAG) for fault in faults):
                return 2
        try:
            return anyio.run(self._run, flags, terminal)
        except BrokenPipeError:  # the reader of the output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1

    async def _run(self, flags: CommandArguments, terminal: Terminal) -> int:
        code = 1
        trouble: BrokenPipeError | None = None
        async with anyio.create_task_group() as tasks:
            registry = self._make_registry(flags, terminal, tasks)
            verb = anyio.CancelScope()
            tasks.start_soon(self._follow_signals, verb)
            try:
                with verb:
                    code = await _run_verb(registry, flags, terminal)
            except BrokenPipeError as broken:
                trouble = broken
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(STOP_S_MAX):
                    await registry.stop()
                tasks.cancel_scope.cancel()
        if trouble is not None:
            raise trouble
        return code if self._signal is None else 128 + self._signal

    def _make_registry(self, flags: CommandArguments, terminal: Terminal, tasks: TaskGroup) -> SessionRegistry:
        def spawn(work: Callable[[], Awaitable[None]], subject: str) -> None:
            tasks.start_soon(_log_failures, work, subject)

        context = build_context(
            disk=self._disk,
            processes=self._processes,
            clock=self._clock,
            ids=self._ids,
            models=self._models,
            editor=terminal,
            tools={tool.name: tool for tool in TOOLS},
            version=__version__,
            state_directory=self._state_directory(flags.state_directory),
            spawn=spawn,
            settings=self._settings,
            text_filter=self._text_filter,
            detect=self._detect,
        )
        if context.providers is not None:
            context.providers.connect(lambda: context.settings, None)
        registry = SessionRegistry(context)
        KnownDoubts(registry, list, OTHER_OWNER_WAIT_S)
        return registry

    async def _follow_signals(self, verb: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for number in received:
                self._signal = self._signal or int(number)
                verb.cancel()


async def _run_verb(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    context = registry.context
    try:
        if flags.verb not in WITHOUT_STATE:
            await context.in_thread(require_usable, context)
        return await _VERBS[flags.verb](registry, flags, terminal)
    except Refused as refused:
        terminal.end_stream()
        if flags.is_json:
            terminal.write_json({"error": {"kind": refused.kind, "message": refused.message, **refused.more}})
        terminal.write_note(f"steadyhand: {refused.message}")
    except BrokenPipeError:
        raise
    except OSError as error:
        sentence = await context.in_thread(sentence_of, context.disk, context.state_directory, error)
        terminal.write_note(f"steadyhand: {sentence}")
    return 1


async def _log_failures(work: Callable[[], Awaitable[None]], subject: str) -> None:
    try:
        await work()
    except Exception as error:
        log.error("%s failed unexpectedly", subject, exc_info=error)
