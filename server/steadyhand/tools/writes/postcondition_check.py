"""Check on disk what each path of an attempt has now, and remove its temporary files (rows W2, W9, B3).

`check_paths` reads only, and resolves each path again as it was asked for. If the path leads elsewhere now, leaves the
workspace, is not a regular file or cannot be read, the result is unknown. `make_durable` syncs what is there before it
is read, so that a result outlasts a power loss.

`remove_temporary` removes the temporary file that *started* names, before a verdict is recorded. It removes the file
only if its bytes are the attempt's own, or the old content that is stored elsewhere:

    the intended content                     removed
    a beginning of it                        removed, unless the path itself has the intended content: then the names
                                             were exchanged, and the file is what was displaced
    the content before                       removed, if it is in `checkpoints/` too, or its path has the intended
                                             content; if no file is intended, only if it is in `checkpoints/`
    anything else, or unreadable             kept and named: it is somebody's save, and the path is a conflict
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Sequence

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Evidence, PathFinding
from steadyhand.domain.recovery.postcondition import (
    Absent,
    Now,
    PathCheck,
    Present,
    Unreadable,
    check_buffer,
    check_path,
    reconcile_checks,
)
from steadyhand.domain.text.decoding import FileText, decode_as, to_lf
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Disk, File, Folder
from steadyhand.tools.contract import FILE_BYTES_MAX, Refusal, ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, locate, open_folder, parts_of, root_depth
from steadyhand.tools.writes.blob_store import PIECE_BYTES_MAX, digest_of, link_content, read_pieces
from steadyhand.tools.writes.entry_state import is_same_folder

CHECKED_BYTES_MAX = 4 * 1024 * 1024 * 1024
"""Of one file; a larger one is not read, so its state is unknown."""


def check_paths(tool_context: ToolContext, evidence: Sequence[Evidence]) -> tuple[PathFinding, ...]:
    """Return one finding per path, in the order of the evidence; `domain.recovery.postcondition` combines them."""
    found = [read_path(tool_context, one) for one in evidence]
    checks = [_check(tool_context, one, now) for one, now in zip(evidence, found, strict=True)]
    answers = reconcile_checks(evidence, checks)
    return tuple(_finding(tool_context, *each) for each in zip(evidence, found, answers, strict=True))


def is_durable_on_disk(tool_context: ToolContext, evidence: Sequence[Evidence]) -> bool:
    """Whether what the check saw is on disk: the text of an open document alone does not outlast the editor."""
    return all(one.buffer is None or not _is_in_editor_alone(tool_context, one) for one in evidence)


def make_durable(tool_context: ToolContext, evidence: Sequence[Evidence]) -> bool:
    """Sync the file and the folders of each path; False if that fails or a path leads elsewhere now."""
    try:
        return all(_make_path_durable(tool_context, one) for one in evidence)
    except OSError:
        return False


def remove_temporary(tool_context: ToolContext, evidence: Evidence, intended: bytes | None = None) -> tuple[str, ...]:
    """Remove the recorded temporary file; return the paths of files that are kept instead, as the user sees them.

    `intended`: the whole intended content, to recognise a beginning of it; ignored unless its digest is the recorded
    one. Never raises OSError: a file that cannot be removed durably counts as kept.
    """
    parts = parts_of(evidence.resolved)
    if evidence.temporary is None or not parts:
        return ()
    try:
        with open_folder(tool_context, parts[:-1]) as folder:
            return remove_temporary_in(tool_context, folder, evidence, intended)
    except FileNotFoundError:
        return ()
    except OSError:
        return (display_path("/" + "/".join((*parts[:-1], evidence.temporary)), tool_context.root),)


def remove_temporary_in(
    tool_context: ToolContext, folder: Folder, evidence: Evidence, intended: bytes | None = None
) -> tuple[str, ...]:
    """As `remove_temporary`, in the open folder of the path, wherever that folder is by now (case 170)."""
    disk = tool_context.disk
    if evidence.temporary is None:
        return ()
    try:
        if disk.look(folder, evidence.temporary) is not None:
            if not _is_disposable(disk, folder, parts_of(evidence.resolved)[-1], evidence, intended):
                return (shown_temporary(tool_context, folder, evidence),)
            # Otherwise a power loss could undo an earlier exchange and keep this removal.
            disk.sync_folder(folder)
            disk.unlink(folder, evidence.temporary)
        # Also if there is none: the process that removed it may have been killed before its sync.
        disk.sync_folder(folder)
    except FileNotFoundError:
        return ()
    except OSError:
        return (shown_temporary(tool_context, folder, evidence),)
    return ()


def shown_temporary(tool_context: ToolContext, folder: Folder, evidence: Evidence) -> str:
    """Return the path of the temporary file as the user sees it: where the open folder is now, if that is known."""
    try:
        place = tool_context.disk.real_path(folder)
    except OSError:
        place = posixpath.dirname(evidence.resolved)
    return display_path(posixpath.join(place, evidence.temporary or ""), tool_context.root)


def name_left(
    tool_context: ToolContext, folder: Folder, evidence: Evidence, kept: tuple[str, ...], error: OSError
) -> None:
    """Raise an error that names the temporary file too, if recovery would not find it, because its folder was moved."""
    if kept and not is_same_folder(tool_context, folder, parts_of(evidence.resolved)[:-1]):
        raise OSError(error.errno, f"{error.strerror or error}; {', '.join(kept)} is left there") from error


def is_own_leftover(tool_context: ToolContext, evidence: Evidence, intended: bytes | None) -> bool:
    """Whether the recorded temporary file is there and `remove_temporary` would remove it, if the folder allowed that.

    False also if that cannot be told. Reads only; never raises OSError.
    """
    parts = parts_of(evidence.resolved)
    if evidence.temporary is None or not parts:
        return False
    try:
        with open_folder(tool_context, parts[:-1]) as folder:
            there = tool_context.disk.look(folder, evidence.temporary) is not None
            return there and _is_disposable(tool_context.disk, folder, parts[-1], evidence, intended)
    except OSError:
        return False


def _check(tool_context: ToolContext, evidence: Evidence, now: Now) -> PathCheck:
    if evidence.buffer is None:
        return check_path(evidence, now)
    document = tool_context.document(evidence.buffer.path)
    shown = None if document is None else text_digest(document.text)
    return check_buffer(evidence, shown, now, _text_on_disk(tool_context, evidence))


def _is_in_editor_alone(tool_context: ToolContext, evidence: Evidence) -> bool:
    buffer = evidence.buffer
    document = None if buffer is None else tool_context.document(buffer.path)
    if buffer is None or document is None:
        return False
    shown = text_digest(document.text)
    return shown == buffer.intended and shown != _text_on_disk(tool_context, evidence)


def text_digest(text: str) -> str:
    """Return the digest of a document's text: with LF, in UTF-8, without a byte order mark."""
    return sha256(to_lf(text.removeprefix("\ufeff")).encode("utf-8", "surrogatepass"))


def _text_on_disk(tool_context: ToolContext, evidence: Evidence) -> str | None:
    """Return the digest of the file's text; None: there is no file, it has no text or cannot be read."""
    try:
        with open_folder(tool_context, parts_of(evidence.resolved)[:-1]) as folder:
            raw = tool_context.disk.read(folder, parts_of(evidence.resolved)[-1], FILE_BYTES_MAX + 1)
    except OSError:
        return None
    file = decode_as(raw, evidence.encoding) if len(raw) <= FILE_BYTES_MAX else None
    return text_digest(file.content) if isinstance(file, FileText) else None


def _finding(tool_context: ToolContext, evidence: Evidence, now: Now, answer: PathCheck) -> PathFinding:
    path = display_path(evidence.resolved, tool_context.root)
    if isinstance(now, Present):
        return PathFinding(
            path=path, check=answer.check, reason=answer.reason, exists=True, digest=now.digest, bytes=now.bytes
        )
    exists = False if isinstance(now, Absent) else None
    return PathFinding(path=path, check=answer.check, reason=answer.reason, exists=exists)


def read_path(tool_context: ToolContext, evidence: Evidence) -> Now:
    """Return what the path of this evidence has now, resolved again as it was asked for. Reads only; blocks."""
    located = _locate_same(tool_context, evidence)
    if isinstance(located, Unreadable):
        return located
    if located.kind is None:
        return Absent()
    if located.kind != evidence.kind:
        return Unreadable("it is not a link now" if evidence.kind == "link" else "it is not a regular file now")
    try:
        with open_folder(tool_context, located.folders) as folder:
            seen = tool_context.disk.look(folder, located.name)
            if seen is None:
                return Absent()
            if seen.kind == "link" and evidence.kind == "link":
                target = link_content(seen)
                return Present(sha256(target), len(target))
            if seen.size > CHECKED_BYTES_MAX:
                return Unreadable("it is too large to be read whole")
            digest, size = digest_of(tool_context.disk, folder, located.name, seen.size)
            # Somebody wrote while it was read: the bytes are neither the old nor the new content.
            if tool_context.disk.look(folder, located.name) != seen or size != seen.size:
                return Unreadable("it changed while it was read")
    except OSError as error:
        return Unreadable(f"it cannot be read: {error.strerror or error}")
    return Present(digest, size)


def _locate_same(tool_context: ToolContext, evidence: Evidence) -> ResolvedPath | Unreadable:
    located = locate(tool_context, evidence.path, evidence.kind != "link")
    if isinstance(located, Refusal):
        return Unreadable(located.text)
    if located.resolved != evidence.resolved:
        return Unreadable("its path now leads somewhere else")
    if not located.is_inside or located.is_in_state_directory:
        return Unreadable("it is outside the workspace")
    return located


def _make_path_durable(tool_context: ToolContext, evidence: Evidence) -> bool:
    located = _locate_same(tool_context, evidence)
    if isinstance(located, Unreadable) or located.kind not in (evidence.kind, None):
        return False
    if located.kind == "file":
        with open_folder(tool_context, located.folders) as folder:
            file: File = tool_context.disk.open_read(folder, located.name)
            try:
                tool_context.disk.sync(file)
                if evidence.in_place:  # a sync of this very file may have failed before
                    tool_context.disk.reread(file)
            finally:
                tool_context.disk.close(file)
    # Every folder from the workspace down to the last existing one: the attempt may have created some of them.
    there = len(located.parts) - max(located.missing_count, 1)
    for length in range(there, root_depth(tool_context, located.parts) - 1, -1):
        with open_folder(tool_context, located.parts[:length]) as folder:
            tool_context.disk.sync_folder(folder)
    return True


def _is_disposable(disk: Disk, folder: Folder, name: str, evidence: Evidence, intended: bytes | None) -> bool:
    assert evidence.temporary is not None
    seen = disk.look(folder, evidence.temporary)
    if seen is None:
        return True
    if evidence.kind == "link" and seen.kind == "link":
        return evidence.checkpoint is not None and sha256(link_content(seen)) == evidence.before
    if seen.kind != "file":
        return False
    if evidence.existed and evidence.intended is None:
        kept = evidence.checkpoint is not None and seen.size == evidence.before_bytes
        return kept and digest_of(disk, folder, evidence.temporary, seen.size)[0] == evidence.before
    if evidence.intended is None or evidence.intended_bytes is None:
        return False
    if seen.size > max(evidence.intended_bytes, evidence.before_bytes or 0):
        return False
    digest, size = digest_of(disk, folder, evidence.temporary, seen.size)
    if digest == evidence.intended:
        return True
    if evidence.existed and digest == evidence.before:
        return evidence.checkpoint is not None or _has_intended_content(disk, folder, name, evidence)
    if size == 0 or (intended is not None and sha256(intended) == evidence.intended):
        begun = size == 0 or (intended is not None and _is_beginning_of(disk, folder, evidence.temporary, intended))
        return begun and not _has_intended_content(disk, folder, name, evidence)
    return False


def _has_intended_content(disk: Disk, folder: Folder, name: str, evidence: Evidence) -> bool:
    """Whether the path itself has that content; a missing path or one that is not a file has not."""
    try:
        return digest_of(disk, folder, name, evidence.intended_bytes or 0)[0] == evidence.intended
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.EINVAL):
            return False
        raise


def _is_beginning_of(disk: Disk, folder: Folder, name: str, intended: bytes) -> bool:
    """Whether the file's bytes are a beginning of the intended content."""
    at = 0
    for piece in read_pieces(disk, folder, name, len(intended)):
        assert len(piece) <= PIECE_BYTES_MAX
        if intended[at : at + len(piece)] != piece:
            return False
        at += len(piece)
    return True
