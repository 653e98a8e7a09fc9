"""`todo`, `ask_user` and `diagnostics` within a turn, and the practice model's calls of the other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steadyhand.domain.model.messages import CallProposed, Finish
from steadyhand.domain.records.record import Intent, Result, Started
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.domain.views.notifications import SessionNotification
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.domain.views.types import (
    CallChanged,
    CallView,
    ChangedFile,
    PlanChanged,
    PlanItem,
    SessionView,
    TurnEvent,
)
from steadyhand.tools.builtin.ask_user import DISMISSED, NO_USER, AskUser
from steadyhand.tools.builtin.diagnostics import ONLY_OURS, Diagnostics
from steadyhand.tools.builtin.todo import Todo
from steadyhand.tools.contract import REPLY_BYTES_MAX, CallContext, NoUser, UserAnswer
from tests.support.editor import ScriptedEditor
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.model import ScriptedModel
from tests.support.tool_calls import ToolWorkspace, planned, refusal, running
from tests.support.workspace import Workspace

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace.under(tmp_path / "p")


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path / "y")


def model(tool: str, arguments: str) -> ScriptedModel:
    """Calls one tool, and then says that it is done."""
    return ScriptedModel([CallProposed(tool, arguments), Finish("calls")])


def last_call(harness: InProcessServer) -> CallView:
    events = [notification.event for notification in harness.editor.told if isinstance(notification, TurnEvent)]
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
async def test_todo_ask_and_diagnostics_invalid_argument_is_refused_by_name(
    workspace: ToolWorkspace, tool: Any, fields: dict[str, object], named: str
) -> None:
    """N1, I13: unknown fields, wrong types and bounds are refused with a sentence that names the field."""
    found = refusal(tool, workspace.tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_ask_user_without_a_user_fails(workspace: ToolWorkspace) -> None:
    """C6: when nobody is there, the call fails and is never taken as a yes."""
    done = await planned(AskUser(), workspace.tool_context(), question="Really?").run(running())
    assert (done.outcome, done.reason, done.text) == ("failed", "not_answered", NO_USER)


async def test_todo_sends_the_plan_as_an_event_of_the_turn(place: Workspace) -> None:
    """docs/protocol.md, "Shapes": whole, in order, with its states. It works in plan mode too, since it changes nothing
    (G2).
    """
    items = '{"items":[{"text":"read  it","state":"done"},{"text":"mend it","state":"doing"}]}'
    async with practice_server(place, models=model("todo", items), mode="plan") as harness:
        ended = await harness.say(await harness.create(), "plan")
        plans = [t.event for t in harness.editor.told if isinstance(t, TurnEvent) and isinstance(t.event, PlanChanged)]
        assert ended.reason == "done"
        assert plans == [PlanChanged((PlanItem("read it", "done"), PlanItem("mend it", "doing")))]
        assert (last_call(harness).state, last_call(harness).title) == ("returned", "todo: 2 items")
        reply = last_call(harness).reply
        assert reply is not None
        assert reply.text == "The plan is shown: 1 of 2 done."


@pytest.mark.parametrize(
    ("answer", "somebody", "state", "reason", "text"),
    [
        ("the second", True, "returned", None, "the second"),
        (None, True, "returned", "dismissed", DISMISSED),
        ("never asked", False, "failed", "not_answered", NO_USER),
    ],
)
async def test_ask_user_parks_the_turn_and_reports_how_it_ended(
    place: Workspace, answer: str | None, somebody: bool, state: str, reason: str | None, text: str
) -> None:
    """G1, C6: the session is shown as parked while the question is open. Dismissed and nobody there are different
    results.
    """
    shown: list[SessionView] = []
    editor = ScriptedEditor(somebody=somebody)

    def answer_question(question: UserQuestion) -> str | None:
        shown.extend(
            notification.session for notification in editor.told if isinstance(notification, SessionNotification)
        )
        assert (question.question, question.options) == ("Which?", ("the first", "the second"))
        return answer

    editor.user = answer_question
    question_arguments = '{"question":"Which?","options":["the first","the second"]}'
    async with practice_server(place, models=model("ask_user", question_arguments), editor=editor) as harness:
        ended = await harness.say(await harness.create(), "ask")
        call = last_call(harness)
        assert ended.reason == "done"
        assert call.reply is not None
        assert (call.state, call.reason, call.reply.text) == (state, reason, text)
        assert len(editor.all_questions) == somebody
        if somebody:
            assert shown[-1].parked
            assert not [
                notification.session for notification in editor.told if isinstance(notification, SessionNotification)
            ][-1].parked


async def test_ask_user_long_answer_is_truncated_and_says_so(workspace: ToolWorkspace) -> None:
    """I13: a pasted answer is sent to the model up to the bound of a reply."""

    class LongAnswer(NoUser):
        async def ask(self, question: str, options: tuple[str, ...]) -> UserAnswer:
            return UserAnswer("ä" * REPLY_BYTES_MAX)

    call = planned(AskUser(), workspace.tool_context(), question="?")
    done = await call.run(CallContext("a" * 32, "k", "s", (), lambda: False, LongAnswer()))
    assert done.is_truncated
    assert len(done.text.encode()) <= REPLY_BYTES_MAX
    assert done.text.endswith(" is cut]")
    assert done.bytes == 2 * REPLY_BYTES_MAX


async def test_diagnostics_report_uncertain_effects_and_their_own_limits(place: Workspace) -> None:
    """G1: an unknown command is named with its attempt, for a path and for all. No uncertain effect does not mean a
    clean build.
    """
    place.write("a.txt", "x\n")
    async with practice_server(place, models=model("diagnostics", "{}")) as harness:
        await harness.say(await harness.create(), "look")
        reply = last_call(harness).reply
        assert reply is not None
        assert reply.text == f"[nothing is uncertain here]\n[{ONLY_OURS}]"
    place.write("b.txt", "y\n")
    async with practice_server(place, run=2, models=model("diagnostics", '{"path":"a.txt"}')) as harness:
        session_id = await harness.create()
        await record_uncertain_command(harness, session_id)
        await harness.say(session_id, "look", "prompt-2")
        reply = last_call(harness).reply
        (attempt,) = harness.ledger(session_id).uncertain()
        assert reply is not None
        assert attempt.attempt_id in reply.text
        assert "It is uncertain whether “run_command: true”" in reply.text
        assert ONLY_OURS in reply.text


async def record_uncertain_command(harness: InProcessServer, session_id: str) -> None:
    """A command whose outcome is unknown, put into the ledger by its records."""
    session = await harness.registry.open_session(session_id)
    ids = ("c" * 32, "d" * 32)
    await session.log.append(
        [
            Intent(
                attempt_id=ids[0],
                call_id=ids[1],
                turn_id="e" * 32,
                tool="run_command",
                title="run_command: true",
                effect="opaque",
                arguments_digest="0" * 64,
                scope=EVERYTHING,
                key="k",
                occurrence=0,
            ),
            Started(attempt_id=ids[0], call_id=ids[1]),
            Result(attempt_id=ids[0], call_id=ids[1], turn_id="e" * 32, outcome="unknown"),
        ],
        barrier=True,
    )


async def test_practice_model_moves_deletes_finds_and_searches(place: Workspace) -> None:
    """G1, G6, W4: its sentences reach the tools. The end of the turn names the real changes, from the journal."""
    for name in ("a.txt", "b.txt", "c.txt"):
        place.write(name, f"needle of {name}\n")
    sentences = "move a.txt to d/new.txt\ndelete b.txt\nfind *.txt\nsearch needle\nmove c.txt to d/new.txt"
    async with practice_server(place) as harness:
        ended = await harness.say(await harness.create(), sentences)
        replies = [
            notification.event.call.reply.text
            for notification in harness.editor.told
            if isinstance(notification, TurnEvent)
            and isinstance(notification.event, CallChanged)
            and notification.event.call.reply
        ]
    assert place.files() == {"c.txt": "needle of c.txt\n", "d/new.txt": "needle of a.txt\n"}
    assert "c.txt\nd/new.txt" in replies
    assert "c.txt:1: needle of c.txt\nd/new.txt:1: needle of a.txt" in replies
    assert any("already exists" in reply for reply in replies)
    assert ended.changed == (
        ChangedFile("b.txt", "deleted"),
        ChangedFile("d/new.txt", "moved", "a.txt"),
    )
