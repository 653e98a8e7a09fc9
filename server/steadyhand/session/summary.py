"""`summary.json` beside a journal: what a list and a start need to know without folding it (row A8).

A cache and never the truth: it is bound to the journal's length and its last line's `sum`, and counts for nothing
when either differs. Not synced, since a lost or torn one only costs a fold. Blocks; called in a thread.
"""

from __future__ import annotations

import json
from typing import get_args

import attrs

from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Mode, ModelName, TitleSource
from steadyhand.core.words import unrecorded
from steadyhand.journal.log import JOURNAL, write_all
from steadyhand.ports import Disk, Folder, Ids

SUMMARY = "summary.json"
VERSION = 1
summary_bytes_max = 16 * 1024
tail_bytes_max = 64 * 1024
file_mode = 0o600


@attrs.frozen
class Summary:
    """`open_calls`: calls without an end, so that a start has something to classify; `adrift`: those of them that are
    uncertain if no owner lives; `open_jobs`: background commands without one, so that it has something to look for."""

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

    @property
    def unsettled(self) -> bool:
        return self.open_calls > 0 or self.uncertain > 0 or self.open_jobs > 0


def summary_of(ledger: Ledger) -> Summary:
    return Summary(
        title=ledger.title,
        title_source=ledger.title_source,
        created=ledger.created or ledger.updated or "",
        updated=ledger.updated or "",
        mode=ledger.mode,
        model=ledger.model,
        open_calls=len(ledger.open_calls()),
        uncertain=len(ledger.uncertain()),
        adrift=sum(unrecorded(call) == "unknown_after_restart" for call in ledger.open_calls()),
        workspace=ledger.session.workspace if ledger.session else None,
        open_jobs=len(ledger.open_jobs()),
    )


def write_summary(disk: Disk, ids: Ids, folder: Folder, summary: Summary) -> None:
    """Replace the summary; a failure is nobody's loss."""
    try:
        bound = _binding(disk, folder)
        if bound is None:
            return
        size, last = bound
        content = json.dumps(
            {"v": VERSION, "bytes": size, "sum": last, **attrs.asdict(summary)}, separators=(",", ":")
        ).encode("ascii")
        temporary = f".{SUMMARY}.{ids.new()}"
        file = disk.create(folder, temporary, file_mode)
        try:
            write_all(disk, file, content)
        finally:
            disk.close(file)
        disk.rename(folder, temporary, SUMMARY)
    except OSError:
        return


def read_summary(disk: Disk, folder: Folder) -> Summary | None:
    """The summary if it is of this very journal; None means: fold."""
    try:
        found = json.loads(disk.read(folder, SUMMARY, summary_bytes_max))
        if found.pop("v") != VERSION or (found.pop("bytes"), found.pop("sum")) != _binding(disk, folder):
            return None
        summary = Summary(**{**found, "model": ModelName(**found["model"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return summary if _well_formed(summary) else None


def _well_formed(found: Summary) -> bool:
    """Whether every member has its type; whoever wrote something else is not believed."""
    texts = (found.title, found.created, found.updated, found.model.provider, found.model.name)
    counts = (found.open_calls, found.uncertain, found.adrift, found.open_jobs)
    return (
        all(type(text) is str for text in texts)
        and all(type(count) is int and count >= 0 for count in counts)
        and (found.workspace is None or type(found.workspace) is str)
        and found.title_source in get_args(TitleSource)
        and found.mode in get_args(Mode)
    )


def _binding(disk: Disk, folder: Folder) -> tuple[int, str] | None:
    """(length of the journal, `sum` of its last line); None where its end is not a whole line."""
    look = disk.look(folder, JOURNAL)
    if look is None:
        return None
    start = max(0, look.size - tail_bytes_max)
    file = disk.open_read(folder, JOURNAL)
    try:
        disk.move_to(file, start)
        tail = b""
        while piece := disk.read_piece(file, tail_bytes_max):
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
