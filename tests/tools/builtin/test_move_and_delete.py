"""`move_file` and `delete_file` before the start: arguments, refusals and previews; and the disk port under them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.adapters.disk.by_path import PathDisk
from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Preview, Refusal, Tool
from steadyhand.tools.writes.postcondition_check import check_paths
from tests.support.faults import failing
from tests.support.systems import linux_only, posix_only, refused
from tests.support.tool_calls import ATTEMPT, ToolWorkspace, carried_out, gathered, planned, refusal

DELETE, MOVE = DeleteFile(), MoveFile()
Fields = dict[str, object]


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def move_fields(start: str, goal: str, **more: object) -> Fields:
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
        (MOVE, move_fields("a", "b", overwrite=1), "overwrite"),
        (MOVE, move_fields("a", "b", force=True), "force"),
        (MOVE, move_fields("a", "./a"), "same path"),
        (MOVE, move_fields("a", "c/"), "folder"),
    ],
)
def test_move_and_delete_invalid_argument_is_refused_by_name(
    workspace: ToolWorkspace, tool: Tool, fields: Fields, named: str
) -> None:
    """N1: unknown fields, missing fields and wrong types are refused with a sentence that names the field."""
    workspace.write("a", b"a")
    found = refusal(tool, workspace.tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


def replace_by_pipe(workspace: ToolWorkspace, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(workspace: ToolWorkspace, path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_unsaved(workspace: ToolWorkspace, path: Path) -> None:
    workspace.documents[str(path)] = OpenDocument("typed", 3, True)


WRONG: list[tuple[Callable[[ToolWorkspace, Path], object], str]] = [
    (replace_by_folder, "unsupported"),
    (replace_by_pipe, "unsupported"),
    (make_unsaved, "unsaved"),
    (lambda workspace, path: path.chmod(0o444), "read_only"),
]


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), [*WRONG, (lambda workspace, path: path.unlink(), "not_found")])
def test_delete_of_an_unsupported_file_is_refused_untouched(
    workspace: ToolWorkspace, prepare: Callable[[ToolWorkspace, Path], object], reason: str
) -> None:
    """W1, cases 58: folders, special files, files protected by their mode, unsaved files and missing files."""
    path = workspace.write("f.txt", b"x\n")
    prepare(workspace, path)
    found = refusal(DELETE, workspace.tool_context(), path="f.txt")
    assert found.reason == reason
    assert path.exists() == (reason != "not_found")
    assert not (workspace.session / "checkpoints").exists()


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), WRONG)
def test_move_over_an_unsupported_file_is_refused_untouched(
    workspace: ToolWorkspace, prepare: Callable[[ToolWorkspace, Path], object], reason: str
) -> None:
    """W1: the same for the file at the new path, although overwriting was requested."""
    workspace.write("a", b"a")
    path = workspace.write("f.txt", b"x\n")
    prepare(workspace, path)
    assert refusal(MOVE, workspace.tool_context(), **move_fields("a", "f.txt", overwrite=True)).reason == reason
    assert path.exists()
    assert (workspace.root / "a").read_bytes() == b"a"


@posix_only
@pytest.mark.parametrize(("prepare", "reason"), WRONG[:3])
def test_move_of_an_unsupported_file_is_refused_untouched(
    workspace: ToolWorkspace, prepare: Callable[[ToolWorkspace, Path], object], reason: str
) -> None:
    """W1: a folder, a special file, an unsaved file. The sentence for folders says what moves them."""
    path = workspace.write("f.txt", b"x\n")
    prepare(workspace, path)
    found = refusal(MOVE, workspace.tool_context(), **move_fields("f.txt", "g.txt"))
    assert found.reason == reason
    assert prepare is not replace_by_folder or "use a command" in found.text
    assert path.exists()
    assert not (workspace.root / "g.txt").exists()


@posix_only
def test_move_over_an_existing_path_needs_overwrite_and_the_same_kind(workspace: ToolWorkspace) -> None:
    """W1: without `overwrite`, over itself under a second name, a link over a file or a file over a link: refused."""
    workspace.write("a", b"a")
    workspace.write("b", b"b")
    os.link(workspace.root / "a", workspace.root / "second")
    (workspace.root / "link").symlink_to("b")
    for start, goal, overwrite, reason in (
        ("a", "b", False, "bad_arguments"),
        ("a", "second", True, "unsupported"),
        ("a", "link", True, "unsupported"),
        ("link", "a", True, "unsupported"),
    ):
        assert refusal(MOVE, workspace.tool_context(), **move_fields(start, goal, overwrite=overwrite)).reason == reason
    assert [(workspace.root / name).read_bytes() for name in ("a", "b", "second", "link")] == [b"a", b"b", b"a", b"b"]


def test_move_and_delete_in_the_state_directory_are_refused(workspace: ToolWorkspace) -> None:
    """G2: neither moved out of it nor into it, nor deleted."""
    workspace.write("a", b"a")
    kept = workspace.session / "journal.jsonl"
    kept.write_bytes(b"{}")
    (workspace.root / "link").symlink_to(workspace.session)
    for found in (
        refusal(DELETE, workspace.tool_context(), path=str(kept)),
        refusal(DELETE, workspace.tool_context(), path="link/journal.jsonl"),
        refusal(MOVE, workspace.tool_context(), **move_fields(str(kept), "b")),
        refusal(MOVE, workspace.tool_context(), **move_fields("a", "link/x")),
    ):
        assert found.reason == "policy"
    assert kept.exists()


def test_preview_shows_paths_sizes_diff_and_digests(workspace: ToolWorkspace) -> None:
    """W1, E3: paths, sizes, the replaced file, paths outside, the removed lines, and the digests it rests on."""
    workspace.write("d/a", b"one\ntwo\n")
    workspace.write("b", b"b\n")
    deletion = planned(DELETE, workspace.tool_context(), path="d/a")
    shown = deletion.preview()
    assert isinstance(shown, Preview)
    assert shown.text == "Deletes d/a (8 bytes)."
    assert shown.diff is not None
    assert "-one\n-two\n" in shown.diff
    assert dict(shown.seen) == {str(workspace.root / "d/a"): sha256(b"one\ntwo\n")}
    assert (deletion.title, deletion.scope.paths) == ("delete_file: d/a", (str(workspace.root / "d/a"),))
    move = planned(MOVE, workspace.tool_context(), **move_fields("d/a", "b", overwrite=True))
    shown = move.preview()
    assert isinstance(shown, Preview)
    assert shown.text == "Moves d/a to b (8 bytes). Replaces the file there (2 bytes)."
    assert dict(shown.seen) == {
        str(workspace.root / "d/a"): sha256(b"one\ntwo\n"),
        str(workspace.root / "b"): sha256(b"b\n"),
    }
    assert move.title == "move_file: d/a → b"
    assert move.scope.paths == (str(workspace.root / "b"), str(workspace.root / "d/a"))
    out = planned(MOVE, workspace.tool_context(), **move_fields("d/a", "../out/new/a"))
    shown = out.preview()
    assert isinstance(shown, Preview)
    assert out.outside == (str(workspace.outside / "new/a"),)
    assert "outside the workspace" in shown.text
    assert "Nothing of it is looked at" in shown.text
    assert dict(shown.seen) == {}
    assert planned(MOVE, workspace.tool_context(), **move_fields("b", ".env")).protected
    assert len(planned(MOVE, workspace.tool_context(), **move_fields("d/a", "x" * 200)).title) <= 80


def test_move_and_delete_of_a_link_affect_only_the_link(workspace: ToolWorkspace) -> None:
    """E3, cases 56 and 104: a link that leads outside, or nowhere, is inside. Its target is not touched."""
    (workspace.outside / "f").write_bytes(b"theirs")
    workspace.write("d/x", b"")
    for name, target in (("out", workspace.outside / "f"), ("dangling", Path("missing")), ("folder", Path("d"))):
        (workspace.root / name).symlink_to(target)
        for call in (
            planned(DELETE, workspace.tool_context(), path=name),
            planned(MOVE, workspace.tool_context(), **move_fields(name, f"moved-{name}")),
        ):
            assert call.outside == ()
            shown = call.preview()
            assert isinstance(shown, Preview)
            assert "the link" in shown.text
            assert shown.diff is None


@pytest.mark.anyio
async def test_move_and_delete_follow_links_in_parents_but_not_at_the_end(workspace: ToolWorkspace) -> None:
    """E3: a link to a folder in the path is followed. The link at the end is removed, and its target stays."""
    workspace.write("d/real", b"x")
    (workspace.root / "way").symlink_to("d")
    (workspace.root / "d/l").symlink_to("real")
    done = await carried_out(DELETE, workspace.tool_context(), path="way/l")
    assert done.files[0].path == "d/l"
    assert (workspace.root / "d/real").read_bytes() == b"x"
    assert not (workspace.root / "d/l").is_symlink()
    done = await carried_out(MOVE, workspace.tool_context(), **move_fields("way/real", "way/new/real"))
    assert (done.files[0].from_, done.files[0].path) == ("d/real", "d/new/real")


@pytest.mark.parametrize("goal_too", [True, False])
def test_gather_of_a_path_changed_since_the_preview_is_refused(workspace: ToolWorkspace, goal_too: bool) -> None:
    """W1, case 71: neither path may differ from what the permission showed."""
    workspace.write("a", b"a")
    workspace.write("b", b"b")
    for call in (
        planned(MOVE, workspace.tool_context(), **move_fields("a", "b", overwrite=True)),
        planned(DELETE, workspace.tool_context(), path="b" if goal_too else "a"),
    ):
        shown = call.preview()
        assert isinstance(shown, Preview)
        workspace.write("b" if goal_too else "a", b"changed" + call.title.encode())
        found = call.gather(ATTEMPT, shown)
        assert isinstance(found, Refusal)
        assert found.reason == "changed"


@pytest.mark.parametrize(("tool", "fields"), [(DELETE, {"path": "a"}), (MOVE, move_fields("a", "b"))])
def test_gather_without_space_for_the_checkpoint_is_refused(
    workspace: ToolWorkspace, tool: Tool, fields: Fields
) -> None:
    """W8: a disk too full for the checkpoint refuses the call with a sentence."""
    workspace.write("a", b"a")
    found = planned(tool, workspace.tool_context(failing("write", errno.ENOSPC)), **fields).gather(ATTEMPT, None)
    assert isinstance(found, Refusal)
    assert (found.reason, "No space left" in found.text) == ("io_error", True)
    assert (workspace.root / "a").exists()


@pytest.mark.anyio
async def test_move_and_delete_over_the_checkpoint_limit_say_it_is_not_kept(workspace: ToolWorkspace) -> None:
    """W8: the permission says that the content cannot be restored. A move of it proceeds, but not over another file."""
    for name in ("large", "other"):
        with (workspace.root / name).open("wb") as file:
            file.truncate(CHECKPOINT_BYTES_MAX + 1)
    workspace.write("b", b"b")
    assert refusal(MOVE, workspace.tool_context(), **move_fields("large", "b", overwrite=True)).reason == "too_large"
    for tool, fields in ((MOVE, move_fields("large", "c")), (DELETE, {"path": "other"})):
        call = planned(tool, workspace.tool_context(), **fields)
        shown = call.preview()
        assert isinstance(shown, Preview)
        assert "is not kept" in shown.text
        assert gathered(call)[0].checkpoint is None
        assert (await carried_out(tool, workspace.tool_context(), **fields)).outcome == "returned"
    assert sorted(path.name for path in workspace.root.iterdir()) == ["b", "c"]


@posix_only
@pytest.mark.anyio
@pytest.mark.parametrize("over", [True, False])
async def test_move_keeps_mode_and_extended_attributes(workspace: ToolWorkspace, over: bool) -> None:
    """W9: mode and extended attributes move along, by rename or by copy. Those of the replaced file do not stay."""
    path = workspace.write("a", b"a")
    path.chmod(0o750)
    if over:
        workspace.write("b", b"b").chmod(0o604)
    attributes = hasattr(os, "setxattr")
    if attributes:
        try:
            os.setxattr(path, "user.note", b"kept")
        except OSError:
            attributes = False
    done = await carried_out(MOVE, workspace.tool_context(), **move_fields("a", "b", overwrite=over))
    assert done.outcome == "returned", done
    moved = workspace.root / "b"
    assert moved.stat().st_mode & 0o7777 == 0o750
    assert not attributes or os.getxattr(moved, "user.note") == b"kept"


@posix_only
@pytest.mark.anyio
@pytest.mark.parametrize("fields", [move_fields("a", "n/m/b"), {"path": "n/m/b", "content": "x"}])
async def test_folders_created_for_a_target_use_the_umask(workspace: ToolWorkspace, fields: Fields) -> None:
    """W9: a workspace belongs to the user. A new folder in it has the mode that the umask gives, as from any
    program.
    """
    workspace.write("a", b"a")
    (workspace.root / "other").mkdir()
    await carried_out(MOVE if "from" in fields else WriteFile(), workspace.tool_context(), **fields)
    ordinary = (workspace.root / "other").stat().st_mode
    assert [(workspace.root / name).stat().st_mode for name in ("n", "n/m")] == [ordinary, ordinary]


@pytest.mark.parametrize("kind", ["file", "folder", "other link"])
def test_check_of_a_link_compares_the_link_itself(workspace: ToolWorkspace, kind: str) -> None:
    """W2: its target decides, and never the file it leads to. A path that is no longer a link gives unknown."""
    link = workspace.root / "l"
    link.symlink_to("a")
    evidence = gathered(planned(DELETE, workspace.tool_context(), path="l"))
    assert check_paths(workspace.tool_context(), evidence)[0].check == "unchanged"
    workspace.write("a", b"what it leads to does not count")
    assert check_paths(workspace.tool_context(), evidence)[0].check == "unchanged"
    link.unlink()
    assert check_paths(workspace.tool_context(), evidence)[0].check == "satisfied"
    if kind == "file":
        link.write_bytes(b"a")
    elif kind == "folder":
        link.mkdir()
    else:
        link.symlink_to("b")
    (finding,) = check_paths(workspace.tool_context(), evidence)[:1]
    assert finding.check == ("conflict" if kind == "other link" else "unknown")


@posix_only
@pytest.mark.parametrize("disk", [system_disk(), PathDisk()])
def test_rename_to_moves_a_name_into_another_folder(tmp_path: Path, disk: Disk) -> None:
    """W9: in one step, never over another name where it is exclusive, over it where it is not, and a link as itself."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a/f").write_bytes(b"new")
    (tmp_path / "b/g").write_bytes(b"old")
    (tmp_path / "a/l").symlink_to("nowhere")
    from_folder, to_folder = disk.open_folder(str(tmp_path / "a")), disk.open_folder(str(tmp_path / "b"))
    assert refused(lambda: disk.rename_to(from_folder, "f", to_folder, "g", True)) == errno.EEXIST
    assert refused(lambda: disk.rename_to(from_folder, "missing", to_folder, "x", True)) == errno.ENOENT
    assert (tmp_path / "b/g").read_bytes() == b"old"
    disk.rename_to(from_folder, "l", to_folder, "l", True)
    assert os.readlink(tmp_path / "b/l") == "nowhere"
    disk.rename_to(from_folder, "f", to_folder, "g", False)
    assert (tmp_path / "b/g").read_bytes() == b"new"
    assert list((tmp_path / "a").iterdir()) == []
    for handle in (from_folder, to_folder):
        disk.close(handle)


@linux_only
def test_rename_to_between_two_file_systems_fails_with_exdev(tmp_path: Path) -> None:
    """W9: EXDEV, and nothing has happened."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system here")
    (tmp_path / "f").write_bytes(b"x")
    disk = system_disk()
    from_folder, to_folder = disk.open_folder(str(tmp_path)), disk.open_folder(str(memory))
    new = f"steadyhand-{os.getpid()}"
    assert refused(lambda: disk.rename_to(from_folder, "f", to_folder, new, True)) == errno.EXDEV
    assert refused(lambda: disk.rename_to(from_folder, "f", to_folder, new, False)) == errno.EXDEV
    assert (tmp_path / "f").read_bytes() == b"x"
    for handle in (from_folder, to_folder):
        disk.close(handle)
