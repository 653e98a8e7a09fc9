"""`write_file` and `edit_file` around the replacement: arguments, refusals, evidence, checks, what is kept."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.identity import sha256
from steadyhand.core.record import Evidence
from steadyhand.ports import OpenDocument
from steadyhand.tools.change import temporary_name
from steadyhand.tools.check import check, clear_temporary, make_durable
from steadyhand.tools.edit_file import EditFile
from steadyhand.tools.tool import Gathered, Preview, Refusal, Tool, checkpoint_bytes_max
from steadyhand.tools.write_file import WriteFile
from tests.support.disks import CountingDisk
from tests.support.ground import ATTEMPT, Yard, between, carried_out, failing, gathered, planned, refusal, running

WRITE, EDIT = WriteFile(), EditFile()
Fields = dict[str, object]


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


def replacing(path: str, old: str, new: str) -> Fields:
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
def test_arguments_are_strict_and_the_field_is_named(yard: Yard, tool: Tool, fields: Fields, named: str) -> None:
    """N1: unknown fields, missing ones and wrong types are refused with a sentence that names the field."""
    found = refusal(tool, yard.ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


def _hard_link(yard: Yard, path: Path) -> None:
    os.link(path, yard.root / "other")


def _unsaved(yard: Yard, path: Path) -> None:
    yard.documents[str(path)] = OpenDocument("typed", 3, True)


def _unsaved_by_link(yard: Yard, path: Path) -> None:
    path.rename(yard.root / "real")
    path.symlink_to("real")
    yard.documents[str(path)] = OpenDocument("typed", 3, True)


def _access_list(yard: Yard, path: Path) -> None:
    # version 2; owner rw, user 1 r, group r, mask r, other none
    entries = [(1, 6, -1), (2, 4, 1), (4, 4, -1), (16, 4, -1), (32, 0, -1)]
    packed = b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + (who & 0xFFFFFFFF).to_bytes(4, "little")
        for tag, rights, who in entries
    )
    try:
        os.setxattr(path, "system.posix_acl_access", (2).to_bytes(4, "little") + packed)
    except (OSError, AttributeError):
        pytest.skip("this file system has no access lists")


def _pipe(yard: Yard, path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder_instead(yard: Yard, path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda yard, path: path.chmod(0o444), "read_only"),
        (_hard_link, "unsupported"),
        (_access_list, "unsupported"),
        (_unsaved, "unsaved"),
        (_unsaved_by_link, "unsaved"),
        (lambda yard, path: path.write_bytes(b"x = 1\n# caf\xe9\n"), "unsupported"),
        (lambda yard, path: path.write_bytes("a=1\r\n".encode("utf-16-le")), "unsupported"),
        (lambda yard, path: path.write_bytes(b"a" * 70_000 + b"\x80"), "unsupported"),
        (_folder_instead, "unsupported"),
        (_pipe, "unsupported"),
    ],
)
@pytest.mark.parametrize("tool", [WRITE, EDIT])
def test_what_cannot_be_kept_is_refused_untouched(
    yard: Yard, prepare: Callable[[Yard, Path], object], reason: str, tool: Tool
) -> None:
    """W1, W9, cases 46, 49, 58: refused before the start, with bytes, mode and times as they were."""
    path = yard.write("f.txt", b"x = 1\n")
    prepare(yard, path)
    before = path.stat()
    content = path.read_bytes() if path.is_file() else b""
    fields = {"path": "f.txt", "content": "x"} if tool is WRITE else replacing("f.txt", "x = 1", "x = 2")
    found = refusal(tool, yard.ground(), **fields)
    assert found.reason == reason, found
    after = path.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)
    assert (path.read_bytes() if path.is_file() else b"") == content
    assert not (yard.session / "checkpoints").exists()


@pytest.mark.anyio
async def test_an_edit_in_utf_16(yard: Yard) -> None:
    """W5, W8, W9, case 49: the file keeps its encoding, and what was there before is kept as it was."""
    path = yard.write("f.txt", "x = 1\r\n名\r\n".encode("utf-16"))
    before = path.read_bytes()
    done = await carried_out(EDIT, yard.ground(), **replacing("f.txt", "x = 1", "x = 2"))
    assert done.outcome == "returned"
    assert path.read_bytes() == "x = 2\r\n名\r\n".encode("utf-16")
    assert (yard.session / "checkpoints" / sha256(before)).read_bytes() == before


def test_a_saved_open_document_may_be_written(yard: Yard) -> None:
    """V2: only unsaved changes stand in the way."""
    path = yard.write("f.txt", b"x\n")
    yard.documents[str(path)] = OpenDocument("x\n", 3, False)
    assert gathered(planned(WRITE, yard.ground(), path="f.txt", content="y\n"))


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
def test_the_file_decides_what_is_unsaved(yard: Yard, raw: bytes, text: str, seen: bool | None, free: bool) -> None:
    """V1, V2: text that is on disk is saved, whatever the mirror saw; other text is what the mirror says, and unsaved
    where it does not know."""
    path = yard.write("f.txt", raw)
    yard.documents[str(path)] = OpenDocument(text, 3, seen)
    assert (
        isinstance(planned(WRITE, yard.ground(), path="f.txt", content="z\n").gather("a" * 32, None), Gathered) == free
    )


def test_the_state_directory_is_never_a_target(yard: Yard) -> None:
    """G2: neither by its path nor by a link."""
    (yard.root / "link").symlink_to(yard.state)
    for path in ("link/x", str(yard.state / "x")):
        assert refusal(WRITE, yard.ground(), path=path, content="x").reason == "policy"


def test_an_edit_needs_a_file_and_its_text(yard: Yard) -> None:
    """G1: a missing file is not found; a text that is not there, or twice, is refused."""
    yard.write("f", b"a\na\n")
    assert refusal(EDIT, yard.ground(), **replacing("missing", "a", "b")).reason == "not_found"
    for old in ("c", "a"):
        assert refusal(EDIT, yard.ground(), **replacing("f", old, "b")).reason == "bad_arguments"


def test_the_preview_says_what_would_happen(yard: Yard) -> None:
    """W1, E3: created or changed, folders, outside, the diff, and the digest it was made from."""
    yard.write("f", b"a\nb\n")
    call = planned(EDIT, yard.ground(), **replacing("f", "b", "c"))
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert preview.diff is not None
    assert "-b\n+c\n" in preview.diff
    assert dict(preview.seen) == {str(yard.root / "f"): sha256(b"a\nb\n")}
    assert call.title == "edit_file: f"
    assert call.scope.paths == (str(yard.root / "f"),)
    created = planned(WRITE, yard.ground(), path="n/m", content="x\n").preview()
    assert isinstance(created, Preview)
    assert created.text.startswith("Creates n/m")
    assert "Folders" in created.text
    assert dict(created.seen) == {str(yard.root / "n/m"): None}
    outside = planned(WRITE, yard.ground(), path="../out/x", content="x\n")
    assert outside.outside == (str(yard.outside / "x"),)
    shown = outside.preview()
    assert isinstance(shown, Preview)
    assert "outside" in shown.text
    assert planned(WRITE, yard.ground(), path=".env", content="").protected
    assert not list(yard.root.glob("n"))


def test_a_long_title_is_cut_to_its_bound(yard: Yard) -> None:
    """G1: a title has at most 80 characters, whatever the path."""
    assert len(planned(WRITE, yard.ground(), path="a" * 200 + "/" + "b" * 200, content="").title) == 80


@pytest.mark.parametrize("change", [b"changed", None])
def test_what_changed_since_it_was_shown_is_refused(yard: Yard, change: bytes | None) -> None:
    """W1, case 71: the file is no longer what the permission's diff showed; their bytes stay."""
    path = yard.write("f", b"shown")
    call = planned(WRITE, yard.ground(), path="f", content="x")
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


def test_a_path_that_leads_elsewhere_since_is_refused(yard: Yard) -> None:
    """W1, E3: a link that was turned between the question and the answer is seen."""
    yard.write("one", b"same")
    yard.write("two", b"same")
    (yard.root / "link").symlink_to("one")
    call = planned(WRITE, yard.ground(), path="link", content="x")
    preview = call.preview()
    assert isinstance(preview, Preview)
    (yard.root / "link").unlink()
    (yard.root / "link").symlink_to("two")
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, Refusal)
    assert found.reason == "changed"


def test_the_evidence_is_whole_and_the_content_before_is_kept(yard: Yard) -> None:
    """W1, W8, J10: all members are told; the checkpoint is there, whole and private, before anything starts."""
    path = yard.write("d/f", b"\xef\xbb\xbfa\r\nb\r\n")
    path.chmod(0o640)
    (yard.root / "link").symlink_to("d/f")
    (evidence,) = gathered(planned(WRITE, yard.ground(), path="link", content="c\nd\n"))
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
        encoding="utf-8-bom",
        line_ending="crlf",
        temporary=f".f.{ATTEMPT}.steadyhand",
        checkpoint=sha256(path.read_bytes()),
    )
    kept = yard.session / "checkpoints" / str(evidence.checkpoint)
    assert kept.read_bytes() == path.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o777 == 0o700


def test_content_that_cannot_be_kept_starts_nothing(yard: Yard) -> None:
    """W8: a disk too full for the checkpoint refuses the call with a sentence."""
    yard.write("f", b"a")
    call = planned(WRITE, yard.ground(failing("write", errno.ENOSPC)), path="f", content="b")
    found = call.gather(ATTEMPT, None)
    assert isinstance(found, Refusal)
    assert found.reason == "io_error"
    assert "No space left" in found.text
    assert list((yard.session / "checkpoints").iterdir()) == []


@pytest.mark.anyio
async def test_content_above_the_bound_is_not_kept_and_that_is_said(yard: Yard) -> None:
    """W8: above `checkpoint_bytes_max` the permission says so, and the write goes on without a checkpoint."""
    path = yard.root / "large"
    with path.open("wb") as file:
        file.truncate(checkpoint_bytes_max + 1)
    assert refusal(EDIT, yard.ground(), **replacing("large", "a", "b")).reason == "too_large"
    call = planned(WRITE, yard.ground(), path="large", content="small\n")
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert "is not kept" in preview.text
    found = call.gather(ATTEMPT, preview)
    assert isinstance(found, Gathered)
    assert found.evidence[0].checkpoint is None
    done = await call.run(running(found.evidence))
    assert done.outcome == "returned"
    assert path.read_bytes() == b"small\n"


@pytest.mark.anyio
async def test_the_file_keeps_what_is_not_its_content(yard: Yard) -> None:
    """W9, case 56: mode, owner, extended attributes and the link stay; the target is written."""
    path = yard.write("d/f", b"a\n")
    path.chmod(0o751)
    attributes = hasattr(os, "setxattr")
    if attributes:
        try:
            os.setxattr(path, "user.note", b"kept")
        except OSError:
            attributes = False
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    owner = (path.stat().st_uid, path.stat().st_gid)
    (yard.root / "link").symlink_to("d/f")
    done = await carried_out(EDIT, yard.ground(), **replacing("link", "a", "b"))
    assert done.outcome == "returned", done
    assert done.files[0].path == "d/f"
    assert (yard.root / "link").is_symlink()
    assert path.read_bytes() == b"b\n"
    assert path.stat().st_mode & 0o7777 == 0o751
    assert (path.stat().st_uid, path.stat().st_gid) == owner
    assert not attributes or os.getxattr(path, "user.note") == b"kept"


@pytest.mark.anyio
async def test_a_dangling_link_is_written_at_its_target(yard: Yard) -> None:
    """W9, case 56: within the workspace the target is created and the link stays."""
    (yard.root / "link").symlink_to("sub/new")
    done = await carried_out(WRITE, yard.ground(), path="link", content="x\n")
    assert done.outcome == "returned", done
    assert (yard.root / "link").is_symlink()
    assert (yard.root / "sub/new").read_bytes() == b"x\n"


def test_a_dangling_link_out_of_the_workspace_is_outside(yard: Yard) -> None:
    """E3, case 104: its target is what counts, and it asks."""
    (yard.root / "link").symlink_to(yard.outside / "new")
    assert planned(WRITE, yard.ground(), path="link", content="x").outside == (str(yard.outside / "new"),)


@pytest.mark.anyio
async def test_a_new_file_has_what_the_umask_leaves(yard: Yard) -> None:
    """W9: a new file's mode is that of any new file of this user."""
    done = await carried_out(WRITE, yard.ground(), path="new", content="x")
    other = yard.root / "other"
    other.touch()
    assert done.outcome == "returned"
    assert (yard.root / "new").stat().st_mode == other.stat().st_mode


@pytest.mark.anyio
async def test_the_same_content_is_not_written_again(yard: Yard) -> None:
    """W2, W5: nothing is replaced, the times stay, and the reply says so."""
    path = yard.write("f", b"same\n")
    before = path.stat()
    done = await carried_out(WRITE, yard.ground(), path="f", content="same\n")
    assert (done.outcome, done.files) == ("returned", ())
    assert "nothing was written" in done.text
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.anyio
async def test_line_ends_far_from_the_edit_stay(yard: Yard) -> None:
    """W9: each line keeps its own end, and a missing last one is not added."""
    path = yard.write("f", b"a\r\nb\nc")
    await carried_out(EDIT, yard.ground(), **replacing("f", "c", "C"))
    assert path.read_bytes() == b"a\r\nb\nC"


def test_a_long_name_has_a_temporary_name_that_fits() -> None:
    """W9: never above 255 bytes, cut between two characters, still one per attempt."""
    name = temporary_name("ä" * 127, ATTEMPT)
    assert len(name.encode()) <= 255
    assert name.startswith(".ä")
    assert name.endswith(f"{ATTEMPT}.steadyhand")


OLD, NEW = b"old\n", b"new\n"


def evidence_of(yard: Yard, existed: bool = True) -> Evidence:
    if existed:
        yard.write("d/f", OLD)
    return gathered(planned(WRITE, yard.ground(), path="d/f", content=NEW.decode()))[0]


def _gone(yard: Yard) -> None:
    (yard.root / "d/f").unlink()


def _moved_out(yard: Yard) -> None:
    (yard.root / "d").rename(yard.outside / "d")
    (yard.root / "d").symlink_to(yard.outside / "d")


def _moved_within(yard: Yard) -> None:
    (yard.root / "d").rename(yard.root / "e")
    (yard.root / "d").symlink_to("e")


def _folder(yard: Yard) -> None:
    (yard.root / "d/f").unlink()
    (yard.root / "d/f").mkdir()


def _parent_is_a_file(yard: Yard) -> None:
    (yard.root / "d/f").unlink()
    (yard.root / "d").rmdir()
    yard.write("d", NEW)


@pytest.mark.parametrize(
    ("act", "verdict"),
    [
        (lambda yard: None, "unchanged"),
        (lambda yard: yard.write("d/f", NEW), "satisfied"),
        (lambda yard: yard.write("d/f", NEW + b"and more"), "conflict"),
        (lambda yard: yard.write("d/f", NEW[:2]), "conflict"),
        (_gone, "conflict"),
        (_moved_out, "unknown"),
        (_moved_within, "unknown"),
        (_folder, "unknown"),
        (_parent_is_a_file, "unknown"),
    ],
)
def test_the_check_speaks_of_what_is_there_now(yard: Yard, act: Callable[[Yard], object], verdict: str) -> None:
    """W2, case 61: whole content decides; what leads elsewhere or is no file is told of nobody; it only reads."""
    evidence = evidence_of(yard)
    act(yard)
    (finding,) = check(yard.ground(), (evidence,))
    assert (finding.path, finding.check) == ("d/f", verdict)
    assert (finding.reason is None) == (verdict in ("unchanged", "satisfied"))
    assert make_durable(yard.ground(), (evidence,)) == (verdict != "unknown")


@pytest.mark.parametrize(("content", "verdict"), [(None, "unchanged"), (NEW, "satisfied"), (b"else", "conflict")])
def test_the_check_of_a_new_file(yard: Yard, content: bytes | None, verdict: str) -> None:
    """W2: where nothing was, nothing is unchanged, and anything but the intended content a conflict."""
    evidence = evidence_of(yard, existed=False)
    if content is not None:
        yard.write("d/f", content)
    (finding,) = check(yard.ground(), (evidence,))
    assert (finding.check, finding.exists) == (verdict, content is not None)
    assert make_durable(yard.ground(), (evidence,))


def test_what_cannot_be_read_or_synced_is_not_told(yard: Yard) -> None:
    """W2, B3: an error of the disk is unknown, and a failed sync makes nothing durable."""
    evidence = evidence_of(yard)

    def unreadable(count: int, name: str) -> None:
        if name == "open_read":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    (finding,) = check(yard.ground(between(unreadable)), (evidence,))
    assert (finding.check, finding.exists) == ("unknown", None)
    assert not make_durable(yard.ground(failing("sync")), (evidence,))
    assert not make_durable(yard.ground(failing("sync_folder")), (evidence,))


def test_what_changes_while_it_is_read_is_not_told(yard: Yard) -> None:
    """W2: a mixture of two contents is neither, and no verdict rests on it."""
    evidence = evidence_of(yard)

    def written(count: int, name: str) -> None:
        if name == "read_piece":
            yard.write("d/f", b"longer than it was")

    assert check(yard.ground(between(written)), (evidence,))[0].check == "unknown"


def test_what_was_written_outside_is_not_told(yard: Yard) -> None:
    """W2: outside the workspace the check answers unknown."""
    (evidence,) = gathered(planned(WRITE, yard.ground(), path="../out/f", content="x"))
    assert check(yard.ground(), (evidence,))[0].check == "unknown"


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
def test_only_our_own_temporary_file_is_removed(
    yard: Yard, target: bytes | None, left: bytes | None, kept: bool
) -> None:
    """W9: intended, a beginning of it, or the content before goes; everything else stays and is named."""
    evidence = evidence_of(yard)
    path = yard.root / "d" / str(evidence.temporary)
    if target is None:
        _gone(yard)
    else:
        yard.write("d/f", target)
    if left is not None:
        path.write_bytes(left)
    found = clear_temporary(yard.ground(), evidence, NEW)
    assert found == ((f"d/{evidence.temporary}",) if kept else ())
    assert path.exists() == kept
    assert (yard.root / "d/f").exists() == (target is not None)


def test_a_beginning_is_not_recognised_without_the_intended_bytes(yard: Yard) -> None:
    """W9: neither without them nor with others; what is not recognised is kept."""
    evidence = evidence_of(yard)
    path = yard.root / "d" / str(evidence.temporary)
    path.write_bytes(NEW[:2])
    assert clear_temporary(yard.ground(), evidence)
    assert clear_temporary(yard.ground(), evidence, NEW + b"x")
    assert path.exists()
    (yard.root / "d/save").symlink_to("f")
    (yard.root / "d/save").rename(path)
    assert clear_temporary(yard.ground(), evidence, NEW)
    assert path.is_symlink()


def test_the_only_copy_of_the_content_before_is_kept(yard: Yard) -> None:
    """W8, W9: above the checkpoint's bound the displaced file may be all that is left of it."""
    evidence = attrs.evolve(evidence_of(yard), checkpoint=None)
    path = yard.root / "d" / str(evidence.temporary)
    path.write_bytes(OLD)
    yard.write("d/f", b"their save")
    assert clear_temporary(yard.ground(), evidence, NEW)
    yard.write("d/f", NEW)
    assert clear_temporary(yard.ground(), evidence, NEW) == ()
    assert not path.exists()


def test_what_came_before_the_removal_is_durable_first(yard: Yard) -> None:
    """W9: a save exchanged back and not yet synced must not be lost with the name it lay under."""
    evidence = evidence_of(yard)
    (yard.root / "d" / str(evidence.temporary)).write_bytes(NEW)
    disk = CountingDisk(system_disk())
    assert clear_temporary(yard.ground(disk), evidence, NEW) == ()
    assert [operation.verb for operation in disk.operations] == ["sync_folder", "unlink", "sync_folder"]
    assert clear_temporary(yard.ground(disk), evidence, NEW) == ()
    assert [operation.verb for operation in disk.operations[3:]] == ["sync_folder"], "its removal may not be durable"


def test_a_failed_removal_counts_as_kept(yard: Yard) -> None:
    """W9: what could not be removed for good is named, so that no verdict rests on it."""
    evidence = evidence_of(yard)
    for disk in (failing("unlink"), failing("sync_folder")):
        (yard.root / "d" / str(evidence.temporary)).write_bytes(NEW)
        assert clear_temporary(yard.ground(disk), evidence, NEW)
