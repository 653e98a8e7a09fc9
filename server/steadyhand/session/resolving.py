"""Resolutions: the decision on an uncertain attempt, carried out for exactly what was seen [I8], or refused.

The order of refusal is wire.md's; a refusal has no effect on disk or in the journal. One resolution of a session at a
time (row A6): of two, one wins and the other is told. An inspection is stored before it is answered; a settlement
rests on the inspection that its caller names, and a file must still look as it did there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NoReturn

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.plain import plain
from steadyhand.core.record import Author, Inspection, Notice, Record, Reject, Settled, Settlement
from steadyhand.core.refusal import Refused
from steadyhand.core.snapshot import inspected, shown_settled, uncertain_view
from steadyhand.core.views import Action, InspectionView, Snapshot
from steadyhand.core.words import reject_notice, settlement_notice
from steadyhand.session.inspecting import Found, record_of, same_world, view_of
from steadyhand.session.lease import resolving
from steadyhand.session.opening import undone_by
from steadyhand.session.owner import Owner
from steadyhand.session.verifying import find, verifier_of
from steadyhand.tools.check import make_durable
from steadyhand.tools.restore import hindrance_to_restore

DIFFERENT = "It looks different now than in that inspection."


@attrs.frozen
class Wanted:
    """What a caller wants, and what it saw; None is not compared."""

    attempt_id: str
    action: Action
    epoch: str | None = None
    revision: str | None = None
    inspection_id: str | None = None
    by: Author = "user"


@attrs.frozen
class Resolved:
    snapshot: Snapshot
    inspection: InspectionView | None = None


async def resolve(owner: Owner, wanted: Wanted) -> Resolved:
    """Carry it out or raise Refused."""
    _admit(owner, wanted)
    view: InspectionView | None = None
    go_on: Callable[[], Awaitable[None]] | None = None
    async with resolving(owner):
        async with owner.settling:
            attempt = _admit(owner, wanted)  # the world may have moved on while another resolution ran
            if wanted.action == "inspect":
                _, view = await inspect(owner, attempt, wanted.by)
            else:
                go_on = await _decide(owner, attempt, wanted)
        owner.tell_changes()
        owner.resolved()
        if go_on is not None:  # a retry: its own questions do not hold other resolutions up
            await go_on()
            owner.tell_changes()
    return Resolved(owner.snapshot(), view)


def refuse_beforehand(owner: Owner, wanted: Wanted) -> None:
    """Raise what `resolve` would refuse before it asked for an inspection."""
    try:
        _admit(owner, wanted)
    except Refused as refused:
        if refused.kind != "inspectFirst":
            raise


async def inspect(owner: Owner, attempt: Attempt, by: Author) -> tuple[Inspection, InspectionView]:
    """Look, store, then show. Under `settling`."""
    world = owner.world
    found = await find(owner, attempt)
    record = record_of(world.ids, attempt, found, by)
    await owner.record_or_refuse([record])
    view = await world.in_thread(
        view_of, owner.ground, owner.ledger, attempt, record, attempt.inspection_at or world.clock.now()
    )
    return record, view


async def show_latest(owner: Owner, attempt: Attempt) -> InspectionView | None:
    """The attempt's latest inspection of this epoch, as it is answered; nothing is looked at anew but the texts."""
    if attempt.inspection is None or attempt.inspection_at is None or not inspected(attempt, owner.epoch):
        return None
    return await owner.world.in_thread(
        view_of, owner.ground, owner.ledger, attempt, attempt.inspection, attempt.inspection_at
    )


def _admit(owner: Owner, wanted: Wanted) -> Attempt:
    """Everything that is refused before anything is looked at, in wire.md's order."""
    owner.require_owned()
    turn = owner.turn
    if turn is not None and (not turn.parked or wanted.action == "retry"):
        raise Refused("turnRunning", "A turn is running; wait for it or stop it.", {"turnId": turn.turn_id})
    if wanted.epoch is not None:
        owner.require_epoch(wanted.epoch)
    snapshot = owner.snapshot()
    stale = Refused(
        "staleSnapshot", "What is uncertain has changed since; look again.", {"revision": snapshot.revision}
    )
    attempt = owner.ledger.attempts.get(wanted.attempt_id)
    undo = attempt is not None and attempt.undoable and wanted.action in ("inspect", "restore")
    if attempt is None or not (undo or attempt.stage in ("uncertain", "checked", "closed")):
        raise stale
    _refuse_resolved(attempt, wanted.action)
    _refuse_never_offered(owner, attempt, wanted.action)
    if wanted.revision is not None and wanted.revision != snapshot.revision:
        raise stale
    if wanted.action == "retry" and not owner.world.settings.retry:
        raise Refused("retryDisabled", "Retry is switched off; docs/recovery.md says how to switch it on.")
    if wanted.action != "inspect" or wanted.inspection_id is not None:
        _require_inspection(owner, attempt, wanted.inspection_id)
    return attempt


def _refuse_resolved(attempt: Attempt, action: Action) -> None:
    if attempt.settlement is None:
        return
    settled = attempt.settlement.settled
    if attempt.stage == "closed" or action in ("confirm", "reject", "waive"):
        raise Refused("alreadyResolved", "This effect is settled already.", {"settled": settled})


def _refuse_never_offered(owner: Owner, attempt: Attempt, action: Action) -> None:
    why: str | None = None
    if action == "restore":
        evidence = attempt.started.evidence if attempt.started is not None else ()
        why = hindrance_to_restore(evidence)
        if why is None and inspected(attempt, owner.epoch) and attempt.check == "unchanged":
            why = "the content before is there already"
    elif action == "retry":
        why = _hindrance_to_retry(owner, attempt)
    elif action == "reject" and attempt.rejected:
        why = "it is rejected already"
    if why is not None:
        raise Refused("notOffered", f"This cannot be done: {why}.", {"why": why})


def _hindrance_to_retry(owner: Owner, attempt: Attempt) -> str | None:
    """Why it can never be tried again from here, whatever an inspection finds (rows F3, F4)."""
    if attempt.restore_of is not None:
        return "a restore is not tried again; restore once more instead"
    if attempt.effect != "writes_files" and verifier_of(owner.world.tools, attempt) is None:
        return "it cannot be checked, so it is never certain that it did not happen"
    if attempt.stage == "checked" and not shown_settled(attempt, owner.ledger, owner.stand()):
        return "it was settled before, and the work has gone on since"
    return None


def _require_inspection(owner: Owner, attempt: Attempt, inspection_id: str | None) -> None:
    latest = attempt.inspection
    if latest is None or not inspected(attempt, owner.epoch) or inspection_id != latest.inspection_id:
        raise Refused("inspectFirst", "Inspect it first; a decision rests on what the latest inspection found.")


async def _decide(owner: Owner, attempt: Attempt, wanted: Wanted) -> Callable[[], Awaitable[None]] | None:
    """Carry out a decision. What is returned goes on after it, without holding other resolutions up."""
    latest = attempt.inspection
    assert latest is not None, "a decision rests on an inspection"
    match wanted.action:
        case "confirm":
            settled = await _confirmed(owner, attempt, latest, wanted.by)
            await owner.record_or_refuse(_settlement(owner, attempt, settled, wanted.by, latest))
            if undone := undone_by(owner.world.ids, owner.ledger, attempt, wanted.by):
                await owner.record_or_refuse(undone)
        case "waive":
            await owner.record_or_refuse(_settlement(owner, attempt, "waived", wanted.by, latest))
        case "reject":
            note = Notice(owner.world.ids.new(), reject_notice(attempt.title), attempt.turn_id, attempt.attempt_id)
            await owner.record_or_refuse([Reject(attempt.attempt_id, attempt.call_id, latest.inspection_id), note])
        case "restore":
            assert owner.redoing is not None, "this process owns the session"
            await _require_same_world(owner, attempt, latest, wanted.by)
            await _refuse_unrestored(owner, attempt, await owner.redoing.restore(attempt, latest), wanted.by)
        case "retry":
            assert owner.redoing is not None, "this process owns the session"
            await _require_same_world(owner, attempt, latest, wanted.by)
            return await owner.redoing.retry(attempt, latest)
        case "inspect":
            raise AssertionError("an inspection decides nothing")
    return None


async def _require_same_world(owner: Owner, attempt: Attempt, latest: Inspection, by: Author) -> None:
    """It still looks as that inspection found it, else it is refused with a new one."""
    found = await find(owner, attempt)
    if not same_world(latest, found):
        await _refuse_with(owner, attempt, found, by, DIFFERENT)


async def _confirmed(owner: Owner, attempt: Attempt, latest: Inspection, by: Author) -> Settled:
    """What a confirm settles: what that inspection found, if it still looks so and will last (rows A5, B3)."""
    by_word: Settled = "model_confirmed" if by == "model" else "user_confirmed"
    if not latest.findings and latest.verified is None:
        return by_word
    world = owner.world
    evidence = attempt.started.evidence if attempt.started else ()
    proves = latest.check in ("satisfied", "unchanged")
    lasting = not proves or await world.in_thread(make_durable, owner.ground, evidence)
    found = await find(owner, attempt)
    if not same_world(latest, found):
        await _refuse_with(owner, attempt, found, by, DIFFERENT)
    if not lasting:
        found = attrs.evolve(found, check="unknown")
        await _refuse_with(owner, attempt, found, by, "What was found cannot be made durable, so it proves nothing.")
    present, absent = latest.check == "satisfied", latest.check == "unchanged"
    if latest.verified is not None:  # a verifier's word takes the place of the check
        present, absent = latest.state == "present", latest.state == "absent_fenced"
    return "checked_present" if present else "checked_absent" if absent else by_word


async def _refuse_unrestored(owner: Owner, attempt: Attempt, new: Attempt, by: Author) -> None:
    """A restore that began and did not come to its end is answered as that: uncertain itself, or not done and to be
    decided anew on what is there now."""
    if new.result is not None and new.result.outcome == "returned":
        return
    reply = owner.ledger.calls[new.call_id].reply
    said = reply.text.rstrip(".") if reply is not None else "its result could not be recorded"
    owner.resolved()
    if new.uncertain:
        owner.tell_changes()
        shown = [plain(uncertain_view(new, owner.ledger, owner.stand()))]
        raise Refused("recoveryRequired", f"The restore is itself uncertain now: {said}.", {"uncertain": shown})
    await _refuse_with(owner, attempt, await find(owner, attempt), by, f"It was not restored: {said}.")


async def _refuse_with(owner: Owner, attempt: Attempt, found: Found, by: Author, why: str) -> NoReturn:
    """Store what is found now, and refuse with it."""
    await owner.record_or_refuse([record_of(owner.world.ids, attempt, found, by)])
    view = await show_latest(owner, attempt)
    owner.tell_changes()
    more = {"inspection": plain(view)} if view else {}
    raise Refused("inspectFirst", f"{why} Here is a new inspection.", more)


def _settlement(owner: Owner, attempt: Attempt, settled: Settled, by: Author, latest: Inspection) -> list[Record]:
    text = settlement_notice(attempt, settled, by)
    return [
        Settlement(attempt.attempt_id, attempt.call_id, settled, by, latest.inspection_id, latest.check),
        Notice(owner.world.ids.new(), text, attempt.turn_id, attempt.attempt_id),
    ]
