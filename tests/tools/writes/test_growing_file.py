"""A file that grows as fast as it is read: each reading ends at its bound and says that the file changed (case 169)."""

from __future__ import annotations

import errno
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Evidence
from steadyhand.ports.disk import File
from steadyhand.session.storage.summary import _binding
from steadyhand.tools.builtin import read_file
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Refusal
from steadyhand.tools.writes import blob_store, entry_state
from steadyhand.tools.writes.blob_store import digest_of
from steadyhand.tools.writes.postcondition_check import check_paths, remove_temporary
from tests.support.faults import WatchedDisk, carries
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import NEW, OLD, WRITE, inspect_attempt, open_attempt
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, carried_out, gathered, planned, run_call
from tests.support.workspace import Workspace

pytestmark = linux_only

READS_MAX = 50


class GrowingDisk(WatchedDisk):
    """Somebody appends to a file after each piece that is read of it."""

    def __init__(self, name: str) -> None:
        super().__init__(system_disk())
        self._name = name
        self.path: Path | None = None
        self.reads = 0

    def read_piece(self, file: File, size: int) -> bytes:
        piece = super().read_piece(file, size)
        if self._files.get(file, "").endswith(self._name) and self.path is not None:
            self.reads += 1
            assert self.reads <= READS_MAX, "it is read for ever"
            with self.path.open("ab") as grown:
                grown.write(b"more" * 1024)
        return piece


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


@pytest.fixture
def disk(workspace: ToolWorkspace) -> GrowingDisk:
    disk = GrowingDisk("a.txt")
    disk.path = workspace.root / "a.txt"
    return disk


def evidence_of(workspace: ToolWorkspace) -> Evidence:
    workspace.write("a.txt", "old\n")
    return gathered(planned(WriteFile(), workspace.tool_context(), path="a.txt", content="new\n"))[0]


def test_digest_of_a_longer_file_is_that_of_its_beginning(workspace: ToolWorkspace) -> None:
    """Case 169, I13: at most one byte more than the bound is read; the size says that there is more."""
    workspace.write("a.txt", "0123456789")
    disk = system_disk()
    folder = disk.open_folder(str(workspace.root))
    whole = digest_of(disk, folder, "a.txt", 10)
    assert whole[1] == 10
    assert digest_of(disk, folder, "a.txt", 99) == whole
    assert digest_of(disk, folder, "a.txt", 9)[1] == 10
    assert digest_of(disk, folder, "a.txt", 3)[1] == 4
    workspace.write("b.txt", "0123")
    assert digest_of(disk, folder, "a.txt", 3)[0] == digest_of(disk, folder, "b.txt", 4)[0]
    disk.close(folder)


def test_check_of_a_growing_file_ends_as_unknown(workspace: ToolWorkspace, disk: GrowingDisk) -> None:
    """Case 169, W2: the file is neither old nor new while it grows."""
    evidence = evidence_of(workspace)
    (finding,) = check_paths(workspace.tool_context(disk), (evidence,))
    assert (finding.check, finding.reason) == ("unknown", "it changed while it was read")
    assert disk.reads > 0


def test_delete_of_a_growing_large_file_is_refused(
    workspace: ToolWorkspace, disk: GrowingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 169: a file too large to be stored is hashed in pieces, up to the size that it had."""
    monkeypatch.setattr(entry_state, "CHECKPOINT_BYTES_MAX", 2)
    workspace.write("a.txt", "old\n")
    refused = planned(DeleteFile(), workspace.tool_context(disk), path="a.txt").preview()
    assert isinstance(refused, Refusal)
    assert (refused.reason, "changed while it was checked" in refused.text) == ("changed", True)


@pytest.mark.parametrize("tool", [WriteFile(), DeleteFile()], ids=["write", "delete"])
def test_change_of_a_growing_file_ends_and_changes_nothing(
    workspace: ToolWorkspace, disk: GrowingDisk, tool: WriteFile | DeleteFile
) -> None:
    """Case 169, W9: it grows since *started*; each comparison ends, and somebody's bytes stay."""
    workspace.write("a.txt", "old\n")
    fields = {"path": "a.txt", **({"content": "new\n"} if isinstance(tool, WriteFile) else {})}
    call = planned(tool, workspace.tool_context(), **fields)
    evidence = gathered(call)
    object.__setattr__(call, "_tool_context", workspace.tool_context(disk))
    done = run_call(call, evidence)
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert (workspace.root / "a.txt").read_bytes().startswith(b"old\nmore")


def test_large_file_that_grows_is_read_to_its_bound(
    workspace: ToolWorkspace, disk: GrowingDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 169: a line far away is looked for within the bound, also where the file never ends."""
    for name in ("WHOLE_BYTES_MAX", "WINDOW_BYTES_MAX", "PIECE_BYTES_MAX"):
        monkeypatch.setattr(read_file, name, 1024)
    monkeypatch.setattr(read_file, "SCANNED_BYTES_MAX", 8 * 4096)
    monkeypatch.setattr(blob_store, "PIECE_BYTES_MAX", 1024)
    workspace.write("a.txt", "x" * 5000)
    done = anyio.run(lambda: carried_out(ReadFile(), workspace.tool_context(disk), path="a.txt", offset=2))
    assert (done.outcome, done.reason) == ("failed", "too_large")


def test_leftover_that_grows_is_kept(workspace: ToolWorkspace) -> None:
    """Case 169, W9: somebody writes to the file under our temporary name, so it is not ours to remove."""
    evidence = evidence_of(workspace)
    left = workspace.write(str(evidence.temporary), "new\n")
    disk = GrowingDisk(".steadyhand")
    disk.path = left
    assert remove_temporary(workspace.tool_context(disk), evidence, b"new\n") == (str(evidence.temporary),)
    assert left.exists()


def test_summary_of_a_growing_journal_is_not_bound_to_it(workspace: ToolWorkspace, disk: GrowingDisk) -> None:
    """Case 169: the last line is looked for in what was there; a journal that grows fits no summary."""
    path = workspace.write("journal.jsonl", '{"sum":"12345678"}\n')
    disk = GrowingDisk("journal.jsonl")
    folder = disk.open_folder(str(workspace.root))
    assert _binding(disk, folder) == (19, "12345678")
    disk.path = path
    assert _binding(disk, folder) is None
    disk.close(folder)


def test_reading_that_takes_too_long_ends(workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 169, I13: the time of one file has a bound too; the finding says what happened."""
    evidence = evidence_of(workspace)
    monkeypatch.setattr(blob_store, "READ_S_MAX", -1.0)
    (finding,) = check_paths(workspace.tool_context(), (evidence,))
    assert finding.check == "unknown"
    assert finding.reason == "it cannot be read: it was not read to its end within -1 s"
    disk = system_disk()
    folder = disk.open_folder(str(workspace.root))
    with pytest.raises(OSError, match="not read to its end") as raised:
        digest_of(disk, folder, "a.txt", 10)
    assert raised.value.errno == errno.ETIMEDOUT
    disk.close(folder)


@pytest.mark.anyio
async def test_opening_and_inspecting_end_while_the_doubtful_file_grows(tmp_path: Path) -> None:
    """Case 169, C8, A4: both end; the effect stays uncertain and can be decided by the person."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", OLD)
    kill_in_turn(place, WRITE, carries("result"))
    assert place.files() == {"a.txt": NEW}
    disk = GrowingDisk("a.txt")
    disk.path = place.root / "a.txt"
    async with practice_server(place, run=2, disk=disk) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.uncertain
        assert attempt.check == "unknown"
        seen = await inspect_attempt(session, attempt)
        assert (seen.check, seen.state) == ("unknown", "unknown")
        assert "it changed while it was read" in seen.text
