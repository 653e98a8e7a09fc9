"""The check on disk: what stands now under each path of an attempt, and its left-over temporary files (W2, W9, B3).

`check` reads only, and resolves each path anew as it was asked: where it leads elsewhere now, leaves the workspace, is
no regular file or cannot be read, nothing is told. `make_durable` makes what was seen outlast a power loss.

`clear_temporary` removes the temporary file that *started* names, before any verdict is recorded, and only if its bytes
are the attempt's own or the old content that is kept elsewhere:

    the intended content                     removed
    a beginning of it                        removed, but not while the path itself has the intended content: then the
                                             names were exchanged and what lies here was displaced
    the content before                       removed, if it is kept in `checkpoints/` too, or its path has the intended
                                             content; where no file is intended, only if it is kept
    anything else, or what cannot be read    kept and named: it is somebody's save, and the path is a conflict
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from steadyhand.core.identity import sha256
from steadyhand.core.postcondition import Absent, NotTold, Now, PathCheck, Present, agreed, check_path
from steadyhand.core.record import Evidence, PathFinding
from steadyhand.ports import Disk, File, Folder
from steadyhand.tools.content import digest_of, link_content, piece_bytes_max, pieces
from steadyhand.tools.place import Located, display, entered, locate, parts_of
from steadyhand.tools.tool import Ground, Refusal

checked_bytes_max = 4 * 1024 * 1024 * 1024
"""Of one file; a larger one is not read, so nothing is told."""


def check(ground: Ground, evidence: Sequence[Evidence]) -> tuple[PathFinding, ...]:
    """One finding per path, in the order of the evidence; `core.postcondition.check_whole` sums them up."""
    found = [_now(ground, one) for one in evidence]
    answers = agreed(evidence, [check_path(one, now) for one, now in zip(evidence, found, strict=True)])
    return tuple(_finding(ground, *each) for each in zip(evidence, found, answers, strict=True))


def make_durable(ground: Ground, evidence: Sequence[Evidence]) -> bool:
    """Sync each path's file and folders; False if that cannot be done or a path no longer leads there."""
    try:
        return all(_made_durable(ground, one) for one in evidence)
    except OSError:
        return False


def clear_temporary(ground: Ground, evidence: Evidence, intended: bytes | None = None) -> tuple[str, ...]:
    """Remove the recorded temporary file; returns what is kept instead, as the user is told its path.

    `intended`: the whole intended content, for recognising a beginning of it; not believed unless its digest is the
    recorded one. Never raises OSError: what cannot be removed for good counts as kept."""
    parts = parts_of(evidence.resolved)
    if evidence.temporary is None or not parts:
        return ()
    shown = display(ground.root, "/" + "/".join((*parts[:-1], evidence.temporary)))
    try:
        with entered(ground, parts[:-1]) as folder:
            if ground.disk.look(folder, evidence.temporary) is not None:
                if not _disposable(ground.disk, folder, parts[-1], evidence, intended):
                    return (shown,)
                # An exchange before this must not be lost when the removal is not.
                ground.disk.sync_folder(folder)
                ground.disk.unlink(folder, evidence.temporary)
            # Also where there is none: whoever removed it may have been killed before this.
            ground.disk.sync_folder(folder)
    except FileNotFoundError:
        return ()
    except OSError:
        return (shown,)
    return ()


def _finding(ground: Ground, evidence: Evidence, now: Now, answer: PathCheck) -> PathFinding:
    path = display(ground.root, evidence.resolved)
    if isinstance(now, Present):
        return PathFinding(path, answer.check, answer.reason, True, now.digest, now.bytes)
    exists = False if isinstance(now, Absent) else None
    return PathFinding(path, answer.check, answer.reason, exists)


def _now(ground: Ground, evidence: Evidence) -> Now:
    located = _same_place(ground, evidence)
    if isinstance(located, NotTold):
        return located
    if located.kind is None:
        return Absent()
    if located.kind != evidence.kind:
        return NotTold("it is not a link now" if evidence.kind == "link" else "it is not a regular file now")
    try:
        with entered(ground, located.folders) as folder:
            seen = ground.disk.look(folder, located.name)
            if seen is None:
                return Absent()
            if seen.kind == "link" and evidence.kind == "link":
                target = link_content(seen)
                return Present(sha256(target), len(target))
            if seen.size > checked_bytes_max:
                return NotTold("it is too large to be read whole")
            digest, size = digest_of(ground.disk, folder, located.name)
            # Read while somebody wrote: neither the old nor the new, and not what will be there.
            if ground.disk.look(folder, located.name) != seen or size != seen.size:
                return NotTold("it changed while it was read")
    except OSError as error:
        return NotTold(f"it cannot be read: {error.strerror or error}")
    return Present(digest, size)


def _same_place(ground: Ground, evidence: Evidence) -> Located | NotTold:
    located = locate(ground, evidence.path, evidence.kind != "link")
    if isinstance(located, Refusal):
        return NotTold(located.text)
    if located.resolved != evidence.resolved:
        return NotTold("its path leads elsewhere now")
    if not located.inside or located.in_state_directory:
        return NotTold("it is outside the workspace")
    return located


def _made_durable(ground: Ground, evidence: Evidence) -> bool:
    located = _same_place(ground, evidence)
    if isinstance(located, NotTold) or located.kind not in (evidence.kind, None):
        return False
    if located.kind == "file":
        with entered(ground, located.folders) as folder:
            file: File = ground.disk.open_read(folder, located.name)
            try:
                ground.disk.sync(file)
            finally:
                ground.disk.close(file)
    # Every folder from the workspace down to the last one there: the attempt may have made some of them.
    there = len(located.parts) - max(located.missing, 1)
    for length in range(there, len(parts_of(ground.root or "/")) - 1, -1):
        with entered(ground, located.parts[:length]) as folder:
            ground.disk.sync_folder(folder)
    return True


def _disposable(disk: Disk, folder: Folder, name: str, evidence: Evidence, intended: bytes | None) -> bool:
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
        return kept and digest_of(disk, folder, evidence.temporary)[0] == evidence.before
    if evidence.intended is None or evidence.intended_bytes is None:
        return False
    if seen.size > max(evidence.intended_bytes, evidence.before_bytes or 0):
        return False
    digest, size = digest_of(disk, folder, evidence.temporary)
    if digest == evidence.intended:
        return True
    if evidence.existed and digest == evidence.before:
        return evidence.checkpoint is not None or _holds(disk, folder, name, evidence.intended)
    if size == 0 or (intended is not None and sha256(intended) == evidence.intended):
        begun = size == 0 or (intended is not None and _begins(disk, folder, evidence.temporary, intended))
        return begun and not _holds(disk, folder, name, evidence.intended)
    return False


def _holds(disk: Disk, folder: Folder, name: str, digest: str) -> bool:
    """Whether the path itself has that content; a path that is gone or no file has none."""
    try:
        return digest_of(disk, folder, name)[0] == digest
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.EINVAL):
            return False
        raise


def _begins(disk: Disk, folder: Folder, name: str, intended: bytes) -> bool:
    """Whether the file's bytes are a beginning of these."""
    at = 0
    for piece in pieces(disk, folder, name):
        assert len(piece) <= piece_bytes_max
        if intended[at : at + len(piece)] != piece:
            return False
        at += len(piece)
    return True
