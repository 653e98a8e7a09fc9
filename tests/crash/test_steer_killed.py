"""The process is killed at every durable operation of a turn that is steered twice (rows S8, D1).

The first text is sent while a tool of the test runs, so the next request takes it. The second one is sent while the
last answer comes, so it is the next prompt. Each request that the model gets is on disk before it answers, and so is
each acknowledgement. A second process run opens what is left and does what a client does: it sends both texts again,
lets the queue begin and sends one more prompt. Then each text stands in the conversation once, the first request of
that run begins with what was sent before, and nothing ran twice.
"""

from __future__ import annotations

import pickle
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.model.messages import ModelRequest, OutMessage, StreamPart, UserMessage
from steadyhand.domain.model.transcript import validate
from steadyhand.ports.disk import Disk
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.steer import steer
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.crash.promises import SESSION
from tests.crash.test_redo_killed import points
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.journals import whole_records
from tests.support.model import CallingModel
from tests.support.scripted_tool import ScriptedTool
from tests.support.systems import linux_only
from tests.support.waiting import until
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(600)]

PROMPT = 'probe {} & write_file {"path": "a.txt", "content": "new"}'
TAKEN, LEFT = "during", "at the end"
limit_s = 60.0


@attrs.define
class SteeringModel:
    """A model whose requests are in a file before it answers. It sends the second text before its second answer."""

    seen: Path
    sessions: list[Session]
    sends: bool
    asked: int = 0
    model: CallingModel = attrs.field(factory=CallingModel)

    def __call__(self, provider: str, name: str) -> SteeringModel:
        return self

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.asked += 1
        earlier = sent(self.seen)
        self.seen.write_bytes(pickle.dumps([*earlier, request.messages]))
        if self.sends and self.asked == 2:
            await send(self.sessions[0], LEFT, self.seen)
        async for part in self.model.ask(request):
            yield part


def sent(seen: Path) -> list[tuple[OutMessage, ...]]:
    messages: list[tuple[OutMessage, ...]] = pickle.loads(seen.read_bytes()) if seen.exists() else []
    return messages


def acknowledged(seen: Path) -> list[str]:
    return sorted(path.suffix[1:] for path in seen.parent.glob("acknowledged.*"))


async def send(session: Session, text: str, seen: Path) -> None:
    """Send a text as a client does, and note its acknowledgement."""
    assert session.epoch is not None
    turn_id = next(iter(session.ledger.turns))
    await steer(session, session.epoch, turn_id, text.replace(" ", "-"), text)
    (seen.parent / f"acknowledged.{text}").touch()


def steering_run(workspace: Workspace, seen: Path, number: int, when: When) -> ForkResult[list[Operation]]:
    """The first run, killed at a point (0: unharmed)."""
    sessions: list[Session] = []

    async def body(running: CallContext) -> ToolOutcome:
        await send(sessions[0], TAKEN, seen)
        return ToolOutcome("returned", "done")

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        tools = (ScriptedTool("probe", body),)
        model = SteeringModel(seen, sessions, sends=True)
        async with practice_server(workspace, disk=disk, models=model, tools=tools) as server:
            session = await server.session()
            sessions.append(session)
            await server.say(session, PROMPT)
            await until(lambda: model.asked == 3 and not session.view().busy, limit_s)
            last = counting.count
        return counting.operations[:last]

    return run_in_fork(run)


async def finish_as_a_client(server: InProcessServer, seen: Path) -> None:
    """Send both texts again, let the queue begin, send a prompt, and wait until nothing runs."""
    session = await server.opened(SESSION)
    if not session.ledger.turns:
        return
    assert all(one.paused for one in session.queue())
    for text in (TAKEN, LEFT):
        known = text.replace(" ", "-") in session.ledger.prompts
        assert known or text not in acknowledged(seen), "an acknowledged text was lost"
        await send(session, text, seen)
    assert session.can_begin_turn, "nothing begins by itself"
    assert session.epoch is not None
    await prompt_queue.resume(session, session.epoch)
    last = await server.send(session, "go on", "last")
    await server.ended(session, last.turn_id)
    await until(lambda: not session.view().busy and not session.queue(), limit_s)


def later_run(workspace: Workspace, seen: Path) -> None:
    async def run() -> None:
        model = SteeringModel(seen, [], sends=False)
        async with practice_server(workspace, run=2, models=model) as server:
            if SESSION in [one.session_id for one in await server.registry.list_sessions()]:
                await finish_as_a_client(server, seen)

    run_in_fork(run)


def test_steer_killed_anywhere_is_said_once_and_the_same(in_memory: Path) -> None:
    """S8, D1, T1, T5, P4, J2 [I16]: what was acknowledged is not lost, a resend repeats nothing, and what was sent to
    the model before goes out byte for byte the same."""
    workspace = Workspace.under(in_memory / "place")
    (in_memory / "seen").mkdir()
    seen = in_memory / "seen" / "requests"
    empty = workspace.keep("empty")
    operations = steering_run(workspace, seen, 0, "before").value
    assert operations is not None
    found: Counter[str] = Counter()
    for number, when, point in points(0, operations):
        workspace.put_back(empty)
        for path in seen.parent.iterdir():
            path.unlink()
        assert steering_run(workspace, seen, number, when).signal == signal.SIGKILL, point
        before, stage = sent(seen), state_of(whole_records(workspace.journal(SESSION)))
        later_run(workspace, seen)
        try:
            judge(before, sent(seen)[len(before) :], whole_records(workspace.journal(SESSION)))
        except AssertionError as broken:
            raise AssertionError(f"{point}: {broken}") from broken
        found[stage] += 1
    assert set(found) == {"nothing", "user", "steer", "taken", "steer taken", "both"}
    shutil.rmtree(empty)


def state_of(records: list[dict[str, object]]) -> str:
    """How far the texts had come when the process died."""
    kinds = [record["kind"] for record in records]
    if "user" not in kinds:
        return "nothing"
    if kinds.count("user") == 2:
        return "both"
    taken = kinds.count("taken")
    return " ".join([*["steer"] * (kinds.count("steer") - taken), *["taken"] * taken]) or "user"


def judge(
    before: list[tuple[OutMessage, ...]], after: list[tuple[OutMessage, ...]], records: list[dict[str, object]]
) -> None:
    """Compare what the model got, and what is on disk in the end."""
    for messages in after:
        validate(messages)
    for earlier, later in zip([*before[-1:], *after], after, strict=False):
        assert later[: len(earlier)] == earlier, f"{later} does not begin with {earlier}"
    assert [record["kind"] for record in records].count("started") <= 2, "a call ran twice"
    if after:
        texts = [one.text for one in after[-1] if isinstance(one, UserMessage) and not one.text.startswith("[Notice]")]
        assert sorted(texts) == sorted([PROMPT, TAKEN, LEFT, "go on"])
