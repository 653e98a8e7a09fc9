"""How the replacement of a file ends, and in what words: cancelled, refused, replaced, in conflict (row W9).

`test_put_back.py` has the way back from a concurrent save.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Change, FileChange
from steadyhand.ports.disk import Attributes, Disk, File, Folder
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import ToolOutcome
from tests.support.faults import WatchedDisk
from tests.support.scripted_disk import ScriptedDisk
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, run_call

pytestmark = linux_only

MEANWHILE = "was changed by somebody else in the meantime. Nothing was replaced."


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    workspace = ToolWorkspace.under(tmp_path)
    workspace.write("d/a.txt", "old\n").chmod(0o640)
    return workspace


def write(
    workspace: ToolWorkspace,
    disk: Disk | None = None,
    path: str = "d/a.txt",
    cancelled: Callable[[], bool] = lambda: False,
) -> ToolOutcome:
    call = planned(WriteFile(), workspace.tool_context(disk), path=path, content="new\n")
    evidence = gathered(call)
    return run_call(call, evidence, cancelled)


def scripted(verb: str, step: Callable[[], object]) -> ScriptedDisk:
    return ScriptedDisk((verb,), step)


def test_write_that_is_cancelled_at_once_does_nothing(workspace: ToolWorkspace) -> None:
    """C6: certain, and the text says that the file is unchanged."""
    done = write(workspace, cancelled=lambda: True)
    assert (done.outcome, done.reason, done.kept_files) == ("stopped", "cancelled", ())
    assert done.text == "It was cancelled before anything was done. d/a.txt is unchanged."


@pytest.mark.parametrize("path", ["d/a.txt", "d/new.txt", "e/f/new.txt"])
def test_write_that_is_cancelled_before_the_replacement_leaves_nothing(workspace: ToolWorkspace, path: str) -> None:
    """C6, W9: the temporary file is removed again."""
    asked: list[bool] = []

    def second_time() -> bool:
        asked.append(True)
        return len(asked) > 1

    done = write(workspace, path=path, cancelled=second_time)
    assert (done.outcome, done.reason, done.kept_files) == ("stopped", "cancelled", ())
    assert done.text == f"It was cancelled before the file was replaced. {path} is unchanged."
    assert workspace.files() == {"d/a.txt": "old\n"}


def test_write_with_text_typed_meanwhile_replaces_nothing(workspace: ToolWorkspace) -> None:
    """V2: the editor has unsaved text since the temporary file was made."""
    typed = OpenDocument("typing", 2, True)
    disk = scripted("create", lambda: workspace.documents.update({str(workspace.root / "d/a.txt"): typed}))
    done = write(workspace, disk)
    assert (done.outcome, done.reason) == ("failed", "unsaved")
    assert done.text == "d/a.txt has unsaved changes in the editor; save it first. Nothing was replaced."
    assert workspace.files() == {"d/a.txt": "old\n"}


class ForgetfulDisk(WatchedDisk):
    """A disk that stores other bytes than it was given, or refuses attributes."""

    def __init__(self, *refused: str, lies: bool = False) -> None:
        super().__init__(system_disk())
        self._refused = refused
        self._lies = lies

    def write(self, file: File, piece: bytes) -> int:
        name = self._files.get(file, "")
        return super().write(file, piece.upper() if self._lies and name.endswith(".steadyhand") else piece)

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        return [*super().give_attributes(file, attributes), *self._refused]


@pytest.mark.parametrize("path", ["d/a.txt", "d/new.txt"])
def test_write_that_the_disk_did_not_store_replaces_nothing(workspace: ToolWorkspace, path: str) -> None:
    """W5, J7: the temporary file is read back before it gets the name. What is not ours is named."""
    done = write(workspace, ForgetfulDisk(lies=True), path)
    assert (done.outcome, done.reason) == ("failed", "not_written")
    assert done.text.startswith("The disk did not store the bytes that were written. Nothing was replaced.")
    assert done.kept_files == tuple(f"d/{name}" for name in workspace.beside())
    assert workspace.content("d/a.txt") == "old\n"
    assert workspace.content("d/new.txt") is None


def test_write_that_would_lose_a_user_attribute_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W9: what a person attached to the file is never dropped silently."""
    done = write(workspace, ForgetfulDisk("user.one", "security.x", "user.two"))
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "unsupported", ())
    assert done.text == ("Its extended attributes user.one, user.two could not be preserved. Nothing was replaced.")
    assert workspace.files() == {"d/a.txt": "old\n"}


def test_write_names_attributes_that_the_system_refused(workspace: ToolWorkspace) -> None:
    """W9: owner and the system's own attributes are kept where that is allowed."""
    done = write(workspace, ForgetfulDisk("uid", "security.x"))
    assert done.outcome == "returned"
    assert done.text.endswith("Not preserved, because the system did not allow it: uid, security.x.")
    assert workspace.files() == {"d/a.txt": "new\n"}
    assert (workspace.root / "d/a.txt").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("path", "change"), [("d/a.txt", "modified"), ("d/new.txt", "created"), ("e/f/new.txt", "created")]
)
def test_write_returns_what_it_read_back(workspace: ToolWorkspace, path: str, change: Change) -> None:
    """W5, W7: size and digest as they are on disk; missing folders are made."""
    done = write(workspace, path=path)
    before = sha256(b"old\n") if change == "modified" else None
    expected = FileChange(path=path, change=change, before=before, after=sha256(b"new\n"), bytes=4)
    assert (done.outcome, done.check, done.files) == ("returned", "satisfied", (expected,))
    assert done.text == f"{path} was {change}: 4 bytes on disk, SHA-256 {sha256(b'new' + bytes([10]))}."
    assert workspace.content(path) == "new\n"
    assert workspace.beside() == []


def test_write_to_a_folder_that_was_exchanged_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W1: the open folder is not the one at the path any more, so the change would be in the wrong place."""

    def exchange() -> None:
        (workspace.root / "d").rename(workspace.root / "old")
        workspace.write("d/a.txt", "old\n").chmod(0o640)

    done = write(workspace, scripted("give_attributes", exchange))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.text.startswith("The path d/a.txt now leads somewhere else. Nothing was replaced.")
    assert workspace.content("d/a.txt") == "old\n"
    assert workspace.content("old/a.txt") == "old\n"


@pytest.mark.parametrize("now", ["saved", "another mode", "a folder", "a link", "gone"])
def test_write_to_a_path_that_changed_meanwhile_replaces_nothing(workspace: ToolWorkspace, now: str) -> None:
    """W9: compared right before the replacement, after the temporary file was made."""
    path = workspace.root / "d/a.txt"

    def change() -> None:
        if now == "saved":
            path.write_text("saved\n")
        elif now == "another mode":
            path.chmod(0o600)
        else:
            path.unlink()
            if now == "a folder":
                path.mkdir()
            elif now == "a link":
                path.symlink_to("elsewhere")

    done = write(workspace, scripted("create", change))
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", ())
    assert MEANWHILE in done.text or "now leads somewhere else" in done.text
    assert workspace.beside() == []


def test_new_file_never_replaces_one_that_was_made_meanwhile(workspace: ToolWorkspace) -> None:
    """W9: seen before the rename, or by the rename itself."""
    for verb in ("create", "rename_new"):
        path = workspace.root / "d" / f"{verb}.txt"
        done = write(workspace, scripted(verb, partial(path.write_text, "theirs\n")), f"d/{verb}.txt")
        assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", ())
        assert done.text == f"d/{verb}.txt {MEANWHILE}"
        assert path.read_text() == "theirs\n"
        assert workspace.beside() == []


class Unexchangeable(WatchedDisk):
    """A file system on which names cannot be exchanged."""

    def __init__(self) -> None:
        super().__init__(system_disk())

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        return False


def test_write_where_names_cannot_be_exchanged_renames(workspace: ToolWorkspace) -> None:
    """W9: the plain rename; the file is old or new all the same."""
    done = write(workspace, Unexchangeable())
    assert (done.outcome, done.check) == ("returned", "satisfied")
    assert workspace.files() == {"d/a.txt": "new\n"}


@pytest.mark.parametrize("now", ["saved", "a folder", "gone"])
def test_write_that_reads_something_else_back_is_a_conflict(workspace: ToolWorkspace, now: str) -> None:
    """W5, case 34: it was replaced, and what is there now is neither old nor new."""
    path = workspace.root / "d/a.txt"

    def change() -> None:
        if now == "saved":
            path.write_text("saved\n")
            return
        path.unlink()
        if now == "a folder":
            path.mkdir()

    done = write(workspace, scripted("unlink", change))
    assert (done.outcome, done.reason, done.check, done.files) == ("unknown", "conflict", "conflict", ())
    found = "finds that somebody else changed it." if now == "saved" else "finds no regular file there."
    assert done.text == f"d/a.txt was replaced, but reading it back {found}"
