"""`todo`, `ask_user`, `diagnostics` within a turn, and the practice model's way through the other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steadyhand.core.model import CallProposed, Finish
from steadyhand.core.questions import UserQuestion
from steadyhand.core.record import Intent, Result, Started
from steadyhand.core.scope import EVERYTHING
from steadyhand.core.told import SessionTold
from steadyhand.core.views import CallChanged, CallView, ChangedFile, PlanItem, PlanTold, SessionView, TurnEvent
from steadyhand.tools.ask_user import DISMISSED, NOBODY, AskUser
from steadyhand.tools.diagnostics import ONLY_OURS, Diagnostics
from steadyhand.tools.todo import Todo
from steadyhand.tools.tool import Asked, Nobody, Running, reply_bytes_max
from tests.support.ground import Yard, planned, refusal, running
from tests.support.scripted import ScriptedModel
from tests.support.turns import Place, Rig, ScriptedEditor, rig

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place.under(tmp_path / "p")


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path / "y")


def model(tool: str, arguments: str) -> ScriptedModel:
    """Calls one tool, then says that it is done."""
    return ScriptedModel([CallProposed(tool, arguments), Finish("calls")])


def last_call(house: Rig) -> CallView:
    events = [told.event for told in house.editor.told if isinstance(told, TurnEvent)]
    return [event.call for event in events if isinstance(event, CallChanged)][-1]


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (Todo(), {}, "items"),
        (Todo(), {"items": []}, "at least one"),
        (Todo(), {"items": [{"text": "a"}]}, "state"),
        (Todo(), {"items": [{"text": "a", "state": "later"}]}, "open, doing or done"),
        (Todo(), {"items": [{"text": " ", "state": "open"}]}, "items[0]"),
        (Todo(), {"items": [{"text": "a" * 501, "state": "open"}]}, "500"),
        (Todo(), {"items": [{"text": "a", "state": "open"}] * 101}, "100"),
        (AskUser(), {}, "question"),
        (AskUser(), {"question": "  "}, "question"),
        (AskUser(), {"question": "a" * 4001}, "4000"),
        (AskUser(), {"question": "a", "options": []}, "options"),
        (AskUser(), {"question": "a", "options": [1]}, "options[0]"),
        (AskUser(), {"question": "a", "options": ["b", " b"]}, "twice"),
        (AskUser(), {"question": "a", "options": [str(n) for n in range(21)]}, "20"),
        (Diagnostics(), {"path": 1}, "path"),
        (Diagnostics(), {"uri": "a"}, "uri"),
    ],
)
async def test_arguments_are_strict_and_the_field_is_named(
    yard: Yard, tool: Any, fields: dict[str, object], named: str
) -> None:
    """N1, I13: unknown fields, wrong types and bounds are refused with a sentence that names the field."""
    found = refusal(tool, yard.ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_without_a_person_it_says_so(yard: Yard) -> None:
    """C6: nobody there is a failure, never a yes."""
    done = await planned(AskUser(), yard.ground(), question="Really?").run(running())
    assert (done.outcome, done.reason, done.text) == ("failed", "not_answered", NOBODY)


async def test_a_plan_is_an_event_of_the_turn(place: Place) -> None:
    """Wire "Shapes": whole, in order, with its states; in plan mode too, since it changes nothing (G2)."""
    items = '{"items":[{"text":"read  it","state":"done"},{"text":"mend it","state":"doing"}]}'
    async with rig(place, models=model("todo", items), mode="plan") as house:
        ended = await house.say(await house.create(), "plan")
        plans = [t.event for t in house.editor.told if isinstance(t, TurnEvent) and isinstance(t.event, PlanTold)]
        assert ended.reason == "done"
        assert plans == [PlanTold((PlanItem("read it", "done"), PlanItem("mend it", "doing")))]
        assert (last_call(house).state, last_call(house).title) == ("returned", "todo: 2 items")
        reply = last_call(house).reply
        assert reply is not None
        assert reply.text == "The plan is shown: 1 of 2 done."


@pytest.mark.parametrize(
    ("answer", "somebody", "state", "reason", "text"),
    [
        ("the second", True, "returned", None, "the second"),
        (None, True, "returned", "dismissed", DISMISSED),
        ("never asked", False, "failed", "not_answered", NOBODY),
    ],
)
async def test_a_question_parks_the_turn_and_its_end_is_said_as_it_was(
    place: Place, answer: str | None, somebody: bool, state: str, reason: str | None, text: str
) -> None:
    """G1, C6: the session is shown as parked while it is asked; dismissed and nobody there are told apart."""
    shown: list[SessionView] = []
    editor = ScriptedEditor(somebody=somebody)

    def answered(question: UserQuestion) -> str | None:
        shown.extend(told.session for told in editor.told if isinstance(told, SessionTold))
        assert (question.question, question.options) == ("Which?", ("the first", "the second"))
        return answer

    editor.user = answered
    asked = '{"question":"Which?","options":["the first","the second"]}'
    async with rig(place, models=model("ask_user", asked), editor=editor) as house:
        ended = await house.say(await house.create(), "ask")
        call = last_call(house)
        assert ended.reason == "done"
        assert call.reply is not None
        assert (call.state, call.reason, call.reply.text) == (state, reason, text)
        assert len(editor.questions) == somebody
        if somebody:
            assert shown[-1].parked
            assert not [told.session for told in editor.told if isinstance(told, SessionTold)][-1].parked


async def test_a_long_answer_is_cut_and_says_so(yard: Yard) -> None:
    """I13: what a person pastes goes to the model up to the bound of a reply."""

    class Talkative(Nobody):
        async def ask(self, question: str, options: tuple[str, ...]) -> Asked:
            return Asked("ä" * reply_bytes_max)

    call = planned(AskUser(), yard.ground(), question="?")
    done = await call.run(Running("a" * 32, "k", "s", (), lambda: False, Talkative()))
    assert done.truncated
    assert len(done.text.encode()) <= reply_bytes_max
    assert done.text.endswith("cut here]")
    assert done.bytes == 2 * reply_bytes_max


async def test_diagnostics_tell_what_is_uncertain_and_what_cannot_be_seen(place: Place) -> None:
    """G1: an unknown command is named with its attempt, for a path and for all; nothing uncertain is no clean build."""
    place.write("a.txt", "x\n")
    async with rig(place, models=model("diagnostics", "{}")) as house:
        await house.say(await house.create(), "look")
        reply = last_call(house).reply
        assert reply is not None
        assert reply.text == f"[nothing is uncertain here]\n[{ONLY_OURS}]"
    place.write("b.txt", "y\n")
    async with rig(place, life=2, models=model("diagnostics", '{"path":"a.txt"}')) as house:
        session = await house.create()
        await _uncertain_command(house, session)
        await house.say(session, "look", "prompt-2")
        reply = last_call(house).reply
        (attempt,) = house.ledger(session).uncertain()
        assert reply is not None
        assert attempt.attempt_id in reply.text
        assert "It is uncertain whether “run_command: true”" in reply.text
        assert ONLY_OURS in reply.text


async def _uncertain_command(house: Rig, session: str) -> None:
    """A command whose outcome is unknown, put into the ledger by its records."""
    owner = await house.house.owner(session)
    ids = ("c" * 32, "d" * 32)
    await owner.append(
        [
            Intent(
                ids[0], ids[1], "e" * 32, "run_command", "run_command: true", "opaque", "0" * 64, EVERYTHING, "k", 0
            ),
            Started(ids[0], ids[1]),
            Result(ids[0], ids[1], "e" * 32, "unknown"),
        ],
        barrier=True,
    )


async def test_the_practice_model_moves_deletes_finds_and_searches(place: Place) -> None:
    """G1, G6, W4: its sentences reach the tools; the end of the turn names what really changed, from the journal."""
    for name in ("a.txt", "b.txt", "c.txt"):
        place.write(name, f"needle of {name}\n")
    story = "move a.txt to d/new.txt\ndelete b.txt\nfind *.txt\nsearch needle\nmove c.txt to d/new.txt"
    async with rig(place) as house:
        ended = await house.say(await house.create(), story)
        replies = [
            told.event.call.reply.text
            for told in house.editor.told
            if isinstance(told, TurnEvent) and isinstance(told.event, CallChanged) and told.event.call.reply
        ]
    assert place.files() == {"c.txt": "needle of c.txt\n", "d/new.txt": "needle of a.txt\n"}
    assert "c.txt\nd/new.txt" in replies
    assert "c.txt:1: needle of c.txt\nd/new.txt:1: needle of a.txt" in replies
    assert any("exists already" in reply for reply in replies)
    assert ended.changed == (
        ChangedFile("b.txt", "deleted"),
        ChangedFile("d/new.txt", "moved", "a.txt"),
    )
