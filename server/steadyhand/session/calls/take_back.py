"""Bring earlier content back as an attempt of its own: what restore, undo and rewind share (rows A5, V4, G4).

The user has chosen it, so no mode, rule or trust is asked. Everything else is as for any call: nothing unresolved may
overlap [I6], the present content is stored first and must be what the choice rests on, *started* is durable before the
files change [I1], and the result is read back and recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.identity import Digest, SessionId, canonical_json, idempotency_key, sha256
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import Evidence, Intent, Record, ReviewOf, RewindOf, Scope, Started
from steadyhand.domain.views.recovery_snapshot import uncertain_view
from steadyhand.domain.views.serialize import to_plain
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.execute import run_and_record
from steadyhand.session.calls.holdback import find_blocking, find_blocking_there, wait_until_doubts_are_known
from steadyhand.session.calls.prepared import PreparedCall, facts_of, prepare_in_thread
from steadyhand.session.origin_reading import origin_doubt_text
from steadyhand.session.session import Session
from steadyhand.tools.contract import Refusal, ToolOutcome
from steadyhand.tools.writes.restore import plan_restore
from steadyhand_values import frozen

DIFFERENT = Refusal("changed", "The file changed since it was looked at.")
"""The refusal where the content is not the one that the choice rests on."""


def settle_nothing(new: str, done: ToolOutcome) -> Sequence[Record]:
    """Return nothing: the end of the attempt settles nothing else."""
    return ()


@frozen
class TakeBack:
    """What is brought back. `evidence`: for each path the content before, which comes back; `intended` is not read.

    `seen`: absolute path → the digest that the choice rests on (None: no file); a path without one is not compared.
    """

    tool: str
    turn_id: str
    evidence: tuple[Evidence, ...]
    seen: Mapping[str, str | None]
    subject: Mapping[str, object]  # names what is taken back; the idempotency key is made of it
    restore_of: str | None = None
    review_of: ReviewOf | None = None
    rewind_of: RewindOf | None = None
    settles: Callable[[str, ToolOutcome], Sequence[Record]] = settle_nothing  # from the new attempt's id and its end


async def take_back(session: Session, wanted: TakeBack) -> Attempt | Refusal:
    """Carry it out and return the attempt after it ended in whatever way. A refusal recorded nothing.

    Raise Refused if it cannot be recorded."""
    planned = await prepare_in_thread(session, plan_restore, session.tool_context, wanted.evidence, wanted.tool)
    if isinstance(planned, Refusal):
        return planned
    attempt_id, call_id = session.context.ids.new(), session.context.ids.new()
    gathered = await prepare_in_thread(session, planned.gather, attempt_id, None)
    if isinstance(gathered, Refusal):
        return gathered
    if any(wanted.seen.get(one.resolved, one.before) != one.before for one in gathered.evidence):
        return DIFFERENT
    digest = sha256(canonical_json(wanted.subject).encode("utf-8", "surrogatepass"))
    key = idempotency_key(SessionId(session.session_id), wanted.tool, digest, {"paths": []}, 0)
    intent = Intent(
        attempt_id=attempt_id,
        call_id=call_id,
        turn_id=wanted.turn_id,
        tool=wanted.tool,
        title=planned.title,
        effect=planned.effect,
        arguments_digest=digest,
        scope=planned.scope,
        key=key,
        occurrence=0,
        restore_of=wanted.restore_of,
        review_of=wanted.review_of,
        rewind_of=wanted.rewind_of,
    )
    await session.log.record_or_refuse(
        [intent, Started(attempt_id=attempt_id, call_id=call_id, evidence=gathered.evidence)]
    )
    prepared = PreparedCall(
        session.ledger.calls[call_id],
        planned,
        facts_of(session, wanted.tool, planned),
        attempt_id,
        Digest(key),
        settles=lambda done: wanted.settles(attempt_id, done),
    )
    with session.redoing(call_id):
        session.feed.notify_call(call_id)
        await run_and_record(session, detached_turn(wanted.turn_id), prepared, gathered)
    return session.ledger.attempts[attempt_id]


async def refuse_held_back(session: Session, title: str, scope: Scope, except_for: str | None = None) -> None:
    """Raise Refused if an uncertain effect overlaps, or may [I6]. `except_for`: the attempt that is redone."""
    if (unknown := await wait_until_doubts_are_known(session, title)) is not None:
        raise Refused("recoveryRequired", unknown, {"uncertain": []})
    there = await find_blocking_there(session, scope)
    others = await find_blocking(session, scope, except_for=except_for)
    if others:
        shown = [uncertain_view(other, holder.ledger, holder.snapshot_context()) for holder, other in others]
        holder, first = others[0]
        where = "" if holder is session else f" of session “{holder.name}”"
        text = f"“{first.title}”{where} is uncertain and may touch the same files. Decide on it first (/recovery)."
        raise Refused("recoveryRequired", text, {"uncertain": to_plain(shown)})
    if there:
        raise Refused("recoveryRequired", _sentence(origin_doubt_text(there[0])), {"uncertain": []})


def _sentence(clause: str) -> str:
    return clause[0].upper() + clause[1:]


def detached_turn(turn_id: str) -> ActiveTurn:
    """Return a turn for a call outside a running turn. Only the end of the process stops it."""
    return ActiveTurn(turn_id, "", Prompt(""))


def coming_back(oldest: Evidence, now: str | None) -> Evidence:
    """Return evidence for a path whose oldest content comes back. `now`: digest that is there; None: no file."""
    return attrs.evolve(oldest, intended=now, intended_bytes=None, temporary=None)
