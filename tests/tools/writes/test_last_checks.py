"""The last comparison before a change of a file, and the check that reads a file while somebody writes (rows W2, W9).

Each test changes something between *started* and the body, or between two reads, that nothing else compares.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import Disk, File
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Tool, ToolOutcome
from steadyhand.tools.writes.postcondition_check import check_paths
from tests.support.faults import CountingDisk, WatchedDisk, between
from tests.support.systems import posix_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, run_call

pytestmark = posix_only

MOVED = {"from": "old/a.txt", "to": "new/b.txt"}


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def changed_before_the_body(
    workspace: ToolWorkspace,
    tool: Tool,
    fields: Mapping[str, object],
    change: Callable[[], object],
    disk: Disk | None = None,
) -> ToolOutcome:
    """Gather, change something, then run the body."""
    call = planned(tool, workspace.tool_context(disk), **fields)
    evidence = gathered(call)
    change()
    return run_call(call, evidence)


def test_write_of_a_file_with_a_new_second_name_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W9, W1: another name was made since *started*; a replacement would leave that name with the old content."""
    path = workspace.write("a.txt", "old\n")
    done = changed_before_the_body(
        workspace,
        WriteFile(),
        {"path": "a.txt", "content": "new\n"},
        lambda: os.link(path, workspace.root / "b.txt"),
    )
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert workspace.files() == {"a.txt": "old\n", "b.txt": "old\n"}
    assert path.stat().st_ino == (workspace.root / "b.txt").stat().st_ino


@pytest.mark.parametrize("tool", [WriteFile(), DeleteFile()], ids=["write", "delete"])
def test_change_of_a_file_with_another_mode_changes_nothing(workspace: ToolWorkspace, tool: Tool) -> None:
    """W8, W9: somebody changed the mode since *started*; the content alone is not what the evidence describes."""
    path = workspace.write("a.txt", "old\n")
    path.chmod(0o644)
    fields = {"path": "a.txt", **({"content": "new\n"} if isinstance(tool, WriteFile) else {})}
    done = changed_before_the_body(workspace, tool, fields, lambda: path.chmod(0o600))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert workspace.files() == {"a.txt": "old\n"}
    assert path.stat().st_mode & 0o777 == 0o600


def test_move_to_a_path_with_unsaved_text_moves_nothing(workspace: ToolWorkspace) -> None:
    """V2: somebody typed a document with the new name since *started*; saved later it would replace what was moved."""
    workspace.write("a.txt", "old\n")
    typed = OpenDocument("typing", 1, True)
    done = changed_before_the_body(
        workspace,
        MoveFile(),
        {"from": "a.txt", "to": "b.txt"},
        lambda: workspace.documents.update({str(workspace.root / "b.txt"): typed}),
    )
    assert (done.outcome, done.reason) == ("failed", "unsaved")
    assert "b.txt has unsaved changes" in done.text
    assert workspace.files() == {"a.txt": "old\n"}


def test_move_syncs_the_new_folder_before_the_old_one(workspace: ToolWorkspace) -> None:
    """W3, J4: a power loss between the two syncs can bring back the old name, and never loses both."""
    workspace.write("old/a.txt", "old\n")
    (workspace.root / "new").mkdir()
    disk = CountingDisk(system_disk())
    done = changed_before_the_body(workspace, MoveFile(), MOVED, lambda: None, disk)
    assert done.outcome == "returned"
    log = disk.log[disk.log.index(next(line for line in disk.log if line.startswith("rename_to"))) :]
    assert log[1:] == ["sync_folder new", "sync_folder old"]


def test_moved_back_entry_is_synced_in_its_old_folder_first(workspace: ToolWorkspace) -> None:
    """W9: a save that was moved along gets its name back, durable there before the new name is durably gone."""
    workspace.write("old/a.txt", "old\n")
    (workspace.root / "new").mkdir()
    disk = _SaveBeforeMove(system_disk(), lambda: workspace.write("old/a.txt", "saved\n"))
    done = changed_before_the_body(workspace, MoveFile(), MOVED, lambda: None, disk)
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert workspace.files() == {"old/a.txt": "saved\n"}
    assert disk.log[-2:] == ["sync_folder old", "sync_folder new"]


class _SaveBeforeMove(CountingDisk):
    """Somebody saves right before the first rename."""

    def __init__(self, inner: Disk, save: Callable[[], object]) -> None:
        super().__init__(inner)
        self._save: Callable[[], object] | None = save

    def rename_to(self, *arguments: object) -> None:
        if self._save is not None:
            self._save()
            self._save = None
        super().rename_to(*arguments)  # type: ignore[arg-type]  # passed on as they came


def test_check_of_a_file_exchanged_while_it_is_read_is_unknown(workspace: ToolWorkspace) -> None:
    """W2: the bytes that were read have the old size, and another file of the same size has the name now."""
    workspace.write("a.txt", "old\n")
    (evidence,) = gathered(planned(WriteFile(), workspace.tool_context(), path="a.txt", content="new\n"))

    def exchange(count: int, name: str) -> None:
        if name == "read_piece" and (workspace.root / "a.txt").read_text() == "old\n":
            workspace.write("b.txt", "two\n").replace(workspace.root / "a.txt")

    (finding,) = check_paths(workspace.tool_context(between(exchange)), (evidence,))
    assert (finding.check, finding.reason) == ("unknown", "it changed while it was read")
    (after,) = check_paths(workspace.tool_context(), (evidence,))
    assert after.check == "conflict"


def test_check_of_a_file_saved_with_the_same_size_while_it_is_read_is_unknown(workspace: ToolWorkspace) -> None:
    """W2: it is saved in place behind what was read already: the old digest would be true of no moment."""
    path = workspace.write("a.txt", "old\n")
    (evidence,) = gathered(planned(WriteFile(), workspace.tool_context(), path="a.txt", content="new\n"))

    def save() -> None:
        path.write_text("two\n")
        os.utime(path, ns=(1, 1))

    disk = _SaveAfterRead(system_disk(), save)
    (finding,) = check_paths(workspace.tool_context(disk), (evidence,))
    assert (finding.check, finding.reason) == ("unknown", "it changed while it was read")


class _SaveAfterRead(WatchedDisk):
    """Somebody saves right after the first piece was read."""

    def __init__(self, inner: Disk, save: Callable[[], object]) -> None:
        super().__init__(inner)
        self._save: Callable[[], object] | None = save

    def read_piece(self, file: File, size: int) -> bytes:
        piece = super().read_piece(file, size)
        if self._save is not None:
            self._save()
            self._save = None
        return piece
