"""Several uncertain effects hold one call back: one question each, oldest first, by no clock (B4, case 166)."""

from __future__ import annotations

import pytest

from tests.support.editor import ScriptedEditor, uncertain_of
from tests.support.fakes import FakeClock
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION
from tests.support.redo import run_uncertain_command
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


@pytest.mark.parametrize("clock_s", [0, -24 * 60 * 60, 24 * 60 * 60])
async def test_questions_about_several_effects_come_oldest_first(present: Workspace, clock_s: float) -> None:
    """B4, case 166: the effect of an earlier process comes before one that this process started, though the session of
    the latter was opened first, and whatever the clock says."""
    present.write("a.txt", "somebody's\n")
    editor = ScriptedEditor("waive", "waive")
    async with practice_server(present, run=2, editor=editor) as server:
        clock = server.registry.context.clock
        assert isinstance(clock, FakeClock)
        clock.advance(clock_s)
        other = await server.create()
        here = await run_uncertain_command(server, other)
        await server.open(SESSION)
        (earlier,) = server.ledger(SESSION).uncertain()
        session = await server.session()
        assert (await server.say(session, "write a.txt with more")).reason == "done"
        asked = [uncertain_of(question).attempt_id for question in editor.held_back_questions]
        assert asked == [earlier.attempt_id, here.attempt_id]
    assert present.content("a.txt") == "more"
