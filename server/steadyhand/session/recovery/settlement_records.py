"""The records that settle an attempt without a person's decision, and the notices that report a settlement once.

They are made here and appended by the callers. Pure but for the new ids.
"""

from __future__ import annotations

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Author, Notice, Record, Settled, Settlement, Told
from steadyhand.domain.views.rewind_texts import rewind_progress
from steadyhand.domain.views.sentences import own_leftover_clause, retried_notice, settlement_notice, taken_back_text
from steadyhand.ports.system import Ids
from steadyhand.session.inspection.file_state import FileCheck


def records_of_check_settlement(ids: Ids, attempt: Attempt, settled: Settled, seen: FileCheck) -> list[Record]:
    """Return a settlement that rests on a check, and the notice that reports it."""
    notice = notice_of_settlement(ids, attempt, settled)
    if seen.own:
        notice = attrs.evolve(notice, text=f"{notice.text} But {own_leftover_clause(seen.own)}.")
    return [
        Settlement(
            attempt_id=attempt.attempt_id, call_id=attempt.call_id, settled=settled, by="recovery", check=seen.check
        ),
        notice,
    ]


def records_of_restore(ids: Ids, ledger: Ledger, new: Attempt, by: Author) -> list[Record]:
    """Return what a restore that certainly happened settles, if no record says so yet (row A5)."""
    old = ledger.attempts.get(new.restore_of) if new.restore_of is not None and new.is_known_restore else None
    if old is None or old.stage not in ("uncertain", "checked"):
        return []
    return [
        Settlement(attempt_id=old.attempt_id, call_id=old.call_id, settled="restored", by=by, check=new.check),
        notice_of_settlement(ids, old, "restored"),
    ]


def notices_of_ended_retries(ids: Ids, ledger: Ledger) -> list[Record]:
    """Return a notice for each retry that ended before its process could report it.

    No answer of the model proposed a retry, so no reply reports its end."""
    return [
        Notice(
            message_id=ids.new(),
            text=retried_notice(call, attempt.result.outcome),
            turn_id=attempt.turn_id,
            attempt_id=attempt.attempt_id,
        )
        for attempt in ledger.attempts.values()
        if attempt.retry_of is not None and attempt.result is not None and attempt.attempt_id not in ledger.noticed
        for call in (ledger.calls[attempt.call_id],)
    ]


def notices_of_open_rewinds(ids: Ids, ledger: Ledger) -> list[Notice]:
    """Return a notice for each rewind that a kill cut off, once: how many of its files are done (row G4)."""
    cut_off: dict[str, list[Attempt]] = {}
    for attempt in ledger.attempts.values():
        if attempt.rewind_of is not None and attempt.turn_id not in ledger.rewinds:
            cut_off.setdefault(attempt.turn_id, []).append(attempt)
    return [
        Notice(
            message_id=ids.new(),
            text=rewind_progress(sum(map(_count_files, attempts)), attempts[0].rewind_of.files),
            turn_id=turn_id,
        )
        for turn_id, attempts in cut_off.items()
        if turn_id not in ledger.noticed and attempts[0].rewind_of is not None
    ]


def told_of_undos(ids: Ids, ledger: Ledger) -> list[Told]:
    """Return what the model has to be told of each undo that certainly happened, unless it was told (row V4)."""
    untold = [
        attempt
        for attempt in ledger.attempts.values()
        if attempt.review_of is not None and not attempt.is_undo_told and attempt.has_certainly_happened
    ]
    return [Told(message_id=ids.new(), text=undo_text(attempt), from_="review") for attempt in untold]


def undo_text(attempt: Attempt) -> str:
    """Return what the model is told of an undo, one line for each path."""
    evidence = attempt.started.evidence if attempt.started is not None else ()
    partial = attempt.review_of is not None and attempt.review_of.partial
    return "\n".join(taken_back_text(path, partial) for path in dict.fromkeys(one.path for one in evidence))


def _count_files(attempt: Attempt) -> int:
    """Return how many files an attempt has certainly changed."""
    evidence = attempt.started.evidence if attempt.started is not None else ()
    return len(evidence) if attempt.has_certainly_happened else 0


def notice_of_settlement(ids: Ids, attempt: Attempt, settled: Settled) -> Notice:
    """Return the notice that reports how an attempt was settled."""
    by = attempt.settlement.by if attempt.settlement is not None else "recovery"
    text = settlement_notice(attempt, settled, by)
    return Notice(message_id=ids.new(), text=text, turn_id=attempt.turn_id, attempt_id=attempt.attempt_id)
