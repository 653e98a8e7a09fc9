"""What all attempts share: a row of a table, its mark while it is still open, and one call played in a session.

A table has one attempt a line. Its row says what is tried and what must happen. A row with `pending="case 115"` is an
attempt that still succeeds: the test demands that it does (a strict xfail), so whoever stops it has to remove the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import attrs
import pytest

from steadyhand.config.settings import read_settings
from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.records.record import Mode
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.questions import Choice, PermissionQuestion
from steadyhand.domain.views.sentences import outcome_of
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, says
from tests.support.workspace import Workspace

Arrange = Callable[[Workspace], object]
NAME_CHARS_MAX = 90


class Row(Protocol):
    """A row of a table: `pending` names the case that will stop it; None: it is stopped."""

    @property
    def name(self) -> str: ...

    @property
    def pending(self) -> str | None: ...


def rows(table: Iterable[Row]) -> list[object]:
    """The parameters of a test over a table; names must differ."""
    listed = list(table)
    names = [row.name for row in listed]
    assert len(set(names)) == len(names), sorted({name for name in names if names.count(name) > 1})
    return [pytest.param(row, id=_id_of(row.name), marks=_marks(row.pending)) for row in listed]


def _id_of(name: str) -> str:
    return name.encode("unicode_escape").decode()[:NAME_CHARS_MAX]


def _marks(pending: str | None) -> list[pytest.MarkDecorator]:
    return [] if pending is None else [pytest.mark.xfail(strict=True, reason=pending, raises=AssertionError)]


@attrs.frozen
class Played:
    """What became of one call. `did`: "ran" (nobody was asked), "asked" (we said no), "refused" (nobody was asked)."""

    did: str
    reason: str | None
    reply: str
    questions: tuple[PermissionQuestion, ...]
    commands: tuple[str, ...]  # commands that were started


def settings_of(*, mode: Mode = "ask", trusted: bool = True, **permissions: Sequence[str]) -> Settings:
    """Settings of the machine with these permission rules; they must be valid."""
    read = read_settings({"mode": mode, "trusted": trusted, "permissions": dict(permissions)}, {})
    assert read.faults == (), read.faults
    return read.settings


async def play(folder: Path, call: CallProposed, settings: Settings, arrange: Arrange = lambda _: None) -> Played:
    """Play one call in a session of its own; commands are not really run. Every question is rejected."""
    editor = ScriptedEditor(permission=lambda _: Choice("reject"))
    processes = FakeProcesses(otherwise=Script(), environment={"PATH": "/usr/bin:/bin"})
    async with scripted_server(
        folder, asks(call), says("ok"), editor=editor, processes=processes, settings=settings
    ) as stage:
        arrange(stage.workspace)
        return await played(stage, editor, processes)


async def played(stage: InProcessServer, editor: ScriptedEditor, processes: FakeProcesses) -> Played:
    """Run the turn of a server whose model makes one call; return what became of the call."""
    session = await stage.session()
    await stage.say(session)
    (one,) = session.ledger.calls.values()
    outcome, reason = outcome_of(one)
    asked = tuple(editor.questions)
    did = "asked" if asked else "ran" if outcome == "returned" else "refused"
    reply = one.reply.text if one.reply is not None else ""
    return Played(did, reason, reply, asked, tuple(run.command for run in processes.runs))
