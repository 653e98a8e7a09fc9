"""List, keep and undo the changes of a session (row V4).

To keep changes no file: it is a record from which on the file is compared anew. To undo is an attempt for each unit,
checked and settled like a restore, and restorable itself. It replaces only what the chain of the path says is ours, as
it is directly before the replacement. A kill in the middle leaves whole attempts: what is done is undone, the rest is
as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

import anyio
import attrs

from steadyhand.domain.changes.hunks import Line
from steadyhand.domain.changes.review import Reviewed
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Evidence, Record, Review, ReviewOf, Scope, SparedChange, Told
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.text.positions import Position, Range
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.types import LeftHunk, LeftWhy, ReviewFile, ReviewHunk, ReviewList, ReviewResult
from steadyhand.session.calls.take_back import refuse_held_back
from steadyhand.session.changes.bring_back import (
    BringBack,
    FileBack,
    bring_back,
    deciding,
    evidence_of,
    oldest_evidence,
    parts_names,
    store_contents,
    stored_size,
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


@frozen
class _Chosen:
    """A unit with the ids of its hunks that are meant; where it has no hunks of lines, all are."""

    unit: Unit
    hunk_ids: frozenset[str]


async def list_review(session: Session, name: str | None = None) -> ReviewList:
    """Return the changed files of the session with what is under review, kept or undone. Raise Refused.

    `name`: only files with this last name are looked at, and what belongs to one unit with them."""
    found = await read_units(session, name, with_editor=True)
    return ReviewList(tuple(_listed(session, found.units)), found.more)


async def keep(session: Session, epoch: str | None, selection: Selection) -> ReviewResult:
    """Keep the selected changes. Raise Refused in the order of docs/protocol.md."""
    async with deciding(session, epoch):
        chosen, left = _select(session, (await read_units(session)).units, selection)
        records: list[Review] = []
        for one, hunk_ids in ((one, each.hunk_ids) for each in chosen for one in each.unit.files if one.is_open):
            record = await session.context.in_thread(_keep_record, session, one, hunk_ids)
            if record is not None:
                records.append(record)
            else:
                left += _left(session, one, "io", hunk_ids)
        if records:
            await session.log.record_or_refuse(records)
    return await _result(session, left)


async def undo(session: Session, epoch: str | None, selection: Selection) -> ReviewResult:
    """Undo the selected changes, one attempt for each unit. Raise Refused in the order of docs/protocol.md."""
    async with deciding(session, epoch):
        chosen, left = _select(session, (await read_units(session)).units, selection)
        paths = tuple(one.path for each in chosen for one in each.unit.files if one.is_open)
        if paths:
            await refuse_held_back(session, TOOL, Scope(paths=paths))
        for each in chosen:
            with anyio.CancelScope(shield=True):  # a unit that is begun is finished and told
                left += await _undo_chosen(session, each)
        session.feed.notify_changes()
    return await _result(session, left)


def _select(session: Session, units: Sequence[Unit], selection: Selection) -> tuple[list[_Chosen], list[LeftHunk]]:
    """Return the units that are meant and under review, and what is meant and is not."""
    ids = {id(unit): _open_ids(unit) for unit in units if unit.is_open}
    open_ones = [_Chosen(unit, ids[id(unit)]) for unit in units if unit.is_open]
    if selection.hunk_ids is not None:
        wanted = frozenset(selection.hunk_ids)
        chosen = [_Chosen(one.unit, one.hunk_ids & wanted) for one in open_ones if one.hunk_ids & wanted]
        known = frozenset().union(*ids.values())
        return chosen, [LeftHunk("", "changed", hunk_id) for hunk_id in selection.hunk_ids if hunk_id not in known]
    if selection.uri is not None:
        found = [one for one in open_ones if any(_uri(session, file.path) == selection.uri for file in one.unit.files)]
        return found, [] if found else [LeftHunk(selection.uri, "changed")]
    return open_ones, []


def _open_ids(unit: Unit) -> frozenset[str]:
    return frozenset(hunk.hunk_id for one in unit.files for hunk in one.open_hunks)


def _left(session: Session, one: Reviewed, why: LeftWhy, hunk_ids: Collection[str] | None = None) -> list[LeftHunk]:
    """Return that these hunks of a file are left; None: all."""
    uri = _uri(session, one.path)
    found = [hunk for hunk in one.open_hunks if hunk_ids is None or one.lines is None or hunk.hunk_id in hunk_ids]
    return [LeftHunk(uri, why, hunk.hunk_id) for hunk in found]


def _keep_record(session: Session, one: Reviewed, hunk_ids: Collection[str]) -> Review | None:
    """Return the record that keeps these hunks; None: the new base cannot be stored. Blocks."""
    own = [link.attempt_id for link in one.links if link.session_id == session.session_id]
    whole = Review(path=one.path, base=one.last, attempt_id=own[-1] if own else None)
    if one.lines is None:
        return whole
    kept = _chosen_ids(one, hunk_ids)
    numbers = one.numbers(kept)
    if len(numbers) == len(one.lines.hunks):
        return attrs.evolve(whole, hunks=kept)
    base = store_contents(session, [one.lines.content_with(numbers)])
    return None if base is None else attrs.evolve(whole, base=base[0], hunks=kept, partial=True)


def _chosen_ids(one: Reviewed, hunk_ids: Collection[str]) -> tuple[str, ...]:
    """Return the ids in the order of the hunks."""
    return tuple(hunk.hunk_id for hunk in one.open_hunks if hunk.hunk_id in hunk_ids)


async def _undo_chosen(session: Session, chosen: _Chosen) -> list[LeftHunk]:
    """Undo what is chosen of a unit. Return what is left."""
    files = [one for one in chosen.unit.files if one.is_open]
    divided = files[0] if len(files) == 1 and files[0].lines is not None else None
    if divided is None:
        why = await _undo_unit(session, chosen.unit, files)
        return [] if why is None else [hunk for one in files for hunk in _left(session, one, why)]
    there = {hunk.hunk_id for hunk in divided.open_hunks if hunk.state == "new"} & chosen.hunk_ids
    left = _left(session, divided, "changed", chosen.hunk_ids - there)
    why = await _undo_hunks(session, chosen.unit, divided, _chosen_ids(divided, there)) if there else None
    return left if why is None else [*left, *_left(session, divided, why, there)]


async def _undo_unit(session: Session, unit: Unit, files: Sequence[Reviewed]) -> LeftWhy | None:
    """Undo one unit as a whole. Return why it is left; None: it is as it was before."""
    if not all(one.is_present for one in unit.files):
        return "changed"
    if unit.unresolved:
        return "uncertain"
    if parts_names(files):
        return "io"
    if any(one.links[0].before != one.base and one.base is None for one in files):
        return "changed"
    shown = [display_path(one.path, session.tool_context.root) for one in files]
    bases = await session.context.in_thread(_evidence_before, session, files)
    back = tuple(FileBack(one.path, base, one.last) for one, base in zip(files, bases, strict=True))
    return await _bring_back(session, files, back, ReviewOf(path=shown[-1], base=files[-1].base))


def _evidence_before(session: Session, files: Sequence[Reviewed]) -> list[Evidence]:
    """Return evidence whose content before is the base, also where the user kept a part of the change. Blocks."""
    found: list[Evidence] = []
    for one in files:
        oldest = oldest_evidence(one.links)
        if oldest.before != one.base:
            oldest = evidence_of(oldest, one.base, stored_size(session, one.base))
        found.append(oldest)
    return found


async def _undo_hunks(session: Session, unit: Unit, one: Reviewed, hunk_ids: tuple[str, ...]) -> LeftWhy | None:
    """Undo hunks of lines by one attempt. Return why they are left; None: they are undone."""
    assert one.lines is not None, "the file has hunks of lines"
    if unit.unresolved:
        return "uncertain"
    numbers = one.numbers(hunk_ids)
    contents = [one.lines.now_without(numbers), *([] if one.is_present else [one.lines.last_without(numbers)])]
    stored = await session.context.in_thread(store_contents, session, contents)
    if stored is None:
        return "io"
    is_partial = len(numbers) < len(one.lines.hunks)
    spared = None if one.is_present or one.last is None else SparedChange(before=one.last, after=stored[-1])
    shown = display_path(one.path, session.tool_context.root)
    review_of = ReviewOf(path=shown, base=stored[0], hunks=hunk_ids, partial=is_partial, spared=spared)
    oldest = evidence_of(oldest_evidence(one.links), stored[0], len(contents[0]))
    back = FileBack(one.path, oldest, sha256(b"".join(one.lines.now)))
    return await _bring_back(session, [one], (back,), review_of)


async def _bring_back(
    session: Session, files: Sequence[Reviewed], back: tuple[FileBack, ...], review_of: ReviewOf
) -> LeftWhy | None:
    told: list[Told] = []
    done = await bring_back(
        session,
        BringBack(
            TOOL,
            [link for link in files[-1].links if link.session_id == session.session_id][-1].turn_id,
            back,
            {"review": [[one.path, one.base, one.last] for one in files], "hunks": list(review_of.hunks)},
            review_of=review_of,
            settles=partial(_tell_model, session, told),
        ),
    )
    if not isinstance(done, Attempt):
        return done
    for one in told:
        show_told(session, one)
    shown = [display_path(one.path, session.tool_context.root) for one in files]
    part = "a part of " if review_of.partial else ""
    session.feed.notify_message(
        "info",
        f"Undone: {part}{', '.join(shown)}. Say /recovery restore {done.attempt_id[:8]} in the chat to bring it back.",
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
            hunks = tuple(
                ReviewHunk(hunk.hunk_id, hunk.state, _range(hunk.before), _range(hunk.after)) for hunk in one.hunks
            )
            change = one.change if moved is None else "moved"
            from_ = None if moved is None else show_hidden_in_value(display_path(moved[0].path, root))
            path = show_hidden_in_value(display_path(one.path, root))
            yield ReviewFile(_uri(session, one.path), path, change, hunks, from_)


def _range(lines: Line | None) -> Range | None:
    """Return whole lines as a range: its end is the beginning of the line after them."""
    return None if lines is None else Range(Position(lines[0], 0), Position(lines[1], 0))


def _uri(session: Session, path: str) -> str:
    """Return the URI of a path, in the spelling of the session's folder."""
    shown = display_path(path, session.tool_context.root)
    if session.workspace is None or shown.startswith("/"):
        return uri_of(path)
    return f"{session.workspace.rstrip('/')}/{quote_path(shown)}"
