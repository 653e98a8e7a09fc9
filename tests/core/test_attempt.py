"""The attempt machine: every pair of stage and step, against the allowed ones written out as sentences."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.core.attempt import NEXT, AttemptRecord, Stage, Step, advance, step_of
from steadyhand.core.record import Inspection, Intent, Outcome, Reject, Result, Scope, Settled, Settlement, Started
from steadyhand.core.recovery import CLASSIFY

STAGES: tuple[Stage, ...] = get_args(Stage)
STEPS: tuple[Step, ...] = get_args(Step)

ALLOWED = """
an absent one by intent is intended
an absent one by started is started
an absent one by end_certain is certain
an absent one by end_uncertain is uncertain
an intended one by started is started
an intended one by end_certain is certain
an intended one by end_uncertain is uncertain
a started one by end_certain is certain
a started one by end_uncertain is uncertain
a certain one by look is certain
an uncertain one by check is checked
an uncertain one by settle is closed
an uncertain one by override is closed
an uncertain one by look is uncertain
an uncertain one by reject is uncertain
a checked one by override is closed
a checked one by look is checked
a closed one by look is closed
"""


def sentence(stage: Stage, step: Step) -> str | None:
    """What the machine says of the pair, None where it refuses."""
    after = NEXT.get((stage, step))
    article = "an" if stage[0] in "aiu" else "a"
    return None if after is None else f"{article} {stage} one by {step} is {after}"


def test_the_machine_allows_what_is_written_here_and_nothing_else() -> None:
    """J3, J14: over all pairs of stage and step, what is allowed is exactly this list."""
    said = [said for pair in itertools.product(STAGES, STEPS) if (said := sentence(*pair)) is not None]
    assert sorted(said) == sorted(ALLOWED.strip().splitlines())


def test_an_end_is_the_only_one() -> None:
    """J14: no attempt that has a terminal record takes another."""
    for stage in ("certain", "uncertain", "checked", "closed"):
        assert (stage, "end_certain") not in NEXT
        assert (stage, "end_uncertain") not in NEXT


def test_started_is_never_unsaid() -> None:
    """No way leads from started back to where it was not started [I3]."""
    reached, new = {"started"}, {"started"}
    while new:
        new = {after for (stage, _), after in NEXT.items() if stage in new} - reached
        reached |= new
    assert reached == {"started", "certain", "uncertain", "checked", "closed"}


def settlement(settled: Settled) -> Settlement:
    return Settlement("a", "c", settled, "user")


STEP_OF: list[tuple[AttemptRecord, Step]] = [
    (Intent("a", "c", "t", "write_file", "title", "writes_files", "0", Scope(), "k", 0), "intent"),
    (Started("a", "c"), "started"),
    (Inspection("i", "a", "c", "unknown", "user"), "look"),
    (Reject("a", "c", "i"), "reject"),
    (settlement("checked_present"), "check"),
    (settlement("checked_absent"), "check"),
    (settlement("restored"), "override"),
    (settlement("superseded"), "override"),
    (settlement("user_confirmed"), "settle"),
    (settlement("model_confirmed"), "settle"),
    (settlement("waived"), "settle"),
]


@pytest.mark.parametrize(("record", "step"), STEP_OF, ids=lambda value: str(value)[:60])
def test_what_a_record_does(record: AttemptRecord, step: Step) -> None:
    """J14: each record of an attempt is one step."""
    assert step_of(record) == step


def test_every_settlement_is_a_step_here() -> None:
    """J14: the list above leaves no word for a settlement out."""
    listed = {record.settled for record, _ in STEP_OF if isinstance(record, Settlement)}
    assert listed == set(get_args(Settled))


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_which_outcomes_leave_doubt(outcome: Outcome) -> None:
    """C3: the two words for unknown leave an attempt uncertain, all others end it."""
    doubt = outcome in ("unknown", "unknown_after_restart")
    assert step_of(Result("a", "c", "t", outcome)) == ("end_uncertain" if doubt else "end_certain")


def test_verdicts_of_recovery_can_stand_where_they_are_given() -> None:
    """C4: what the classify table says can be recorded at the stage it says it of."""
    stage: dict[str, Stage] = {"proposed": "absent", "intent": "intended", "started": "started"}
    for row in CLASSIFY:
        for reached in row.reached:
            if row.verdict != "none":
                assert advance(stage[reached], Result("a", "c", "t", row.verdict, by="recovery")) is not None
