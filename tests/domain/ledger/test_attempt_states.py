"""The attempt state machine: every pair of stage and step, compared with the allowed transitions written as
sentences.
"""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from steadyhand.domain.ledger.attempt_states import NEXT, AttemptRecord, Stage, Step, advance, step_of
from steadyhand.domain.records.record import (
    Inspection,
    Intent,
    Outcome,
    Reject,
    Result,
    Scope,
    Settled,
    Settlement,
    Started,
)
from steadyhand.domain.recovery.tables import CLASSIFY

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
    """The transition as a sentence, or None where the machine refuses the step."""
    after = NEXT.get((stage, step))
    article = "an" if stage[0] in "aiu" else "a"
    return None if after is None else f"{article} {stage} one by {step} is {after}"


def test_attempt_machine_allows_exactly_the_listed_transitions() -> None:
    """J3, J14: over all pairs of stage and step, the allowed transitions are exactly this list."""
    transitions = [line for pair in itertools.product(STAGES, STEPS) if (line := sentence(*pair)) is not None]
    assert sorted(transitions) == sorted(ALLOWED.strip().splitlines())


def test_attempt_with_a_terminal_record_takes_no_second_one() -> None:
    """J14: no attempt that has a terminal record takes another."""
    for stage in ("certain", "uncertain", "checked", "closed"):
        assert (stage, "end_certain") not in NEXT
        assert (stage, "end_uncertain") not in NEXT


def test_started_attempt_never_returns_to_a_stage_before_its_start() -> None:
    """No path leads from started back to a stage in which the attempt had not started [I3]."""
    reached: set[Stage] = {"started"}
    new = set(reached)
    while new:
        new = {after for (stage, _), after in NEXT.items() if stage in new} - reached
        reached |= new
    assert reached == {"started", "certain", "uncertain", "checked", "closed"}


def settlement(settled: Settled) -> Settlement:
    return Settlement(attempt_id="a", call_id="c", settled=settled, by="user")


STEP_OF: list[tuple[AttemptRecord, Step]] = [
    (
        Intent(
            attempt_id="a",
            call_id="c",
            turn_id="t",
            tool="write_file",
            title="title",
            effect="writes_files",
            arguments_digest="0",
            scope=Scope(),
            key="k",
            occurrence=0,
        ),
        "intent",
    ),
    (Started(attempt_id="a", call_id="c"), "started"),
    (Inspection(inspection_id="i", attempt_id="a", call_id="c", state="unknown", by="user"), "look"),
    (Reject(attempt_id="a", call_id="c", inspection_id="i"), "reject"),
    (settlement("checked_present"), "check"),
    (settlement("checked_absent"), "check"),
    (settlement("restored"), "override"),
    (settlement("superseded"), "override"),
    (settlement("user_confirmed"), "settle"),
    (settlement("model_confirmed"), "settle"),
    (settlement("waived"), "settle"),
]


@pytest.mark.parametrize(("record", "step"), STEP_OF, ids=lambda value: str(value)[:60])
def test_step_of_each_attempt_record_is_one_step(record: AttemptRecord, step: Step) -> None:
    """J14: each record of an attempt is one step."""
    assert step_of(record) == step


def test_step_of_cases_cover_every_settlement() -> None:
    """J14: the list above covers every kind of settlement."""
    listed = {record.settled for record, _ in STEP_OF if isinstance(record, Settlement)}
    assert listed == set(get_args(Settled))


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_step_of_result_is_uncertain_only_for_unknown_outcomes(outcome: Outcome) -> None:
    """C3: the two outcomes for unknown leave an attempt uncertain. All others end it."""
    is_uncertain = outcome in ("unknown", "unknown_after_restart")
    assert step_of(Result(attempt_id="a", call_id="c", turn_id="t", outcome=outcome)) == (
        "end_uncertain" if is_uncertain else "end_certain"
    )


def test_classify_verdict_is_accepted_at_the_stage_it_applies_to() -> None:
    """C4: each verdict of the classify table can be recorded at the stage that its row names."""
    stage: dict[str, Stage] = {"proposed": "absent", "intent": "intended", "started": "started"}
    for row in CLASSIFY:
        for reached in row.reached:
            if row.verdict != "none":
                assert (
                    advance(
                        stage[reached],
                        Result(attempt_id="a", call_id="c", turn_id="t", outcome=row.verdict, by="recovery"),
                    )
                    is not None
                )
