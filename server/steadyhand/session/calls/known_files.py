"""What a call of the model is judged by: what the model knows of its files, and who may have changed them (row V3).

Retry, restore and what the person does are judged by their own evidence and never by this. Who changed a file is said
by digests alone: the attempt whose content is there now, first of the open sessions, then of all others. The journals
of those are read only for a file that changed since the model saw it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.session.calls.prepared import PreparedCall
from steadyhand.session.context import SessionContext
from steadyhand.session.inspection.file_changes import closed_author
from steadyhand.session.session import Session
from steadyhand.session.session_state import ID_SHOWN_DIGITS
from steadyhand.session.storage import directory
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX
from steadyhand.tools.workspace.paths import one_line
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand.tools.writes.planned_write import PlannedFileEffect
from steadyhand.tools.writes.staleness import KnownFiles


def give_known_files(session: Session, prepared: PreparedCall) -> None:
    """Let a call of the model see what the model knows now. Called before each step that looks at the files."""
    planned = prepared.planned
    if not prepared.is_judged or not isinstance(planned, PlannedFileEffect):
        return
    found = session.readings.fold(session.ledger, prepared.call.call_id)
    context = session.tool_context
    checkpoints = BlobStore(context.disk, context.session_folder, "checkpoints")
    planned.known = KnownFiles(
        {path: found.files[path] for path in planned.scope.paths if path in found.files},
        _authors(session, planned.scope.paths),
        found.commands,
        partial(_content, session, checkpoints),
        partial(_closed_author, session.context, closed_author(session)),
    )


def _content(session: Session, checkpoints: BlobStore, digest: str) -> bytes | None:
    """Return the bytes with this digest. Blocks."""
    kept = session.seen_contents.get(digest)
    return kept if kept is not None else checkpoints.read(digest, CHECKPOINT_BYTES_MAX)


def _authors(session: Session, paths: tuple[str, ...]) -> dict[tuple[str, str | None], str]:
    """Return for each content that an attempt made at one of the paths whose it is; this session's word wins."""
    found: dict[tuple[str, str | None], str] = {}
    for other in reversed(session.neighbours()):
        author = "by you in this session" if other is session else _author_text(other.name)
        for attempt in other.ledger.attempts.values():
            for one in _evidence(attempt):
                if one.resolved in paths:
                    found[one.resolved, one.intended] = author
    return found


def _closed_author(
    context: SessionContext, find: Callable[[str, str | None], str | None], path: str, digest: str | None
) -> str | None:
    """Return whose the content is among the sessions that are not open here. Blocks."""
    session_id = find(path, digest)
    if session_id is None:
        return None
    title = ""
    with suppress(OSError, Refused):
        found = directory.summary(context, session_id)
        title = found.title if found is not None else ""
    return _author_text(title or session_id[:ID_SHOWN_DIGITS])


def _author_text(name: str) -> str:
    return f"by session {one_line(show_hidden_in_value(name))}"


def _evidence(attempt: Attempt) -> tuple[Evidence, ...]:
    """Return the evidence of an attempt that may have changed files."""
    return attempt.started.evidence if attempt.started is not None and attempt.effect == "writes_files" else ()
