"""`summary.json` beside a journal: what a list and a start need without folding the journal (row A8).

It is only a cache: it names the journal's length and the `sum` of its last line, and is ignored when either differs.
It is not synced, because a lost or torn one only costs a fold. Blocks; called in a thread.
"""

from __future__ import annotations

import json
from typing import get_args

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.records.record import Mode, ModelName, TitleSource
from steadyhand.domain.views.render import origin_of
from steadyhand.domain.views.sentences import unrecorded_verdict
from steadyhand.domain.views.types import SessionOriginView
from steadyhand.journal.journal import JOURNAL
from steadyhand.ports.disk import Disk, Folder, write_all
from steadyhand.ports.system import Ids
from steadyhand_values import frozen

SUMMARY = "summary.json"
VERSION = 1
SUMMARY_BYTES_MAX = 16 * 1024
TAIL_BYTES_MAX = 64 * 1024
FILE_MODE = 0o600


@frozen
class Summary:
    """`open_calls`: calls without an end, which opening has to classify; `adrift`: those of them that are uncertain if
    no process owns the session; `open_jobs`: background commands without an end, which opening has to look for."""

    title: str
    title_source: TitleSource
    created: str
    updated: str
    mode: Mode
    model: ModelName
    open_calls: int
    uncertain: int
    adrift: int
    workspace: str | None = None
    open_jobs: int = 0
    origin: SessionOriginView | None = None

    @property
    def is_unsettled(self) -> bool:
        """Whether a start has to open the session."""
        return self.open_calls > 0 or self.uncertain > 0 or self.open_jobs > 0


def summary_of(ledger: Ledger) -> Summary:
    """Return the summary of a ledger."""
    return Summary(
        title=ledger.title,
        title_source=ledger.title_source,
        created=ledger.created or ledger.updated or "",
        updated=ledger.updated or "",
        mode=ledger.mode,
        model=ledger.model,
        open_calls=len(ledger.open_calls()),
        uncertain=len(ledger.uncertain()),
        adrift=sum(unrecorded_verdict(call) == "unknown_after_restart" for call in ledger.open_calls()),
        workspace=ledger.workspace,
        open_jobs=len(ledger.open_jobs()),
        origin=origin_of(ledger),
    )


def write_summary(disk: Disk, ids: Ids, folder: Folder, summary: Summary, end: tuple[int, str]) -> None:
    """Replace the summary. A failure is ignored: it only costs a fold.

    `end`: the size of the journal and the `sum` of its last line, as they were when the summary was made. The journal
    may have other records by now, which the summary does not know."""
    try:
        size, last = end
        members = {"v": VERSION, "bytes": size, "sum": last, **attrs.asdict(summary)}
        if summary.origin is None:
            del members["origin"]
        content = json.dumps(members, separators=(",", ":")).encode("ascii")
        temporary = f".{SUMMARY}.{ids.new()}"
        file = disk.create(folder, temporary, FILE_MODE)
        try:
            write_all(disk, file, content)
        finally:
            disk.close(file)
        disk.rename(folder, temporary, SUMMARY)
    except OSError:
        return


def read_summary(disk: Disk, folder: Folder) -> Summary | None:
    """Return the summary if it belongs to this journal as it is now; None: fold the journal."""
    try:
        found = json.loads(disk.read(folder, SUMMARY, SUMMARY_BYTES_MAX))
        if found.pop("v") != VERSION or (found.pop("bytes"), found.pop("sum")) != _binding(disk, folder):
            return None
        origin = SessionOriginView(**found["origin"]) if found.get("origin") is not None else None
        summary = Summary(**{**found, "model": ModelName(**found["model"]), "origin": origin})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return summary if _well_formed(summary) else None


def _well_formed(found: Summary) -> bool:
    """Return whether every member has its type."""
    texts = (found.title, found.created, found.updated, found.model.provider, found.model.name)
    counts = (found.open_calls, found.uncertain, found.adrift, found.open_jobs)
    return (
        all(type(text) is str for text in texts)
        and all(type(count) is int and count >= 0 for count in counts)
        and (found.workspace is None or type(found.workspace) is str)
        and (found.origin is None or type(found.origin.session_id) is str)
        and (found.origin is None or found.origin.turn_id is None or type(found.origin.turn_id) is str)
        and found.title_source in get_args(TitleSource)
        and found.mode in get_args(Mode)
    )


def _binding(disk: Disk, folder: Folder) -> tuple[int, str] | None:
    """Return the length of the journal and the `sum` of its last line; None where it ends in a partial line."""
    look = disk.look(folder, JOURNAL)
    if look is None:
        return None
    start = max(0, look.size - TAIL_BYTES_MAX)
    file = disk.open_read(folder, JOURNAL)
    try:
        disk.move_to(file, start)
        tail = b""
        # One byte more than there was: a journal that grows meanwhile does not fit, and is not read to its end.
        while piece := disk.read_piece(file, look.size - start + 1 - len(tail)):
            tail += piece
    finally:
        disk.close(file)
    if not tail.endswith(b"\n") or start + len(tail) != look.size:
        return None
    begin = tail.rfind(b"\n", 0, -1) + 1
    line = tail[begin:]
    if line[:8] != b'{"sum":"' or (begin == 0 and start > 0):
        return None
    return look.size, line[8:16].decode("latin-1")
