"""Restore and retry: new attempts that the user starts from an uncertain one (rows A5, F2, F3).

Both run in this process under the same rules as any call: intent, evidence, *started*, body, result. A restore brings
back the content before, in one attempt that names the one it undoes; the old one is settled with its success. A retry
takes the stored arguments and keeps the idempotency key; its intent and the settlement of the old attempt stand, in
this order, in one append, so the old request can run nothing any more [I10].

Called by `resolving`, which has compared what the caller saw; what may not go on here raises Refused and has recorded
nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import attrs

from steadyhand.core.identity import (
    BadArguments,
    Digest,
    SessionId,
    canonical_json,
    idempotency_key,
    parse_arguments,
    sha256,
)
from steadyhand.core.ledger import Attempt, Ledger
from steadyhand.core.plain import plain
from steadyhand.core.record import Inspection, Intent, Notice, Record, Settlement, Started
from steadyhand.core.refusal import Refused
from steadyhand.core.scope import overlaps
from steadyhand.core.snapshot import uncertain_view
from steadyhand.core.words import retried_notice, settlement_notice, undone_notice
from steadyhand.session.call import Admitted, carry_through, run_and_record, wanted_of
from steadyhand.session.inspecting import look_at
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.tools import restore as undoing
from steadyhand.tools.tool import Done, Refusal


def later_overlap(ledger: Ledger, attempt: Attempt) -> bool:
    """Whether a later attempt that overlaps its scope has started: then its absence is no longer its own (F3)."""
    after = False
    for other in ledger.attempts.values():
        if after and other.started is not None and overlaps(other.scope, attempt.scope):
            return True
        after = after or other is attempt
    return False


@attrs.frozen
class Redoing:
    """Keeps `owner.Redoing` for one open session."""

    owner: Owner

    async def restore(self, attempt: Attempt, latest: Inspection) -> None:
        await _restore(self.owner, attempt, latest)

    async def retry(self, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
        return await _retry(self.owner, attempt, latest)


async def _restore(owner: Owner, attempt: Attempt, latest: Inspection) -> None:
    """Bring back the content before; the attempt is settled `restored` when that is done."""
    _refuse_held_back(owner, attempt)
    world, ids = owner.world, owner.world.ids
    evidence = attempt.started.evidence if attempt.started else ()
    planned = await world.in_thread(undoing.plan_restore, owner.ground, evidence)
    if isinstance(planned, Refusal):
        raise Refused("notOffered", planned.text, {"why": planned.text})
    wanted = wanted_of(undoing.NAME, planned)
    attempt_id = ids.new()
    gathered = await world.in_thread(planned.gather, attempt_id, None)
    if isinstance(gathered, Refusal):
        raise Refused("notOffered", gathered.text, {"why": gathered.text})
    seen = {finding.path: finding.digest for finding in latest.findings}
    if any(seen.get(undoing.shown_path(owner.ground, one), one.before) != one.before for one in gathered.evidence):
        raise Refused("inspectFirst", "The file changed since that inspection; inspect it again.")
    call = owner.ledger.call_of(ids.new(), attempt.turn_id)
    digest = sha256(canonical_json({"attemptId": attempt.attempt_id}).encode())
    intent = _intent(owner, call.call_id, attempt, attempt_id, undoing.NAME, planned.title, digest, _key(owner, digest))
    started = Started(attempt_id, call.call_id, gathered.evidence)
    await owner.record_or_refuse([intent, started])

    def settles(done: Done) -> Sequence[Record]:
        if done.outcome != "returned":
            return ()
        if attempt.undoable:  # a restore that is undone had its end long ago; it needs no settlement
            return (Notice(ids.new(), undone_notice(attempt.title), attempt.turn_id, attempt_id),)
        notice = settlement_notice(attempt.title, "restored")
        return (
            Settlement(attempt.attempt_id, attempt.call_id, "restored", "user", latest.inspection_id, done.check),
            Notice(ids.new(), notice, attempt.turn_id, attempt.attempt_id),
        )

    admitted = Admitted(call, planned, wanted, attempt_id, Digest(intent.key), settles=settles)
    await run_and_record(owner, _aside(attempt), admitted, gathered.evidence)
    reply = call.reply
    if reply is None or reply.outcome != "returned":
        owner.say("warning", f"It was not restored. {reply.text if reply else ''}")
    else:
        owner.say("info", f"{reply.text} /recovery restore {attempt_id[:8]} in the chat undoes that.")


async def _retry(owner: Owner, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
    """Begin anew, if it is absent and fenced at this moment [I10]; what is returned carries the new call through."""
    _refuse_held_back(owner, attempt)
    world, ids, ledger = owner.world, owner.world.ids, owner.ledger
    tool, old = world.tools.get(attempt.tool), ledger.calls[attempt.call_id]
    arguments = parse_arguments(old.arguments)
    if tool is None or isinstance(arguments, BadArguments) or arguments.digest != attempt.arguments_digest:
        raise _unsafe("its stored arguments are damaged or its tool is gone")
    planned = await world.in_thread(tool.prepare, arguments, owner.ground)
    if isinstance(planned, Refusal):
        raise _unsafe(planned.text)
    if planned.scope != attempt.scope:
        raise _unsafe("its paths lead elsewhere now")
    if later_overlap(ledger, attempt):
        raise _unsafe("a later effect on the same files has started since")
    found = await world.in_thread(look_at, owner.ground, attempt)
    if found.check != "unchanged":
        raise _unsafe(f"the check says {found.check or 'nothing'}, so it is not certain that it is absent")
    if not found.fenced:
        raise _unsafe("a process of the earlier try may still act")
    call = ledger.call_of(ids.new(), attempt.turn_id)
    attempt_id = ids.new()
    intent = _intent(
        owner, call.call_id, attempt, attempt_id, attempt.tool, planned.title, attempt.arguments_digest, attempt.key,
        retry=True,
    )  # fmt: skip
    superseded = Settlement(
        attempt.attempt_id, attempt.call_id, "superseded", "user", latest.inspection_id, found.check, attempt_id
    )
    notice = Notice(ids.new(), settlement_notice(attempt.title, "superseded"), attempt.turn_id, attempt.attempt_id)
    await owner.record_or_refuse([intent, superseded, notice])
    owner.tell_changes()
    admitted = Admitted(call, planned, wanted_of(attempt.tool, planned), attempt_id, Digest(attempt.key))
    return partial(_carry_on, owner, attempt, admitted)


async def _carry_on(owner: Owner, attempt: Attempt, admitted: Admitted) -> None:
    """The new call's own way, and one notice of how it ended."""
    await carry_through(owner, _aside(attempt), admitted)
    reply = admitted.call.reply
    outcome, said = (reply.outcome, reply.text) if reply is not None else ("unknown", "")
    text = retried_notice(attempt.title, outcome, said)
    await owner.append_or_show([Notice(owner.world.ids.new(), text, attempt.turn_id, admitted.attempt_id)], barrier=True)


def _refuse_held_back(owner: Owner, attempt: Attempt) -> None:
    """Another uncertain effect on the same files is settled first [I6]; the one that is redone does not count."""
    others = [
        (holder, other)
        for holder in owner.neighbours()
        for other in holder.ledger.uncertain()
        if other is not attempt and overlaps(other.scope, attempt.scope)
    ]
    if others:
        shown = [uncertain_view(other, holder.ledger, holder.stand()) for holder, other in others]
        text = "Another uncertain effect touches the same files; settle it first."
        raise Refused("recoveryRequired", text, {"uncertain": plain(shown)})


def _intent(
    owner: Owner, call_id: str, attempt: Attempt, attempt_id: str, tool: str, title: str, digest: str, key: str,
    retry: bool = False,
) -> Intent:  # fmt: skip
    return Intent(
        attempt_id=attempt_id, call_id=call_id, turn_id=attempt.turn_id, tool=tool, title=title,
        effect="writes_files", arguments_digest=digest, scope=attempt.scope, key=key,
        occurrence=attempt.occurrence if retry else owner.ledger.known_happened(tool, digest, attempt.scope),
        retry_of=attempt.attempt_id if retry else None, restore_of=None if retry else attempt.attempt_id,
    )  # fmt: skip


def _key(owner: Owner, digest: str) -> str:
    return idempotency_key(SessionId(owner.session_id), undoing.NAME, digest, {"paths": []}, 0)


def _aside(attempt: Attempt) -> RunningTurn:
    """It belongs to the turn of the attempt it redoes, which has ended; nothing stops it but the end of the process."""
    return RunningTurn(attempt.turn_id, "", "")


def _unsafe(why: str) -> Refused:
    return Refused("retryUnsafe", f"It is not tried again: {why}.", {"why": why})
