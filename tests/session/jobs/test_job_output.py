"""The output of a background command: read while it runs, bounded, and kept (rows J12, E5)."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import Disk
from steadyhand.ports.processes import Finished
from steadyhand.tools.builtin.command_output import WAIT_MS_MAX
from steadyhand.tools.commands.job_output import JobOutput
from steadyhand.tools.commands.output_buffer import SHOWN_BYTES_MAX
from steadyhand.tools.writes.blob_store import BlobStore
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import MatchingFault
from tests.support.in_process_server import scripted_server
from tests.support.jobs import ID, call_job_tool, hanging_processes, job_events, start_job

pytestmark = pytest.mark.anyio


async def test_command_output_returns_new_output_once(tmp_path: Path) -> None:
    """Row G1: The first call returns what came since the last one; the second says that nothing is new. The call is
    a read and asks nobody."""
    async with scripted_server(tmp_path, processes=hanging_processes(b"one\n", b"two\n")) as stage:
        session, job_id = await start_job(stage)
        assert await call_job_tool(stage, session, "command_output", job_id) == "one\ntwo\n[it is running]"
        assert await call_job_tool(stage, session, "command_output", job_id) == "(no new output)\n[it is running]"
        assert stage.editor.questions == []


async def test_command_output_waits_for_the_end(tmp_path: Path) -> None:
    """Rows G1, J12: The call waits as long as `waitMs` says. The end comes with its exit code, and the whole output
    is kept."""
    processes = FakeProcesses(otherwise=Script(output=(b"built\n",), finished=Finished(3, None, False, (), True)))
    async with scripted_server(tmp_path, processes=processes) as stage:
        session, job_id = await start_job(stage)
        said = await call_job_tool(stage, session, "command_output", job_id, waitMs=WAIT_MS_MAX)
        assert said == "built\n[exit code 3]\n[it has ended]"
        assert job_events(session) == [("started", None), ("ended", None)]
        ended = session.ledger.jobs[job_id]
        assert ended.exit_code == 3
        assert ended.output is not None
        assert BlobStore(system_disk(), session.path, "outputs").read(ended.output, 100) == b"built\n"


async def test_command_output_of_an_unknown_job_says_so(tmp_path: Path) -> None:
    """Row G1: The session does not know the id."""
    async with scripted_server(tmp_path, processes=hanging_processes()) as stage:
        session, _ = await start_job(stage)
        assert "no background command" in await call_job_tool(stage, session, "command_output", ID)


def job_output(tmp_path: Path, disk: Disk | None = None) -> JobOutput:
    (tmp_path / "s").mkdir()
    return JobOutput(disk or system_disk(), str(tmp_path / "s"), "a" * 32)


def test_long_output_is_cut_in_the_middle_and_kept_whole(tmp_path: Path) -> None:
    """Case 65: Memory holds the beginning and the end; the file holds all of it."""
    collected = job_output(tmp_path)
    for number in range(40):
        collected.add(b"%07d\n" % number * 1000)
    news = collected.take_new_output()
    assert news.is_cut
    assert news.bytes == 320_000
    assert news.text.startswith("0000000\n")
    assert news.text.endswith("0000039")
    assert len(news.text.encode()) <= SHOWN_BYTES_MAX + 200
    assert "the whole output is stored" in news.note
    collected.add(b"more\n")
    assert collected.take_new_output().text == "more"
    kept = collected.finish()
    assert kept is not None
    assert kept.bytes == 320_005


def test_escaped_control_characters_stay_within_the_bound(tmp_path: Path) -> None:
    """[I13]: The text shown for a byte may be longer than the byte."""
    collected = job_output(tmp_path)
    collected.add(b"\x01" * SHOWN_BYTES_MAX)
    news = collected.take_new_output()
    assert news.is_cut
    assert len(news.text.encode()) <= SHOWN_BYTES_MAX + 200


def test_character_in_two_pieces_is_joined(tmp_path: Path) -> None:
    """Row G1: The beginning of a character waits for its end, and is shown in the end if none comes."""
    collected = job_output(tmp_path)
    collected.add("a€".encode()[:2])
    assert collected.take_new_output().text == "a"
    collected.add("€".encode()[1:])
    assert collected.take_new_output().text == "€"
    collected.add("€".encode()[:1])
    collected.finish()
    assert collected.take_new_output().text == "\ufffd"


def test_full_disk_loses_the_kept_output_only(tmp_path: Path) -> None:
    """Row J6: The server returns the output and only does not keep it."""
    collected = job_output(
        tmp_path, MatchingFault(system_disk(), lambda operation: operation.verb == "write", errno.ENOSPC)
    )
    collected.add(b"x\n")
    assert collected.take_new_output().text == "x"
    assert collected.finish() is None
