"""`write_file` and `edit_file` around the replacement: arguments, refusals, evidence, checks and kept content."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Evidence, FileAttributes
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, EvidenceResult, Preview, Refusal, Tool
from steadyhand.tools.writes.planned_write import temporary_name
from steadyhand.tools.writes.postcondition_check import check_paths, make_durable, remove_temporary
from tests.support.faults import CountingDisk, between, failing
from tests.support.tool_calls import ATTEMPT, ToolWorkspace, carried_out, gathered, planned, refusal, running

WRITE, EDIT = WriteFile(), EditFile()
Fields = dict[str, object]


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def edit_fields(path: str, old: str, new: str) -> Fields:
    return {"path": path, "edits": [{"old": old, "new": new}]}


@pytest.mark.parametrize(
    ("tool", "fields", "named"),
    [
        (WRITE, {"path": "a"}, "content"),
        (WRITE, {"content": "a"}, "path"),
        (WRITE, {"path": "a", "content": 1}, "content"),
        (WRITE, {"path": "a", "content": None}, "content"),
        (WRITE, {"path": "a", "content": "b", "mode": 1}, "mode"),
        (WRITE, {"path": "a", "content": "b\0"}, "content"),
        (EDIT, {"path": "a"}, "edits"),
        (EDIT, {"path": "a", "edits": []}, "edits"),
        (EDIT, {"path": "a", "edits": {"old": "a", "new": "b"}}, "edits"),
        (EDIT, {"path": "a", "edits": ["a"]}, "edits[0]"),
        (EDIT, {"path": "a", "edits": [{"old": "a", "new": "b"}, {"old": "a"}]}, "edits[1]"),
        (EDIT, {"path": "a", "edits": [{"old": "a", "new": "b", "all": 1}]}, "all"),
        (EDIT, {"path": "a", "edits": [{"old": "a", "new": "b", "x": 1}]}, "`old`, `new`, `all`"),
    ],
)
def test_write_and_edit_invalid_argument_is_refused_by_name(
    workspace: ToolWorkspace, tool: Tool, fields: Fields, named: str
) -> None:
    """N1: unknown fields, missing fields and wrong types are refused with a sentence that names the field."""
    found = refusal(tool, workspace.tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


def make_unsaved(workspace: ToolWorkspace, path: Path) -> None:
    workspace.documents[str(path)] = OpenDocument("typed", 3, True)


def make_unsaved_by_link(workspace: ToolWorkspace, path: Path) -> None:
    path.rename(workspace.root / "real")
    path.symlink_to("real")
    workspace.documents[str(path)] = OpenDocument("typed", 3, True)


def replace_by_pipe(workspace: ToolWorkspace, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(workspace: ToolWorkspace, path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda workspace, path: path.chmod(0o444), "read_only"),
        (make_unsaved, "unsaved"),
        (make_unsaved_by_link, "unsaved"),
        (lambda workspace, path: path.write_bytes(b"x = 1\n# caf\xe9\n"), "unsupported"),
        (lambda workspace, path: path.write_bytes("a=1\r\n".encode("utf-16-le")), "unsupported"),
        (lambda workspace, path: path.write_bytes(b"a" * 70_000 + b"\x80"), "unsupported"),
        (replace_by_folder, "unsupported"),
        (replace_by_pipe, "unsupported"),
    ],
)
@pytest.mark.parametrize("tool", [WRITE, EDIT])
def test_write_and_edit_of_a_file_they_cannot_preserve_is_refused(
    workspace: ToolWorkspace, prepare: Callable[[ToolWorkspace, Path], object], reason: str, tool: Tool
) -> None:
    """W1, W9, cases 46, 49, 58: refused before the start, with bytes, mode and times unchanged."""
    path = workspace.write("f.txt", b"x = 1\n")
    prepare(workspace, path)
    before = path.stat()
    content = path.read_bytes() if path.is_file() else b""
    fields = {"path": "f.txt", "content": "x"} if tool is WRITE else edit_fields("f.txt", "x = 1", "x = 2")
    found = refusal(tool, workspace.tool_context(), **fields)
    assert found.reason == reason, found
    after = path.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)
    assert (path.read_bytes() if path.is_file() else b"") == content
    assert not (workspace.session / "checkpoints").exists()


@pytest.mark.anyio
async def test_edit_of_a_utf_16_file_keeps_its_encoding(workspace: ToolWorkspace) -> None:
    """W5, W8, W9, case 49: the file keeps its encoding, and the old content is kept as it was."""
    path = workspace.write("f.txt", "x = 1\r\n名\r\n".encode("utf-16"))
    before = path.read_bytes()
    done = await carried_out(EDIT, workspace.tool_context(), **edit_fields("f.txt", "x = 1", "x = 2"))
    assert done.outcome == "returned"
    assert path.read_bytes() == "x = 2\r\n名\r\n".encode("utf-16")
    assert (workspace.session / "checkpoints" / sha256(before)).read_bytes() == before


def test_write_of_a_saved_open_document_is_allowed(workspace: ToolWorkspace) -> None:
    """V2: only unsaved changes prevent a write."""
    path = workspace.write("f.txt", b"x\n")
    workspace.documents[str(path)] = OpenDocument("x\n", 3, False)
    assert gathered(planned(WRITE, workspace.tool_context(), path="f.txt", content="y\n"))


@pytest.mark.parametrize(
    ("raw", "text", "seen", "free"),
    [
        (b"x\n", "x\n", True, True),
        (b"\xef\xbb\xbfx\r\n", "x\n", True, True),
        (b"x\n", "y\n", True, False),
        (b"x\n", "y\n", None, False),
        (b"x\n", "y\n", False, True),
        (b"", "", None, True),
        (b"x" * 99, "", None, False),
    ],
)
def test_unsaved_is_decided_by_the_file_and_then_by_the_mirror(
    workspace: ToolWorkspace, raw: bytes, text: str, seen: bool | None, free: bool
) -> None:
    """V1, V2: text that is on disk is saved, whatever the mirror says. For other text the mirror decides, and the text
    is unsaved where the mirror does not know.
    """
    path = workspace.write("f.txt", raw)
    workspace.documents[str(path)] = OpenDocument(text, 3, seen)
    assert (
        isinstance(
            planned(WRITE, workspace.tool_context(), path="f.txt", content="z\n").gather("a" * 32, None), EvidenceResult
        )
        == free
    )


def test_write_into_the_state_directory_is_refused(workspace: ToolWorkspace) -> None:
    """G2: neither by its path nor by a link."""
    (workspace.root / "link").symlink_to(workspace.state)
    for path in ("link/x", str(workspace.state / "x")):
        assert refusal(WRITE, workspace.tool_context(), path=path, content="x").reason == "policy"


def test_edit_of_a_missing_file_or_text_is_refused(workspace: ToolWorkspace) -> None:
    """G1: a missing file is not found. A text that is missing or occurs twice is refused."""
    workspace.write("f", b"a\na\n")
    assert refusal(EDIT, workspace.tool_context(), **edit_fields("missing", "a", "b")).reason == "not_found"
    for old in ("c", "a"):
        assert refusal(EDIT, workspace.tool_context(), **edit_fields("f", old, "b")).reason == "bad_arguments"


def test_preview_shows_the_change_its_folders_and_its_digest(workspace: ToolWorkspace) -> None:
    """W1, E3: created or changed, folders, outside, the diff, and the digest of the content it was made from."""
    workspace.write("f", b"a\nb\n")
    call = planned(EDIT, workspace.tool_context(), **edit_fields("f", "b", "c"))
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert preview.diff is not None
    assert "-b\n+c\n" in preview.diff
    assert dict(preview.seen) == {str(workspace.root / "f"): sha256(b"a\nb\n")}
    assert call.title == "edit_file: f"
    assert call.scope.paths == (str(workspace.root / "f"),)
    created = planned(WRITE, workspace.tool_context(), path="n/m", content="x\n").preview()
    assert isinstance(created, Preview)
    assert created.text.startswith("Creates n/m")
    assert "Missing folders" in created.text
    assert dict(created.seen) == {str(workspace.root / "n/m"): None}
    outside = planned(WRITE, workspace.tool_context(), path="../out/x", content="x\n")
    assert outside.outside == (str(workspace.outside / "x"),)
    shown = outside.preview()
    assert isinstance(shown, Preview)
    assert "outside" in shown.text
    assert planned(WRITE, workspace.tool_context(), path=".env", content="").protected
    assert not list(workspace.root.glob("n"))


def test_title_of_a_long_path_is_cut_to_80_characters(workspace: ToolWorkspace) -> None:
    """G1: a title has at most 80 characters, whatever the path."""
    assert len(planned(WRITE, workspace.tool_context(), path="a" * 200 + "/" + "b" * 200, content="").title) == 80


@pytest.mark.parametrize("change", [b"changed", None])
def test_gather_of_a_file_changed_since_the_preview_is_refused(workspace: ToolWorkspace, change: bytes | None) -> None:
    """W1, case 71: the file is no longer what the diff of the permission showed. The new bytes stay."""
    path = workspace.write("f", b"shown")
    call = planned(WRITE, workspace.tool_context(), path="f", content="x")
    preview = call.preview()
    assert isinstance(preview, Preview)
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change)
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, Refusal)
    assert found.reason == "changed"
    assert (path.read_bytes() if path.exists() else None) == change


def test_gather_of_a_link_changed_since_the_preview_is_refused(workspace: ToolWorkspace) -> None:
    """W1, E3: a link that was changed between the question and the answer is detected."""
    workspace.write("one", b"same")
    workspace.write("two", b"same")
    (workspace.root / "link").symlink_to("one")
    call = planned(WRITE, workspace.tool_context(), path="link", content="x")
    preview = call.preview()
    assert isinstance(preview, Preview)
    (workspace.root / "link").unlink()
    (workspace.root / "link").symlink_to("two")
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, Refusal)
    assert found.reason == "changed"


def test_gather_gives_complete_evidence_and_keeps_the_old_content(workspace: ToolWorkspace) -> None:
    """W1, W8, J10: every member is set. The checkpoint is present, whole and private, before anything starts."""
    path = workspace.write("d/f", b"\xef\xbb\xbfa\r\nb\r\n")
    path.chmod(0o640)
    (workspace.root / "link").symlink_to("d/f")
    (evidence,) = gathered(planned(WRITE, workspace.tool_context(), path="link", content="c\nd\n"))
    after = b"\xef\xbb\xbfc\r\nd\r\n"
    assert evidence == Evidence(
        path="link",
        resolved=str(path),
        existed=True,
        before=sha256(path.read_bytes()),
        before_bytes=9,
        intended=sha256(after),
        intended_bytes=len(after),
        mode=0o640,
        encoding="utf-8-sig",
        line_ending="crlf",
        temporary=f".f.{ATTEMPT}.steadyhand",
        checkpoint=sha256(path.read_bytes()),
        attributes=FileAttributes(mode=0o640, uid=path.stat().st_uid, gid=path.stat().st_gid),
    )
    kept = workspace.session / "checkpoints" / str(evidence.checkpoint)
    assert kept.read_bytes() == path.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_gather_without_space_for_the_checkpoint_is_refused(workspace: ToolWorkspace) -> None:
    """W8: a disk too full for the checkpoint refuses the call with a sentence."""
    workspace.write("f", b"a")
    call = planned(WRITE, workspace.tool_context(failing("write", errno.ENOSPC)), path="f", content="b")
    found = call.gather(ATTEMPT, None)
    assert isinstance(found, Refusal)
    assert found.reason == "io_error"
    assert "No space left" in found.text
    assert list((workspace.session / "checkpoints").iterdir()) == []


@pytest.mark.anyio
async def test_write_of_a_file_over_the_checkpoint_limit_says_it_is_not_kept(workspace: ToolWorkspace) -> None:
    """W8: above `checkpoint_bytes_max` the permission says so, and the write proceeds without a checkpoint."""
    path = workspace.root / "large"
    with path.open("wb") as file:
        file.truncate(CHECKPOINT_BYTES_MAX + 1)
    assert refusal(EDIT, workspace.tool_context(), **edit_fields("large", "a", "b")).reason == "too_large"
    call = planned(WRITE, workspace.tool_context(), path="large", content="small\n")
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert "is not kept" in preview.text
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, EvidenceResult)
    assert found.evidence[0].checkpoint is None
    done = await call.run(running(found.evidence))
    assert done.outcome == "returned"
    assert path.read_bytes() == b"small\n"


@pytest.mark.anyio
async def test_edit_keeps_mode_owner_attributes_and_link(workspace: ToolWorkspace) -> None:
    """W9, case 56: mode, owner, extended attributes and the link stay. The target is written."""
    path = workspace.write("d/f", b"a\n")
    path.chmod(0o751)
    attributes = hasattr(os, "setxattr")
    if attributes:
        try:
            os.setxattr(path, "user.note", b"kept")
        except OSError:
            attributes = False
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    session = (path.stat().st_uid, path.stat().st_gid)
    (workspace.root / "link").symlink_to("d/f")
    done = await carried_out(EDIT, workspace.tool_context(), **edit_fields("link", "a", "b"))
    assert done.outcome == "returned", done
    assert done.files[0].path == "d/f"
    assert (workspace.root / "link").is_symlink()
    assert path.read_bytes() == b"b\n"
    assert path.stat().st_mode & 0o7777 == 0o751
    assert (path.stat().st_uid, path.stat().st_gid) == session
    assert not attributes or os.getxattr(path, "user.note") == b"kept"


@pytest.mark.anyio
async def test_write_through_a_dangling_link_creates_its_target(workspace: ToolWorkspace) -> None:
    """W9, case 56: within the workspace the target is created and the link stays."""
    (workspace.root / "link").symlink_to("sub/new")
    done = await carried_out(WRITE, workspace.tool_context(), path="link", content="x\n")
    assert done.outcome == "returned", done
    assert (workspace.root / "link").is_symlink()
    assert (workspace.root / "sub/new").read_bytes() == b"x\n"


def test_write_through_a_dangling_link_outside_counts_as_outside(workspace: ToolWorkspace) -> None:
    """E3, case 104: the target counts, and the call asks."""
    (workspace.root / "link").symlink_to(workspace.outside / "new")
    assert planned(WRITE, workspace.tool_context(), path="link", content="x").outside == (
        str(workspace.outside / "new"),
    )


@pytest.mark.anyio
async def test_write_of_a_new_file_uses_the_umask(workspace: ToolWorkspace) -> None:
    """W9: a new file's mode is that of any new file of this user."""
    done = await carried_out(WRITE, workspace.tool_context(), path="new", content="x")
    other = workspace.root / "other"
    other.touch()
    assert done.outcome == "returned"
    assert (workspace.root / "new").stat().st_mode == other.stat().st_mode


@pytest.mark.anyio
async def test_write_of_the_same_content_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W2, W5: nothing is replaced, the times stay, and the reply says so."""
    path = workspace.write("f", b"same\n")
    before = path.stat()
    done = await carried_out(WRITE, workspace.tool_context(), path="f", content="same\n")
    assert (done.outcome, done.files) == ("returned", ())
    assert "nothing was written" in done.text
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.anyio
async def test_edit_keeps_the_line_ends_of_other_lines(workspace: ToolWorkspace) -> None:
    """W9: each line keeps its own end, and a missing last one is not added."""
    path = workspace.write("f", b"a\r\nb\nc")
    await carried_out(EDIT, workspace.tool_context(), **edit_fields("f", "c", "C"))
    assert path.read_bytes() == b"a\r\nb\nC"


def test_temporary_name_of_a_long_name_fits_and_is_per_attempt() -> None:
    """W9: never above 255 bytes, cut between two characters, and still one for each attempt."""
    name = temporary_name("ä" * 127, ATTEMPT)
    assert len(name.encode()) <= 255
    assert name.startswith(".ä")
    assert name.endswith(f"{ATTEMPT}.steadyhand")


OLD, NEW = b"old\n", b"new\n"


def evidence_of(workspace: ToolWorkspace, existed: bool = True) -> Evidence:
    if existed:
        workspace.write("d/f", OLD)
    return gathered(planned(WRITE, workspace.tool_context(), path="d/f", content=NEW.decode()))[0]


def delete_file(workspace: ToolWorkspace) -> None:
    (workspace.root / "d/f").unlink()


def move_folder_out(workspace: ToolWorkspace) -> None:
    (workspace.root / "d").rename(workspace.outside / "d")
    (workspace.root / "d").symlink_to(workspace.outside / "d")


def move_folder_within(workspace: ToolWorkspace) -> None:
    (workspace.root / "d").rename(workspace.root / "e")
    (workspace.root / "d").symlink_to("e")


def replace_file_by_folder(workspace: ToolWorkspace) -> None:
    (workspace.root / "d/f").unlink()
    (workspace.root / "d/f").mkdir()


def replace_parent_by_file(workspace: ToolWorkspace) -> None:
    (workspace.root / "d/f").unlink()
    (workspace.root / "d").rmdir()
    workspace.write("d", NEW)


@pytest.mark.parametrize(
    ("act", "verdict"),
    [
        (lambda workspace: None, "unchanged"),
        (lambda workspace: workspace.write("d/f", NEW), "satisfied"),
        (lambda workspace: workspace.write("d/f", NEW + b"and more"), "conflict"),
        (lambda workspace: workspace.write("d/f", NEW[:2]), "conflict"),
        (delete_file, "conflict"),
        (move_folder_out, "unknown"),
        (move_folder_within, "unknown"),
        (replace_file_by_folder, "unknown"),
        (replace_parent_by_file, "unknown"),
    ],
)
def test_check_compares_the_current_content_and_only_reads(
    workspace: ToolWorkspace, act: Callable[[ToolWorkspace], object], verdict: str
) -> None:
    """W2, case 61: whole content decides. A path that leads elsewhere or is no file gives unknown. The check
    only reads.
    """
    evidence = evidence_of(workspace)
    act(workspace)
    (finding,) = check_paths(workspace.tool_context(), (evidence,))
    assert (finding.path, finding.check) == ("d/f", verdict)
    assert (finding.reason is None) == (verdict in ("unchanged", "satisfied"))
    assert make_durable(workspace.tool_context(), (evidence,)) == (verdict != "unknown")


@pytest.mark.parametrize(("content", "verdict"), [(None, "unchanged"), (NEW, "satisfied"), (b"else", "conflict")])
def test_check_of_a_new_file_compares_with_its_absence(
    workspace: ToolWorkspace, content: bytes | None, verdict: str
) -> None:
    """W2: where there was no file, a missing file is unchanged, and any content but the intended one is a conflict."""
    evidence = evidence_of(workspace, existed=False)
    if content is not None:
        workspace.write("d/f", content)
    (finding,) = check_paths(workspace.tool_context(), (evidence,))
    assert (finding.check, finding.exists) == (verdict, content is not None)
    assert make_durable(workspace.tool_context(), (evidence,))


def test_check_of_an_unreadable_file_is_unknown_and_not_durable(workspace: ToolWorkspace) -> None:
    """W2, B3: a disk error gives unknown, and a failed sync makes nothing durable."""
    evidence = evidence_of(workspace)

    def unreadable(count: int, name: str) -> None:
        if name == "open_read":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    (finding,) = check_paths(workspace.tool_context(between(unreadable)), (evidence,))
    assert (finding.check, finding.exists) == ("unknown", None)
    assert not make_durable(workspace.tool_context(failing("sync")), (evidence,))
    assert not make_durable(workspace.tool_context(failing("sync_folder")), (evidence,))


def test_check_of_a_file_that_changes_while_it_is_read_is_unknown(workspace: ToolWorkspace) -> None:
    """W2: a mixture of two contents is neither, and no verdict rests on it."""
    evidence = evidence_of(workspace)

    def written(count: int, name: str) -> None:
        if name == "read_piece":
            workspace.write("d/f", b"longer than it was")

    assert check_paths(workspace.tool_context(between(written)), (evidence,))[0].check == "unknown"


def test_check_of_a_file_outside_the_workspace_is_unknown(workspace: ToolWorkspace) -> None:
    """W2: outside the workspace the check answers unknown."""
    (evidence,) = gathered(planned(WRITE, workspace.tool_context(), path="../out/f", content="x"))
    assert check_paths(workspace.tool_context(), (evidence,))[0].check == "unknown"


@pytest.mark.parametrize(
    ("target", "left", "kept"),
    [
        (OLD, None, False),
        (OLD, NEW, False),
        (OLD, NEW[:2], False),
        (OLD, b"", False),
        (OLD, OLD, False),
        (OLD, b"ne!", True),
        (OLD, NEW + b"x", True),
        (NEW, OLD, False),
        (NEW, NEW[:2], True),
        (NEW, b"", True),
        (NEW, b"their save", True),
        (b"their save", OLD, False),
        (None, NEW, False),
    ],
)
def test_clear_temporary_removes_only_our_own_file(
    workspace: ToolWorkspace, target: bytes | None, left: bytes | None, kept: bool
) -> None:
    """W9: the intended content, a beginning of it, or the old content is removed. Everything else stays and
    is named.
    """
    evidence = evidence_of(workspace)
    path = workspace.root / "d" / str(evidence.temporary)
    if target is None:
        delete_file(workspace)
    else:
        workspace.write("d/f", target)
    if left is not None:
        path.write_bytes(left)
    found = remove_temporary(workspace.tool_context(), evidence, NEW)
    assert found == ((f"d/{evidence.temporary}",) if kept else ())
    assert path.exists() == kept
    assert (workspace.root / "d/f").exists() == (target is not None)


def test_clear_temporary_without_the_intended_bytes_keeps_a_prefix(workspace: ToolWorkspace) -> None:
    """W9: neither without them nor with others. A file that is not recognised is kept."""
    evidence = evidence_of(workspace)
    path = workspace.root / "d" / str(evidence.temporary)
    path.write_bytes(NEW[:2])
    assert remove_temporary(workspace.tool_context(), evidence)
    assert remove_temporary(workspace.tool_context(), evidence, NEW + b"x")
    assert path.exists()
    (workspace.root / "d/save").symlink_to("f")
    (workspace.root / "d/save").rename(path)
    assert remove_temporary(workspace.tool_context(), evidence, NEW)
    assert path.is_symlink()


def test_clear_temporary_keeps_the_only_copy_of_the_old_content(workspace: ToolWorkspace) -> None:
    """W8, W9: above the limit of the checkpoint, the displaced file may be the only copy."""
    evidence = attrs.evolve(evidence_of(workspace), checkpoint=None)
    path = workspace.root / "d" / str(evidence.temporary)
    path.write_bytes(OLD)
    workspace.write("d/f", b"their save")
    assert remove_temporary(workspace.tool_context(), evidence, NEW)
    workspace.write("d/f", NEW)
    assert remove_temporary(workspace.tool_context(), evidence, NEW) == ()
    assert not path.exists()


def test_clear_temporary_syncs_the_folder_before_it_removes(workspace: ToolWorkspace) -> None:
    """W9: a save that was exchanged back and not yet synced must not be lost with its temporary name."""
    evidence = evidence_of(workspace)
    (workspace.root / "d" / str(evidence.temporary)).write_bytes(NEW)
    disk = CountingDisk(system_disk())
    assert remove_temporary(workspace.tool_context(disk), evidence, NEW) == ()
    assert [operation.verb for operation in disk.operations] == ["sync_folder", "unlink", "sync_folder"]
    assert remove_temporary(workspace.tool_context(disk), evidence, NEW) == ()
    assert [operation.verb for operation in disk.operations[3:]] == ["sync_folder"], (
        "the earlier removal may not be durable"
    )


def test_clear_temporary_that_fails_names_the_file(workspace: ToolWorkspace) -> None:
    """W9: a file that could not be removed durably is named, so that no verdict rests on it."""
    evidence = evidence_of(workspace)
    for disk in (failing("unlink"), failing("sync_folder")):
        (workspace.root / "d" / str(evidence.temporary)).write_bytes(NEW)
        assert remove_temporary(workspace.tool_context(disk), evidence, NEW)
