"""A journal that breaks while a turn runs (rows J4, J5, J6)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import Warned
from steadyhand.session.service import prompt_queue
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import GatedDisk
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, read, run, says, write
from tests.support.session_state import kinds, replies, states

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("verb", ["write", "sync"])
async def test_journal_broken_before_the_start_runs_only_reads(tmp_path: Path, verb: str) -> None:
    """Row J4, case 23: *started* cannot be made durable, so the body does not run. Reads continue and are shown as not
    kept.
    """
    disk = GatedDisk(lambda op: False, OSError(errno.ENOSPC, "No space left on device"), held=False)
    last: list[str] = []

    def at_started(op: object) -> bool:
        last.extend(getattr(op, "kinds", ()))
        return getattr(op, "verb", "") == verb and last[-1:] == ["started"]

    answer = asks(write("a.txt", "new"), read("b.txt"))
    async with scripted_server(
        tmp_path, answer, asks(read("b.txt"), write("c.txt", "c")), says("ok"), disk=disk
    ) as harness:
        (harness.root / "b.txt").write_text("B")
        session = await harness.session("auto")
        disk.matches = at_started
        accepted = await harness.send(session, "one")
        ended = await harness.ended(session, accepted.turn_id)
        assert ended.reason == "journalBroken"
        assert states(session) == ["notRun", "returned", "returned", "notRun"]
        assert [path.name for path in harness.root.iterdir()] == ["b.txt"]
        warned = [event for event in harness.events(accepted.turn_id) if isinstance(event, Warned)]
        assert [event.code for event in warned] == ["notKept"]
        assert "full" in warned[0].text
        assert "not stored" in warned[0].text
        assert len(harness.model.requests) == 3, "the reads were answered"


async def test_journal_broken_refuses_prompts_until_the_session_is_reopened(tmp_path: Path) -> None:
    """Row J6: new prompts are refused until `session/open` opens the journal again, with a new epoch."""
    full = OSError(errno.ENOSPC, "No space left on device")
    disk = GatedDisk(lambda op: False, full, held=False)
    async with scripted_server(tmp_path, says("one"), says("two"), disk=disk) as harness:
        session = await harness.session()
        disk.matches = lambda op: "assistant" in op.kinds
        assert (await harness.say(session, "first", "c1")).reason == "journalBroken"
        with pytest.raises(Refused) as refused:
            await harness.send(session, "second", "c2")
        assert refused.value.kind == "journalBroken"
        assert (await harness.send(session, "first", "c1")).duplicate, "a known prompt is acknowledged again"
        again = await harness.opened(session.session_id)
        assert again is not session
        assert again.epoch not in (None, session.epoch)
        assert (await harness.say(again, "second", "c2")).reason == "done"
        assert prompt_queue.status_of(again, "c1").state == "interrupted"
        assert "damage" in kinds(again)


async def test_unsynced_result_never_counts_after_reopening(tmp_path: Path) -> None:
    """Rows J5, J6, [I12]: a result that was written and not synced does not count, now or at any later opening."""
    broken = OSError(errno.EIO, "Input/output error")
    last: list[str] = []
    disk = GatedDisk(lambda op: False, broken, held=False)

    def at_result(op: object) -> bool:
        last.extend(getattr(op, "kinds", ()))
        return getattr(op, "verb", "") == "sync" and "result" in last[-2:]

    processes = FakeProcesses(otherwise=Script(output=[b"done"]))
    async with scripted_server(tmp_path, asks(run("make it")), says("ok"), disk=disk, processes=processes) as harness:
        session = await harness.session("auto")
        disk.matches = at_result
        assert (await harness.say(session)).reason == "journalBroken"
        assert states(session) == ["unknown"]
        assert "could not be recorded" in replies(session)[0]
        again = await harness.opened(session.session_id)
        assert states(again) == ["unknown"]
        await harness.registry.close(session.session_id)
        size = len((Path(session.path) / "journal.jsonl").read_bytes())
        third = await harness.opened(session.session_id)
        assert states(third) == ["unknown"]
        assert len((Path(session.path) / "journal.jsonl").read_bytes()) == size, "opening again finds nothing new (C4)"
