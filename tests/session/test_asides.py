"""A quick question: one request beside the history, under the lease; of it the usage alone is kept (rows S2, U1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.core.model import AssistantMessage, ModelTrouble, TextPart, UserMessage
from steadyhand.core.prompt import Attachment, FileAttachment, Prompt, TextAttachment
from steadyhand.core.record import User
from steadyhand.core.refusal import Refused
from steadyhand.core.views import Began, TextDelta, TurnEnded, UsageTold, Warned
from steadyhand.session import desk, prompts
from steadyhand.session.owner import Owner
from tests.support.scripted import (
    Gate,
    Park,
    ScriptedEditor,
    Stage,
    asks,
    kinds,
    on_disk,
    says,
    staged,
    until,
    write,
)

pytestmark = pytest.mark.anyio


async def ask(
    owner: Owner, text: str = "what is this?", name: str = "q1", attachments: tuple[Attachment, ...] = ()
) -> prompts.Accepted:
    return await prompts.prompt(owner, owner.epoch, name, Prompt(text, attachments, aside=True))


def heard(stage: Stage, turn_id: str) -> str:
    return "".join(event.delta for event in stage.events(turn_id) if isinstance(event, TextDelta))


async def test_one_request_beside_the_history(tmp_path: Path) -> None:
    """Row S2, wire.md: it sees the history, may call nothing, is a turn to the editor, and later requests know
    nothing of it (P4)."""
    async with staged(tmp_path, says("1"), says("aside"), says("2")) as stage:
        owner = await stage.session()
        await stage.say(owner, "one", "c1")
        accepted = await ask(owner)
        assert await stage.ended(owner, accepted.turn_id) == TurnEnded("done", ())
        events = stage.events(accepted.turn_id)
        assert [type(event) for event in events] == [Began, TextDelta, UsageTold, TurnEnded]
        assert heard(stage, accepted.turn_id) == "aside"
        await stage.say(owner, "two", "c2")
        first, quick, last = stage.model.requests
        assert [type(message) for message in quick.messages] == [UserMessage, AssistantMessage, UserMessage]
        assert quick.messages[: len(first.messages)] == first.messages
        assert (quick.system, quick.tools) == (first.system, first.tools)
        assert (first.may_call, quick.may_call, last.may_call) == (True, False, True)
        assert [message.text for message in last.messages] == ["one", "1", "two"]


async def test_what_it_leaves(tmp_path: Path) -> None:
    """Rows S2, U1, S3: its prompt, its usage and its end; no answer, no message, no title, nothing in the export."""
    async with staged(tmp_path, says("aside")) as stage:
        owner = await stage.session()
        accepted = await ask(owner)
        await stage.ended(owner, accepted.turn_id)
        assert kinds(owner)[2:] == ["user", "usage", "ended"]
        assert owner.messages(9) == ((), False)
        assert "what is this" not in desk.exported(owner, "markdown")
        assert owner.view().title == ""
        assert (desk.usage(owner).billed.input, desk.usage(owner).billed.output) == (10, 5)
        assert prompts.status(owner, "q1").state == "ended"
        again = await ask(owner)
        assert (again.turn_id, again.duplicate) == (accepted.turn_id, True)
        await stage.say(owner, "the first prompt", "c1")
        assert owner.view().title == "the first prompt"


async def test_it_waits_for_the_lease(tmp_path: Path) -> None:
    """Rows S2, S4: behind a running turn it queues like any prompt, and is shown there as what it is."""
    gate = Gate()
    async with staged(tmp_path, [gate, *says("1")], says("aside")) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        await gate.wait_reached()
        accepted = await ask(owner)
        assert accepted.queued
        assert [(item.text, item.aside) for item in owner.queue()] == [("what is this?", True)]
        gate.go.set()
        await stage.ended(owner, accepted.turn_id)
        assert [record.aside for record in on_disk(owner) if isinstance(record, User)] == [False, True]


async def test_after_a_crash_it_is_not_asked_again(tmp_path: Path) -> None:
    """Rows S2, D1 [I4]: one that ran is interrupted and stays so; one that waited is in the queue, paused."""
    gate = Gate()
    async with staged(tmp_path, [TextPart("half"), gate]) as stage:
        owner = await stage.session()
        accepted = await ask(owner)
        await ask(owner, "and this?", "q2")
        await gate.wait_reached()
        state = stage.crashed(tmp_path / "later")
    async with staged(tmp_path, says("2"), state=state, life=2) as stage:
        view = await stage.house.open(owner.session_id, 9)
        assert view.messages == ()
        assert [(item.text, item.aside, item.paused) for item in view.queue] == [("and this?", True, True)]
        again = await stage.opened(owner.session_id)
        assert prompts.status(again, "q1").state == "interrupted"
        assert (await ask(again)).turn_id == accepted.turn_id
        assert stage.model.requests == []
        await stage.say(again, "one", "c1")
        assert [message.text for message in stage.model.requests[0].messages] == ["one"]


async def test_calls_it_makes_all_the_same(tmp_path: Path) -> None:
    """Row S2: a model that calls although it may not has nothing run and nothing asked; the person is told."""
    async with staged(tmp_path, asks(write("a.txt", "1"), text="let me see")) as stage:
        owner = await stage.session("auto")
        accepted = await ask(owner)
        assert (await stage.ended(owner, accepted.turn_id)).reason == "done"
        warnings = [event.text for event in stage.events(accepted.turn_id) if isinstance(event, Warned)]
        assert warnings == ["The model asked for tools, and a quick question has none; nothing was run."]
        assert stage.content("a.txt") is None
        assert owner.ledger.calls == {}
        assert len(stage.model.requests) == 1


@pytest.mark.parametrize(
    ("answer", "reason", "usages"),
    [
        (says("odd", finish="unknown"), "done", 1),
        ([ModelTrouble("No key is set.")], "modelFailed", 0),
        ([TextPart("half"), ModelTrouble("The provider went away.")], "modelFailed", 1),
        (says("half", finish=None), "cut", 1),
        (says("half", finish="length"), "length", 1),
    ],
)
async def test_an_answer_that_is_not_whole(tmp_path: Path, answer: list[TextPart], reason: str, usages: int) -> None:
    """Rows T6, P3: its reason says so, and of what was shown nothing is kept."""
    async with staged(tmp_path, answer) as stage:
        owner = await stage.session()
        accepted = await ask(owner)
        assert (await stage.ended(owner, accepted.turn_id)).reason == reason
        assert kinds(owner).count("usage") == usages
        assert "assistant" not in kinds(owner)


async def test_it_is_stopped_like_any_turn(tmp_path: Path) -> None:
    """Row G8: a stop ends it; what was shown by then counts as used and is not kept."""
    gate = Gate()
    async with staged(tmp_path, [TextPart("half"), gate]) as stage:
        owner = await stage.session()
        accepted = await ask(owner)
        await gate.wait_reached()
        assert await prompts.cancel(owner, accepted.turn_id)
        assert (await stage.ended(owner, accepted.turn_id)).reason == "cancelled"
        assert kinds(owner)[2:] == ["user", "cancel", "usage", "ended"]
        assert not desk.usage(owner).complete


async def test_what_is_attached_goes_with_the_question(tmp_path: Path) -> None:
    """Rows G5, S2: read for this one request and kept nowhere."""
    async with staged(tmp_path, says("aside"), says("1")) as stage:
        owner = await stage.session()
        (stage.root / "a.txt").write_text("content\n")
        accepted = await ask(owner, attachments=(FileAttachment("a.txt"), TextAttachment("notes", "more")))
        await stage.ended(owner, accepted.turn_id)
        message = stage.model.requests[0].messages[-1]
        assert isinstance(message, UserMessage)
        assert "content\n" in message.attached
        assert "attached" not in kinds(owner)
        await stage.say(owner, "one", "c1")
        assert [message.text for message in stage.model.requests[1].messages] == ["one"]


async def test_a_slash_command_is_no_question(tmp_path: Path) -> None:
    """wire.md: it asks no model, so it cannot be asked aside; refused by its place."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        with pytest.raises(Refused) as refused:
            await ask(owner, "/help")
        assert refused.value.more["errors"] == [{"path": "$.aside", "message": "a slash command asks no model"}]
        assert not prompts.status(owner, "q1").known


async def test_what_was_just_settled_stays_shown(tmp_path: Path) -> None:
    """Row B3: a quick question is no turn that ends what is shown as settled; a prompt is."""
    async with staged(tmp_path) as stage:
        owner = await stage.session()
        accepted = await ask(owner)
        await stage.ended(owner, accepted.turn_id)
        assert owner.ledger.turns_begun == 0
        await stage.say(owner, "one", "c1")
        assert owner.ledger.turns_begun == 1


async def test_the_practice_model_says_that_it_calls_nothing(tmp_path: Path) -> None:
    """Row P5, wire.md: its answer to an aside is one sentence, whatever it asks for."""
    practice = PracticeModel()
    async with staged(tmp_path, models=lambda provider, name: practice) as stage:
        owner = await stage.session("auto")
        accepted = await ask(owner, "write a.txt with 1")
        await stage.ended(owner, accepted.turn_id)
        assert heard(stage, accepted.turn_id) == "I do not call tools here."
        assert stage.content("a.txt") is None


async def test_beside_a_parked_turn_it_waits(tmp_path: Path) -> None:
    """Row S2: an open question to the person holds the lease; the quick question does not pass it."""
    park = Park()
    async with staged(tmp_path, asks(write("a.txt", "1")), editor=ScriptedEditor(park)) as stage:
        owner = await stage.session()
        await stage.send(owner, "one", "c1")
        await park.wait_open()
        accepted = await ask(owner)
        assert accepted.queued
        assert len(stage.model.requests) == 1
        park.answer_with("once")
        await stage.ended(owner, accepted.turn_id)
        await until(lambda: not owner.view().busy)
        assert [request.may_call for request in stage.model.requests] == [True, True, False]
