"""`steadyhand recovery …`: settle uncertain effects without an editor (row B4).

It works on a session that no process owns; otherwise it names the owner. An inspection counts within its epoch, and
each run of the program is an epoch. A decision therefore inspects again, shows the finding, and acts on exactly that
finding after a yes, from the terminal or by `--yes` [I8].
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.cli.arguments import CommandArguments, Subcommand
from steadyhand.cli.commands import ID_DIGITS_MIN, ID_SHOWN_DIGITS, find_session_id
from steadyhand.cli.terminal import Terminal
from steadyhand.domain.errors import Refused
from steadyhand.domain.views.questions import Option
from steadyhand.domain.views.types import Action, InspectionView, Uncertain
from steadyhand.session.jobs.jobs import left_sentence
from steadyhand.session.recovery.resolve import ResolutionRequest, ResolutionResult, refuse_beforehand
from steadyhand.session.recovery.survivors import end_survivors
from steadyhand.session.service.read_only_view import owner_sentence, read_session
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.slash_commands import outcome_text
from steadyhand.session.session import Session
from steadyhand.session.storage import directory

_ACTIONS: dict[Subcommand, Action] = {
    "confirm": "confirm",
    "reject": "reject",
    "waive": "waive",
    "restore": "restore",
    "retry": "retry",
}


async def recovery(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """Run one subcommand and return the exit code."""
    if flags.subcommand == "list":
        return await _list(registry, flags, terminal)
    session, effect = await _find_effect(registry, flags.id or "")
    if (owned := owner_sentence(session)) is not None:
        raise Refused("notOwner", owned)
    if flags.subcommand in _ACTIONS:
        refuse_beforehand(session, ResolutionRequest(effect.attempt_id, _ACTIONS[flags.subcommand]))
    looked = await resolve(session, ResolutionRequest(effect.attempt_id, "inspect"))
    assert looked.inspection is not None
    if flags.subcommand == "inspect":
        if flags.is_json:
            terminal.write_json(looked)
        else:
            terminal.write_line("\n".join(_inspection_lines(looked.inspection)))
        return 0
    if not await _confirm(flags, terminal, looked.inspection):
        raise Refused("inspectFirst", "Nothing was done. Add --yes to act on the finding without a question.")
    if flags.subcommand == "end-survivors":
        return await _end(session, looked.inspection, flags, terminal)
    return await _decide(session, effect, looked.inspection, flags, terminal)


async def _decide(
    session: Session, effect: Uncertain, inspection: InspectionView, flags: CommandArguments, terminal: Terminal
) -> int:
    action = _ACTIONS[flags.subcommand]
    wanted = ResolutionRequest(effect.attempt_id, action, inspection_id=inspection.inspection_id)
    done = await resolve(session, wanted)
    if flags.is_json:
        terminal.write_json(ResolutionResult(done.snapshot, inspection))
    else:
        attempt = session.ledger.attempts[effect.attempt_id]
        terminal.write_line(f"{effect.title}: {outcome_text(session, attempt, action)}")
    return 0


async def _end(session: Session, inspection: InspectionView, flags: CommandArguments, terminal: Terminal) -> int:
    """End the survivors. Returns 1 if one of them is still running."""
    ended = await end_survivors(session, inspection.attempt_id, inspection.inspection_id)
    if flags.is_json:
        terminal.write_json(ended)
    else:
        terminal.write_line(f"Ended: {ended.ended}. Still running: {ended.left}.")
    return 1 if ended.left else 0


async def _confirm(flags: CommandArguments, terminal: Terminal, inspection: InspectionView) -> bool:
    """Show the finding, and return whether the user agrees to act on it."""
    finding = "\n".join(_inspection_lines(inspection))
    if flags.is_confirmed:
        terminal.write_note(finding)
        return True
    answer = await terminal.choose(finding, (Option("yes", f"Yes, {flags.subcommand}"), Option("no", "No")))
    if answer is None and not terminal.attached():
        terminal.write_note(finding)
    return answer is not None and answer.option == "yes"


async def _list(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    only = None if flags.session is None else await find_session_id(registry, flags.session)
    sessions = await _find_unsettled(registry, only)
    if flags.is_json:
        snapshots = [session.snapshot() for session in sessions]
        uncertain = [call for snapshot in snapshots for call in snapshot.calls]
        terminal.write_json(
            {
                "uncertain": uncertain,
                "settled": [call for one in snapshots for call in one.settled],
                "statistics": {one.session_id: one.statistics for one in snapshots},
            }
        )
        return 0
    lines = [line for session in sessions for line in _effect_lines(session)]
    terminal.write_line("\n".join(lines) if lines else "Nothing is uncertain.")
    return 0


async def _find_unsettled(registry: SessionRegistry, only: str | None = None) -> list[Session]:
    """Return every session with something open or unresolved.
    A session that no process owns is opened as an editor would, which settles what a check proves; another is read.
    """
    context = registry.context
    found: list[Session] = []
    for session_id in [only] if only is not None else await context.in_thread(directory.names, context):
        try:
            summary = await context.in_thread(directory.summary, context, session_id)
            if summary is None or not summary.is_unsettled:
                continue
            seen = await read_session(registry, session_id)
            found.append(seen if owner_sentence(seen) else await registry.open_session(session_id))
        except (OSError, Refused):  # a session that cannot be read is skipped (row S6)
            continue
    return found


async def _find_effect(registry: SessionRegistry, given: str) -> tuple[Session, Uncertain]:
    """Return the one effect whose attempt id begins like this."""
    if len(given) < ID_DIGITS_MIN:
        raise Refused("notOffered", f"Give at least {ID_DIGITS_MIN} digits of the ID.")
    every = [
        (session, effect)
        for session in await _find_unsettled(registry)
        for snapshot in (session.snapshot(),)
        for effect in (*snapshot.calls, *snapshot.settled)
        if effect.attempt_id.startswith(given.lower())
    ]
    if len(every) != 1:
        raise Refused(
            "notOffered",
            f"{'No' if not every else 'More than one'} uncertain effect begins with that ID; see"
            " `steadyhand recovery list`.",
        )
    return every[0]


def _effect_lines(session: Session) -> list[str]:
    snapshot = session.snapshot()
    where = f"session “{session.name}” ({session.session_id[:ID_SHOWN_DIGITS]})"
    lines = [
        f"{one.attempt_id[:ID_SHOWN_DIGITS]}  {one.title}: {one.settled or one.check or 'not checked'}, {where}"
        for one in (*snapshot.calls, *snapshot.settled)
    ]
    owned = owner_sentence(session)
    return [
        *lines,
        *([owned] if lines and owned else []),
        *(left_sentence(session, left) for left in session.jobs.left.values()),
    ]


def _inspection_lines(inspection: InspectionView) -> list[str]:
    """Return the lines of an inspection."""
    lines = [inspection.text]
    lines += [f"{one.path}: {one.check}{f' ({one.reason})' if one.reason else ''}" for one in inspection.paths]
    lines += [f"still running: process {one.pid} {one.command}" for one in inspection.survivors]
    lines += _changed_lines(inspection.changed, inspection.changed_more)
    if inspection.diff:
        lines.append(inspection.diff.rstrip("\n"))
    return lines


def _changed_lines(paths: Sequence[str], more: int) -> list[str]:
    if not paths:
        return []
    return [f"changed since it started: {', '.join(paths)}{f' and {more} more' if more else ''}"]
