"""`move_file` and `delete_file` before the start: arguments, refusals, what is shown, and the port they stand on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.adapters.path_disk import PathDisk
from steadyhand.core.identity import sha256
from steadyhand.ports import Disk, OpenDocument
from steadyhand.tools.check import check
from steadyhand.tools.delete_file import DeleteFile
from steadyhand.tools.move_file import MoveFile
from steadyhand.tools.tool import Preview, Refusal, Tool, checkpoint_bytes_max
from steadyhand.tools.write_file import WriteFile
from tests.support.ground import ATTEMPT, Yard, carried_out, failing, gathered, planned, refusal
from tests.support.systems import linux_only, posix_only, refused

DELETE, MOVE = DeleteFile(), MoveFile()
Fields = dict[str, object]


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


def onward(start: str, goal: str, **more: object) -> Fields:
    return {"from": start, "to": goal, **more}


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (DELETE, {}, "path"),
        (DELETE, {"path": 1}, "path"),
        (DELETE, {"path": "a", "force": True}, "force"),
        (DELETE, {"path": "a/"}, "folder"),
        (MOVE, {"from": "a"}, "to"),
        (MOVE, {"to": "a"}, "from"),
        (MOVE, onward("a", "b", overwrite=1), "overwrite"),
        (MOVE, onward("a", "b", force=True), "force"),
        (MOVE, onward("a", "./a"), "same path"),
        (MOVE, onward("a", "c/"), "folder"),
    ],
)
def test_arguments_are_strict_and_the_field_is_named(yard: Yard, tool: Tool, fields: Fields, named: str) -> None:
    """N1: unknown fields, missing ones and wrong types are refused with a sentence that names the field."""
    yard.write("a", b"a")
    found = refusal(tool, yard.ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


def _pipe(yard: Yard, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(yard: Yard, path: Path) -> None:
    path.unlink()
    path.mkdir()


def _unsaved(yard: Yard, path: Path) -> None:
    yard.documents[str(path)] = OpenDocument("typed", 3, True)


WRONG: list[tuple[Callable[[Yard, Path], object], str]] = [
    (_folder, "unsupported"),
    (_pipe, "unsupported"),
    (_unsaved, "unsaved"),
    (lambda yard, path: path.chmod(0o444), "read_only"),
]


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), [*WRONG, (lambda yard, path: path.unlink(), "not_found")])
def test_what_is_not_deleted_is_refused_untouched(
    yard: Yard, prepare: Callable[[Yard, Path], object], reason: str
) -> None:
    """W1, cases 58: folders, what is no file, what is protected by its mode, unsaved or not there."""
    path = yard.write("f.txt", b"x\n")
    prepare(yard, path)
    found = refusal(DELETE, yard.ground(), path="f.txt")
    assert found.reason == reason
    assert path.exists() == (reason != "not_found")
    assert not (yard.session / "checkpoints").exists()


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), WRONG)
def test_what_is_not_replaced_by_a_move_is_refused_untouched(
    yard: Yard, prepare: Callable[[Yard, Path], object], reason: str
) -> None:
    """W1: the same for what stands under the new path, though overwriting was asked for."""
    yard.write("a", b"a")
    path = yard.write("f.txt", b"x\n")
    prepare(yard, path)
    assert refusal(MOVE, yard.ground(), **onward("a", "f.txt", overwrite=True)).reason == reason
    assert path.exists()
    assert (yard.root / "a").read_bytes() == b"a"


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), WRONG[:3])
def test_what_is_not_moved_is_refused_untouched(
    yard: Yard, prepare: Callable[[Yard, Path], object], reason: str
) -> None:
    """W1: a folder, what is no file, what is unsaved; the sentence on folders says what moves them."""
    path = yard.write("f.txt", b"x\n")
    prepare(yard, path)
    found = refusal(MOVE, yard.ground(), **onward("f.txt", "g.txt"))
    assert found.reason == reason
    assert prepare is not _folder or "only by a command" in found.text
    assert path.exists()
    assert not (yard.root / "g.txt").exists()


@posix_only
def test_what_stands_at_the_new_path_is_replaced_only_if_that_is_asked(yard: Yard) -> None:
    """W1: without `overwrite`, over itself by a second name, or a link over a file or a file over a link: refused."""
    yard.write("a", b"a")
    yard.write("b", b"b")
    os.link(yard.root / "a", yard.root / "second")
    (yard.root / "link").symlink_to("b")
    for start, goal, overwrite, reason in (
        ("a", "b", False, "bad_arguments"),
        ("a", "second", True, "unsupported"),
        ("a", "link", True, "unsupported"),
        ("link", "a", True, "unsupported"),
    ):
        assert refusal(MOVE, yard.ground(), **onward(start, goal, overwrite=overwrite)).reason == reason
    assert [(yard.root / name).read_bytes() for name in ("a", "b", "second", "link")] == [b"a", b"b", b"a", b"b"]


def test_the_state_directory_is_never_a_target(yard: Yard) -> None:
    """G2: neither moved out of nor into, nor deleted."""
    yard.write("a", b"a")
    kept = yard.session / "journal.jsonl"
    kept.write_bytes(b"{}")
    (yard.root / "link").symlink_to(yard.session)
    for found in (
        refusal(DELETE, yard.ground(), path=str(kept)),
        refusal(DELETE, yard.ground(), path="link/journal.jsonl"),
        refusal(MOVE, yard.ground(), **onward(str(kept), "b")),
        refusal(MOVE, yard.ground(), **onward("a", "link/x")),
    ):
        assert found.reason == "policy"
    assert kept.exists()


def test_the_preview_says_what_would_happen(yard: Yard) -> None:
    """W1, E3: paths, sizes, what is replaced, what lies outside, the lines that go, and the digests it rests on."""
    yard.write("d/a", b"one\ntwo\n")
    yard.write("b", b"b\n")
    deletion = planned(DELETE, yard.ground(), path="d/a")
    shown = deletion.preview()
    assert isinstance(shown, Preview)
    assert shown.text == "Deletes d/a (8 bytes)."
    assert shown.diff is not None
    assert "-one\n-two\n" in shown.diff
    assert dict(shown.seen) == {str(yard.root / "d/a"): sha256(b"one\ntwo\n")}
    assert (deletion.title, deletion.scope.paths) == ("delete_file: d/a", (str(yard.root / "d/a"),))
    move = planned(MOVE, yard.ground(), **onward("d/a", "b", overwrite=True))
    shown = move.preview()
    assert isinstance(shown, Preview)
    assert shown.text == "Moves d/a to b (8 bytes). Replaces the file there (2 bytes)."
    assert dict(shown.seen) == {str(yard.root / "d/a"): sha256(b"one\ntwo\n"), str(yard.root / "b"): sha256(b"b\n")}
    assert move.title == "move_file: d/a → b"
    assert move.scope.paths == (str(yard.root / "b"), str(yard.root / "d/a"))
    out = planned(MOVE, yard.ground(), **onward("d/a", "../out/new/a"))
    shown = out.preview()
    assert isinstance(shown, Preview)
    assert out.outside == (str(yard.outside / "new/a"),)
    assert "outside the workspace" in shown.text
    assert "Folders" in shown.text
    assert planned(MOVE, yard.ground(), **onward("b", ".env")).protected
    assert len(planned(MOVE, yard.ground(), **onward("d/a", "x" * 200)).title) <= 80


def test_a_link_is_meant_itself_wherever_it_leads(yard: Yard) -> None:
    """E3, cases 56 and 104: a link that leads outside, or nowhere, is inside; what is behind it is not touched."""
    (yard.outside / "f").write_bytes(b"theirs")
    yard.write("d/x", b"")
    for name, target in (("out", yard.outside / "f"), ("dangling", Path("missing")), ("folder", Path("d"))):
        (yard.root / name).symlink_to(target)
        for call in (
            planned(DELETE, yard.ground(), path=name),
            planned(MOVE, yard.ground(), **onward(name, f"moved-{name}")),
        ):
            assert call.outside == ()
            shown = call.preview()
            assert isinstance(shown, Preview)
            assert "the link" in shown.text
            assert shown.diff is None


@pytest.mark.anyio
async def test_the_way_to_a_path_is_followed_its_end_is_not(yard: Yard) -> None:
    """E3: a folder's link on the way leads on; the link at the end goes, and its target stays."""
    yard.write("d/real", b"x")
    (yard.root / "way").symlink_to("d")
    (yard.root / "d/l").symlink_to("real")
    done = await carried_out(DELETE, yard.ground(), path="way/l")
    assert done.files[0].path == "d/l"
    assert (yard.root / "d/real").read_bytes() == b"x"
    assert not (yard.root / "d/l").is_symlink()
    done = await carried_out(MOVE, yard.ground(), **onward("way/real", "way/new/real"))
    assert (done.files[0].from_, done.files[0].path) == ("d/real", "d/new/real")


@pytest.mark.parametrize("goal_too", [True, False])
def test_what_changed_since_it_was_shown_is_refused(yard: Yard, goal_too: bool) -> None:
    """W1, case 71: neither path may differ from what the permission showed."""
    yard.write("a", b"a")
    yard.write("b", b"b")
    for call in (
        planned(MOVE, yard.ground(), **onward("a", "b", overwrite=True)),
        planned(DELETE, yard.ground(), path="b" if goal_too else "a"),
    ):
        shown = call.preview()
        assert isinstance(shown, Preview)
        yard.write("b" if goal_too else "a", b"changed" + call.title.encode())
        found = call.gather(ATTEMPT, shown)
        assert isinstance(found, Refusal)
        assert found.reason == "changed"


@pytest.mark.parametrize(("tool", "fields"), [(DELETE, {"path": "a"}), (MOVE, onward("a", "b"))])
def test_content_that_cannot_be_kept_starts_nothing(yard: Yard, tool: Tool, fields: Fields) -> None:
    """W8: a disk too full for the checkpoint refuses the call with a sentence."""
    yard.write("a", b"a")
    found = planned(tool, yard.ground(failing("write", errno.ENOSPC)), **fields).gather(ATTEMPT, None)
    assert isinstance(found, Refusal)
    assert (found.reason, "No space left" in found.text) == ("io_error", True)
    assert (yard.root / "a").exists()


@pytest.mark.anyio
async def test_content_above_the_bound_is_not_kept_and_that_is_said(yard: Yard) -> None:
    """W8: the permission says that it cannot be brought back; a move of it goes on, but not over another file."""
    for name in ("large", "other"):
        with (yard.root / name).open("wb") as file:
            file.truncate(checkpoint_bytes_max + 1)
    yard.write("b", b"b")
    assert refusal(MOVE, yard.ground(), **onward("large", "b", overwrite=True)).reason == "too_large"
    for tool, fields in ((MOVE, onward("large", "c")), (DELETE, {"path": "other"})):
        call = planned(tool, yard.ground(), **fields)
        shown = call.preview()
        assert isinstance(shown, Preview)
        assert "is not kept" in shown.text
        assert gathered(call)[0].checkpoint is None
        assert (await carried_out(tool, yard.ground(), **fields)).outcome == "returned"
    assert sorted(path.name for path in yard.root.iterdir()) == ["b", "c"]


@posix_only
@pytest.mark.anyio
@pytest.mark.parametrize("over", [True, False])
async def test_a_moved_file_keeps_what_is_not_its_content(yard: Yard, over: bool) -> None:
    """W9: mode and extended attributes go along, by rename or by copy; those of what was there do not stay."""
    path = yard.write("a", b"a")
    path.chmod(0o750)
    if over:
        yard.write("b", b"b").chmod(0o604)
    attributes = hasattr(os, "setxattr")
    if attributes:
        try:
            os.setxattr(path, "user.note", b"kept")
        except OSError:
            attributes = False
    done = await carried_out(MOVE, yard.ground(), **onward("a", "b", overwrite=over))
    assert done.outcome == "returned", done
    moved = yard.root / "b"
    assert moved.stat().st_mode & 0o7777 == 0o750
    assert not attributes or os.getxattr(moved, "user.note") == b"kept"


@posix_only
@pytest.mark.anyio
@pytest.mark.parametrize("fields", [onward("a", "n/m/b"), {"path": "n/m/b", "content": "x"}])
async def test_folders_that_are_made_are_ordinary_ones(yard: Yard, fields: Fields) -> None:
    """W9: a workspace is the user's; a new folder in it has what the umask leaves, as from any program."""
    yard.write("a", b"a")
    (yard.root / "other").mkdir()
    await carried_out(MOVE if "from" in fields else WriteFile(), yard.ground(), **fields)
    ordinary = (yard.root / "other").stat().st_mode
    assert [(yard.root / name).stat().st_mode for name in ("n", "n/m")] == [ordinary, ordinary]


@pytest.mark.parametrize("kind", ["file", "folder", "other link"])
def test_the_check_of_a_link_speaks_of_the_link(yard: Yard, kind: str) -> None:
    """W2: its target decides, never what it leads to; what is no link any more is told of nobody."""
    link = yard.root / "l"
    link.symlink_to("a")
    evidence = gathered(planned(DELETE, yard.ground(), path="l"))
    assert check(yard.ground(), evidence)[0].check == "unchanged"
    yard.write("a", b"what it leads to does not count")
    assert check(yard.ground(), evidence)[0].check == "unchanged"
    link.unlink()
    assert check(yard.ground(), evidence)[0].check == "satisfied"
    if kind == "file":
        link.write_bytes(b"a")
    elif kind == "folder":
        link.mkdir()
    else:
        link.symlink_to("b")
    assert check(yard.ground(), evidence)[0].check == ("conflict" if kind == "other link" else "unknown")


@posix_only
@pytest.mark.parametrize("disk", [system_disk(), PathDisk()])
def test_a_name_moves_into_another_folder(tmp_path: Path, disk: Disk) -> None:
    """W9: in one step, never over another where it is exclusive, over it where it is not; a link as itself."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/f").write_bytes(b"new")
    (tmp_path / "b/g").write_bytes(b"old")
    (tmp_path / "a/l").symlink_to("nowhere")
    here, there = disk.open_folder(str(tmp_path / "a")), disk.open_folder(str(tmp_path / "b"))
    assert refused(lambda: disk.rename_to(here, "f", there, "g", True)) == errno.EEXIST
    assert refused(lambda: disk.rename_to(here, "missing", there, "x", True)) == errno.ENOENT
    assert (tmp_path / "b/g").read_bytes() == b"old"
    disk.rename_to(here, "l", there, "l", True)
    assert os.readlink(tmp_path / "b/l") == "nowhere"
    disk.rename_to(here, "f", there, "g", False)
    assert (tmp_path / "b/g").read_bytes() == b"new"
    assert list((tmp_path / "a").iterdir()) == []
    for handle in (here, there):
        disk.close(handle)


@linux_only
def test_between_two_file_systems_no_name_moves(tmp_path: Path) -> None:
    """W9: EXDEV, and nothing has happened."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    (tmp_path / "f").write_bytes(b"x")
    disk = system_disk()
    here, there = disk.open_folder(str(tmp_path)), disk.open_folder(str(memory))
    new = f"steadyhand-{os.getpid()}"
    assert refused(lambda: disk.rename_to(here, "f", there, new, True)) == errno.EXDEV
    assert refused(lambda: disk.rename_to(here, "f", there, new, False)) == errno.EXDEV
    assert (tmp_path / "f").read_bytes() == b"x"
    for handle in (here, there):
        disk.close(handle)
