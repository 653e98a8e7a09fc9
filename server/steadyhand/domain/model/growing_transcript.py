"""The transcript of one session from request to request: what cannot change any more is made and validated once.

It always gives what `transcript.outgoing_messages` gives. The entries before a place are *closed* when nothing that
comes later changes their messages: each call has its final words, and nothing waits for a later entry. Two things wait.
An answer that was cut off is left out if the next prompt sends its turn again, and a stored message stands behind the
answer that it names. Both are decided when the next prompt of the conversation begins. Where the ledger holds other
entries than before, or a stored message names an answer among the closed ones, everything is made again.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import ToolCall, TranscriptEntry
from steadyhand.domain.model.messages import OutMessage, UserMessage
from steadyhand.domain.model.transcript import (
    calls_of_record,
    entries_sent,
    messages_of,
    missing_replies_of,
    validate,
)
from steadyhand.domain.records.record import Assistant, Supplied, Told, User
from steadyhand.domain.views.sentences import outcome_of


class GrowingTranscript:
    """The outgoing messages of one session. `ledger` is the session's own at each call."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._entries: list[TranscriptEntry] = []
        self._messages: list[OutMessage] = []
        self._waiting: list[OutMessage] = []
        self._calls: set[str] = set()
        self._omitted: frozenset[str] = frozenset()

    def missing_replies(self, ledger: Ledger) -> list[Supplied]:
        """As `transcript.missing_replies`."""
        sent = self._keep_closed(ledger)
        return missing_replies_of(ledger, sent[len(self._entries) :])

    def outgoing_messages(self, ledger: Ledger, aside: UserMessage | None = None) -> tuple[OutMessage, ...]:
        """As `transcript.outgoing_messages`, and validated: raise `Invalid` if the history is unsound."""
        sent = self._keep_closed(ledger)
        messages, waiting = messages_of(ledger, sent[len(self._entries) :], self._waiting)
        if aside is not None:
            messages += [*waiting, aside]
        validate(messages, self._calls)
        return (*self._messages, *messages)

    def _keep_closed(self, ledger: Ledger) -> Sequence[TranscriptEntry]:
        """Make the messages of the entries that closed since the last request; return all entries that are sent."""
        sent = entries_sent(ledger)
        is_other = self._omitted != ledger.standing.omitted or self._entries != sent[: len(self._entries)]
        if is_other or _reaches_back(self._entries, sent):
            self._forget()
            self._omitted = ledger.standing.omitted
        first = len(self._entries)
        end = _closed_end(ledger, sent, first)
        entries = sent[first:end]
        messages, self._waiting = messages_of(ledger, entries, self._waiting)
        self._calls |= validate(messages, self._calls)
        self._entries += entries
        self._messages += messages
        return sent


def _closed_end(ledger: Ledger, sent: Sequence[TranscriptEntry], first: int) -> int:
    """Return the last place, from `first` on, where a prompt or an answer stands and everything before it is closed."""
    end = first
    is_cut = False
    awaited: set[str | None] = set()
    for place in range(first, len(sent)):
        entry = sent[place]
        record = entry.record
        if isinstance(record, User) and not (record.command or record.aside or record.again):
            is_cut, awaited = False, set()
        if isinstance(record, User | Assistant) and not is_cut and not awaited:
            end = place
        if isinstance(record, Assistant):
            awaited.discard(record.message_id)
            is_cut = is_cut or (record.finish is None and not record.calls)
        elif isinstance(record, Told) and record.after is not None:
            awaited.add(record.after)
        if not all(is_final(call) for call in calls_of_record(ledger, [entry])):
            break
    return end


def is_final(call: ToolCall) -> bool:
    """Return whether text and end of its reply are recorded."""
    return (call.reply is not None or call.supplied is not None) and outcome_of(call)[0] is not None


def _reaches_back(kept: Sequence[TranscriptEntry], sent: Sequence[TranscriptEntry]) -> bool:
    """Return whether a stored message behind the kept entries names an answer that is not behind them."""
    new = sent[len(kept) :]
    answers = {entry.record.message_id for entry in new if isinstance(entry.record, Assistant)}
    told = (entry.record for entry in new if isinstance(entry.record, Told))
    return any(one.after is not None and one.after not in answers for one in told)
