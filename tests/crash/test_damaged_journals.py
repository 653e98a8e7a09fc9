"""Journals that were cut, damaged, doubled, made by a newer version or cannot be written, opened by a House.

What reading makes of damaged bytes is proved in tests/journal; here it is what a person meets: the session opens, says
once what it found, loses nothing else, and the work goes on.
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

from steadyhand.adapters.disk import system_disk
from steadyhand.core.refusal import Refused
from steadyhand.ports import Disk, File, Folder, Lock
from steadyhand.session.house import OpenedView
from tests.crash.promises import SESSION, lay_out, whole_records
from tests.support.disks import MatchingFault, Operation, WatchedDisk
from tests.support.systems import linux_only
from tests.support.turns import Place, Rig, forked, rig

pytestmark = [linux_only, pytest.mark.anyio, pytest.mark.timeout(240)]

T = TypeVar("T")
nul_tail_bytes = 70_000
"""More than the 64 KiB that others read at once (row J8)."""
PROMPT = "write old.txt with x"
lines_min = 10
DID_NOT_RUN = ("notRun", "refused", "failed")


@pytest.fixture
def place(in_memory: Path) -> Place:
    return lay_out(Place.under(in_memory / "place"))


@pytest.fixture
async def journal(place: Place) -> bytes:
    """A healthy journal of one turn."""
    async with rig(place) as house:
        assert (await house.say(await house.create(), PROMPT)).reason == "done"
    return place.journal(SESSION)


@pytest.fixture
async def house(place: Place, journal: bytes) -> AsyncIterator[Rig]:
    """A later life, with nothing open."""
    async with rig(place, life=2) as living:
        yield living


def lay_down(place: Place, content: bytes) -> None:
    """Put these bytes in the journal's place, with nothing beside it that an earlier opening left."""
    folder = place.session(SESSION)
    for path in [*folder.glob("torn-*.bin"), *folder.glob("summary.json")]:
        path.unlink()
    (folder / "journal.jsonl").write_bytes(content)


def lines(content: bytes) -> list[bytes]:
    return [line + b"\n" for line in content.split(b"\n")[:-1]]


def states(view: OpenedView) -> dict[str, str]:
    """Tool → state of each call of an opened session."""
    return {call.tool: call.state for message in view.messages for call in message.calls or ()}


async def test_a_journal_cut_at_any_byte_opens(place: Place, journal: bytes, house: Rig) -> None:
    """Whatever the last byte is: all whole records count, the rest is kept beside the journal and cut off, nothing is
    called damaged, and what started is never called not run (rows J8, J9, C1, C2; case 20). What was found is said in
    one sentence; where not one record is whole, nothing is touched."""
    assert len(lines(journal)) >= lines_min
    for cut in range(1, len(journal)):
        left = journal[:cut]
        lay_down(place, left)
        kept = whole_records(left)
        before = len(house.editor.messages)
        view = await house.open(SESSION)
        try:
            assert view.damaged == 0
            if not kept:
                assert view.session.read_only is not None
                assert view.session.read_only.reason == "damaged"
                assert place.journal(SESSION) == left
                assert house.editor.messages[before:] == [view.session.read_only.text]
                await house.house.close(SESSION)
                continue
            assert view.session.read_only is None
            torn = list(place.session(SESSION).glob("torn-*.bin"))
            assert ["was not finished" in text for text in house.editor.messages[before:]] == [True] * len(torn)
            assert whole_records(place.journal(SESSION))[: len(kept)] == kept
            _torn_bytes_are_kept(place, left)
            kinds = [(record["kind"], record.get("callId")) for record in kept]
            for message in view.messages:
                for call in message.calls or ():
                    started, ended = ("started", call.call_id) in kinds, ("result", call.call_id) in kinds
                    if call.tool == "write_file":
                        assert call.state == ("returned" if ended else "unknown" if started else "notRun")
        except AssertionError as broken:
            raise AssertionError(f"cut at byte {cut} of {len(journal)}\n{broken}") from broken
        await house.house.close(SESSION)


def _torn_bytes_are_kept(place: Place, left: bytes) -> None:
    tail = left.rpartition(b"\n")[2]
    kept = [path.read_bytes() for path in place.session(SESSION).glob("torn-*.bin")]
    whole = bool(tail) and len(whole_records(left)) > left.count(b"\n")
    assert kept == ([] if whole or not tail else [tail])


@pytest.mark.parametrize("line_end", [True, False], ids=["after the line end", "in place of the line end"])
async def test_a_long_tail_of_zeros_swallows_nothing(place: Place, journal: bytes, house: Rig, line_end: bool) -> None:
    """More than 64 KiB of zeros at the end are cut, and the records written after them are read (row J8)."""
    content = journal if line_end else journal[:-1]
    lay_down(place, content + b"\0" * nul_tail_bytes)
    view = await house.open(SESSION)
    assert (view.damaged, view.session.read_only) == (0, None)
    assert (await house.say(SESSION, "say on", "prompt-2")).reason == "done"
    after = place.journal(SESSION)
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
async def test_damage_in_the_middle_is_told_and_costs_one_line(place: Place, journal: bytes, damage: Damage) -> None:
    """Each line in turn: the session opens, tells how many records are damaged, keeps all others, never calls a call
    that may have run not run, and the work goes on (rows J9, J1, S6, C3; [I3]; cases 20, 22)."""
    every = lines(journal)
    for at in range(len(every) - 1):
        lay_down(place, damage(every, at))
        async with rig(place, life=3 + at) as house:
            view = await house.open(SESSION)
            try:
                assert view.damaged == 1
                assert view.session.read_only is None
                (told,) = [text for text in house.editor.messages if "damaged or missing" in text]
                assert "1 damaged" in told
                assert states(view).get("write_file", "unknown") not in DID_NOT_RUN
                assert (await house.say(SESSION, "say on", f"later-{at}")).reason == "done"
            except AssertionError as broken:
                raise AssertionError(f"line {at + 1}: {json.loads(every[at])['kind']}\n{broken}") from broken
        after = place.journal(SESSION)
        assert all(line in after for number, line in enumerate(every) if number != at)
    assert len(every) >= lines_min


async def test_a_newer_version_is_shown_and_not_touched(place: Place, journal: bytes, house: Rig) -> None:
    """Read-only, with the reason; nothing of the session changes and no prompt is taken (rows J13, X1)."""
    body = b'"prev":"00000000","v":2,"seq":99,"at":"2030-01-01T00:00:00.000Z","kind":"hologram"}'
    lay_down(place, journal + b'{"sum":"%08x",' % zlib.crc32(body) + body + b"\n")
    before = _everything(place)
    view = await house.open(SESSION)
    assert view.session.read_only is not None
    assert view.session.read_only.reason == "newer"
    assert "newer version" in view.session.read_only.text
    assert states(view) == {"write_file": "returned"}
    with pytest.raises(Refused) as refused:
        await house.send(SESSION, "say on", "prompt-2")
    assert refused.value.kind == "journalBroken"
    assert refused.value.more["readOnly"] == {"reason": "newer", "text": view.session.read_only.text}
    assert _everything(place) == before


def _everything(place: Place) -> dict[str, bytes]:
    """Every file of the session but who owns it now."""
    folder = place.session(SESSION)
    found = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("owner.")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


async def test_a_journal_that_cannot_be_read_is_not_an_empty_one(place: Place, journal: bytes, house: Rig) -> None:
    """It fails alone: shown as unreadable, refused for prompts, and another session works (rows J9, S6)."""
    path = place.session(SESSION) / "journal.jsonl"
    path.unlink()
    path.mkdir()
    (path / "something").write_bytes(b"")
    other = await house.create()
    listed = {view.session_id: view for view in await house.house.listed()}
    assert listed[SESSION].read_only is not None
    view = await house.open(SESSION)
    assert view.session.read_only is not None
    assert "cannot be read" in view.session.read_only.text
    with pytest.raises(Refused):
        await house.send(SESSION, "say on")
    assert (await house.say(other, PROMPT)).reason == "done"


class DiesReplacing(WatchedDisk):
    """Ends its process before a file is replaced."""

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.verb == "exchange":
            os.kill(os.getpid(), signal.SIGKILL)
        return act()


class ReadOnlyState(WatchedDisk):
    """A state directory on a file system that is mounted read-only; with `locks`, only the journal is."""

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
def died_replacing(place: Place) -> bytes:
    """A session whose process died before it replaced a file; its journal."""

    async def dies() -> None:
        async with rig(place, disk=DiesReplacing(system_disk())) as house:
            await house.say(await house.create(), PROMPT)

    assert forked(dies).signal == signal.SIGKILL
    return place.journal(SESSION)


@pytest.mark.parametrize("locks", [False, True])
async def test_in_a_read_only_state_directory_verdicts_are_shown(
    place: Place, died_replacing: bytes, locks: bool
) -> None:
    """A start without a result is shown as unknown, not recorded; nothing with an effect runs, and the reason is told
    once (rows C4, J7, J11; [I3])."""
    async with rig(place, life=2, disk=ReadOnlyState(system_disk(), locks)) as house:
        view = await house.open(SESSION)
        assert view.session.read_only is not None
        assert view.session.read_only.reason == "disk"
        assert house.editor.messages == [view.session.read_only.text]
        assert states(view) == {"write_file": "unknown"}
        with pytest.raises(Refused) as refused:
            await house.send(SESSION, "write old.txt with y", "prompt-2")
        assert refused.value.kind == "journalBroken"
    assert place.journal(SESSION) == died_replacing
    assert place.files()["old.txt"] == "old\n"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
async def test_a_read_only_workspace_fails_plainly(place: Place, number: int) -> None:
    """The file cannot be replaced: the call failed, is neither unknown nor in the way, and the next one works
    (rows C6, W6, W9)."""

    def beside_old(operation: Operation) -> bool:
        return operation.verb == "create" and operation.target.rpartition("/")[2].startswith(".old.txt.")

    disk = MatchingFault(system_disk(), beside_old, number, times=None)
    async with rig(place, disk=disk) as house:
        session_id = await house.create()
        ended = await house.say(session_id, "write old.txt with y")
        assert (ended.reason, ended.changed) == ("done", ())
        view = await house.open(session_id)
        assert states(view) == {"write_file": "failed"}
        assert view.snapshot.calls == ()
        assert (await house.say(session_id, "write new.txt with new", "prompt-2")).reason == "done"
    assert len(disk.failed) == 1
    assert (place.files()["old.txt"], place.files()["new.txt"]) == ("old\n", "new")
