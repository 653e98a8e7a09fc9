"""Carry out what an undo and a rewind have in common: decide alone, bring files back, say why one is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import attrs

from steadyhand.domain.changes.chain import Link
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Evidence, Record, ReviewOf, RewindOf
from steadyhand.domain.views.types import LeftWhy
from steadyhand.session.calls.take_back import TakeBack, coming_back, settle_nothing, take_back
from steadyhand.session.recovery.resolve import resolution
from steadyhand.session.session import Session
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand_values import frozen

WHY_LEFT: dict[str, LeftWhy] = {
    "unsaved": "unsaved",
    "too_large": "large",
    "io_error": "io",
    "read_only": "io",
    "lost": "expired",
}
"""Reason of a refusal, or of an attempt that failed → why a change is left; any other reason: `changed`."""


@frozen
class FileBack:
    """One path that gets earlier content. `oldest`: evidence of the change that is taken back first in time."""

    path: str  # absolute, after links
    oldest: Evidence
    last: str | None  # digest that is there; None: no file


def oldest_evidence(links: Sequence[Link]) -> Evidence:
    """Return the evidence of the first of these changes; in place if one of them wrote in place (row W11)."""
    return attrs.evolve(links[0].evidence, in_place=any(link.evidence.in_place for link in links))


def evidence_of(oldest: Evidence, digest: str | None, size: int | None) -> Evidence:
    """Return evidence by which a content that is in `checkpoints/` comes back: the base, or a file without hunks."""
    return attrs.evolve(
        oldest, existed=digest is not None, before=digest, before_bytes=size, checkpoint=digest, line_ending=None
    )


def store_contents(session: Session, contents: Sequence[bytes]) -> list[str] | None:
    """Store contents in `checkpoints/` and return their digests; None: the disk refuses. Blocks."""
    store = BlobStore(session.context.disk, session.path, "checkpoints")
    try:
        return [str(store.store(content, session.context.ids.new())) for content in contents]
    except OSError:
        return None


def stored_size(session: Session, digest: str | None) -> int | None:
    """Return the size of a content in `checkpoints/`; None: there is none. Blocks."""
    store = BlobStore(session.context.disk, session.path, "checkpoints")
    content = None if digest is None else store.read(digest, CHECKPOINT_BYTES_MAX)
    return None if content is None else len(content)


class _HasLinks(Protocol):
    @property
    def links(self) -> Sequence[Link]: ...


def parts_names(together: Sequence[_HasLinks]) -> bool:
    """Return whether bringing these paths back together may part the names of one file.

    What was written in place has several names or cannot be replaced (row W11). If another path came to it by a move,
    no order of steps is known to bring back both. If it was deleted later, its other names have the content still,
    and a file made again is none of them."""
    return any(_parts_names(one.links, len(together) > 1) for one in together)


def _parts_names(links: Sequence[Link], has_others: bool) -> bool:
    in_place = [at for at, link in enumerate(links) if link.evidence.in_place]
    return bool(in_place) and (has_others or any(link.after is None for link in links[in_place[0] :]))


@frozen
class BringBack:
    """Paths that one attempt brings back together."""

    tool: str
    turn_id: str
    files: tuple[FileBack, ...]
    subject: Mapping[str, object]
    review_of: ReviewOf | None = None
    rewind_of: RewindOf | None = None
    settles: Callable[[str, ToolOutcome], Sequence[Record]] = settle_nothing


@asynccontextmanager
async def deciding(session: Session, epoch: str | None) -> AsyncIterator[None]:
    """No turn runs or begins meanwhile, and no other decision on the session is carried out.

    Raise Refused: notOwner, journalBroken, turnRunning, staleEpoch. `epoch` None: it is not compared."""
    _require_idle(session, epoch)
    async with resolution(session), session.settling:
        _require_idle(session, epoch)
        yield


async def bring_back(session: Session, wanted: BringBack) -> Attempt | LeftWhy:
    """Bring the files back by one checked attempt. Return it if it happened, else why they are left."""
    oldest = [one.oldest for one in wanted.files]
    if any(one.existed and one.checkpoint is None for one in oldest):
        return "large"
    if not await session.context.in_thread(_are_stored, session.tool_context, oldest):
        return "expired"
    attempt = await take_back(
        session,
        TakeBack(
            wanted.tool,
            wanted.turn_id,
            tuple(coming_back(one.oldest, one.last) for one in wanted.files),
            {one.path: one.last for one in wanted.files},
            wanted.subject,
            review_of=wanted.review_of,
            rewind_of=wanted.rewind_of,
            settles=wanted.settles,
        ),
    )
    if isinstance(attempt, Refusal):
        return WHY_LEFT.get(attempt.reason, "changed")
    if attempt.uncertain or attempt.result is None:
        return "uncertain"
    if attempt.result.outcome == "returned":
        return attempt
    return WHY_LEFT.get(attempt.result.reason or "", "changed" if attempt.result.reason == "changed" else "io")


def _require_idle(session: Session, epoch: str | None) -> None:
    session.require_owned()
    if session.turn is not None:
        raise Refused("turnRunning", "A turn is running; wait for it or stop it.", {"turnId": session.turn.turn_id})
    if epoch is not None:
        session.require_epoch(epoch)


def _are_stored(tool_context: ToolContext, oldest: Sequence[Evidence]) -> bool:
    """Return whether every content that comes back can be read. Blocks."""
    store = BlobStore(tool_context.disk, tool_context.session_folder, "checkpoints")
    wanted = [one.checkpoint for one in oldest if one.checkpoint is not None]
    return all(store.read(digest, CHECKPOINT_BYTES_MAX) is not None for digest in wanted)
