"""A compaction is killed at every durable operation, and the session is opened again (row K4).

The first process run has two turns, one of which writes a file. The second one compacts the conversation on request and
then answers a prompt, and dies by SIGKILL. The third one opens what is left and answers another prompt. The model gets
the whole conversation as it was, or the message in its place; never both, never a part, and the same bytes each time.
"""

from __future__ import annotations

import signal
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.model.first_message import HEAD
from steadyhand.domain.model.messages import OutMessage
from steadyhand.domain.model.transcript import validate
from steadyhand.ports.disk import Disk
from steadyhand.session.service import prompt_queue
from tests.crash.test_undo_killed import points
from tests.support.faults import CountingDisk, KillingDisk, Operation, When
from tests.support.forks import ForkResult, run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.journals import whole_records
from tests.support.killed_runs import SESSION
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.timeout(240)]

PROMPTS = ("write a.txt with hello", "show a.txt")


@attrs.frozen
class Found:
    """What the run after the kill sends, before and after its own prompt, and what it makes of the journal."""

    at_first: tuple[OutMessage, ...]
    at_last: tuple[OutMessage, ...]
    refused: list[str]
    doubts: int
    shown: list[str]  # prompts in the chat


def before_compaction(workspace: Workspace) -> tuple[OutMessage, ...]:
    async def run() -> tuple[OutMessage, ...]:
        async with practice_server(workspace) as server:
            assert await server.create() == SESSION
            for prompt in PROMPTS:
                assert (await server.say(SESSION, prompt)).reason == "done"
            session = server.registry.sessions[SESSION]
            return session.transcript.outgoing_messages(session.ledger)

    sent = run_in_fork(run).value
    assert sent is not None
    return sent


def compacting(workspace: Workspace, number: int, when: When) -> ForkResult[tuple[int, list[Operation]]]:
    """The second run, killed at a point (0: unharmed)."""

    async def run() -> tuple[int, list[Operation]]:
        counting = CountingDisk(system_disk())
        disk: Disk = counting if number == 0 else KillingDisk(counting, number, when)
        async with practice_server(workspace, run=2, disk=disk) as server:
            session = await server.opened(SESSION)
            first = counting.count
            assert session.epoch is not None
            assert (await prompt_queue.compact(session, session.epoch, None)).compacted
            assert (await server.say(session, "say one")).reason == "done"
            return first, counting.operations[: counting.count]

    return run_in_fork(run)


def after_death(workspace: Workspace) -> Found:
    async def run() -> Found:
        async with practice_server(workspace, run=3) as server:
            session = await server.opened(SESSION)
            at_first = session.transcript.outgoing_messages(session.ledger)
            doubts = len(session.ledger.uncertain())
            assert (await server.say(session, "say two", "later")).reason == "done"
            at_last = session.transcript.outgoing_messages(session.ledger)
            shown = [one.text for one in session.messages(99)[0] if one.role == "user"]
            return Found(at_first, at_last, list(session.ledger.refused), doubts, shown)

    found = run_in_fork(run).value
    assert found is not None
    return found


def test_compaction_killed_anywhere_is_whole_or_not_there(in_memory: Path) -> None:
    """K1, K4, T5, P4, J2, [I3] [I12], case 88: the record is the commit. Its usage is on disk before it, what follows
    only grows, the chat keeps every prompt, and no receipt is gone.
    """
    workspace = Workspace.under(in_memory / "place")
    whole = before_compaction(workspace)
    copy = workspace.keep("left")
    operations = compacting(workspace, 0, "before").value
    assert operations is not None
    seen: set[str] = set()
    for number, when, point in points(*operations):
        workspace.put_back(copy)
        assert compacting(workspace, number, when).signal == signal.SIGKILL, point
        records = whole_records(workspace.journal(SESSION))
        kinds = [record["kind"] for record in records]
        found = after_death(workspace)
        validate(found.at_last)
        assert (found.refused, found.doubts) == ([], 0), point
        assert found.at_last[: len(found.at_first)] == found.at_first, point
        assert found.shown[:2] == [*PROMPTS], point
        if "compaction" in kinds:
            committed = records[kinds.index("compaction")]
            assert found.at_first[0].text == committed["text"], point
            assert found.at_first[0].text.startswith(HEAD), point
            assert f"Summary: {len(whole)} messages." in found.at_first[0].text, point
            assert "- a.txt: created, 5 bytes" in found.at_first[0].text, point
            before = records[: kinds.index("compaction")]
            assert [one.get("auxiliary") for one in before if one["kind"] == "usage"][-1] is True, point
            seen.add("compacted")
        else:
            assert found.at_first[: len(whole)] == whole, point
            assert len(found.at_first) == len(whole), point
            seen.add("counted" if any(one.get("auxiliary") for one in records) else "begun")
        assert workspace.files() == {"a.txt": "hello"}, point
    assert seen == {"begun", "counted", "compacted"}
