"""The history that a fork gets: the records of a session's conversation, without what only that session has (row S3).

What goes to a model is copied as it stands in the view: prompts, answers, notices and stored messages, with their ids,
so that the provider finds the same bytes. A copied call is its proposal and its reply, both as texts; no attempt stands
behind it, so nothing in the fork can take it for an effect of its own. Where a reply is missing, the last words that
the model got stand in its place. A reply names what the model knows of the files that the call wrote.

A compaction that counts is copied with its place: what it was cut behind is known when the records get their numbers
(row K4).

Not copied: attempts, inspections, permissions, usage, jobs, the queue, slash commands, quick questions, withdrawn text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from steadyhand.domain.ledger.compaction import NOTHING_CUT
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import ToolCall, TranscriptEntry
from steadyhand.domain.model.readings import GrowingReadings, Reading
from steadyhand.domain.records.record import (
    Assistant,
    Attached,
    Compaction,
    CompactionCut,
    Ended,
    Notice,
    Record,
    Shown,
    Steer,
    Taken,
    Told,
    ToolResult,
    User,
)
from steadyhand.domain.views.sentences import outcome_of, supplied_reply, unrecorded_verdict
from steadyhand_values import define, frozen

Place: TypeAlias = "tuple[int, str]"
"""`seq` and `sum` of a record in its journal."""


@frozen
class Copied:
    """One record of a fork. `of`: the entry of the origin's conversation that it stands for; None: for none."""

    record: Record
    of: Place | None = None


def copied_history(ledger: Ledger, until: str | None, running: Collection[str] = ()) -> tuple[Copied, ...]:
    """Return the records of the conversation up to and including a turn. `until` None: all of it.

    `running`: turns that have not ended and still run; they are left out."""
    return tuple(_Copying(ledger).copies(until, running))


def copied_outputs(copied: Iterable[Copied]) -> tuple[str, ...]:
    """Return the digests of the whole replies that these records name, each once."""
    replies = (one.record for one in copied if isinstance(one.record, ToolResult))
    return tuple(dict.fromkeys(reply.output for reply in replies if reply.output is not None))


def bound_compaction(record: Compaction, places: Mapping[Place, Place], epoch: str) -> Compaction:
    """Return a copied compaction, cut behind the fork's own record. `places`: of the origin → of the fork."""
    if record.cut == NOTHING_CUT:
        return attrs.evolve(record, epoch=epoch)
    seq, check = places[(record.cut.seq, record.cut.sum)]
    return attrs.evolve(record, epoch=epoch, cut=CompactionCut(seq=seq, sum=check))


@define
class _Copying:
    ledger: Ledger
    readings: GrowingReadings = attrs.field(factory=lambda: GrowingReadings(is_fixed=True))
    last: str = ""  # message id of the last prompt or answer

    def copies(self, until: str | None, running: Collection[str]) -> Iterator[Copied]:
        ledger = self.ledger
        every = _up_to(ledger.said, until)
        copied = [_is_copied(ledger, said, running) for said in every]
        last = {said.turn_id: at for at, said in enumerate(every) if copied[at]}
        before: Place | None = None  # the last copied entry so far
        nearest: dict[Place, Place | None] = {}  # entry → itself, or the copied one before it
        for at, said in enumerate(every):
            if copied[at] and isinstance(said.record, Compaction):
                yield from _compaction(said.record, nearest)
            elif copied[at]:
                before = (said.seq, said.sum)
                if isinstance(said.record, Steer):  # its place is that of its taking
                    yield Copied(attrs.evolve(said.record, client_message_id=_name(said.record)))
                first, *rest = self._entry(said)
                yield Copied(first, before)
                yield from map(Copied, rest)
            nearest[(said.seq, said.sum)] = before
            turn = ledger.turns.get(said.turn_id)
            if turn is not None and turn.ended is not None and last.get(said.turn_id) == at and turn.is_in_history:
                yield Copied(Ended(turn_id=turn.turn_id, reason=turn.ended.reason, text=turn.ended.text))

    def _entry(self, said: TranscriptEntry) -> Iterator[Record]:
        match said.record:
            case User() as user:
                self.last = user.message_id
                yield attrs.evolve(user, client_message_id=f"fork-{user.turn_id}", replaces=None, epoch=None)
                yield from self._attached(user.turn_id)
            case Assistant() as assistant:
                self.last = assistant.message_id
                yield attrs.evolve(assistant, goes_on=False)
                for proposed in assistant.calls:
                    yield self._reply(self.ledger.calls[proposed.call_id])
            case Notice() as notice:
                yield attrs.evolve(notice, attempt_id=None)
            case Told() as told:
                yield told
            case Compaction() as compaction:
                yield compaction
            case Steer() as steer:
                yield Taken(client_message_id=_name(steer), turn_id=steer.turn_id, after=self.last)

    def _attached(self, turn_id: str) -> Iterator[Attached]:
        turn = self.ledger.turns.get(turn_id)
        if turn is not None and turn.attached is not None:
            shown = () if turn_id in self.ledger.turns_before else turn.shown
            yield Attached(turn_id=turn_id, text=turn.attached, shown=shown)

    def _reply(self, call: ToolCall) -> ToolResult:
        """Return the reply as the model got it last. What it shows counts no more if it does not say it."""
        outcome, reason = outcome_of(call)
        reply = call.reply if call.supplied is None else None
        shown = () if call.turn_id in self.ledger.turns_before else self._shown(call, reply)
        if reply is not None:
            end = outcome or reply.outcome
            return attrs.evolve(reply, outcome=end, reason=reason, attempt_id=None, shown=shown)
        text = call.supplied if call.supplied is not None else supplied_reply(call)
        return ToolResult(
            turn_id=call.turn_id,
            call_id=call.call_id,
            outcome=outcome or unrecorded_verdict(call) or "unknown",
            text=text,
            bytes=len(text.encode("utf-8", "surrogatepass")),
            reason=reason,
            shown=shown,
        )

    def _shown(self, call: ToolCall, reply: ToolResult | None) -> tuple[Shown, ...]:
        written = self.readings.written_by(self.ledger, call)
        known = (one for path, reading in written.items() for one in _as_shown(path, reading))
        return (*(reply.shown if reply is not None else ()), *known)


def _name(steer: Steer) -> str:
    return f"fork-{steer.message_id}"


def _up_to(said: Sequence[TranscriptEntry], until: str | None) -> Sequence[TranscriptEntry]:
    """Return the entries before the first prompt of the conversation behind this turn's."""
    if until is None:
        return said
    prompts = [at for at, one in enumerate(said) if isinstance(one.record, User) and _is_prompt(one.record)]
    own = next(at for at, one in enumerate(said) if isinstance(one.record, User) and one.turn_id == until)
    return said[: next((at for at in prompts if at > own), len(said))]


def _is_prompt(user: User) -> bool:
    return not user.command and not user.aside


def _is_copied(ledger: Ledger, said: TranscriptEntry, running: Collection[str]) -> bool:
    turn = ledger.turns.get(said.turn_id)
    if said.turn_id in running:
        return False
    if isinstance(said.record, Notice):
        return said.record.model or turn is None or turn.is_in_history
    if isinstance(said.record, Told | Compaction):
        return True
    if turn is not None and not turn.is_in_history:
        return False
    return not (isinstance(said.record, Assistant) and said.record.withdrawn)


def _compaction(record: Compaction, nearest: Mapping[Place, Place | None]) -> Iterator[Copied]:
    """Yield it, cut behind an entry that is copied, if that one is part of the conversation."""
    if record.cut == NOTHING_CUT:
        yield Copied(record)
    elif (place := nearest.get((record.cut.seq, record.cut.sum))) is not None:
        yield Copied(attrs.evolve(record, cut=CompactionCut(seq=place[0], sum=place[1])))


def _as_shown(path: str, known: Reading) -> Iterator[Shown]:
    """Yield records that say what this reading says."""
    ranges = () if known.is_whole else known.ranges
    for first, last in ranges or ((1, 0),):
        yield Shown(path=path, digest=known.digest, from_=first, to=last, whole=known.is_whole, encoding=known.encoding)
