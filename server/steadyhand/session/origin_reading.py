"""What a fork knows of the session that it was forked from: which effects there are not settled, and why (row S3).

Values only; `service/origin_doubts.py` reads the origin's journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, Intention, is_known_to_have_happened
from steadyhand.domain.records.record import Origin, Scope
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.domain.views.sentences import unknown_reply
from steadyhand_values import define, frozen

LOST = "its record is damaged or missing"


@frozen
class OriginDoubt:
    """One effect of the origin that holds back in the fork and cannot be settled from here."""

    session_id: str
    name: str  # of its session
    path: str  # of its session's folder
    attempt_id: str
    attempt: Attempt | None  # None: nothing of it can be read
    ledger: Ledger | None  # of its session; None: it cannot be read
    why: str | None  # why nothing can be read, as a clause; None: it was read

    @property
    def scope(self) -> Scope:
        """What it may have touched; everything where that cannot be read."""
        return self.attempt.scope if self.attempt is not None else EVERYTHING


@frozen
class OriginReading:
    """One origin as it was read last. Neither `ledger` nor `why`: it was deleted, so it holds nothing back."""

    origin: Origin
    name: str
    path: str
    ledger: Ledger | None = None
    why: str | None = None  # why it cannot be read, as a clause
    is_here: bool = False  # this process owns it, so its effects hold back as those of any open session (row B1)

    def unsettled(self) -> list[Attempt]:
        """Return the attempts that can be read and are not settled."""
        return [attempt for attempt in self.attempts() if not _is_settled(attempt)]

    def doubts(self) -> list[OriginDoubt]:
        """Return what holds back and cannot be settled from this process."""
        if self.ledger is None and self.why is None:
            return []
        found: list[OriginDoubt] = []
        for attempt_id in self._ids():
            attempt = self.ledger.attempts.get(attempt_id) if self.ledger is not None else None
            if attempt is not None and (self.is_here or _is_settled(attempt)):
                continue
            why = (self.why or LOST) if attempt is None else None
            found.append(
                OriginDoubt(self.origin.session_id, self.name, self.path, attempt_id, attempt, self.ledger, why)
            )
        return found

    def unresolved_lines(self) -> Iterator[str]:
        """Return what the model is told of each effect that is not settled, or that cannot be read."""
        where = f"of session “{self.name}”, from which this one was forked"
        for attempt in self.unsettled():
            yield f"{attempt.title}, an effect {where}: {unknown_reply(attempt)}"
        for doubt in self.doubts():
            if doubt.attempt is None:
                yield f"An effect {where}: {unknown_reply(None)} Its attempt is {doubt.attempt_id}."

    def attempts(self) -> Iterator[Attempt]:
        """Return the attempts named at the fork and their retries, as far as they can be read."""
        for attempt_id in self._ids():
            if self.ledger is not None and attempt_id in self.ledger.attempts:
                yield self.ledger.attempts[attempt_id]

    def _ids(self) -> Iterator[str]:
        """Return what was named at the fork; behind each the retry that took its place since, with its doubt."""
        done = set[str]()
        for named in self.origin.attempts:
            attempt_id: str | None = named
            while attempt_id is not None and attempt_id not in done:
                done.add(attempt_id)
                yield attempt_id
                attempt = self.ledger.attempts.get(attempt_id) if self.ledger is not None else None
                settlement = attempt.settlement if attempt is not None else None
                attempt_id = settlement.superseded_by if settlement is not None else None


def origin_doubt_text(doubt: OriginDoubt) -> str:
    """Return why an effect of the origin holds back, and what the user can do."""
    if doubt.attempt is None:
        return (
            f"an effect of session “{doubt.name}”, from which this one was forked, was uncertain and cannot be read"
            f" ({doubt.why}), so it may touch the same files. Make that session readable, or delete it."
        )
    return (
        f"“{doubt.attempt.title}” of session “{doubt.name}”, from which this one was forked, is uncertain and may touch"
        f" the same files. Another process has that session open. Settle it in session {doubt.name}."
    )


def origin_required_text(doubt: OriginDoubt) -> str:
    """Return what the model reads where nobody can be asked."""
    text = origin_doubt_text(doubt)
    return f"This call was held back and did not run: {text[0].lower()}{text[1:]} (Attempt {doubt.attempt_id}.)"


@define(eq=False)
class OriginReadings:
    """What the origins of one session said when they were read last; nothing of a session that is no fork."""

    _latest: tuple[OriginReading, ...] = ()

    def follow(self, readings: Iterable[OriginReading]) -> None:
        """Take what they say now."""
        self._latest = tuple(readings)

    def doubts(self) -> list[OriginDoubt]:
        """Return what holds back and cannot be settled from this process."""
        return [doubt for reading in self._latest for doubt in reading.doubts()]

    def unresolved_lines(self) -> list[str]:
        """Return what the model is told of each effect that is not settled there."""
        return [line for reading in self._latest for line in reading.unresolved_lines()]

    def count_known(self, wanted: Intention) -> int:
        """Count the origins' attempts of this intention that are known there to have happened (row N2)."""
        return sum(wanted.is_same_as(one.intended) and is_known_to_have_happened(one) for one in self._attempts())

    def confirmed(self, wanted: Intention) -> tuple[str, ...]:
        """Return the origins' attempts of this exact call that the user confirmed there (row B6)."""
        return tuple(
            one.attempt_id
            for one in self._attempts()
            if one.settlement is not None
            and one.settlement.settled == "user_confirmed"
            and wanted.is_same_as(one.intended)
        )

    def _attempts(self) -> Iterator[Attempt]:
        for reading in self._latest:
            yield from reading.attempts()


def _is_settled(attempt: Attempt) -> bool:
    """Return whether nothing about it is to be decided any more. One without a recorded end may be decided later."""
    if attempt.settlement is not None:
        return True
    return attempt.result is not None and not attempt.uncertain
