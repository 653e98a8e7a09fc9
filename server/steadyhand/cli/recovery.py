"""`steadyhand recovery …`: the way out of a doubt without any editor (row B4).

Works where nobody owns the session; else it says who does. Inspections count within their epoch, and each run of the
program is one: a decision therefore looks anew, shows the finding, and is carried out for exactly that finding after a
yes, from the terminal or by `--yes` [I8].
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.cli.flags import Deed, Flags
from steadyhand.cli.terminal import Terminal
from steadyhand.cli.verbs import id_digits_min, id_shown_digits, session_meant
from steadyhand.core.questions import Option
from steadyhand.core.refusal import Refused
from steadyhand.core.views import Action, InspectionView, Uncertain
from steadyhand.session import shelf
from steadyhand.session.glimpse import glimpse, owned_text
from steadyhand.session.house import House
from steadyhand.session.jobs import left_sentence
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Resolved, Wanted, refuse_beforehand, resolve
from steadyhand.session.slash import outcome_told
from steadyhand.session.surviving import end_survivors

_ACTIONS: dict[Deed, Action] = {
    "confirm": "confirm",
    "reject": "reject",
    "waive": "waive",
    "restore": "restore",
    "retry": "retry",
}


async def recovery(house: House, flags: Flags, terminal: Terminal) -> int:
    if flags.deed == "list":
        return await _list(house, flags, terminal)
    owner, effect = await _meant(house, flags.id or "")
    if (owned := owned_text(owner)) is not None:
        raise Refused("notOwner", owned)
    if flags.deed in _ACTIONS:
        refuse_beforehand(owner, Wanted(effect.attempt_id, _ACTIONS[flags.deed]))
    looked = await resolve(owner, Wanted(effect.attempt_id, "inspect"))
    assert looked.inspection is not None
    if flags.deed == "inspect":
        if flags.json:
            terminal.answer(looked)
        else:
            terminal.say("\n".join(_finding(looked.inspection)))
        return 0
    if not await _agreed(flags, terminal, looked.inspection):
        raise Refused("inspectFirst", "Nothing was done. Repeat it with --yes to act on what is found then.")
    if flags.deed == "end-survivors":
        return await _end(owner, looked.inspection, flags, terminal)
    return await _decide(owner, effect, looked.inspection, flags, terminal)


async def _decide(owner: Owner, effect: Uncertain, inspection: InspectionView, flags: Flags, terminal: Terminal) -> int:
    action = _ACTIONS[flags.deed]
    wanted = Wanted(effect.attempt_id, action, inspection_id=inspection.inspection_id)
    done = await resolve(owner, wanted)
    if flags.json:
        terminal.answer(Resolved(done.snapshot, inspection))
    else:
        attempt = owner.ledger.attempts[effect.attempt_id]
        terminal.say(f"{effect.title}: {outcome_told(owner, attempt, action)}")
    return 0


async def _end(owner: Owner, inspection: InspectionView, flags: Flags, terminal: Terminal) -> int:
    """1 if something still lives."""
    ended = await end_survivors(owner, inspection.attempt_id, inspection.inspection_id)
    if flags.json:
        terminal.answer(ended)
    else:
        terminal.say(f"{ended.ended} ended, {ended.left} left.")
    return 1 if ended.left else 0


async def _agreed(flags: Flags, terminal: Terminal, inspection: InspectionView) -> bool:
    """The finding is shown in every case."""
    finding = "\n".join(_finding(inspection))
    if flags.yes:
        terminal.note(finding)
        return True
    answer = await terminal.choose(finding, (Option("yes", f"Yes, {flags.deed}"), Option("no", "No")))
    if answer is None and not terminal.attached():
        terminal.note(finding)
    return answer is not None and answer.option == "yes"


async def _list(house: House, flags: Flags, terminal: Terminal) -> int:
    only = None if flags.session is None else await session_meant(house, flags.session)
    owners = await _unsettled(house, only)
    if flags.json:
        snapshots = [owner.snapshot() for owner in owners]
        uncertain = [call for snapshot in snapshots for call in snapshot.calls]
        terminal.answer({"uncertain": uncertain, "settled": [call for one in snapshots for call in one.settled]})
        return 0
    lines = [line for owner in owners for line in _lines(owner)]
    terminal.say("\n".join(lines) if lines else "Nothing is uncertain.")
    return 0


async def _unsettled(house: House, only: str | None = None) -> list[Owner]:
    """Every session with something open or unresolved: opened as by an editor where nobody has it, which settles what a
    check proves; else as it stands."""
    world = house.world
    found: list[Owner] = []
    for session_id in [only] if only is not None else await world.in_thread(shelf.names, world):
        try:
            summary = await world.in_thread(shelf.summary, world, session_id)
            if summary is None or not summary.unsettled:
                continue
            seen = await glimpse(house, session_id)
            found.append(seen if owned_text(seen) else await house.owner(session_id))
        except (OSError, Refused):  # one session that cannot be read fails alone (row S6)
            continue
    return found


async def _meant(house: House, given: str) -> tuple[Owner, Uncertain]:
    """The one effect whose attempt's id begins so."""
    if len(given) < id_digits_min:
        raise Refused("notOffered", f"Give at least {id_digits_min} digits of the ID.")
    every = [
        (owner, effect)
        for owner in await _unsettled(house)
        for snapshot in (owner.snapshot(),)
        for effect in (*snapshot.calls, *snapshot.settled)
        if effect.attempt_id.startswith(given.lower())
    ]
    if len(every) != 1:
        raise Refused(
            "notOffered", f"{'No' if not every else 'More than one'} uncertain effect begins with that ID; see"
            " `steadyhand recovery list`.",
        )  # fmt: skip
    return every[0]


def _lines(owner: Owner) -> list[str]:
    snapshot = owner.snapshot()
    where = f"session “{owner.name()}” ({owner.session_id[:id_shown_digits]})"
    lines = [
        f"{one.attempt_id[:id_shown_digits]}  {one.title}: {one.settled or one.check or 'no check'}, {where}"
        for one in (*snapshot.calls, *snapshot.settled)
    ]
    owned = owned_text(owner)
    return [
        *lines,
        *([owned] if lines and owned else []),
        *(left_sentence(owner, left) for left in owner.left_jobs.values()),
    ]


def _finding(inspection: InspectionView) -> list[str]:
    """An inspection for reading."""
    lines = [inspection.text]
    lines += [f"{one.path}: {one.check}{f' ({one.reason})' if one.reason else ''}" for one in inspection.paths]
    lines += [f"still lives: process {one.pid} {one.command}" for one in inspection.survivors]
    lines += _changed(inspection.changed, inspection.changed_more)
    if inspection.diff:
        lines.append(inspection.diff.rstrip("\n"))
    return lines


def _changed(paths: Sequence[str], more: int) -> list[str]:
    if not paths:
        return []
    return [f"changed since it started: {', '.join(paths)}{f' and {more} more' if more else ''}"]
