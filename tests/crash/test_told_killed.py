"""The process is killed at every durable operation of a turn in which the server tells the model something (row G15).

A tool of the test tells the model something while it runs, and after its turn the server tells something more, as it
does when the user takes a change back. Each request that the model gets is on disk before it answers. A second process
run opens what is left: its first request must begin with what the model had been sent, and a message that is on disk
goes out once, never between a call and its reply.
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
from steadyhand.domain.model.messages import ModelRequest, OutMessage, ReplyMessage, StreamPart, UserMessage
from steadyhand.domain.model.transcript import validate
from steadyhand.domain.records.record import Title
from steadyhand.ports.disk import Disk
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import record_and_tell, tell_model
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.crash.promises import SESSION
from tests.crash.test_redo_killed import points
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.journals import whole_records
from tests.support.model import CallingModel
from tests.support.scripted_tool import ScriptedTool
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

PROMPT = 'probe {} & write_file {"path": "a.txt", "content": "new"}'
DURING, AFTERWARDS = "[Notice] Told while a call runs.", "[Notice] Told after the turn."


@attrs.define
class WritingModel:
    """A model whose requests are in a file before it answers."""

    path: Path
    model: CallingModel = attrs.field(factory=CallingModel)

    def __call__(self, provider: str, name: str) -> WritingModel:
        return self

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.path.write_bytes(pickle.dumps(request.messages))
        async for part in self.model.ask(request):
            yield part


def telling_run(workspace: Workspace, seen: Path, number: int, when: When) -> ForkResult[list[Operation]]:
    """The first run, killed at a point (0: unharmed)."""
    sessions: list[Session] = []

    async def body(running: CallContext) -> ToolOutcome:
        await tell_model(sessions[0], "diagnostics", DURING.removeprefix("[Notice] "))
        return ToolOutcome("returned", "done")

    async def run() -> list[Operation]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        tools = (ScriptedTool("probe", body),)
        async with practice_server(workspace, disk=disk, models=WritingModel(seen), tools=tools) as server:
            sessions.append(await server.session())
            assert (await server.say(sessions[0], PROMPT)).reason == "done"
            about = [Title(title="Reviewed", source="user")]
            await record_and_tell(sessions[0], about, "review", AFTERWARDS.removeprefix("[Notice] "))
            last = counting.count
        return counting.operations[:last]

    return run_in_fork(run)


def first_request_after(workspace: Workspace, seen: Path) -> tuple[OutMessage, ...]:
    async def run() -> None:
        async with practice_server(workspace, run=2, models=WritingModel(seen)) as server:
            assert (await server.say(SESSION, "go on")).reason == "done"

    run_in_fork(run)
    return sent(seen)


def sent(seen: Path) -> tuple[OutMessage, ...]:
    messages: tuple[OutMessage, ...] = pickle.loads(seen.read_bytes()) if seen.exists() else ()
    return messages


def test_stored_message_killed_anywhere_goes_out_once_and_the_same(in_memory: Path) -> None:
    """G15, T1, T5, P4, J2 [I16]: the next process sends what was sent before byte for byte; what is on disk is told
    once, behind the replies, and what is not on disk is not told."""
    workspace = Workspace.under(in_memory / "place")
    seen = in_memory / "seen"
    empty = workspace.keep("empty")
    operations = telling_run(workspace, seen, 0, "before").value
    assert operations is not None
    found: Counter[tuple[bool, bool]] = Counter()
    for number, when, point in points(0, operations):
        workspace.put_back(empty)
        seen.unlink(missing_ok=True)
        assert telling_run(workspace, seen, number, when).signal == signal.SIGKILL, point
        before, records = sent(seen), whole_records(workspace.journal(SESSION))
        if not any(record["kind"] == "user" for record in records):
            continue
        messages = first_request_after(workspace, seen)
        try:
            found[judged(before, records, messages)] += 1
        except AssertionError as broken:
            raise AssertionError(f"{point}\n{messages}\n{broken}") from broken
    assert set(found) == {(False, False), (True, False), (True, True)}
    shutil.rmtree(empty)


def judged(
    before: tuple[OutMessage, ...], records: list[dict[str, object]], messages: tuple[OutMessage, ...]
) -> tuple[bool, bool]:
    """Whether the two messages were told."""
    validate(messages)
    assert messages[: len(before)] == before
    on_disk = [f"[Notice] {record['text']}" for record in records if record["kind"] == "told"]
    told = [one.text for one in messages if isinstance(one, UserMessage) and one.is_told]
    assert told == on_disk
    if DURING in told:
        assert isinstance(messages[[one.text for one in messages].index(DURING) - 1], ReplyMessage)
    if AFTERWARDS in told:
        assert [one.text for one in messages[-2:]] == [AFTERWARDS, "go on"]
        assert ("title", "Reviewed") in [(record["kind"], record.get("title")) for record in records]
    return DURING in told, AFTERWARDS in told
