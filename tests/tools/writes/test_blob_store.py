"""Content stored under its digest: durable before it has its name, verified before it is used."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.tools.writes import blob_store
from steadyhand.tools.writes.blob_store import BlobStore
from tests.support.faults import CountingDisk, FaultDisk, between
from tests.support.tool_calls import ATTEMPT, ToolWorkspace

CONTENT = b"content\n"
DIGEST = sha256(CONTENT)


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def checkpoints_in(workspace: ToolWorkspace) -> dict[str, bytes]:
    folder = workspace.session / "checkpoints"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def test_store_keep_syncs_the_content_before_it_has_its_name(workspace: ToolWorkspace) -> None:
    """W8, J4: write, sync, rename and sync of the folder, in this order. The second time nothing is written."""
    disk = CountingDisk(system_disk())
    store = BlobStore(disk, str(workspace.session), "checkpoints")
    assert store.store(CONTENT, ATTEMPT) == DIGEST
    assert [operation.verb for operation in disk.operations] == [
        *("make_folder", "sync_folder", "create", "write", "sync", "rename", "sync_folder")
    ]
    assert store.store(CONTENT, "b" * 32) == DIGEST
    assert [operation.verb for operation in disk.operations[7:]] == ["sync_folder", "sync_folder"]
    assert store.read(DIGEST, 100) == CONTENT
    assert checkpoints_in(workspace) == {DIGEST: CONTENT}


def test_store_keep_with_a_fault_at_any_operation_leaves_no_wrong_file(workspace: ToolWorkspace) -> None:
    """W8, J7: a file named by a digest has the bytes of that digest. The next attempt succeeds."""
    for number in range(1, 20):
        disk = FaultDisk(system_disk(), number, errno.ENOSPC)
        body = CONTENT + str(number).encode()
        try:
            BlobStore(disk, str(workspace.session), "checkpoints").store(body, ATTEMPT)
        except OSError:
            assert all(
                sha256(kept) == name for name, kept in checkpoints_in(workspace).items() if not name.endswith(".new")
            )
        assert BlobStore(system_disk(), str(workspace.session), "checkpoints").store(body, ATTEMPT) == sha256(body)
        if not disk.failed:
            return
    pytest.fail("the operations never end")


def test_store_keep_after_a_crash_at_any_operation_succeeds(workspace: ToolWorkspace) -> None:
    """W8: a half-written file never has the name of a digest. The next attempt and the sweep leave only whole files."""

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
            BlobStore(between(before), str(workspace.session), "checkpoints").store(body, f"{number:032x}")
        except Crash:
            store = BlobStore(system_disk(), str(workspace.session), "checkpoints")
            store.remove_temporaries()
            assert all(sha256(kept) == name for name, kept in checkpoints_in(workspace).items())
            assert store.store(body, "b" * 32) == sha256(body)
        if not crashed:
            break
    assert not crashed


@pytest.mark.parametrize("damage", [b"", b"Content\n", CONTENT + b"x"])
def test_store_read_of_a_damaged_file_is_none_and_keep_rewrites_it(workspace: ToolWorkspace, damage: bytes) -> None:
    """W8, J12: a damaged file counts as no content when read, and is written again when kept."""
    store = BlobStore(system_disk(), str(workspace.session), "checkpoints")
    store.store(CONTENT, ATTEMPT)
    path = workspace.session / "checkpoints" / DIGEST
    path.chmod(0o600)
    path.write_bytes(damage)
    assert store.read(DIGEST, 100) is None
    assert store.store(CONTENT, ATTEMPT) == DIGEST
    assert store.read(DIGEST, 100) == CONTENT


def test_store_read_of_a_missing_too_large_or_invalid_digest_is_none(workspace: ToolWorkspace) -> None:
    """J12: nothing is invented, and no other file is opened."""
    store = BlobStore(system_disk(), str(workspace.session), "checkpoints")
    assert store.read(DIGEST, 100) is None
    store.store(CONTENT, ATTEMPT)
    (workspace.session / "secret").write_bytes(b"s")
    assert store.read(DIGEST, len(CONTENT) - 1) is None
    assert store.read("../secret", 100) is None


def test_store_stream_is_kept_up_to_its_limit(workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """J12, I13: bytes above the limit are dropped, and the result says so."""
    monkeypatch.setattr(blob_store, "OUTPUT_BYTES_MAX", 10)
    stream = BlobStore(system_disk(), str(workspace.session), "outputs").stream(ATTEMPT)
    for piece in (b"123456", b"789", b"abc", b"def"):
        stream.write(piece)
    kept = stream.finish()
    assert kept is not None
    assert (kept.digest, kept.bytes, kept.is_complete) == (sha256(b"123456789a"), 10, False)
    assert (workspace.session / "outputs" / kept.digest).read_bytes() == b"123456789a"


def test_store_stream_on_a_failing_disk_keeps_and_raises_nothing(workspace: ToolWorkspace) -> None:
    """J12, J7: at whatever operation the disk fails, the outcome of the command does not change."""
    for number in range(1, 20):
        disk = FaultDisk(system_disk(), number, errno.ENOSPC)
        stream = BlobStore(disk, str(workspace.session), "outputs").stream(f"{number:032x}")
        stream.write(b"one")
        stream.write(b"two")
        kept = stream.finish()
        if not disk.failed:
            assert kept is not None
            return
        assert kept is None
        assert stream.failure == "No space left on device"
    pytest.fail("the operations never end")
