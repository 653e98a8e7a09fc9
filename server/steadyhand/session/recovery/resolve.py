"""Resolutions: carry out a decision on an uncertain attempt for exactly what its caller saw [I8], or refuse it.

Refusals come in the order of docs/protocol.md. A refusal has no effect on disk or in the journal. One resolution of a
session decides at a time (row A6): of two, the second is refused. An inspection is recorded before it is answered. A
settlement rests on the inspection that its caller names, and the files must still be as that inspection found them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NoReturn

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Author, Inspection, Notice, Record, Reject, Settled, Settlement
from steadyhand.domain.views.recovery_snapshot import is_inspected, is_shown_settled, uncertain_view
from steadyhand.domain.views.sentences import reject_notice, settlement_notice
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import Action, InspectionView, Snapshot
from steadyhand.session.inspection.inspect import InspectionResult, is_same_finding, record_of, view_of
from steadyhand.session.inspection.verifier import inspect_now, verifier_of
from steadyhand.session.recovery.settlement_records import records_of_restore
from steadyhand.session.session import Session
from steadyhand.tools.writes.postcondition_check import make_durable
from steadyhand.tools.writes.restore import restore_obstacle
from steadyhand_values import frozen

DIFFERENT = "It has changed since that inspection."


@frozen
class ResolutionRequest:
    """What a caller wants, and what it saw; None is not compared."""

    attempt_id: str
    action: Action
    epoch: str | None = None
    revision: str | None = None
    inspection_id: str | None = None
    by: Author = "user"


@frozen
class ResolutionResult:
    """The recovery snapshot afterwards, and the inspection if one was asked for."""

    snapshot: Snapshot
    inspection: InspectionView | None = None


@frozen
class Redo:
    """How an uncertain attempt is restored or tried again; `calls/redo.py` does it (rows A5, F2)."""

    restore: Callable[[Session, Attempt, Inspection], Awaitable[Attempt]]
    """Return the attempt that restores, after it ended in whatever way."""
    retry: Callable[[Session, Attempt, Inspection], Awaitable[Callable[[], Awaitable[None]]]]
    """Return what carries the new call through after the resolution."""


async def resolve(session: Session, wanted: ResolutionRequest, redo: Redo | None = None) -> ResolutionResult:
    """Carry it out or raise Refused. `redo` None: the caller never asks for restore or retry."""
    _validate(session, wanted)
    view: InspectionView | None = None
    go_on: Callable[[], Awaitable[None]] | None = None
    async with resolution(session):
        async with session.settling:
            attempt = _validate(session, wanted)  # another resolution may have changed it meanwhile
            if wanted.action == "inspect":
                _, view = await inspect(session, attempt, wanted.by)
            else:
                go_on = await _decide(session, attempt, wanted, redo)
        session.feed.notify_changes()
        session.feed.announce_resolution()
        if go_on is not None:  # a retry: its own questions do not block other resolutions
            await go_on()
            session.feed.notify_changes()
    return ResolutionResult(session.snapshot(), view)


@asynccontextmanager
async def resolution(session: Session) -> AsyncIterator[None]:
    """No turn begins meanwhile, and prompts are queued (row A3). Afterwards the next queued prompt begins."""
    try:
        with session.resolution():
            yield
    finally:
        with anyio.CancelScope(shield=True):
            await session.start_next_prompt()


def refuse_beforehand(session: Session, wanted: ResolutionRequest) -> None:
    """Raise what `resolve` would refuse, except that an inspection is missing."""
    try:
        _validate(session, wanted)
    except Refused as refused:
        if refused.kind != "inspectFirst":
            raise


async def inspect(session: Session, attempt: Attempt, by: Author) -> tuple[Inspection, InspectionView]:
    """Inspect, record, then return the inspection for the answer. The caller holds `settling`."""
    context = session.context
    found = await inspect_now(session, attempt)
    record = record_of(context.ids, attempt, found, by)
    await session.log.record_or_refuse([record])
    view = await context.in_thread(
        view_of, session.tool_context, session.ledger, attempt, record, attempt.inspection_at or context.clock.now()
    )
    return record, view


async def latest_view(session: Session, attempt: Attempt) -> InspectionView | None:
    """Return the attempt's latest inspection of this epoch for the answer; only the diffs are made anew."""
    if attempt.inspection is None or attempt.inspection_at is None or not is_inspected(attempt, session.epoch):
        return None
    return await session.context.in_thread(
        view_of, session.tool_context, session.ledger, attempt, attempt.inspection, attempt.inspection_at
    )


def _validate(session: Session, wanted: ResolutionRequest) -> Attempt:
    """Refuse what needs no inspection to refuse, in the order of docs/protocol.md; return the attempt."""
    session.require_owned()
    turn = session.turn
    if turn is not None and (not turn.is_parked or wanted.action == "retry"):
        raise Refused("turnRunning", "A turn is running; wait for it or stop it.", {"turnId": turn.turn_id})
    if wanted.epoch is not None:
        session.require_epoch(wanted.epoch)
    snapshot = session.snapshot()
    stale = Refused(
        "staleSnapshot", "The uncertain effects have changed since; list them again.", {"revision": snapshot.revision}
    )
    attempt = session.ledger.attempts.get(wanted.attempt_id)
    undo = attempt is not None and attempt.is_undoable and wanted.action in ("inspect", "restore")
    if attempt is None:
        _refuse_of_origin(session, wanted.attempt_id)
    if attempt is None or not (undo or attempt.stage in ("uncertain", "checked", "closed")):
        raise stale
    _refuse_resolved(attempt, wanted.action)
    _refuse_never_offered(session, attempt, wanted.action)
    if wanted.revision is not None and wanted.revision != snapshot.revision:
        raise stale
    if wanted.action == "retry" and not session.context.settings.retry:
        raise Refused("retryDisabled", "Retry is switched off; docs/recovery.md says how to switch it on.")
    if wanted.action != "inspect" or wanted.inspection_id is not None:
        _require_inspection(session, attempt, wanted.inspection_id)
    return attempt


def _refuse_of_origin(session: Session, attempt_id: str) -> None:
    """Raise Refused, notOffered, for an effect of the session that this one was forked from (row S3)."""
    origin = next((one for one in session.ledger.origins if attempt_id in one.attempts), None)
    if origin is not None:
        why = f"it is an effect of session {origin.session_id}, from which this one was forked; settle it there"
        raise Refused("notOffered", f"This cannot be done: {why}.", {"why": why})


def _refuse_resolved(attempt: Attempt, action: Action) -> None:
    if attempt.settlement is None:
        return
    settled = attempt.settlement.settled
    if attempt.stage == "closed" or action in ("confirm", "reject", "waive"):
        raise Refused("alreadyResolved", "This effect is already settled.", {"settled": settled})


def _refuse_never_offered(session: Session, attempt: Attempt, action: Action) -> None:
    why: str | None = None
    if action == "restore":
        evidence = attempt.started.evidence if attempt.started is not None else ()
        why = restore_obstacle(evidence)
        if why is None and is_inspected(attempt, session.epoch) and attempt.check == "unchanged":
            why = "the earlier content is already there"
    elif action == "retry":
        why = _hindrance_to_retry(session, attempt)
    elif action == "reject" and attempt.rejected:
        why = "it is already rejected"
    if why is not None:
        raise Refused("notOffered", f"This cannot be done: {why}.", {"why": why})


def _hindrance_to_retry(session: Session, attempt: Attempt) -> str | None:
    """Return why it can never be retried from here, whatever an inspection finds (rows F3, F4)."""
    if attempt.restore_of is not None:
        return "a restore cannot be retried; restore again instead"
    if attempt.is_take_back:
        return "an undo or a rewind cannot be retried; do it again instead"
    if attempt.effect != "writes_files" and verifier_of(session.context.tools, attempt) is None:
        return "it cannot be checked, so it is never certain that it did not happen"
    if attempt.stage == "checked" and not is_shown_settled(attempt, session.ledger, session.snapshot_context()):
        return "it was settled earlier, and other work has run since"
    return None


def _require_inspection(session: Session, attempt: Attempt, inspection_id: str | None) -> None:
    latest = attempt.inspection
    if latest is None or not is_inspected(attempt, session.epoch) or inspection_id != latest.inspection_id:
        raise Refused("inspectFirst", "Inspect it first; a decision needs the latest inspection.")


async def _decide(
    session: Session, attempt: Attempt, wanted: ResolutionRequest, redo: Redo | None
) -> Callable[[], Awaitable[None]] | None:
    """Carry out a decision. Return what goes on after it without blocking other resolutions."""
    latest = attempt.inspection
    assert latest is not None, "a decision rests on an inspection"
    match wanted.action:
        case "confirm":
            settled = await _settled_by_confirm(session, attempt, latest, wanted.by)
            await session.log.record_or_refuse(_settlement_records(session, attempt, settled, wanted.by, latest))
            if undone := records_of_restore(session.context.ids, session.ledger, attempt, wanted.by):
                await session.log.record_or_refuse(undone)
        case "waive":
            await session.log.record_or_refuse(_settlement_records(session, attempt, "waived", wanted.by, latest))
        case "reject":
            note = Notice(
                message_id=session.context.ids.new(),
                text=reject_notice(attempt.title),
                turn_id=attempt.turn_id,
                attempt_id=attempt.attempt_id,
            )
            await session.log.record_or_refuse(
                [
                    Reject(attempt_id=attempt.attempt_id, call_id=attempt.call_id, inspection_id=latest.inspection_id),
                    note,
                ]
            )
        case "restore":
            assert redo is not None, "a caller that restores or retries passes how"
            await _require_same_finding(session, attempt, latest, wanted.by)
            await _refuse_unrestored(session, attempt, await redo.restore(session, attempt, latest), wanted.by)
        case "retry":
            assert redo is not None, "a caller that restores or retries passes how"
            await _require_same_finding(session, attempt, latest, wanted.by)
            return await redo.retry(session, attempt, latest)
        case "inspect":
            raise AssertionError("an inspection decides nothing")
    return None


async def _require_same_finding(session: Session, attempt: Attempt, latest: Inspection, by: Author) -> None:
    """Refuse with a new inspection if the effect is not as that inspection found it."""
    found = await inspect_now(session, attempt)
    if not is_same_finding(latest, found):
        await _refuse_with(session, attempt, found, by, DIFFERENT)


async def _settled_by_confirm(session: Session, attempt: Attempt, latest: Inspection, by: Author) -> Settled:
    """Return what a confirm settles: what that inspection found, if it is still so and durable (rows A5, B3)."""
    by_word: Settled = "model_confirmed" if by == "model" else "user_confirmed"
    if not latest.findings and latest.verified is None:
        return by_word
    context = session.context
    evidence = attempt.started.evidence if attempt.started else ()
    proves = latest.check in ("satisfied", "unchanged")
    lasting = not proves or await context.in_thread(make_durable, session.tool_context, evidence)
    found = await inspect_now(session, attempt)
    if not is_same_finding(latest, found):
        await _refuse_with(session, attempt, found, by, DIFFERENT)
    if not lasting:
        found = attrs.evolve(found, check="unknown")
        await _refuse_with(session, attempt, found, by, "The finding cannot be made durable, so it proves nothing.")
    present, absent = latest.check == "satisfied", latest.check == "unchanged"
    if latest.verified is not None:  # a verifier replaces the check
        present, absent = latest.state == "present", latest.state == "absent_fenced"
    return "checked_present" if present else "checked_absent" if absent else by_word


async def _refuse_unrestored(session: Session, attempt: Attempt, new: Attempt, by: Author) -> None:
    """Refuse a restore that began and did not succeed: it is uncertain itself, or is decided anew on what is there."""
    if new.result is not None and new.result.outcome == "returned":
        return
    reply = session.ledger.calls[new.call_id].reply
    said = reply.text.rstrip(".") if reply is not None else "its result could not be recorded"
    session.feed.announce_resolution()
    if new.uncertain:
        session.feed.notify_changes()
        shown = [to_plain(uncertain_view(new, session.ledger, session.snapshot_context()))]
        raise Refused("recoveryRequired", f"The restore is itself uncertain now: {said}.", {"uncertain": shown})
    await _refuse_with(session, attempt, await inspect_now(session, attempt), by, f"It was not restored: {said}.")


async def _refuse_with(session: Session, attempt: Attempt, found: InspectionResult, by: Author, why: str) -> NoReturn:
    """Record what is found now, and refuse with it."""
    await session.log.record_or_refuse([record_of(session.context.ids, attempt, found, by)])
    view = await latest_view(session, attempt)
    session.feed.notify_changes()
    more = {"inspection": to_plain(view)} if view else {}
    raise Refused("inspectFirst", f"{why} Here is a new inspection.", more)


def _settlement_records(
    session: Session, attempt: Attempt, settled: Settled, by: Author, latest: Inspection
) -> list[Record]:
    text = settlement_notice(attempt, settled, by)
    return [
        Settlement(
            attempt_id=attempt.attempt_id,
            call_id=attempt.call_id,
            settled=settled,
            by=by,
            inspection_id=latest.inspection_id,
            check=latest.check,
        ),
        Notice(message_id=session.context.ids.new(), text=text, turn_id=attempt.turn_id, attempt_id=attempt.attempt_id),
    ]
