"""Which start came later, as far as the journals and this process prove it; never by a clock (row F3, case 166). Pure.

Within one journal the order of the records decides. Every start of this process has a number, over all its sessions.
What this process read of another session's journal before it numbered a start came before that start. Nothing else is
known: times of two journals are not compared, and neither are contents, because a content can come back. Where no
order is known, the other start counts as the later one. Decision 33 says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, overlaps
from steadyhand_values import define, frozen

STARTS_KEPT_MAX = 10_000


@frozen
class NumberedStart:
    """One start of this process."""

    number: int  # 1, 2, 3 … in the order of the starts
    session_id: str
    scope: Scope


@define
class StartOrder:
    """The starts of this process so far. Mutable; changed on one event loop only."""

    count: int = 0
    _starts: dict[str, NumberedStart] = attrs.field(factory=dict)  # attempt id → its start, oldest first

    def add(self, session_id: str, attempt: Attempt) -> None:
        """Number a start that is durable now.

        Of more than `STARTS_KEPT_MAX` the older half is kept as one start of unknown scope."""
        self.count += 1
        self._starts[attempt.attempt_id] = NumberedStart(self.count, session_id, attempt.scope)
        if len(self._starts) > STARTS_KEPT_MAX:
            half = list(self._starts)[: STARTS_KEPT_MAX // 2]
            last = [self._starts.pop(attempt_id) for attempt_id in half][-1]
            self._starts = {"": NumberedStart(last.number, "", EVERYTHING), **self._starts}

    def number_of(self, attempt_id: str) -> int | None:
        """Return the number of a start of this process; None: an earlier process started it, or it is not known."""
        found = self._starts.get(attempt_id)
        return found.number if found is not None else None

    def others(self, session_id: str) -> Iterable[NumberedStart]:
        """Return the starts of other sessions, also of those that are closed by now."""
        return (start for start in self._starts.values() if start.session_id != session_id)


@frozen
class ReadSession:
    """Another session of this process. `read_at`: how many starts were numbered when its journal was read."""

    ledger: Ledger
    read_at: int


def overtaken_attempts(
    session_id: str, ledger: Ledger, others: Sequence[ReadSession], order: StartOrder
) -> frozenset[str]:
    """Return the ids of retriable attempts that a later start with an overlapping scope may have overtaken (row F3).

    The absence that such an attempt relies on may now be the later one's doing."""
    return frozenset(
        attempt.attempt_id
        for attempt in ledger.doubted()
        if attempt.is_retriable
        and attempt.stage != "closed"  # nobody is offered to retry a settled one
        and any(overlaps(scope, attempt.scope) for scope in later_scopes(session_id, ledger, attempt, others, order))
    )


def later_scopes(
    session_id: str, ledger: Ledger, attempt: Attempt, others: Sequence[ReadSession], order: StartOrder
) -> Iterator[Scope]:
    """Return the scopes of every start that came after this one, or whose order is not known."""
    later = dropwhile(lambda other: other is not attempt, ledger.attempts.values())
    next(later)
    yield from (other.scope for other in later if other.started is not None)
    number = order.number_of(attempt.attempt_id)  # None: an earlier process started it, so each start here came later
    yield from (start.scope for start in order.others(session_id) if start.number > (number or 0))
    for other in others:
        if number is None or other.read_at >= number:  # else what was read there came before
            yield from (
                one.scope
                for one in other.ledger.attempts.values()
                if one.started is not None and order.number_of(one.attempt_id) is None
            )


def oldest_first(order: StartOrder, attempt: Attempt) -> int:
    """Return a sort key: what earlier processes started stays in front, then the starts of this process in order."""
    return order.number_of(attempt.attempt_id) or 0
