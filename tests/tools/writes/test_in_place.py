"""Writing in place: what is written so, what the user is told of its names, and every disturbance (row W11)."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.domain.records.record import Check, Evidence
from steadyhand.domain.recovery.postcondition import check_all_paths
from steadyhand.ports.disk import Disk, Folder, ReplaceLimits
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.writes import in_place_plan
from steadyhand.tools.writes.planned_write import PlannedChange
from steadyhand.tools.writes.postcondition_check import check_paths, make_durable
from steadyhand.tools.writes.restore import plan_restore
from tests.support.faults import BetweenDisk, CountingDisk, FaultDisk, MatchingFault, WatchedDisk
from tests.support.replacements import carry_out_call, crash_from, numbered, save_by_rename, save_in_place
from tests.support.systems import access_list, append_only, bound_to, linux_only, posix_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, refusal, run_call

pytestmark = posix_only

OLD, NEW = b"old line\nsecond\n", b"new\n"
OPERATIONS = 4
"""Write, truncate, sync the file, sync its folder."""
WRITE = {"path": "f.txt", "content": NEW.decode()}


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return two_names(ToolWorkspace.under(tmp_path))


def two_names(workspace: ToolWorkspace) -> ToolWorkspace:
    path = workspace.write("f.txt", OLD)
    os.link(path, workspace.root / "second.txt")
    return workspace


def change(workspace: ToolWorkspace, disk: Disk | None = None, **fields: object) -> PlannedChange:
    found = planned(WriteFile(), workspace.tool_context(disk), **{**WRITE, **fields})
    assert isinstance(found, PlannedChange)
    return found


def text_of(call: PlannedChange) -> str:
    preview = call.preview()
    assert isinstance(preview, Preview), preview
    return preview.text


def names_in(workspace: ToolWorkspace, *names: str) -> tuple[str, ...]:
    return tuple(str(workspace.root / name) for name in names)


def check_of(context: ToolContext, evidence: tuple[Evidence, ...]) -> Check:
    return check_all_paths(one.check for one in check_paths(context, evidence))


# What is written in place.


@pytest.mark.parametrize("tool", [WriteFile(), EditFile()])
def test_change_of_a_file_with_two_names_is_in_place(workspace: ToolWorkspace, tool: WriteFile | EditFile) -> None:
    """W11, W5: both names have the new content, and mode, owner and inode are those before. The evidence says so, and
    no temporary file is named or left."""
    path = workspace.root / "f.txt"
    path.chmod(0o640)
    before = path.stat()
    fields = WRITE if isinstance(tool, WriteFile) else {"path": "f.txt", "edits": [{"old": "old", "new": "changed"}]}
    call = planned(tool, workspace.tool_context(), **fields)
    assert call.title == "Write in place: f.txt"
    evidence = gathered(call)
    done = run_call(call, evidence)
    assert done.outcome == "returned", done
    assert "was modified in place" in done.text
    assert path.read_bytes() == (workspace.root / "second.txt").read_bytes() != OLD
    after = path.stat()
    assert (after.st_ino, after.st_mode, after.st_nlink) == (before.st_ino, before.st_mode, 2)
    assert [(one.in_place, one.temporary) for one in evidence] == [(True, None)]
    assert check_of(workspace.tool_context(), evidence) == "satisfied"
    assert workspace.beside() == []


@linux_only
def test_change_of_a_mounted_file_is_in_place(workspace: ToolWorkspace) -> None:
    """W11: the file that is mounted has the new content; its own name is not found, so the call counts as outside."""
    source, goal = workspace.outside / "source.txt", workspace.write("goal.txt", "hidden\n")
    source.write_bytes(OLD)
    for _ in bound_to(source, goal):
        call = change(workspace, path="goal.txt")
        assert "its name is a mount point" in text_of(call)
        assert call.outside == names_in(workspace, "goal.txt")
        assert run_call(call, gathered(call)).outcome == "returned"
    assert source.read_bytes() == NEW
    assert goal.read_bytes() == b"hidden\n"


@linux_only
def test_change_in_an_append_only_folder_is_in_place(workspace: ToolWorkspace) -> None:
    """W11: a replacement would leave a temporary file there that nobody can remove."""
    path = workspace.write("log/a.txt", OLD)
    with append_only(path.parent):
        call = change(workspace, path="log/a.txt")
        assert "its folder lets no name be replaced" in text_of(call)
        assert call.outside == ()
        assert run_call(call, gathered(call)).outcome == "returned"
        assert os.listdir(path.parent) == ["a.txt"]
    assert path.read_bytes() == NEW


@linux_only
def test_append_only_file_is_refused(workspace: ToolWorkspace) -> None:
    """W11: it can be neither replaced nor written over."""
    path = workspace.write("a.txt", OLD)
    with append_only(path):
        found = refusal(WriteFile(), workspace.tool_context(), path="a.txt", content="new")
        assert found.reason == "read_only"
        assert path.read_bytes() == OLD


class LimitsDisk(WatchedDisk):
    """A disk on which these limits stand against replacing any file."""

    def __init__(self, inner: Disk, limits: ReplaceLimits) -> None:
        super().__init__(inner)
        self.limits = limits

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        return self.limits


def test_attributes_that_cannot_be_copied_are_kept_in_place(workspace: ToolWorkspace) -> None:
    """W11: the question names them."""
    workspace.write("a.txt", OLD)
    disk = LimitsDisk(workspace.tool_context().disk, ReplaceLimits(unkept=("uid", "system.nfs4_acl")))
    call = change(workspace, disk, path="a.txt")
    assert "a new file would not have its uid, system.nfs4_acl" in text_of(call)
    assert run_call(call, gathered(call)).outcome == "returned"


@linux_only
def test_access_list_of_ours_is_copied(workspace: ToolWorkspace) -> None:
    """W9, W11: such a file is replaced, and the new one has the list; nobody is asked to write in place."""
    path = workspace.write("a.txt", OLD)
    try:
        os.setxattr(path, "system.posix_acl_access", access_list(4242))
    except OSError:
        pytest.skip("this file system has no access lists")
    before = os.getxattr(path, "system.posix_acl_access")
    inode = path.stat().st_ino
    call = change(workspace, path="a.txt")
    assert call.title == "write_file: a.txt"
    assert run_call(call, gathered(call)).outcome == "returned"
    assert path.stat().st_ino != inode
    assert os.getxattr(path, "system.posix_acl_access") == before


# What the user is told of its names.


def test_question_counts_names_in_the_workspace(workspace: ToolWorkspace) -> None:
    """W11: all are found, so it does not count as outside. The scope has each name and the file itself."""
    call = change(workspace)
    assert "2 names, 2 of them in this workspace: f.txt, second.txt." in text_of(call)
    assert call.outside == ()
    assert call.scope.paths == names_in(workspace, "f.txt", "second.txt")
    seen = (workspace.root / "f.txt").stat()
    assert call.scope.identities == (f"{seen.st_dev}:{seen.st_ino}",)


def test_question_says_first_what_is_outside(workspace: ToolWorkspace) -> None:
    """W11: a name that the search does not find may be anywhere, so the call counts as outside."""
    os.link(workspace.root / "f.txt", workspace.outside / "third.txt")
    call = change(workspace)
    text = text_of(call)
    assert text.startswith("1 of its names was not found and may be anywhere.")
    assert "3 names, 2 of them in this workspace: f.txt, second.txt." in text
    assert call.outside


def test_search_for_names_is_bounded(workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """W11, I13: what is beyond the bound counts as not found."""
    monkeypatch.setattr(in_place_plan, "NAMES_SEARCHED_MAX", 3)
    os.unlink(workspace.root / "second.txt")
    for number in range(10):
        workspace.write(f"d{number}/x", "x")
    os.link(workspace.root / "f.txt", workspace.root / "d9" / "second.txt")
    call = change(workspace)
    assert text_of(call).startswith("1 of its names was not found and may be anywhere.")
    assert call.outside


def test_name_of_another_window_folder_is_named_as_outside(tmp_path: Path) -> None:
    """W11: the search knows the other folders of the window."""
    workspace = ToolWorkspace.under(tmp_path)
    path = workspace.write("f.txt", OLD)
    os.link(path, workspace.outside / "there.txt")
    context = workspace.tool_context()
    object.__setattr__(context, "window_folders", lambda: (str(workspace.outside),))
    call = planned(WriteFile(), context, **WRITE)
    assert call.outside == (str(workspace.outside / "there.txt"),)
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert preview.text.startswith(f"It has names outside the workspace: {workspace.outside}/there.txt.")


def test_protected_name_counts(tmp_path: Path) -> None:
    """W11, G2: a second name in `.git/hooks` is as protected as the first one."""
    workspace = ToolWorkspace.under(tmp_path)
    path = workspace.write("f.txt", OLD)
    (workspace.root / ".git" / "hooks").mkdir(parents=True)
    os.link(path, workspace.root / ".git" / "hooks" / "pre-commit")
    call = change(workspace)
    assert call.protected == names_in(workspace, ".git/hooks/pre-commit")


def test_file_of_the_state_directory_is_refused_under_any_name(tmp_path: Path) -> None:
    """W11, E3: a second name in the workspace opens no way into Steadyhand's own files."""
    workspace = ToolWorkspace.under(tmp_path)
    own = workspace.state / "permissions.json"
    own.write_bytes(OLD)
    os.link(own, workspace.root / "f.txt")
    found = refusal(WriteFile(), workspace.tool_context(), **WRITE)
    assert found.reason == "policy"
    assert own.read_bytes() == OLD


def test_name_that_is_not_utf_8_counts_as_found(tmp_path: Path) -> None:
    """W11: no record can hold it, so only the file's identity names it in the scope."""
    workspace = ToolWorkspace.under(tmp_path)
    path = workspace.write("f.txt", OLD)
    os.link(path, os.fsencode(workspace.root) + b"/caf\xe9")
    call = change(workspace)
    assert r"2 names, 2 of them in this workspace: caf\xe9, f.txt." in text_of(call)
    assert call.scope.paths == names_in(workspace, "f.txt")
    assert call.outside == ()


def test_file_above_the_checkpoint_limit_is_refused(workspace: ToolWorkspace) -> None:
    """W11, I13: it could not be put back. The file is sparse, so it costs no room here."""
    os.truncate(workspace.root / "f.txt", CHECKPOINT_BYTES_MAX + 1)
    found = refusal(WriteFile(), workspace.tool_context(), **WRITE)
    assert found.reason == "too_large"


@pytest.mark.parametrize("name", ["f.txt", "second.txt"])
def test_unsaved_text_under_any_name_is_refused(workspace: ToolWorkspace, name: str) -> None:
    """W11, V2: what somebody types under the other name is not overwritten."""
    workspace.documents[str(workspace.root / name)] = OpenDocument("typed", 3, True)
    found = refusal(WriteFile(), workspace.tool_context(), **WRITE)
    assert found.reason == "unsaved"


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda root: os.link(root / "f.txt", root / "third.txt"),
        lambda root: os.unlink(root / "second.txt"),
        lambda root: os.unlink(root / "f.txt"),
        lambda root: save_by_rename(root / "f.txt"),
    ],
    ids=["another name", "one name less", "gone", "another file"],
)
def test_change_between_question_and_start_is_refused(
    workspace: ToolWorkspace, meanwhile: Callable[[Path], object]
) -> None:
    """W1, W11: what the user allowed was for this file with these names."""
    call = change(workspace)
    preview = call.preview()
    assert isinstance(preview, Preview)
    meanwhile(workspace.root)
    found = call.gather("a" * 32, preview)
    assert isinstance(found, Refusal)
    assert found.reason == "changed"


# Disturbed.


def disturbed(
    workspace: ToolWorkspace, disk: Disk, cancelled: Callable[[], bool] = lambda: False
) -> tuple[ToolOutcome | OSError | None, tuple[Evidence, ...]]:
    return carry_out_call(WriteFile(), WRITE, workspace, workspace.tool_context(disk), cancelled)


def both(workspace: ToolWorkspace) -> bytes:
    """The content, which is the same under both names."""
    first, second = ((workspace.root / name).read_bytes() for name in ("f.txt", "second.txt"))
    assert first == second
    return first


@pytest.mark.parametrize("trouble", [errno.EIO, errno.ENOSPC, "short"])
def test_error_at_any_operation_puts_the_old_bytes_back(tmp_path: Path, trouble: int | str) -> None:
    """W11, C6: every operation fails once. What is reported is what the file has: old, or new, and never a mix."""
    for number, workspace in numbered(tmp_path, two_names):
        disk = FaultDisk(workspace.tool_context().disk, number, trouble)  # type: ignore[arg-type]  # errno or "short"
        done, evidence = disturbed(workspace, disk)
        content = both(workspace)
        check = check_of(workspace.tool_context(), evidence)
        assert content in (OLD, NEW), number
        assert check == ("satisfied" if content == NEW else "unchanged")
        if isinstance(done, ToolOutcome):
            assert (done.outcome == "returned") == (content == NEW), (number, done)
            assert done.outcome in ("returned", "failed")
        if number > OPERATIONS:
            assert not disk.failed
            return
        assert disk.failed or trouble == "short"


def test_error_that_lasts_is_unknown_where_the_old_bytes_are_not_back(tmp_path: Path) -> None:
    """W11: from the n-th operation on everything fails. A mix is never called old or new; it can be restored."""
    found: set[str] = set()
    for number, workspace in numbered(tmp_path, two_names):
        disk = FaultDisk(workspace.tool_context().disk, number, errno.EIO, for_good=True)
        done, evidence = disturbed(workspace, disk)
        content = both(workspace)
        check = check_of(workspace.tool_context(), evidence)
        assert check == {NEW: "satisfied", OLD: "unchanged"}.get(content, "conflict")
        if isinstance(done, ToolOutcome):
            found.add(done.outcome)
            assert done.outcome != "failed" or content == OLD
            assert done.outcome != "returned" or content == NEW
        if not disk.failed:
            assert {"unknown", "returned"} <= found
            return


def test_half_written_file_is_a_conflict_and_is_restored_in_place(workspace: ToolWorkspace) -> None:
    """W11, A5: the disk fills in the middle and stays full; then the old bytes come back through the same inode."""
    disk = MatchingFault(workspace.tool_context().disk, lambda op: op.verb == "write", "short", then=errno.ENOSPC)
    inode = (workspace.root / "f.txt").stat().st_ino
    done, evidence = disturbed(workspace, disk)
    assert isinstance(done, ToolOutcome)
    assert (done.outcome, done.check) == ("unknown", "conflict")
    assert both(workspace) == b"ne" + OLD[2:]
    context = workspace.tool_context()
    assert check_of(context, evidence) == "conflict"
    planned_restore = plan_restore(context, evidence)
    assert not isinstance(planned_restore, Refusal)
    assert planned_restore.scope == change(workspace).scope
    undo = planned_restore.gather("b" * 32, None)
    assert not isinstance(undo, Refusal)
    assert [(one.in_place, one.temporary) for one in undo.evidence] == [(True, None)]
    assert run_call(planned_restore, undo.evidence).outcome == "returned"
    assert both(workspace) == OLD
    assert (workspace.root / "f.txt").stat().st_ino == inode


def test_restore_is_in_place_although_the_other_name_is_gone(workspace: ToolWorkspace) -> None:
    """W11: a restore of a write in place is in place too, whatever the file has now."""
    call = change(workspace)
    evidence = gathered(call)
    assert run_call(call, evidence).outcome == "returned"
    os.unlink(workspace.root / "second.txt")
    inode = (workspace.root / "f.txt").stat().st_ino
    undo = plan_restore(workspace.tool_context(), evidence)
    assert not isinstance(undo, Refusal)
    found = undo.gather("b" * 32, None)
    assert not isinstance(found, Refusal)
    assert run_call(undo, found.evidence).outcome == "returned"
    assert (workspace.root / "f.txt").read_bytes() == OLD
    assert (workspace.root / "f.txt").stat().st_ino == inode


def test_restore_of_a_file_that_is_gone_makes_it_anew(workspace: ToolWorkspace) -> None:
    """W11, A5: there is nothing to write over."""
    call = change(workspace)
    evidence = gathered(call)
    assert run_call(call, evidence).outcome == "returned"
    os.unlink(workspace.root / "f.txt")
    undo = plan_restore(workspace.tool_context(), evidence)
    assert not isinstance(undo, Refusal)
    found = undo.gather("b" * 32, None)
    assert not isinstance(found, Refusal)
    assert [one.in_place for one in found.evidence] == [False]
    assert run_call(undo, found.evidence).outcome == "returned"
    assert (workspace.root / "f.txt").read_bytes() == OLD
    assert (workspace.root / "second.txt").read_bytes() == NEW


def test_death_at_any_operation_is_old_new_or_a_conflict(tmp_path: Path) -> None:
    """W11, I3: the check compares whole files, so a mix is never called present or absent."""
    found: set[Check] = set()
    for number, workspace in numbered(tmp_path, two_names):
        crashed: list[int] = []
        disk = BetweenDisk(workspace.tool_context().disk, crash_from(number, crashed))
        done, evidence = disturbed(workspace, disk)
        content = both(workspace)
        check = check_of(workspace.tool_context(), evidence)
        assert check == {NEW: "satisfied", OLD: "unchanged"}.get(content, "conflict")
        assert make_durable(workspace.tool_context(), evidence)
        found.add(check)
        if not crashed:
            assert done is not None
            assert found == {"satisfied", "unchanged", "conflict"}
            return


@pytest.mark.parametrize("save", [save_by_rename, save_in_place])
def test_save_before_the_comparison_is_kept(tmp_path: Path, save: Callable[[Path], None]) -> None:
    """W9, W11: inode and digest are compared as the last step, so a save before it stays and nothing is written."""
    for number, workspace in numbered(tmp_path, two_names):
        path = workspace.root / "f.txt"
        written: list[str] = []

        def before(count: int, name: str, path: Path = path, number: int = number, done: list[str] = written) -> None:
            if name == "write":
                done.append(name)
            if count == number:
                save(path)

        done, _ = disturbed(workspace, BetweenDisk(workspace.tool_context().disk, before))
        if written:
            return
        assert isinstance(done, ToolOutcome | OSError)
        assert not isinstance(done, ToolOutcome) or done.outcome == "failed", (number, done)
        assert path.read_bytes() == b"somebody else's work\n"


def test_other_bytes_of_the_same_length_are_seen(workspace: ToolWorkspace) -> None:
    """W11: the digest is compared by the open descriptor, not the size alone."""
    path, theirs = workspace.root / "f.txt", OLD.replace(b"old", b"own")

    def before(count: int, name: str) -> None:
        if name == "open_update":
            path.write_bytes(theirs)

    done, _ = disturbed(workspace, BetweenDisk(workspace.tool_context().disk, before))
    assert isinstance(done, ToolOutcome)
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert both(workspace) == theirs


def test_file_that_is_swapped_while_it_is_opened_is_not_written(workspace: ToolWorkspace) -> None:
    """W11: another file with the same bytes has the name for one moment; the inode of the descriptor tells."""
    path, other, aside = (workspace.root / name for name in ("f.txt", "other.txt", "aside.txt"))
    other.write_bytes(OLD)
    swapped: list[str] = []

    def before(count: int, name: str) -> None:
        if name == "open_update":
            path.rename(aside)
            other.rename(path)
            swapped.append(name)
        elif swapped == ["open_update"]:
            path.rename(other)
            aside.rename(path)
            swapped.append(name)

    done, _ = disturbed(workspace, BetweenDisk(workspace.tool_context().disk, before))
    assert len(swapped) == 2
    assert isinstance(done, ToolOutcome)
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert other.read_bytes() == both(workspace) == OLD


def test_cancel_before_the_write_stops_it(workspace: ToolWorkspace) -> None:
    """W9, W11, G8: the last look at cancellation is right before the first byte."""
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 1

    disk = CountingDisk(workspace.tool_context().disk)
    done, _ = disturbed(workspace, disk, cancelled)
    assert isinstance(done, ToolOutcome)
    assert (done.outcome, done.reason) == ("stopped", "cancelled")
    assert both(workspace) == OLD
    assert not [one for one in disk.operations if one.verb == "write"]
