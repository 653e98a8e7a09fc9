"""Content under its digest: durable before it is named, verified before it is trusted."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.identity import sha256
from steadyhand.tools import content
from steadyhand.tools.content import Contents
from tests.support.disks import CountingDisk, FaultDisk
from tests.support.ground import ATTEMPT, Yard, between

CONTENT = b"content\n"
DIGEST = sha256(CONTENT)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


def kept_in(yard: Yard) -> dict[str, bytes]:
    folder = yard.session / "checkpoints"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_content_is_synced_before_it_has_its_name(yard: Yard) -> None:
    """W8, J4: write, sync, rename, sync of the folder, in this order; the second time nothing is written."""
    disk = CountingDisk(system_disk())
    store = Contents(disk, str(yard.session), "checkpoints")
    assert store.keep(CONTENT, ATTEMPT) == DIGEST
    assert [operation.verb for operation in disk.operations] == [
        *("make_folder", "sync_folder", "create", "write", "sync", "rename", "sync_folder")
    ]
    assert store.keep(CONTENT, "b" * 32) == DIGEST
    assert [operation.verb for operation in disk.operations[7:]] == ["sync_folder", "sync_folder"]
    assert store.read(DIGEST, 100) == CONTENT
    assert kept_in(yard) == {DIGEST: CONTENT}


def test_a_fault_at_any_operation_never_leaves_a_wrong_file(yard: Yard) -> None:
    """W8, J7: what has its digest's name has its bytes; the next try succeeds."""
    for number in range(1, 20):
        disk = FaultDisk(system_disk(), number, errno.ENOSPC)
        body = CONTENT + str(number).encode()
        try:
            Contents(disk, str(yard.session), "checkpoints").keep(body, ATTEMPT)
        except OSError:
            assert all(sha256(kept) == name for name, kept in kept_in(yard).items() if not name.endswith(".new"))
        assert Contents(system_disk(), str(yard.session), "checkpoints").keep(body, ATTEMPT) == sha256(body)
        if not disk.failed:
            return
    pytest.fail("the operations never end")


def test_a_crash_at_any_operation_is_mended_by_the_next_try(yard: Yard) -> None:
    """W8: a half-written file never has a digest's name; the next try and the sweep leave only what is whole."""

    class Crash(BaseException):
        pass

    crashed = True
    for number in range(1, 60):
        body = CONTENT + str(number).encode()
        crashed = False

        def before(count: int, name: str, number: int = number) -> None:
            nonlocal crashed
            if name != "close" and count >= number:
                crashed = True
                raise Crash

        try:
            Contents(between(before), str(yard.session), "checkpoints").keep(body, f"{number:032x}")
        except Crash:
            store = Contents(system_disk(), str(yard.session), "checkpoints")
            store.sweep()
            assert all(sha256(kept) == name for name, kept in kept_in(yard).items())
            assert store.keep(body, "b" * 32) == sha256(body)
        if not crashed:
            break
    assert not crashed


@pytest.mark.parametrize("damage", [b"", b"Content\n", CONTENT + b"x"])
def test_a_damaged_file_is_not_trusted(yard: Yard, damage: bytes) -> None:
    """W8, J12: it is no content when read, and is written anew when kept."""
    store = Contents(system_disk(), str(yard.session), "checkpoints")
    store.keep(CONTENT, ATTEMPT)
    path = yard.session / "checkpoints" / DIGEST
    path.chmod(0o600)
    path.write_bytes(damage)
    assert store.read(DIGEST, 100) is None
    assert store.keep(CONTENT, ATTEMPT) == DIGEST
    assert store.read(DIGEST, 100) == CONTENT


def test_what_is_not_there_is_none(yard: Yard) -> None:
    """J12: missing, above the bound asked for, or no digest at all: nothing is invented, nothing else is opened."""
    store = Contents(system_disk(), str(yard.session), "checkpoints")
    assert store.read(DIGEST, 100) is None
    store.keep(CONTENT, ATTEMPT)
    (yard.session / "secret").write_bytes(b"s")
    assert store.read(DIGEST, len(CONTENT) - 1) is None
    assert store.read("../secret", 100) is None


def test_a_stream_is_kept_up_to_its_bound(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """J12, I13: what is above the bound is dropped and said to be."""
    monkeypatch.setattr(content, "output_bytes_max", 10)
    stream = Contents(system_disk(), str(yard.session), "outputs").stream(ATTEMPT)
    for piece in (b"123456", b"789", b"abc", b"def"):
        stream.write(piece)
    kept = stream.finish()
    assert kept is not None
    assert (kept.digest, kept.bytes, kept.whole) == (sha256(b"123456789a"), 10, False)
    assert (yard.session / "outputs" / kept.digest).read_bytes() == b"123456789a"


def test_a_stream_in_trouble_keeps_nothing_and_raises_nothing(yard: Yard) -> None:
    """J12, J7: at whatever operation the disk fails, the command's outcome is not touched."""
    for number in range(1, 20):
        disk = FaultDisk(system_disk(), number, errno.ENOSPC)
        stream = Contents(disk, str(yard.session), "outputs").stream(f"{number:032x}")
        stream.write(b"one")
        stream.write(b"two")
        kept = stream.finish()
        if not disk.failed:
            assert kept is not None
            return
        assert kept is None
        assert stream.trouble == "No space left on device"
    pytest.fail("the operations never end")
