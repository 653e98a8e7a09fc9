"""A quick question: one request outside the history, under the session's lease. The session keeps only its prompt,
usage and end (rows S2, U1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import AssistantMessage, ProviderError, TextPart, UserMessage
from steadyhand.domain.records.prompt import Attachment, FileAttachment, Prompt, TextAttachment
from steadyhand.domain.records.record import User
from steadyhand.domain.views.types import Began, TextDelta, TurnEnded, UsageChanged, Warned
from steadyhand.session.service import prompt_queue, session_settings
from steadyhand.session.session import Session
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, says, write
from tests.support.session_state import kinds, on_disk
from tests.support.waiting import Gate, until

pytestmark = pytest.mark.anyio


async def ask(
    session: Session, text: str = "what is this?", name: str = "q1", attachments: tuple[Attachment, ...] = ()
) -> prompt_queue.Accepted:
    return await prompt_queue.submit(session, session.epoch, name, Prompt(text, attachments, aside=True))


def answer_text(stage: InProcessServer, turn_id: str) -> str:
    return "".join(event.delta for event in stage.events(turn_id) if isinstance(event, TextDelta))


async def test_quick_question_sees_history_without_entering_it(tmp_path: Path) -> None:
    """Rows S2, P4, docs/protocol.md: The request contains the history and may call nothing. The editor sees an
    ordinary turn, and later requests do not contain the question."""
    async with scripted_server(tmp_path, says("1"), says("aside"), says("2")) as stage:
        session = await stage.session()
        await stage.say(session, "one", "c1")
        accepted = await ask(session)
        assert await stage.ended(session, accepted.turn_id) == TurnEnded("done", ())
        events = stage.events(accepted.turn_id)
        assert [type(event) for event in events] == [Began, TextDelta, UsageChanged, TurnEnded]
        assert answer_text(stage, accepted.turn_id) == "aside"
        await stage.say(session, "two", "c2")
        first, quick, last = stage.model.requests
        assert [type(message) for message in quick.messages] == [UserMessage, AssistantMessage, UserMessage]
        assert quick.messages[: len(first.messages)] == first.messages
        assert (quick.system, quick.tools) == (first.system, first.tools)
        assert (first.can_call, quick.can_call, last.can_call) == (True, False, True)
        assert [message.text for message in last.messages] == ["one", "1", "two"]


async def test_quick_question_records_only_prompt_usage_and_end(tmp_path: Path) -> None:
    """Rows S2, U1, S3: The session keeps the prompt, its usage and its end. It keeps no answer, message or title,
    and the export contains nothing of it."""
    async with scripted_server(tmp_path, says("aside")) as stage:
        session = await stage.session()
        accepted = await ask(session)
        await stage.ended(session, accepted.turn_id)
        assert kinds(session)[2:] == ["user", "usage", "ended"]
        assert session.messages(9) == ((), False)
        assert "what is this" not in session_settings.export_text(session, "markdown")
        assert session.view().title == ""
        assert (session_settings.usage(session).billed.input, session_settings.usage(session).billed.output) == (10, 5)
        assert prompt_queue.status_of(session, "q1").state == "ended"
        again = await ask(session)
        assert (again.turn_id, again.duplicate) == (accepted.turn_id, True)
        await stage.say(session, "the first prompt", "c1")
        assert session.view().title == "the first prompt"


async def test_quick_question_behind_a_running_turn_is_queued(tmp_path: Path) -> None:
    """Rows S2, S4: While a turn runs, the question waits in the queue like any prompt, and the queue marks it as a
    quick question."""
    gate = Gate()
    async with scripted_server(tmp_path, [gate, *says("1")], says("aside")) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        await gate.wait_reached()
        accepted = await ask(session)
        assert accepted.queued
        assert [(item.text, item.aside) for item in session.queue()] == [("what is this?", True)]
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        assert [record.aside for record in on_disk(session) if isinstance(record, User)] == [False, True]


async def test_quick_question_after_crash_is_not_asked_again(tmp_path: Path) -> None:
    """Rows S2, D1 [I4]: A question that was running stays interrupted. A question that was waiting is in the queue,
    paused."""
    gate = Gate()
    async with scripted_server(tmp_path, [TextPart("half"), gate]) as stage:
        session = await stage.session()
        accepted = await ask(session)
        await ask(session, "and this?", "q2")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "later")
    async with scripted_server(tmp_path, says("2"), state=state, run=2) as stage:
        view = await stage.registry.open(session.session_id, 9)
        assert view.messages == ()
        assert [(item.text, item.aside, item.paused) for item in view.queue] == [("and this?", True, True)]
        again = await stage.opened(session.session_id)
        assert prompt_queue.status_of(again, "q1").state == "interrupted"
        assert (await ask(again)).turn_id == accepted.turn_id
        assert stage.model.requests == []
        await stage.say(again, "one", "c1")
        assert [message.text for message in stage.model.requests[0].messages] == ["one"]


async def test_quick_question_with_call_runs_nothing_and_warns(tmp_path: Path) -> None:
    """Row S2: If the model calls a tool although it may not, the server runs nothing, asks nothing and warns the
    user."""
    async with scripted_server(tmp_path, asks(write("a.txt", "1"), text="let me see")) as stage:
        session = await stage.session("auto")
        accepted = await ask(session)
        assert (await stage.ended(session, accepted.turn_id)).reason == "done"
        warnings = [event.text for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert warnings == ["The model asked for tools, but a quick question has none. Nothing ran."]
        assert stage.content("a.txt") is None
        assert session.ledger.calls == {}
        assert len(stage.model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "reason", "usages"),
    [
        (says("odd", finish="unknown"), "done", 1),
        ([ProviderError("No key is set.")], "modelFailed", 0),
        ([TextPart("half"), ProviderError("The provider went away.")], "modelFailed", 1),
        (says("half", finish=None), "cut", 1),
        (says("half", finish="length"), "length", 1),
    ],
)
async def test_quick_question_with_incomplete_answer_ends_with_its_reason(
    tmp_path: Path, answer: list[TextPart], reason: str, usages: int
) -> None:
    """Rows T6, P3: The turn ends with the reason, and the session keeps no text of the answer."""
    async with scripted_server(tmp_path, answer) as stage:
        session = await stage.session()
        accepted = await ask(session)
        assert (await stage.ended(session, accepted.turn_id)).reason == reason
        assert kinds(session).count("usage") == usages
        assert "assistant" not in kinds(session)


async def test_quick_question_stopped_counts_usage_and_keeps_no_text(tmp_path: Path) -> None:
    """Row G8: A stop ends the turn. The text shown until then counts as usage, and the session does not keep it."""
    gate = Gate()
    async with scripted_server(tmp_path, [TextPart("half"), gate]) as stage:
        session = await stage.session()
        accepted = await ask(session)
        await gate.wait_reached()
        assert await prompt_queue.cancel(session, accepted.turn_id)
        assert (await stage.ended(session, accepted.turn_id)).reason == "cancelled"
        assert kinds(session)[2:] == ["user", "cancel", "usage", "ended"]
        assert not session_settings.usage(session).complete


async def test_quick_question_attachments_reach_only_its_own_request(tmp_path: Path) -> None:
    """Rows G5, S2: The server reads the attachments for this one request and keeps nothing of them."""
    async with scripted_server(tmp_path, says("aside"), says("1")) as stage:
        session = await stage.session()
        (stage.root / "a.txt").write_text("content\n")
        accepted = await ask(session, attachments=(FileAttachment("a.txt"), TextAttachment("notes", "more")))
        await stage.ended(session, accepted.turn_id)
        message = stage.model.requests[0].messages[-1]
        assert isinstance(message, UserMessage)
        assert "content\n" in message.attached
        assert "attached" not in kinds(session)
        await stage.say(session, "one", "c1")
        assert [message.text for message in stage.model.requests[1].messages] == ["one"]


async def test_quick_question_with_slash_command_is_refused(tmp_path: Path) -> None:
    """docs/protocol.md: A slash command asks no model, so the server refuses it as a quick question and names the
    field."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        with pytest.raises(Refused) as refused:
            await ask(session, "/help")
        assert refused.value.more["errors"] == [{"path": "$.aside", "message": "a slash command asks no model"}]
        assert not prompt_queue.status_of(session, "q1").known


async def test_quick_question_leaves_settled_effects_shown(tmp_path: Path) -> None:
    """Row B3: A prompt begins a turn, which ends the display of settled effects. A quick question does not count as
    such a turn."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        accepted = await ask(session)
        await stage.ended(session, accepted.turn_id)
        assert session.ledger.turns_begun == 0
        await stage.say(session, "one", "c1")
        assert session.ledger.turns_begun == 1


async def test_practice_model_answers_quick_question_without_calls(tmp_path: Path) -> None:
    """Row P5, docs/protocol.md: The practice model answers a quick question with one sentence, whatever the question
    asks for."""
    practice = PracticeModel()
    async with scripted_server(tmp_path, models=lambda provider, name: practice) as stage:
        session = await stage.session("auto")
        accepted = await ask(session, "write a.txt with 1")
        await stage.ended(session, accepted.turn_id)
        assert answer_text(stage, accepted.turn_id) == "I do not call tools here."
        assert stage.content("a.txt") is None


async def test_quick_question_behind_a_parked_turn_is_queued(tmp_path: Path) -> None:
    """Row S2: A turn with an open question to the user holds the lease. The quick question does not pass it."""
    park = Park()
    async with scripted_server(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        session = await stage.session()
        await stage.send(session, "one", "c1")
        await park.wait_open()
        accepted = await ask(session)
        assert accepted.queued
        assert len(stage.model.requests) == 1
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        await until(lambda: not session.view().busy)
        assert [request.can_call for request in stage.model.requests] == [True, True, False]
