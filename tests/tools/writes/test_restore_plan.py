"""A restore before and in its body: what it refuses, what it records, and how it ends (row A5, W8, W9)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Evidence, FileChange, Scope
from steadyhand.ports.disk import Disk
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import EvidenceResult, Preview, Refusal, Tool, ToolOutcome
from steadyhand.tools.writes import entry_state
from steadyhand.tools.writes.restore import PlannedRestore, plan_restore, restore_obstacle
from tests.support.faults import Operation, WatchedDisk
from tests.support.scripted_disk import ScriptedDisk
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, run_call

pytestmark = linux_only

T = TypeVar("T")
NEW_ATTEMPT = "e" * 32


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def carried_out(workspace: ToolWorkspace, tool: Tool, **fields: object) -> tuple[Evidence, ...]:
    """Run a call to its end; return its evidence, which a restore starts from."""
    call = planned(tool, workspace.tool_context(), **fields)
    evidence = gathered(call)
    assert run_call(call, evidence).outcome == "returned"
    return evidence


def plan(workspace: ToolWorkspace, evidence: tuple[Evidence, ...], disk: Disk | None = None) -> PlannedRestore:
    found = plan_restore(workspace.tool_context(disk), evidence)
    assert isinstance(found, PlannedRestore), found
    return found


def gather(restore: PlannedRestore) -> tuple[Evidence, ...]:
    found = restore.gather(NEW_ATTEMPT, None)
    assert isinstance(found, EvidenceResult), found
    return found.evidence


def run(restore: PlannedRestore, evidence: tuple[Evidence, ...], cancelled: bool = False) -> ToolOutcome:
    return run_call(restore, evidence, lambda: cancelled)


def test_restore_needs_evidence_and_the_stored_content(workspace: ToolWorkspace) -> None:
    """A5: without one of them nothing can be brought back; a path at which nothing was needs no content."""
    workspace.write("a.txt", "old\n")
    (evidence,) = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    created = carried_out(workspace, WriteFile(), path="b.txt", content="new\n")
    lost = attrs.evolve(evidence, checkpoint=None)
    assert restore_obstacle(()) == "it left no evidence of what was there before"
    assert restore_obstacle((evidence, *created)) is None
    assert restore_obstacle((*created, lost)) == "the earlier content of a.txt was not stored"
    refused = plan_restore(workspace.tool_context(), (lost,))
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.text) == (
        "unsupported",
        "It cannot be restored: the earlier content of a.txt was not stored.",
    )


def test_restore_names_its_paths_and_needs_no_permission(workspace: ToolWorkspace) -> None:
    """A5: the choice is the permission, as for the effect that is undone."""
    workspace.write(".git/hooks/a", "old\n")
    (workspace.root / ".git/hooks/a").chmod(0o644)
    evidence = carried_out(workspace, WriteFile(), path=".git/hooks/a", content="new\n")
    restore = plan(workspace, evidence)
    assert restore.title == "restore: .git/hooks/a"
    assert restore.preview() == Preview("Restores the earlier content of .git/hooks/a.")
    assert (restore.outside, restore.protected, restore.effect) == ((), (), "writes_files")
    assert restore.scope == Scope(paths=(str(workspace.root / ".git/hooks/a"),))


def test_restore_of_a_path_that_leads_elsewhere_is_refused(workspace: ToolWorkspace) -> None:
    """W1: a folder on the way was exchanged for a link since."""
    workspace.write("d/a.txt", "old\n")
    evidence = carried_out(workspace, WriteFile(), path="d/a.txt", content="new\n")
    (workspace.root / "d").rename(workspace.root / "e")
    (workspace.root / "d").symlink_to("e")
    refused = plan_restore(workspace.tool_context(), evidence)
    assert isinstance(refused, Refusal)
    assert refused.reason == "changed"
    assert "now leads somewhere else" in refused.text


def test_restore_records_what_is_there_now_and_what_was_before(workspace: ToolWorkspace) -> None:
    """A5, W1: its own evidence: the present content is stored, the content before is intended."""
    workspace.write("a.txt", b"\xef\xbb\xbfold\r\n").chmod(0o640)
    (old,) = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    path = workspace.write("a.txt", "saved\n")
    restore = plan(workspace, (old,))
    (evidence,) = gather(restore)
    assert evidence == Evidence(
        path="a.txt",
        resolved=str(path),
        existed=True,
        before=sha256(b"saved\n"),
        before_bytes=6,
        intended=old.before,
        intended_bytes=old.before_bytes,
        mode=0o640,
        encoding=old.encoding,
        line_ending=old.line_ending,
        temporary=f".a.txt.{NEW_ATTEMPT}.steadyhand",
        checkpoint=sha256(b"saved\n"),
        attributes=evidence.attributes,
    )
    assert evidence.attributes is not None
    assert evidence.attributes.mode == 0o640
    assert (workspace.session / "checkpoints" / sha256(b"saved\n")).read_bytes() == b"saved\n"
    done = run(restore, (evidence,))
    assert (done.outcome, done.check) == ("returned", "satisfied")
    assert done.text == "The earlier content was restored and read back from disk: a.txt."
    assert done.files == (
        FileChange(
            path="a.txt", change="modified", before=sha256(b"saved\n"), after=old.before, bytes=old.before_bytes
        ),
    )


def test_restore_of_a_created_file_removes_it(workspace: ToolWorkspace) -> None:
    """A5: nothing was there before. What is there now is stored, so that too can be undone."""
    evidence = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    restore = plan(workspace, evidence)
    (mine,) = gather(restore)
    assert (mine.existed, mine.intended, mine.intended_bytes) == (True, None, None)
    done = run(restore, (mine,))
    assert done.files == (FileChange(path="a.txt", change="deleted", before=sha256(b"new\n")),)
    assert workspace.files() == {}


def test_restore_to_what_is_there_already_changes_nothing(workspace: ToolWorkspace) -> None:
    """A5: the paths that are as before are left alone, and are no change."""
    path = workspace.write("a.txt", "old\n")
    evidence = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    path.write_text("old\n")
    before = path.stat()
    restore = plan(workspace, evidence)
    done = run(restore, gather(restore))
    assert (done.outcome, done.files) == ("returned", ())
    assert path.stat().st_ino == before.st_ino
    deleted = carried_out(workspace, WriteFile(), path="b.txt", content="new\n")
    (workspace.root / "b.txt").unlink()
    gone = plan(workspace, deleted)
    assert run(gone, gather(gone)).files == ()


@pytest.mark.parametrize(
    ("now", "reason", "said"),
    [
        ("a link", "unsupported", "a.txt is a link now, and a restore does not replace a link."),
        ("a folder", "unsupported", "a.txt is a folder; use a command to move or delete folders."),
        ("too large", "too_large", "a.txt is too large to be stored now, so the restore could not be undone."),
        ("read-only", "read_only", "a.txt is read-only (mode 0444)."),
    ],
)
def test_restore_over_what_it_must_not_replace_is_refused(
    workspace: ToolWorkspace, now: str, reason: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A5, W8, case 58: nothing is stored and nothing is changed."""
    path = workspace.write("a.txt", "old\n")
    evidence = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    if now in ("a link", "a folder"):
        path.unlink()
        path.symlink_to("b.txt") if now == "a link" else path.mkdir()
    elif now == "read-only":
        path.chmod(0o444)
    else:
        monkeypatch.setattr(entry_state, "CHECKPOINT_BYTES_MAX", 3)
    refused = plan(workspace, evidence).gather(NEW_ATTEMPT, None)
    assert isinstance(refused, Refusal)
    assert (refused.reason, refused.text) == (reason, said)


def test_restore_of_a_link_never_replaces_something_else(workspace: ToolWorkspace) -> None:
    """A5: a file or another link has the path now. The same link there is as before."""
    link = workspace.root / "link"
    link.symlink_to("there")
    evidence = carried_out(workspace, DeleteFile(), path="link")
    for target in (None, "elsewhere"):
        link.write_text("file") if target is None else link.symlink_to(target)
        refused = plan(workspace, evidence).gather(NEW_ATTEMPT, None)
        assert refused == Refusal(
            "unsupported", "link is something else now, and a restore does not replace it with a link."
        )
        link.unlink()
    link.symlink_to("there")
    restore = plan(workspace, evidence)
    assert run(restore, gather(restore)).files == ()
    link.unlink()
    restore = plan(workspace, evidence)
    done = run(restore, gather(restore))
    assert (done.outcome, os.readlink(link)) == ("returned", "there")
    assert [(change.path, change.change) for change in done.files] == [("link", "created")]


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_restore_without_its_stored_content_fails_and_changes_nothing(workspace: ToolWorkspace, how: str) -> None:
    """W8: the digest is compared; a content that is not whole is never put in place."""
    workspace.write("a.txt", "old\n")
    evidence = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    restore = plan(workspace, evidence)
    mine = gather(restore)
    stored = workspace.session / "checkpoints" / sha256(b"old\n")
    stored.unlink() if how == "missing" else stored.write_bytes(b"OLD\n")
    done = run(restore, mine)
    assert (done.outcome, done.reason, done.files) == ("failed", "lost", ())
    assert done.text == "The stored content of a.txt is missing or damaged; nothing was changed."
    assert workspace.files() == {"a.txt": "new\n"}


def test_restore_that_is_cancelled_before_its_change_is_stopped(workspace: ToolWorkspace) -> None:
    """C6: nothing was changed; that is certain, so it is stopped and not unknown."""
    workspace.write("a.txt", "old\n")
    for tool, fields in ((WriteFile(), {"path": "a.txt", "content": "new\n"}), (DeleteFile(), {"path": "a.txt"})):
        evidence = carried_out(workspace, tool, **fields)
        before = workspace.files()
        restore = plan(workspace, evidence)
        done = run(restore, gather(restore), cancelled=True)
        assert (done.outcome, done.reason, workspace.files()) == ("stopped", "cancelled", before)


def test_restore_of_one_path_only_is_half_done_and_unknown(workspace: ToolWorkspace) -> None:
    """W3, [I3]: of a move over another file the first path is back and the second was saved meanwhile."""
    workspace.write("a.txt", "one\n")
    workspace.write("b.txt", "two\n")
    evidence = carried_out(workspace, MoveFile(), **{"from": "a.txt", "to": "b.txt", "overwrite": True})
    disk = _SaveAfter(workspace)
    restore = plan(workspace, evidence, disk)
    done = run(restore, gather(restore))
    assert (done.outcome, done.check) == ("unknown", "conflict")
    assert done.text.startswith("b.txt was changed by somebody else in the meantime.")
    assert done.text.endswith("Other paths were already restored, so it is half done.")
    assert workspace.files() == {"a.txt": "one\n", "b.txt": "saved\n"}


def restored(workspace: ToolWorkspace, *steps: Callable[[], object]) -> ToolOutcome:
    """Restore a file in which these come before the exchanges."""
    workspace.write("a.txt", "old\n")
    evidence = carried_out(workspace, WriteFile(), path="a.txt", content="new\n")
    restore = plan(workspace, evidence, ScriptedDisk(("exchange",), *steps))
    return run(restore, gather(restore))


def fail() -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_restore_gives_a_concurrent_save_its_name_back(workspace: ToolWorkspace) -> None:
    """W9: it failed and nothing was restored."""
    done = restored(workspace, lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason, done.check, done.kept_files) == ("failed", "changed", None, ())
    assert done.text == "a.txt was changed by somebody else in the meantime."
    assert workspace.files() == {"a.txt": "saved\n"}


def test_restore_names_a_save_that_it_keeps(workspace: ToolWorkspace) -> None:
    """W9: of two saves at the same moment the earlier one is beside the path."""
    done = restored(
        workspace, lambda: workspace.write("a.txt", "first\n"), lambda: workspace.write("a.txt", "second\n")
    )
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", tuple(workspace.beside()))
    assert len(done.kept_files) == 1
    assert workspace.content("a.txt") == "second\n"


def test_restore_that_cannot_put_a_save_back_is_unknown(workspace: ToolWorkspace) -> None:
    """W9, [I3]: a conflict that names the file in which the save may be."""
    done = restored(workspace, lambda: workspace.write("a.txt", "saved\n"), fail)
    assert (done.outcome, done.reason, done.check) == ("unknown", "conflict", "conflict")
    assert done.kept_files == tuple(workspace.beside())
    assert done.text.startswith("Somebody else saved a.txt at the same moment; it may not have been put back")
    assert workspace.content(done.kept_files[0]) == "saved\n"


class _SaveAfter(WatchedDisk):
    """Somebody saves at the second path right after the first one is back."""

    def __init__(self, workspace: ToolWorkspace) -> None:
        super().__init__(system_disk())
        self._workspace = workspace

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        done = act()
        if operation.verb == "rename_new" and operation.target.endswith("a.txt"):
            self._workspace.write("b.txt", "saved\n")
        return done
