"""Which uncertain effect a held-back call asks about, and in what order (rows B1, B4)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.views.questions import HeldBackQuestion
from steadyhand.domain.views.types import Action
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import Park, ScriptedEditor, uncertain_of
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import outcomes, replies, states

pytestmark = pytest.mark.anyio


async def test_held_back_call_asks_about_the_oldest_effect_first(tmp_path: Path) -> None:
    """B1: each uncertain effect is one question, in the order in which they began; then the call runs."""
    answers = (asks(call("deploy", n=1)), says("1"), asks(call("deploy", n=2)), says("2"), asks(write("a.txt", "a")))
    editor = ScriptedEditor("waive", "waive")
    tools = [ScriptedTool("deploy", breaks, "opaque")]
    async with scripted_server(tmp_path, *answers, says("3"), editor=editor, tools=tools) as harness:
        session = await harness.session("auto")
        await harness.say(session, "one")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session, "neighbours", list)  # the second one began before the first was uncertain
            await harness.say(session, "two")
        first, second = (attempt.attempt_id for attempt in session.ledger.uncertain())
        await harness.say(session, "three")
        asked = [uncertain_of(question).attempt_id for question in editor.held_back_questions]
        assert asked == [first, second]
        assert states(session)[-1] == "returned"
        assert harness.content("a.txt") == "a"


async def breaks(_: CallContext) -> ToolOutcome:
    raise RuntimeError("inside")


@asynccontextmanager
async def held_write(tmp_path: Path, editor: ScriptedEditor) -> AsyncIterator[tuple[InProcessServer, Session, Attempt]]:
    """A session whose command became unknown, and whose model proposes a write next."""
    answers = (asks(call("deploy", n=1)), says("1"), asks(write("a.txt", "a")))
    tools = [ScriptedTool("deploy", breaks, "opaque")]
    async with scripted_server(tmp_path, *answers, says("2"), says("3"), editor=editor, tools=tools) as harness:
        session = await harness.session("auto")
        await harness.say(session, "one")
        (attempt,) = session.ledger.uncertain()
        yield harness, session, attempt


@pytest.mark.parametrize(
    ("answer", "settled"), [("confirm", "user_confirmed"), ("waive", "waived")], ids=["confirm", "waive"]
)
async def test_held_back_call_goes_on_after_its_effect_is_settled(tmp_path: Path, answer: str, settled: str) -> None:
    """B1, B4: the answer settles the effect for the inspection that the question showed; then the call runs."""
    async with held_write(tmp_path, ScriptedEditor(answer)) as (harness, session, attempt):
        await harness.say(session, "two")
        (question,) = harness.editor.held_back_questions
        assert [option.id for option in question.options] == ["inspect", "confirm", "waive", "refuse"]
        assert (question.session_id, question.tool, question.title) == (
            session.session_id,
            "write_file",
            "write_file: a.txt",
        )
        assert json.loads(question.arguments) == {"path": "a.txt", "content": "a"}
        assert question.turn_id in session.ledger.turns
        assert session.ledger.calls[question.call_id].tool == "write_file"
        assert uncertain_of(question).attempt_id == attempt.attempt_id
        assert question.text.startswith(
            "“write_file: a.txt” is waiting: an earlier effect is uncertain and may touch the same files. “deploy”:"
        )
        assert question.text.endswith("Settle that effect, or refuse the call.")
        assert attempt.settlement is not None
        assert attempt.inspection is not None
        assert (attempt.settlement.settled, attempt.settlement.by) == (settled, "user")
        assert attempt.settlement.inspection_id == attempt.inspection.inspection_id
        assert harness.content("a.txt") == "a"
        started = session.ledger.calls[question.call_id].attempts[-1].started
        assert started is not None
        assert started.held


async def test_held_back_call_is_asked_about_again_after_each_inspection(tmp_path: Path) -> None:
    """B4: `inspect` settles nothing: the next question has a new inspection."""
    async with held_write(tmp_path, ScriptedEditor("inspect", "inspect", "waive")) as (harness, session, attempt):
        await harness.say(session, "two")
        questions = harness.editor.held_back_questions
        assert len({question.ask_id for question in questions}) == len(questions) == 3
        notes = [uncertain_of(question).inspection for question in questions]
        inspections = {note.inspection_id for note in notes if note is not None}
        assert len(inspections) == 3
        assert attempt.settlement is not None
        assert harness.content("a.txt") == "a"


async def test_held_back_call_that_is_refused_does_not_run(tmp_path: Path) -> None:
    """B4: the person refuses this call; the effect stays uncertain, and the model is told to ask."""
    async with held_write(tmp_path, ScriptedEditor("refuse")) as (harness, session, attempt):
        await harness.say(session, "two")
        assert outcomes(session)[-1] == ("refused", "denied")
        assert "The user refused it while an uncertain effect is unresolved." in replies(session)[-1]
        assert attempt.uncertain
        assert harness.content("a.txt") is None


@pytest.mark.parametrize("nobody", ["dismissed", "not attached"])
async def test_held_back_call_without_an_answer_is_refused_as_recovery_required(tmp_path: Path, nobody: str) -> None:
    """B4: the reply names the effect and every way to settle it."""
    editor = ScriptedEditor(None, somebody=nobody == "dismissed")
    async with held_write(tmp_path, editor) as (harness, session, attempt):
        await harness.say(session, "two")
        assert outcomes(session)[-1] == ("refused", "recovery_required")
        assert f"the outcome of “deploy” (attempt {attempt.attempt_id}) is unknown" in replies(session)[-1]
        assert len(editor.held_back_questions) == (1 if nobody == "dismissed" else 0)
        assert attempt.uncertain
        assert session.ledger.held_back == 1
        assert harness.content("a.txt") is None


@pytest.mark.parametrize("action", ["waive", "reject"])
async def test_question_about_an_effect_resolved_elsewhere_is_withdrawn(tmp_path: Path, action: Action) -> None:
    """A3, B4: what was decided at the file counts as the answer; a reject leaves it uncertain, so it is asked anew."""
    park = Park()
    async with held_write(tmp_path, ScriptedEditor(park, "waive")) as (harness, session, attempt):
        accepted = await harness.send(session, "two")
        question = await park.wait_any()
        assert isinstance(question, HeldBackQuestion)
        note = uncertain_of(question).inspection
        assert note is not None
        seen = note.inspection_id
        await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=seen))
        await harness.ended(session, accepted.turn_id)
        assert park.withdrawn
        assert len(harness.editor.held_back_questions) == (2 if action == "reject" else 1)
        assert harness.content("a.txt") == "a"


async def test_answer_to_an_effect_of_another_session_settles_it_there(tmp_path: Path) -> None:
    """[I6], B1: the question names the other session; the settlement is in its journal."""
    editor = ScriptedEditor("waive")
    async with held_write(tmp_path, editor) as (harness, session, attempt):
        other = await harness.session("auto")
        await harness.say(other, "mine")
        (question,) = editor.held_back_questions
        assert question.session_id == other.session_id
        assert uncertain_of(question).session_id == session.session_id
        assert f"an earlier effect of session “{session.name}” is uncertain" in question.text
        assert attempt.settlement is not None
        assert other.ledger.uncertain() == []
