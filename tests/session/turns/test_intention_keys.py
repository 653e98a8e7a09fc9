"""The environment of a child process, and the key that names what a call intends (rows N2, E1)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Intent, Settlement, Started, Supplied
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, run, says
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import calls_of, kinds, on_disk, states

pytestmark = pytest.mark.anyio


def unknown_at_first(keys: list[str] | None = None) -> ScriptedTool:
    """A tool whose first run ends without a known outcome; the later ones return. The keys of its runs go to `keys`."""
    seen: list[str] = [] if keys is None else keys

    async def body(running: CallContext) -> ToolOutcome:
        seen.append(running.key)
        return ToolOutcome("unknown" if len(seen) == 1 else "returned", "as the script says")

    return ScriptedTool("deploy", body, "opaque")


async def test_command_environment_has_attempt_key_and_session_but_no_credential(tmp_path: Path) -> None:
    """Rows N2, E1: attempt, key and session are in a command's environment. Credentials are not."""
    processes = FakeProcesses(otherwise=Script(), environment={"PATH": "/bin", "API_TOKEN": "x", "HOME": "/h"})
    async with scripted_server(tmp_path, asks(run("make")), says("ok"), processes=processes) as harness:
        session = await harness.session("auto")
        await harness.say(session)
        (made,) = processes.runs
        attempt = calls_of(session)[0].attempt
        assert attempt is not None
        assert made.environment["STEADYHAND_ATTEMPT_ID"] == attempt.attempt_id
        assert made.environment["STEADYHAND_IDEMPOTENCY_KEY"] == attempt.key
        assert made.environment["STEADYHAND_SESSION_ID"] == session.session_id
        assert "API_TOKEN" not in made.environment
        assert made.environment["HOME"] == "/h"
        assert [r.mark for r in on_disk(session) if isinstance(r, Started)] == [attempt.attempt_id]


async def test_key_of_a_repeated_call_is_new_only_after_a_returned_one(tmp_path: Path) -> None:
    """Row N2: after an unknown attempt the same call has the same key. After a returned one it has a new key."""
    deploy = asks(call("deploy", to="x"))
    tool = unknown_at_first()
    async with scripted_server(
        tmp_path, deploy, says("1"), deploy, says("2"), deploy, says("3"), tools=[tool]
    ) as harness:
        session = await harness.session("auto")
        await harness.say(session, "one")
        unknown = session.ledger.uncertain()[0]
        settled = Settlement(
            attempt_id=unknown.attempt_id, call_id=unknown.call_id, settled="checked_absent", by="recovery"
        )
        await session.log.append([settled], barrier=True)
        await harness.say(session, "two")
        await harness.say(session, "three")
        keys = [attempt.key for attempt in session.ledger.attempts.values()]
        assert keys[0] == keys[1] != keys[2]
        assert len({attempt.attempt_id for attempt in session.ledger.attempts.values()}) == 3


@pytest.mark.parametrize(("answer", "settled"), [("confirm", "user_confirmed"), ("waive", "waived")])
async def test_key_of_a_call_held_back_by_its_own_intention_is_renewed(
    tmp_path: Path, answer: str, settled: str
) -> None:
    """Row N2, B4: an uncertain attempt of the same intention held the call back, and the user settles that attempt as
    happened. The call is a new intention by then, so its body gets a key that no earlier attempt had, and *started*
    records it.
    """
    keys: list[str] = []
    deploy = asks(call("deploy", to="x"))
    tool = unknown_at_first(keys)
    editor = ScriptedEditor(answer, "once")
    script = (deploy, says("1"), deploy, says("2"), asks(call("deploy", to="y")), says("3"))
    async with scripted_server(tmp_path, *script, tools=[tool], editor=editor) as harness:
        session = await harness.session("auto")
        for text in ("one", "two", "three"):
            await harness.say(session, text)
        records = on_disk(session)
        assert [record.settled for record in records if isinstance(record, Settlement)] == [settled]
        intents = [record for record in records if isinstance(record, Intent)]
        starts = [record for record in records if isinstance(record, Started)]
        assert intents[0].key == intents[1].key == keys[0]
        assert starts[1].key == keys[1] not in (keys[0], None)
        assert [start.occurrence for start in starts] == [None, 1, None]
        assert intents[2].key == keys[2]
        assert [session.ledger.attempts[intent.attempt_id].key for intent in intents] == keys


async def test_key_of_a_call_held_back_by_another_intention_stays(tmp_path: Path) -> None:
    """Row N2: the attempt settled meanwhile was another intention, so *started* has no key of its own."""
    script = (asks(call("deploy", to="x")), says("1"), asks(call("deploy", to="y")), says("2"))
    tool = unknown_at_first()
    async with scripted_server(tmp_path, *script, tools=[tool], editor=ScriptedEditor("confirm")) as harness:
        session = await harness.session("auto")
        await harness.say(session, "one")
        await harness.say(session, "two")
        assert [record.key for record in on_disk(session) if isinstance(record, Started)] == [None, None]
        assert len(session.ledger.uncertain()) == 0


async def test_read_killed_midway_is_not_run_and_can_be_called_again(tmp_path: Path) -> None:
    """Rows F5, C7, N2: killed while it reads, the call is `notRun`, never uncertain, and offers no Retry. The model is
    told to read again and does so by an ordinary call, although a command is uncertain, with the same key and a new
    attempt.
    """
    reading = anyio.Event()

    async def hangs(_: CallContext) -> ToolOutcome:
        reading.set()
        await anyio.sleep_forever()
        raise AssertionError

    async def reads(_: CallContext) -> ToolOutcome:
        return ToolOutcome("returned", "the lines")

    async def return_unknown(_: CallContext) -> ToolOutcome:
        return ToolOutcome("unknown", "it may have run")

    deploy = ScriptedTool("deploy", return_unknown, "opaque")
    requested = (asks(call("deploy")), asks(call("look", at="x")))
    async with scripted_server(tmp_path, *requested, tools=[deploy, ScriptedTool("look", hangs)]) as harness:
        session = await harness.session("auto")
        await harness.send(session, "one")
        with anyio.fail_after(60):
            await reading.wait()
        state = harness.crashed(tmp_path / "later")
    again = (asks(call("look", at="x")), says("seen"))
    editor = ScriptedEditor()
    tools = [deploy, ScriptedTool("look", reads)]
    async with scripted_server(tmp_path, *again, tools=tools, state=state, run=2, editor=editor) as harness:
        session = await harness.opened(session.session_id)
        assert states(session) == ["unknown", "notRun"]
        (cut,) = [attempt for attempt in session.ledger.attempts.values() if attempt.tool == "look"]
        assert [view.tool for view in session.snapshot().calls] == ["deploy"]
        before = kinds(session)
        with pytest.raises(Refused) as refused:
            await resolve(session, ResolutionRequest(cut.attempt_id, "retry"))
        assert refused.value.kind == "staleSnapshot"
        assert kinds(session) == before
        await harness.say(session, "two")
        assert states(session) == ["unknown", "notRun", "returned"]
        assert "Read again if you need it" in [r.text for r in on_disk(session) if isinstance(r, Supplied)][-1]
        new = list(session.ledger.attempts.values())[-1]
        assert new.attempt_id != cut.attempt_id
        assert new.key == cut.key
        assert (editor.questions, editor.held_back_questions) == ([], [])
