"""Why a retry or a restore is refused, in words and in the members that an editor reads (rows F3, A5)."""

from __future__ import annotations

import pytest

from steadyhand.domain.records.record import Check, SurvivorFound
from steadyhand.session.calls.redo import _as_clause, _not_offered, _retry_unsafe, _why_not_absent
from steadyhand.session.inspection.inspect import InspectionResult
from steadyhand.session.recovery.by_model import _program_name
from steadyhand.tools.contract import Refusal, Verified
from steadyhand.tools.workspace.modified_since import ChangedFiles

ALIVE = (SurvivorFound(pid=7, started="s7", command="sleep 7"),)


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("The file is there. Read it.", "the file is there"),
        ("This is a folder.", "this is a folder"),
        ("It is outside. Ask.", "it is outside"),
        ("A.txt is read-only (mode 0444).", "A.txt is read-only (mode 0444)"),
        ("XThe file", "XThe file"),
        ("Theirs is newer.", "Theirs is newer"),
        ("...", ""),
        (".a is hidden. x", ".a is hidden"),
        ("EXX. y", "EXX"),
    ],
)
def test_clause_is_the_first_sentence_without_its_end(text: str, clause: str) -> None:
    """F3: it follows a colon, so it begins with a small letter unless its first word is a name."""
    assert _as_clause(text) == clause


def found(
    check: Check | None, survivors: tuple[SurvivorFound, ...] = (), verified: Verified | None = None
) -> InspectionResult:
    return InspectionResult(check, (), survivors, ChangedFiles(), verified)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (found("unchanged", ALIVE), "a process of the earlier attempt may still run"),
        (found("satisfied"), "the check says satisfied, so it may have happened"),
        (found(None), "the check says nothing, so it may have happened"),
        (
            found("unchanged", (), Verified("unknown", False, ".The queue is full..")),
            "its tool does not confirm that it did not and cannot happen (.The queue is full)",
        ),
        (
            found(None, (), Verified("unknown", False, "no answer XX")),
            "its tool does not confirm that it did not and cannot happen (no answer XX)",
        ),
    ],
)
def test_retry_says_why_the_effect_is_not_known_to_be_absent(result: InspectionResult, why: str) -> None:
    """F3: the fence, then the tool's own verifier, then the check."""
    assert _why_not_absent(result) == why
    refused = _retry_unsafe(why)
    assert (refused.kind, refused.message, refused.more) == (
        "retryUnsafe",
        f"It cannot be retried: {why}.",
        {"why": why},
    )


def test_restore_that_cannot_be_planned_is_not_offered_for_the_tool_s_reason() -> None:
    """A5: the sentence and the member say the same."""
    refused = _not_offered(Refusal("changed", "The path a now leads somewhere else."))
    assert (refused.kind, refused.message) == ("notOffered", "The path a now leads somewhere else.")
    assert refused.more == {"why": "The path a now leads somewhere else."}


@pytest.mark.parametrize(
    ("command", "name"),
    [("/bin/sh -c 'cat secret'", "sh"), ("sleep 5 6", "sleep"), (" ", "?"), ("", "?"), ("a\tb c", "a")],
)
def test_model_is_told_the_program_s_name_alone(command: str, name: str) -> None:
    """B5: a command line contains stored arguments, which do not go to the model."""
    assert _program_name(command) == name
