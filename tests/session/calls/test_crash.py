"""The tool `crash` is the practice model's alone, and needs permission as a command does (rows O1, P5, G2)."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Settings
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, says
from tests.support.session_state import calls_of, states

pytestmark = pytest.mark.anyio


async def test_crash_is_not_offered_to_another_model_and_is_refused(tmp_path: Path) -> None:
    """A model that is not the practice model is not offered `crash`, and its call is the call of an unknown tool (row
    O1)."""
    settings = Settings(model=ModelName("deepseek", "deepseek-chat"))
    async with scripted_server(tmp_path, asks(call("crash")), says("ok"), settings=settings) as stage:
        session = await stage.session("auto")
        assert (await stage.say(session)).reason == "done"
        assert "crash" not in [offer.name for offer in stage.model.requests[0].tools]
        assert states(session) == ["refused"]
        (made,) = calls_of(session)
        assert made.reply is not None
        assert made.reply.reason == "unknown_tool"


async def test_crash_in_mode_ask_asks_first_and_a_rejected_one_kills_nothing(tmp_path: Path) -> None:
    """In mode `ask` the question comes before the start, with what would happen (rows O1, G2)."""
    park = Park()
    async with scripted_server(tmp_path, asks(call("crash")), says("ok"), editor=ScriptedEditor(park)) as stage:
        session = await stage.session("ask")
        accepted = await stage.send(session, "crash")
        question = await park.wait_any()
        assert question.title == "crash"
        assert "SIGKILL" in question.text
        park.answer_with("reject", None)
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        assert states(session) == ["refused"]


@pytest.mark.parametrize("change", [{"mode": "plan"}, {"trusted": False, "mode": "auto"}], ids=["plan", "untrusted"])
async def test_crash_is_refused_where_no_command_may_run(tmp_path: Path, change: dict[str, object]) -> None:
    """In plan mode and in an untrusted workspace it is refused unasked, as a command is (rows G2, O1)."""
    settings = attrs.evolve(Settings(), **change)  # type: ignore[arg-type]  # the test's own values
    async with scripted_server(tmp_path, asks(call("crash")), says("ok"), settings=settings) as stage:
        session = await stage.session()
        assert (await stage.say(session)).reason == "done"
        assert states(session) == ["refused"]
        assert stage.editor.questions == []
