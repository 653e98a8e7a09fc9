"""The server opens journals that were cut, damaged, doubled, written by a newer version, or cannot be written.

tests/journal proves what reading makes of damaged bytes. This file tests what a user gets: the session opens, says once
what it found, loses nothing else, and the work goes on.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import zlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.ports.disk import Disk, File, Folder, Lock
from steadyhand.session.service.registry import SessionSnapshot
from tests.crash.promises import SESSION, lay_out
from tests.journal import second_reader
from tests.support.faults import MatchingFault, Operation, WatchedDisk
from tests.support.forks import run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.journals import whole_records
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [linux_only, pytest.mark.anyio, pytest.mark.timeout(240)]

T = TypeVar("T")
nul_tail_bytes = 70_000
"""More than the 64 KiB that other readers read at once (row J8)."""
PROMPT = "write old.txt with x"
lines_min = 10
DID_NOT_RUN = ("notRun", "refused", "failed")


@pytest.fixture
def workspace(in_memory: Path) -> Workspace:
    return lay_out(Workspace.under(in_memory / "place"))


@pytest.fixture
async def journal(workspace: Workspace) -> bytes:
    """A healthy journal of one turn."""
    async with practice_server(workspace) as server:
        assert (await server.say(await server.create(), PROMPT)).reason == "done"
    return workspace.journal(SESSION)


@pytest.fixture
async def server(workspace: Workspace, journal: bytes) -> AsyncIterator[InProcessServer]:
    """A later process run, with no open session."""
    async with practice_server(workspace, run=2) as living:
        yield living


def lay_down(workspace: Workspace, content: bytes) -> None:
    """Replace the journal by these bytes, and remove what an earlier opening left beside it."""
    folder = workspace.session_directory(SESSION)
    for path in [*folder.glob("torn-*.bin"), *folder.glob("summary.json")]:
        path.unlink()
    (folder / "journal.jsonl").write_bytes(content)


def lines(content: bytes) -> list[bytes]:
    return [line + b"\n" for line in content.split(b"\n")[:-1]]


def states(view: SessionSnapshot) -> dict[str, str]:
    """Tool → the state of each call of an opened session, but for the reading before a write."""
    calls = [call for message in view.messages for call in message.calls or ()]
    return {call.tool: call.state for call in calls if call.tool != "read_file"}


async def test_journal_cut_at_any_byte_opens_with_its_whole_records(
    workspace: Workspace, journal: bytes, server: InProcessServer
) -> None:
    """Whatever the last byte is, all whole records count. The rest is kept beside the journal and cut off. Nothing is
    called damaged, and no started call is called not run, also where its *started* is the line that was cut. One
    sentence says what was found; if no record is whole, nothing is changed (rows J8, J9, C1, C2; cases 20, 134)."""
    assert len(lines(journal)) >= lines_min
    for cut in range(1, len(journal)):
        left = journal[:cut]
        lay_down(workspace, left)
        kept = whole_records(left)
        before = len(server.editor.messages)
        view = await server.open(SESSION)
        try:
            assert view.damaged == 0
            if not kept:
                assert view.session.read_only is not None
                assert view.session.read_only.reason == "damaged"
                assert workspace.journal(SESSION) == left
                assert server.editor.messages[before:] == [view.session.read_only.text]
                await server.registry.close(SESSION)
                continue
            assert view.session.read_only is None
            torn = list(workspace.session_directory(SESSION).glob("torn-*.bin"))
            assert ["was not finished" in text for text in server.editor.messages[before:]] == [True] * len(torn)
            assert whole_records(workspace.journal(SESSION))[: len(kept)] == kept
            _torn_bytes_are_kept(workspace, left)
            kinds = [(record["kind"], record.get("callId")) for record in kept]
            for message in view.messages:
                for call in message.calls or ():
                    started = ("started", call.call_id) in kinds or second_reader.read(left).torn_start is not None
                    ended = ("result", call.call_id) in kinds
                    if call.tool == "write_file":
                        assert call.state == ("returned" if ended else "unknown" if started else "notRun")
        except AssertionError as broken:
            raise AssertionError(f"cut at byte {cut} of {len(journal)}\n{broken}") from broken
        await server.registry.close(SESSION)
        if (uncertain := server.registry.sessions.pop(SESSION, None)) is not None:
            await uncertain.log.release()


def _torn_bytes_are_kept(workspace: Workspace, left: bytes) -> None:
    tail = left.rpartition(b"\n")[2]
    kept = [path.read_bytes() for path in workspace.session_directory(SESSION).glob("torn-*.bin")]
    whole = bool(tail) and len(whole_records(left)) > left.count(b"\n")
    assert kept == ([] if whole or not tail else [tail])


@pytest.mark.parametrize("line_end", [True, False], ids=["after the line end", "in place of the line end"])
async def test_long_tail_of_zeros_is_cut_and_later_records_are_read(
    workspace: Workspace, journal: bytes, server: InProcessServer, line_end: bool
) -> None:
    """More than 64 KiB of zeros at the end are cut, and the records written after them are read (row J8)."""
    content = journal if line_end else journal[:-1]
    lay_down(workspace, content + b"\0" * nul_tail_bytes)
    view = await server.open(SESSION)
    assert (view.damaged, view.session.read_only) == (0, None)
    assert (await server.say(SESSION, "say on", "prompt-2")).reason == "done"
    after = workspace.journal(SESSION)
    assert b"\0" not in after
    assert after.startswith(journal)
    assert len(whole_records(after)) > len(lines(journal))


Damage = Callable[[list[bytes], int], bytes]


def doubled(every: list[bytes], at: int) -> bytes:
    return b"".join([*every[: at + 1], *every[at:]])


def missing(every: list[bytes], at: int) -> bytes:
    return b"".join([*every[:at], *every[at + 1 :]])


def flipped(every: list[bytes], at: int) -> bytes:
    middle = len(every[at]) // 2
    wrong = every[at][:middle] + bytes([every[at][middle] ^ 1]) + every[at][middle + 1 :]
    return b"".join([*every[:at], wrong, *every[at + 1 :]])


def zeroed(every: list[bytes], at: int) -> bytes:
    return b"".join([*every[:at], b"\0" * (len(every[at]) - 1) + b"\n", *every[at + 1 :]])


@pytest.mark.parametrize("damage", [doubled, missing, flipped, zeroed])
async def test_damaged_line_is_reported_and_loses_only_itself(
    workspace: Workspace, journal: bytes, damage: Damage
) -> None:
    """For each line in turn: the session opens, reports the number of damaged records, keeps all others, never calls a
    call not run that may have run, and the work goes on (rows J9, J1, S6, C3; [I3]; cases 20, 22)."""
    every = lines(journal)
    for at in range(len(every) - 1):
        lay_down(workspace, damage(every, at))
        async with practice_server(workspace, run=3 + at) as server:
            view = await server.open(SESSION)
            try:
                assert view.damaged == 1
                assert view.session.read_only is None
                (told,) = [text for text in server.editor.messages if "damaged or missing" in text]
                assert "1 damaged" in told
                assert states(view).get("write_file", "unknown") not in DID_NOT_RUN
                assert (await server.say(SESSION, "say on", f"later-{at}")).reason == "done"
            except AssertionError as broken:
                raise AssertionError(f"line {at + 1}: {json.loads(every[at])['kind']}\n{broken}") from broken
        after = workspace.journal(SESSION)
        assert all(line in after for number, line in enumerate(every) if number != at)
    assert len(every) >= lines_min


async def test_journal_of_a_newer_version_is_read_only_and_unchanged(
    workspace: Workspace, journal: bytes, server: InProcessServer
) -> None:
    """The session is read-only, with the reason; nothing in it changes and no prompt is accepted (rows J13, X1)."""
    body = b'"prev":"00000000","v":2,"seq":99,"at":"2030-01-01T00:00:00.000Z","kind":"hologram"}'
    lay_down(workspace, journal + b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n")
    before = _everything(workspace)
    view = await server.open(SESSION)
    assert view.session.read_only is not None
    assert view.session.read_only.reason == "newer"
    assert "newer version" in view.session.read_only.text
    assert states(view) == {"write_file": "returned"}
    with pytest.raises(Refused) as refused:
        await server.send(SESSION, "say on", "prompt-2")
    assert refused.value.kind == "journalBroken"
    assert refused.value.more["readOnly"] == {"reason": "newer", "text": view.session.read_only.text}
    assert _everything(workspace) == before


def _everything(workspace: Workspace) -> dict[str, bytes]:
    """Every file of the session but the one that names the lock holder."""
    folder = workspace.session_directory(SESSION)
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("owner.")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


async def test_unreadable_journal_fails_its_session_alone(
    workspace: Workspace, journal: bytes, server: InProcessServer
) -> None:
    """The session is shown as unreadable and refuses prompts, and another session works (rows J9, S6)."""
    path = workspace.session_directory(SESSION) / "journal.jsonl"
    path.unlink()
    path.mkdir()
    (path / "something").write_bytes(b"")
    other = await server.create()
    listed = {view.session_id: view for view in await server.registry.list_sessions()}
    assert listed[SESSION].read_only is not None
    view = await server.open(SESSION)
    assert view.session.read_only is not None
    assert "cannot be read" in view.session.read_only.text
    with pytest.raises(Refused):
        await server.send(SESSION, "say on")
    assert (await server.say(other, PROMPT)).reason == "done"


class DiesReplacing(WatchedDisk):
    """Ends its process before it replaces a file."""

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.verb == "exchange":
            os.kill(os.getpid(), signal.SIGKILL)
        return act()


class ReadOnlyState(WatchedDisk):
    """A state directory on a file system that is mounted read-only; with `locks`, only the journal is read-only."""

    def __init__(self, inner: Disk, locks: bool) -> None:
        super().__init__(inner)
        self.locks = locks

    def lock(self, folder: Folder, name: str) -> Lock | None:
        if self.locks:
            return super().lock(folder, name)
        raise OSError(errno.EROFS, "Read-only file system")

    def open_append(self, folder: Folder, name: str) -> File:
        if name == "journal.jsonl":
            raise OSError(errno.EROFS, "Read-only file system")
        return super().open_append(folder, name)


@pytest.fixture
def died_replacing(workspace: Workspace) -> bytes:
    """The journal of a session whose process died before it replaced a file."""

    async def dies() -> None:
        async with practice_server(workspace, disk=DiesReplacing(system_disk())) as server:
            await server.say(await server.create(), PROMPT)

    assert run_in_fork(dies).signal == signal.SIGKILL
    return workspace.journal(SESSION)


@pytest.mark.parametrize("locks", [False, True])
async def test_read_only_state_directory_shows_verdicts_without_recording(
    workspace: Workspace, died_replacing: bytes, locks: bool
) -> None:
    """A start without a result is shown as unknown and not recorded; no call with an effect runs, and one message gives
    the reason (rows C4, J7, J11; [I3])."""
    async with practice_server(workspace, run=2, disk=ReadOnlyState(system_disk(), locks)) as server:
        view = await server.open(SESSION)
        assert view.session.read_only is not None
        assert view.session.read_only.reason == "disk"
        assert server.editor.messages == [view.session.read_only.text]
        assert states(view) == {"write_file": "unknown"}
        with pytest.raises(Refused) as refused:
            await server.send(SESSION, "write old.txt with y", "prompt-2")
        assert refused.value.kind == "journalBroken"
    assert workspace.journal(SESSION) == died_replacing
    assert workspace.files()["old.txt"] == "old\n"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
async def test_read_only_workspace_fails_the_call_as_failed(workspace: Workspace, number: int) -> None:
    """The file cannot be replaced: the call failed, is neither unknown nor held against later calls, and the next call
    works (rows C6, W6, W9)."""

    def beside_old(operation: Operation) -> bool:
        return operation.verb == "create" and operation.target.rpartition("/")[2].startswith(".old.txt.")

    disk = MatchingFault(system_disk(), beside_old, number, times=None)
    async with practice_server(workspace, disk=disk) as server:
        session_id = await server.create()
        ended = await server.say(session_id, "write old.txt with y")
        assert (ended.reason, ended.changed) == ("done", ())
        view = await server.open(session_id)
        assert states(view) == {"write_file": "failed"}
        assert view.snapshot.calls == ()
        assert (await server.say(session_id, "write new.txt with new", "prompt-2")).reason == "done"
    assert len(disk.failed) == 1
    assert (workspace.files()["old.txt"], workspace.files()["new.txt"]) == ("old\n", "new")
