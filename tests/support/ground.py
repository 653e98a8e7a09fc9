"""A workspace of its own for tests of tools, and a disk that lets something happen between any two operations.

`Yard` is a folder tree on the real disk: workspace, state directory with one session's folder, and what is outside.
`BetweenDisk` counts every operation of the port, those that only read too, and calls back before each.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from steadyhand.adapters.disk import system_disk
from steadyhand.core.identity import Arguments, parse_arguments
from steadyhand.core.record import Evidence
from steadyhand.ports import Disk, OpenDocument, Processes
from steadyhand.tools.tool import Done, Gathered, Ground, Planned, Preview, Refusal, Running, Tool
from tests.support.disks import MatchingFault, Verb
from tests.support.fakes import FakeProcesses, run_mark

ATTEMPT = run_mark + "a" * 24


class BetweenDisk:
    """Every method of `ports.Disk`; `before(number, name)` is called first, numbered from 1."""

    def __init__(self, inner: Disk, before: Callable[[int, str], None]) -> None:
        self._inner = inner
        self._before = before
        self.count = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)

        def passed_on(*arguments: Any) -> Any:
            self.count += 1
            self._before(self.count, name)
            return method(*arguments)

        return passed_on


def failing(verb: Verb, number: int = errno.EIO) -> Disk:
    """The system's disk, on which the first operation of this kind fails."""
    return MatchingFault(system_disk(), lambda operation: operation.verb == verb, number)


def between(before: Callable[[int, str], None]) -> Disk:
    """A `BetweenDisk` over the system's disk."""
    return cast(Disk, BetweenDisk(system_disk(), before))


@attrs.define
class Yard:
    """The folders of one test."""

    root: Path
    state: Path
    session: Path
    outside: Path
    documents: dict[str, OpenDocument] = attrs.field(factory=dict)
    given: dict[str, str] = attrs.field(factory=lambda: {"PATH": "/usr/bin:/bin"})

    @staticmethod
    def under(folder: Path) -> Yard:
        folder = folder.resolve()
        yard = Yard(folder / "ws", folder / "state", folder / "state" / "sessions" / "s", folder / "out")
        for made in (yard.root, yard.session, yard.outside):
            made.mkdir(parents=True)
        return yard

    def ground(self, disk: Disk | None = None, processes: Processes | None = None) -> Ground:
        def environment(own: Mapping[str, str]) -> Mapping[str, str]:
            return {**self.given, **own}

        return Ground(
            disk or system_disk(),
            processes or FakeProcesses(),
            str(self.root),
            str(self.state),
            str(self.session),
            self.documents.get,
            lambda: [path for path, document in self.documents.items() if document.unsaved is not False],
            environment,
        )

    def write(self, name: str, content: bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def beside(self) -> list[str]:
        """Names of temporary files left anywhere in the workspace."""
        return sorted(path.name for path in self.root.rglob(".*.steadyhand"))


def arguments(**fields: object) -> Arguments:
    parsed = parse_arguments(json.dumps(fields))
    assert isinstance(parsed, Arguments)
    return parsed


def planned(tool: Tool, ground: Ground, **fields: object) -> Planned:
    found = tool.prepare(arguments(**fields), ground)
    assert not isinstance(found, Refusal), found
    return found


def refusal(tool: Tool, ground: Ground, **fields: object) -> Refusal:
    """The refusal of a call, wherever before the start it comes."""
    found: object = tool.prepare(arguments(**fields), ground)
    if not isinstance(found, Refusal):
        call = cast(Planned, found)
        found = call.preview()
        if isinstance(found, Preview):
            found = call.gather(ATTEMPT, found)
    assert isinstance(found, Refusal), found
    return found


def gathered(call: Planned) -> tuple[Evidence, ...]:
    preview = call.preview()
    assert isinstance(preview, Preview), preview
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, Gathered), found
    return found.evidence


def running(evidence: tuple[Evidence, ...] = (), cancelled: Callable[[], bool] = lambda: False) -> Running:
    return Running(ATTEMPT, "k" * 64, "5" * 32, evidence, cancelled)


async def carried_out(tool: Tool, ground: Ground, **fields: object) -> Done:
    """Prepare, preview, gather and run one call."""
    call = planned(tool, ground, **fields)
    return await call.run(running(gathered(call)))
