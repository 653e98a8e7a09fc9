"""Restore and retry: new attempts that the user starts from an uncertain one (rows A5, F2, F3).

Both run in this process under the same rules as any call: intent, evidence, *started*, body, result. A restore brings
back the content before, in one attempt that names the one it undoes; the old one is settled with its success. A retry
takes the stored arguments and keeps the idempotency key; its intent and the settlement of the old attempt stand, in
this order, in one append, so the old request can run nothing any more [I10].

Called by `resolving`, which has compared what the caller saw; what may not go on here raises Refused and has recorded
nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import anyio
import attrs

from steadyhand.core.admission import Deny
from steadyhand.core.folded import Attempt
from steadyhand.core.identity import (
    BadArguments,
    Digest,
    SessionId,
    canonical_json,
    idempotency_key,
    parse_arguments,
    sha256,
)
from steadyhand.core.plain import plain
from steadyhand.core.prompt import Prompt
from steadyhand.core.record import Inspection, Intent, Notice, Record, Settlement, Started
from steadyhand.core.refusal import Refused
from steadyhand.core.scope import overlaps
from steadyhand.core.snapshot import uncertain_view
from steadyhand.core.words import retried_notice, settlement_notice, undone_notice
from steadyhand.session.admitted import Admitted, wanted_of
from steadyhand.session.call import carry_through, close_unrun, run_and_record
from steadyhand.session.inspecting import Found, state_of
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.permitting import admission_of
from steadyhand.session.verifying import find
from steadyhand.tools import restore as undoing
from steadyhand.tools.open_document import unsaved_in_editor
from steadyhand.tools.place import display
from steadyhand.tools.tool import Done, Ground, Planned, Refusal

T = TypeVar("T")


@attrs.frozen
class Redoing:
    """Keeps `owner.Redoing` for one open session."""

    owner: Owner

    async def restore(self, attempt: Attempt, latest: Inspection) -> Attempt:
        return await _restore(self.owner, attempt, latest)

    async def retry(self, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
        return await _retry(self.owner, attempt, latest)


async def _restore(owner: Owner, attempt: Attempt, latest: Inspection) -> Attempt:
    """Bring back the content before; the attempt is settled `restored` when that is done. The new attempt, at its end,
    whatever it came to."""
    _refuse_held_back(owner, attempt)
    ids = owner.world.ids
    evidence = attempt.started.evidence if attempt.started else ()
    planned = await _beforehand(owner, undoing.plan_restore, owner.ground, evidence)
    if isinstance(planned, Refusal):
        raise _not_offered(planned)
    wanted = wanted_of(owner, undoing.NAME, planned)
    attempt_id = ids.new()
    gathered = await _beforehand(owner, planned.gather, attempt_id, None)
    if isinstance(gathered, Refusal):
        raise _not_offered(gathered)
    seen = {finding.path: finding.digest for finding in latest.findings}
    root = owner.ground.root
    if any(seen.get(display(root, one.resolved), one.before) != one.before for one in gathered.evidence):
        raise Refused("inspectFirst", "The file changed since that inspection; inspect it again.")
    digest = sha256(canonical_json({"attemptId": attempt.attempt_id}).encode())
    intent = Intent(
        attempt_id=attempt_id, call_id=ids.new(), turn_id=attempt.turn_id, tool=undoing.NAME, title=planned.title,
        effect=planned.effect, arguments_digest=digest, scope=planned.scope, key=_key(owner, digest),
        occurrence=0, restore_of=attempt.attempt_id,
    )  # fmt: skip
    await owner.record_or_refuse([intent, Started(attempt_id, intent.call_id, gathered.evidence)])
    call = owner.ledger.calls[intent.call_id]

    def settles(done: Done) -> Sequence[Record]:
        if done.outcome != "returned":
            return ()
        if attempt.undoable:  # a restore that is undone had its end long ago; it needs no settlement
            return (Notice(ids.new(), undone_notice(attempt.title), attempt.turn_id, attempt_id),)
        notice = settlement_notice(attempt, "restored")
        return (
            Settlement(attempt.attempt_id, attempt.call_id, "restored", "user", latest.inspection_id, done.check),
            Notice(ids.new(), notice, attempt.turn_id, attempt.attempt_id),
        )

    admitted = Admitted(call, planned, wanted, attempt_id, Digest(intent.key), settles=settles)
    with _running(owner, call.call_id):
        owner.tell_call(call.call_id)
        await run_and_record(owner, _aside(attempt), admitted, gathered.evidence)
    if call.reply is not None and call.reply.outcome == "returned":
        owner.say("info", f"{call.reply.text} /recovery restore {attempt_id[:8]} in the chat undoes that.")
    return owner.ledger.attempts[attempt_id]


async def _retry(owner: Owner, attempt: Attempt, latest: Inspection) -> Callable[[], Awaitable[None]]:
    """Begin anew, if it is absent and fenced at this moment [I10]; what is returned carries the new call through."""
    _refuse_held_back(owner, attempt)
    ids, ledger = owner.world.ids, owner.ledger
    planned = await _planned_again(owner, attempt)
    if attempt.attempt_id in owner.stand().overtaken:
        raise _unsafe("a later effect that may touch the same has started since")
    if (why := await _plainly_refused(owner, attempt, planned)) is not None:
        raise _unsafe(why)
    found = await find(owner, attempt)
    if state_of(found) != "absent_fenced":
        raise _unsafe(_why_not_absent(found))
    intent = Intent(
        attempt_id=ids.new(), call_id=ids.new(), turn_id=attempt.turn_id, tool=attempt.tool, title=planned.title,
        effect=planned.effect, arguments_digest=attempt.arguments_digest, scope=planned.scope, key=attempt.key,
        occurrence=attempt.occurrence, retry_of=attempt.attempt_id,
    )  # fmt: skip
    superseded = Settlement(
        attempt.attempt_id, attempt.call_id, "superseded", "user", latest.inspection_id, found.check, intent.attempt_id
    )
    notice = Notice(ids.new(), settlement_notice(attempt, "superseded"), attempt.turn_id, attempt.attempt_id)
    await owner.record_or_refuse([intent, superseded, notice])
    call, wanted = ledger.calls[intent.call_id], wanted_of(owner, attempt.tool, planned)
    return partial(_carry_on, owner, attempt, Admitted(call, planned, wanted, intent.attempt_id, Digest(intent.key)))


async def _planned_again(owner: Owner, attempt: Attempt) -> Planned:
    """The call of the stored arguments, validated as any call, with the scope that was recorded."""
    tool, old = owner.world.tools.get(attempt.tool), owner.ledger.calls[attempt.call_id]
    arguments = parse_arguments(old.arguments)
    if tool is None or isinstance(arguments, BadArguments) or arguments.digest != attempt.arguments_digest:
        raise _unsafe("its stored arguments are damaged or its tool is gone")
    planned = await _beforehand(owner, tool.prepare, arguments, owner.ground)
    if isinstance(planned, Refusal):
        raise _unsafe(planned.text.rstrip("."))
    if planned.scope != attempt.scope or planned.effect != attempt.effect:
        raise _unsafe("what it may touch is not what was recorded")
    return planned


async def _plainly_refused(owner: Owner, attempt: Attempt, planned: Planned) -> str | None:
    """What would refuse the new attempt without asking anybody: a try that cannot start takes the place of none."""
    admission = admission_of(owner, wanted_of(owner, attempt.tool, planned))
    if isinstance(admission, Deny):
        return _clause(admission.text)
    unsaved = await _beforehand(owner, _unsaved, owner.ground, attempt)
    refusal = unsaved if unsaved is not None else await _beforehand(owner, planned.preview)
    return _clause(refusal.text) if isinstance(refusal, Refusal) else None


def _unsaved(ground: Ground, attempt: Attempt) -> Refusal | None:
    """A document of its paths with unsaved text; blocks."""
    for one in attempt.started.evidence if attempt.started is not None else ():
        if unsaved_in_editor(ground, one.path, one.resolved):
            shown = display(ground.root, one.resolved)
            return Refusal("unsaved", f"{shown} has unsaved changes in the editor; it must be saved first.")
    return None


def _clause(text: str) -> str:
    """The first sentence as one that follows a colon."""
    first = text.partition(". ")[0].rstrip(".")
    return first[:1].lower() + first[1:] if first.startswith(("The ", "This ", "It ")) else first


def _why_not_absent(found: Found) -> str:
    if not found.fenced:
        return "a process of the earlier try may still act"
    if found.verified is not None:
        return f"its tool does not say that it is absent and shut out ({found.verified.summary.rstrip('.')})"
    return f"the check says {found.check or 'nothing'}, so it is not certain that it is absent"


async def _carry_on(owner: Owner, attempt: Attempt, admitted: Admitted) -> None:
    """The new call's own way, and one notice of how it ended. Cancelled before its start, it did not run."""
    try:
        with _running(owner, admitted.call.call_id):
            owner.tell_call(admitted.call.call_id)
            await carry_through(owner, _aside(attempt), admitted)
    finally:
        with anyio.CancelScope(shield=True):
            await close_unrun(owner, admitted.call, "cancelled")
            call = admitted.call
            text = retried_notice(call, call.reply.outcome if call.reply is not None else "unknown")
            told = Notice(owner.world.ids.new(), text, attempt.turn_id, admitted.attempt_id)
            await owner.append_or_show([told], barrier=True)
            if call.reply is None or call.reply.outcome != "returned":
                owner.say("warning", f"{text} The earlier attempt stays superseded.")


async def _beforehand(owner: Owner, work: Callable[..., T | Refusal], *arguments: object) -> T | Refusal:
    """Blocking work before anything is recorded; trouble with the disk there refuses it."""
    try:
        return await owner.world.in_thread(work, *arguments)
    except OSError as error:
        return Refusal("io_error", f"It could not be prepared: {error.strerror or type(error).__name__}.")


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


def _key(owner: Owner, digest: str) -> str:
    return idempotency_key(SessionId(owner.session_id), undoing.NAME, digest, {"paths": []}, 0)


def _aside(attempt: Attempt) -> RunningTurn:
    """It belongs to the turn of the attempt it redoes, which has ended; nothing stops it but the end of the process."""
    return RunningTurn(attempt.turn_id, "", Prompt(""))


def _unsafe(why: str) -> Refused:
    return Refused("retryUnsafe", f"It is not tried again: {why}.", {"why": why})


def _not_offered(refusal: Refusal) -> Refused:
    return Refused("notOffered", refusal.text, {"why": refusal.text})


@contextmanager
def _running(owner: Owner, call_id: str) -> Iterator[None]:
    """While it runs it is shown as running, though its turn has ended."""
    owner.redone.add(call_id)
    try:
        yield
    finally:
        owner.redone.discard(call_id)
