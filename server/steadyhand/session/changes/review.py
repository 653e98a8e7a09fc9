"""List, keep and undo the changes of a session (row V4).

To keep changes no file: it is a record from which on the file is compared anew. To undo is an attempt for each unit,
checked and settled like a restore, and restorable itself. It replaces only what the chain of the path says is ours, as
it is directly before the replacement. A kill in the middle leaves whole attempts: what is done is undone, the rest is
as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import anyio

from steadyhand.domain.changes.review import Reviewed, hunk_id_of
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Record, Review, ReviewOf, Scope, Told
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.types import LeftHunk, LeftWhy, ReviewFile, ReviewHunk, ReviewList, ReviewResult
from steadyhand.session.calls.take_back import refuse_held_back
from steadyhand.session.changes.bring_back import (
    BringBack,
    FileBack,
    bring_back,
    deciding,
    oldest_evidence,
    parts_names,
)
from steadyhand.session.changes.units import Unit, read_units
from steadyhand.session.recovery.settlement_records import undo_text
from steadyhand.session.session import Session
from steadyhand.session.stored_messages import make_told, show_told
from steadyhand.session.uris import quote_path, uri_of
from steadyhand.tools.contract import ToolOutcome
from steadyhand_values import frozen

TOOL = "undo"


@frozen
class Selection:
    """What is kept or undone; exactly one member is given."""

    hunk_ids: tuple[str, ...] | None = None
    uri: str | None = None  # of a file, as the list has it
    every: bool = False


async def list_review(session: Session) -> ReviewList:
    """Return the changed files of the session with what is under review, kept or undone. Raise Refused."""
    found = await read_units(session)
    return ReviewList(tuple(_listed(session, found.units)), found.more)


async def keep(session: Session, epoch: str | None, selection: Selection) -> ReviewResult:
    """Keep the selected changes. Raise Refused in the order of docs/protocol.md."""
    async with deciding(session, epoch):
        chosen, left = _select(session, (await read_units(session)).units, selection)
        records = [Review(path=one.path, base=one.last) for unit in chosen for one in unit.files if one.is_open]
        if records:
            await session.log.record_or_refuse(records)
    return await _result(session, left)


async def undo(session: Session, epoch: str | None, selection: Selection) -> ReviewResult:
    """Undo the selected changes, one attempt for each unit. Raise Refused in the order of docs/protocol.md."""
    async with deciding(session, epoch):
        chosen, left = _select(session, (await read_units(session)).units, selection)
        paths = tuple(one.path for unit in chosen for one in unit.files if one.is_open)
        if paths:
            await refuse_held_back(session, TOOL, Scope(paths=paths))
        for unit in chosen:
            with anyio.CancelScope(shield=True):  # a unit that is begun is finished and told
                why = await _undo_unit(session, unit)
            if why is not None:
                left += [LeftHunk(_uri(session, one.path), why, _hunk_id(one)) for one in unit.files if one.is_open]
        session.feed.notify_changes()
    return await _result(session, left)


def _select(session: Session, units: Sequence[Unit], selection: Selection) -> tuple[list[Unit], list[LeftHunk]]:
    """Return the units that are meant and under review, and what is meant and is not."""
    open_ones = [unit for unit in units if unit.is_open]
    if selection.hunk_ids is not None:
        known = {_hunk_id(one): unit for unit in open_ones for one in unit.files if one.is_open}
        chosen = {id(known[hunk_id]): known[hunk_id] for hunk_id in selection.hunk_ids if hunk_id in known}
        left = [LeftHunk("", "changed", hunk_id) for hunk_id in selection.hunk_ids if hunk_id not in known]
        return list(chosen.values()), left
    if selection.uri is not None:
        found = [unit for unit in open_ones if any(_uri(session, one.path) == selection.uri for one in unit.files)]
        return found, [] if found else [LeftHunk(selection.uri, "changed")]
    return open_ones, []


async def _undo_unit(session: Session, unit: Unit) -> LeftWhy | None:
    """Undo one unit. Return why it is left; None: it is as it was before."""
    files = [one for one in unit.files if one.is_open]
    if not all(one.is_present for one in unit.files) or any(one.links[0].before != one.base for one in files):
        return "changed"
    if unit.unresolved:
        return "uncertain"
    if parts_names(files):
        return "io"
    shown = [display_path(one.path, session.tool_context.root) for one in files]
    told: list[Told] = []
    done = await bring_back(
        session,
        BringBack(
            TOOL,
            [link for link in files[-1].links if link.session_id == session.session_id][-1].turn_id,
            tuple(FileBack(one.path, oldest_evidence(one.links), one.last) for one in files),
            {"review": [[one.path, one.base, one.last] for one in files]},
            review_of=ReviewOf(path=shown[-1], base=files[-1].base),
            settles=partial(_tell_model, session, told),
        ),
    )
    if not isinstance(done, Attempt):
        return done
    for one in told:
        show_told(session, one)
    session.feed.notify_message(
        "info", f"Undone: {', '.join(shown)}. Say /recovery restore {done.attempt_id[:8]} in the chat to bring it back."
    )
    return None


def _tell_model(session: Session, told: list[Told], new: str, done: ToolOutcome) -> Sequence[Record]:
    """Return what the model is told once an undo has happened; `told` gets it too. `new`: the id of its attempt."""
    if done.outcome == "returned":
        told.append(make_told(session, "review", undo_text(session.ledger.attempts[new])))
    return told


async def _result(session: Session, left: Sequence[LeftHunk]) -> ReviewResult:
    return ReviewResult(tuple(_listed(session, (await read_units(session)).units)), tuple(left))


def _listed(session: Session, units: Iterable[Unit]) -> Iterator[ReviewFile]:
    root = session.tool_context.root
    for unit in units:
        moved = unit.moved
        for one in unit.files if moved is None else moved[1:]:
            hunks = tuple(ReviewHunk(hunk.hunk_id, hunk.state) for hunk in one.hunks)
            change = one.change if moved is None else "moved"
            from_ = None if moved is None else show_hidden_in_value(display_path(moved[0].path, root))
            path = show_hidden_in_value(display_path(one.path, root))
            yield ReviewFile(_uri(session, one.path), path, change, hunks, from_)


def _hunk_id(one: Reviewed) -> str:
    return hunk_id_of(one.path, one.base, one.last)


def _uri(session: Session, path: str) -> str:
    """Return the URI of a path, in the spelling of the session's folder."""
    shown = display_path(path, session.tool_context.root)
    if session.workspace is None or shown.startswith("/"):
        return uri_of(path)
    return f"{session.workspace.rstrip('/')}/{quote_path(shown)}"
