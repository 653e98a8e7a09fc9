"""Messages from the server to the model: when they go out, who sees them, what a restart and a broken journal leave
(row G15)."""

from __future__ import annotations

import errno
import itertools
from pathlib import Path

import anyio.lowlevel
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.messages import Finish, ModelRequest, TextPart
from steadyhand.domain.records.record import Assistant, Title, Told
from steadyhand.domain.views.export import as_markdown
from steadyhand.domain.views.types import Event, ModelTold
from steadyhand.session.stored_messages import TOLD_BYTES_MAX, record_and_tell, tell_model
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.faults import GatedDisk
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, call, history, read, says, some_usage, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import on_disk
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio
SENTENCE = "The user took back your change of a.txt."


def texts(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages]


def told_events(stage: InProcessServer) -> list[tuple[str, ModelTold]]:
    return [(one.turn_id, one.event) for one in stage.numbered() if isinstance(one.event, ModelTold)]


def assert_only_grows(requests: list[ModelRequest]) -> None:
    for earlier, later in itertools.pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


async def test_told_during_a_batch_goes_out_behind_its_replies_once(tmp_path: Path) -> None:
    """G15, T1, P4: recorded while one call runs and another waits; every later request repeats it unchanged."""

    async def body(running: CallContext) -> ToolOutcome:
        await tell_model(session, "diagnostics", "New diagnostics")
        return ToolOutcome("returned", "done")

    tool = ScriptedTool("probe", body, effect="opaque")
    answers = asks(call("probe"), write("b.txt", "b")), says("ok"), says("again")
    async with scripted_server(tmp_path, *answers, tools=(tool,)) as stage:
        session = await stage.session("auto")
        await stage.say(session, "go")
        await stage.say(session, "on")
        requests = stage.model.requests
        assert history(requests[1].messages) == ["user", "assistant", "returned", "returned", "user"]
        assert texts(requests[1])[-1] == "[Notice] New diagnostics"
        assert_only_grows(requests)
        ((turn_id, event),) = told_events(stage)
        assert (event.from_, event.text) == ("diagnostics", "New diagnostics")
        (record,) = [one for one in on_disk(session) if isinstance(one, Told)]
        assert (record.turn_id, record.after) == (turn_id, None)


async def test_told_while_the_model_answers_stands_behind_the_answer(tmp_path: Path) -> None:
    """G15: the request is on its way, so the answer does not know of it. A restart sends the same bytes (T5)."""
    gate = Gate()
    answer: Play = [TextPart("I read."), gate, read("a.txt"), some_usage, Finish("calls")]
    async with scripted_server(tmp_path, answer, says("done")) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await tell_model(session, "mcp", "The tools of server x have changed.")
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        kinds = [type(one) for one in on_disk(session) if isinstance(one, Assistant | Told)]
        assert kinds == [Told, Assistant, Assistant], "it is durable before the answer"
        requests = stage.model.requests
        assert history(requests[1].messages) == ["user", "assistant", "failed", "user"]
        assert_only_grows(requests)
        before = requests[1].messages
    async with scripted_server(tmp_path, says("two"), run=2) as stage:
        await stage.say(await stage.opened(session.session_id), "next")
        assert stage.model.requests[0].messages[: len(before)] == before


async def test_told_during_a_try_that_fails_goes_out_with_the_repeat(tmp_path: Path) -> None:
    """G15, P3: the answer never came, so the repeated request has the message at its end."""
    gate = Gate()
    cut: Play = [TextPart("Half"), gate]

    async def no_pause(_: float) -> None:
        await anyio.lowlevel.checkpoint()

    async with scripted_server(tmp_path, cut, says("whole")) as stage:
        stage.registry.context.requests_again_max = 1
        stage.registry.context.pause = no_pause
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await tell_model(session, "mcp", "changed")
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
        assert [texts(request) for request in stage.model.requests] == [["go"], ["go", "[Notice] changed"]]


async def test_told_outside_a_turn_goes_out_before_the_next_prompt(tmp_path: Path) -> None:
    """G15, T5: with other records in one append; shown at once, in the list of messages, in the export, and again
    after a restart."""
    async with scripted_server(tmp_path, says("done")) as stage:
        session = await stage.session()
        first = await stage.send(session, "go")
        await stage.ended(session, first.turn_id)
        await record_and_tell(session, [Title(title="Reviewed", source="user")], "review", SENTENCE)
        assert session.ledger.title == "Reviewed"
        assert [type(one) for one in on_disk(session)[-2:]] == [Title, Told]
        expected: list[tuple[str, Event]] = [(first.turn_id, ModelTold("review", SENTENCE))]
        assert told_events(stage) == expected
        assert_shown_as_notice(stage, session.session_id)
        assert [message.turn_id for message in session.messages(99)[0]] == [first.turn_id] * 3
    async with scripted_server(tmp_path, says("two"), run=2) as stage:
        session = await stage.opened(session.session_id)
        assert_shown_as_notice(stage, session.session_id)
        await stage.say(session, "next")
        assert texts(stage.model.requests[0]) == ["go", "done", f"[Notice] {SENTENCE}", "next"]


def assert_shown_as_notice(stage: InProcessServer, session_id: str) -> None:
    session = stage.registry.sessions[session_id]
    shown, _ = session.messages(100)
    assert [(one.role, one.text) for one in shown][-1] == ("notice", SENTENCE)
    assert f"## Notice · {shown[-1].at}\n\n{SENTENCE}" in as_markdown(session.view(), session.ledger, None)


async def test_told_in_a_session_without_a_turn_is_shown_when_it_is_opened(tmp_path: Path) -> None:
    """G15: no event can name a turn; the message is in the journal and goes out before the first prompt."""
    async with scripted_server(tmp_path, says("done")) as stage:
        session = await stage.session()
        await tell_model(session, "files", "The session was moved.")
        assert told_events(stage) == []
        await stage.say(session, "go")
        assert texts(stage.model.requests[0]) == ["[Notice] The session was moved.", "go"]


async def test_long_message_is_cut_at_its_bound(tmp_path: Path) -> None:
    """G15 [I13]: at most TOLD_BYTES_MAX bytes are recorded and sent; the end says how many there were."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        for text in ("é" * (TOLD_BYTES_MAX // 2), "é" * TOLD_BYTES_MAX):
            await tell_model(session, "hook", text)
        whole, cut = [one.text for one in on_disk(session) if isinstance(one, Told)]
        assert whole == "é" * (TOLD_BYTES_MAX // 2)
        assert cut.endswith(f"[The rest is left out: it has {2 * TOLD_BYTES_MAX} bytes.]")
        assert TOLD_BYTES_MAX - 4 < len(cut.encode()) <= TOLD_BYTES_MAX


async def test_told_that_cannot_be_recorded_is_shown_alone_or_refused_with_its_records(tmp_path: Path) -> None:
    """G15, J6 [I12]: what belongs to other records is refused with them; else the user is shown it all the same."""
    disk = GatedDisk(lambda op: "told" in op.kinds, OSError(errno.ENOSPC, "No space left on device"), held=False)
    async with scripted_server(tmp_path, says("done"), disk=disk) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        with pytest.raises(Refused):
            await record_and_tell(session, [Title(title="x", source="user")], "review", SENTENCE)
        assert (told_events(stage), session.ledger.title) == ([], "go")
        await tell_model(session, "hook", "shown")
        assert [event.text for _, event in told_events(stage)] == ["shown"]
        again = await stage.opened(session.session_id)
        assert not [one for one in again.ledger.said if isinstance(one.record, Told)]
