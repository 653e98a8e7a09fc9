"""The state machine of an attempt as one table: which record may follow which (rows J3, J14).

A *stage* says how far an attempt has come; a *step* is what a record does to it. The ledger refuses any step that the
table does not list: the record is logged and changes nothing. An attempt that only reads ends with its reply and has no
`started` record.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from steadyhand.domain.records.record import Inspection, Intent, Reject, Result, Settlement, Started

Stage = Literal["absent", "intended", "started", "certain", "uncertain", "checked", "closed"]
Step = Literal["intent", "started", "end_certain", "end_uncertain", "check", "settle", "override", "look", "reject"]

NEXT: dict[tuple[Stage, Step], Stage] = {
    ("absent", "intent"): "intended",
    ("absent", "started"): "started",  # the intent is damaged: start evidence of unknown origin (C3)
    ("absent", "end_certain"): "certain",  # the earlier receipts are damaged
    ("absent", "end_uncertain"): "uncertain",  # a proposed call that damage may have hidden (J9)
    ("intended", "started"): "started",
    ("intended", "end_certain"): "certain",  # refused, not started, interrupted
    ("intended", "end_uncertain"): "uncertain",  # damage after the intent (J9)
    ("started", "end_certain"): "certain",
    ("started", "end_uncertain"): "uncertain",
    ("certain", "look"): "certain",  # a restore, which can be restored itself (A5)
    ("uncertain", "check"): "checked",
    ("uncertain", "settle"): "closed",
    ("uncertain", "override"): "closed",
    ("uncertain", "look"): "uncertain",
    ("uncertain", "reject"): "uncertain",
    ("checked", "override"): "closed",  # restored or superseded, once (J14)
    ("checked", "look"): "checked",
    ("closed", "look"): "closed",
}

AttemptRecord: TypeAlias = "Intent | Started | Result | Settlement | Inspection | Reject"
UNCERTAIN_OUTCOMES = frozenset({"unknown", "unknown_after_restart"})


def step_of(record: AttemptRecord) -> Step:
    """Return the step that a record takes."""
    match record:
        case Intent():
            return "intent"
        case Started():
            return "started"
        case Result():
            return "end_uncertain" if record.outcome in UNCERTAIN_OUTCOMES else "end_certain"
        case Inspection():
            return "look"
        case Reject():
            return "reject"
        case Settlement(settled="checked_present" | "checked_absent"):
            return "check"
        case Settlement(settled="restored" | "superseded"):
            return "override"
        case Settlement():
            return "settle"


def advance(stage: Stage, record: AttemptRecord) -> Stage | None:
    """Return the stage after the record, or None if the table does not allow the record here."""
    return NEXT.get((stage, step_of(record)))
