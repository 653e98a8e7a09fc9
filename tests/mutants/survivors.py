"""Mistakes that no test has to notice, each with its reason: the program does the same, or nothing rests on it.

A mistake that changes only the words of a sentence is counted apart, as `words`: the tests compare the sentences that
are fixed, and of the others the parts that a person needs.
"""

from __future__ import annotations

import re

from steadyhand_values import frozen
from tests.mutants.results import Mutant

WORDS = "only the words of a sentence"
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


@frozen
class Survivor:
    """`change`: what the mistake makes of the line, or a part of it."""

    module: str
    function: str
    change: str
    why: str


SURVIVORS: tuple[Survivor, ...] = (
    Survivor(
        "domain/recovery/postcondition",
        "intended_changes",
        "(goal.existed) or True",
        "a path at which nothing was has no content before",
    ),
    Survivor(
        "session/recovery/resolve",
        "latest_view",
        "attempt.inspection is None and attempt.inspection_at is None",
        "one record sets both",
    ),
    Survivor(
        "session/recovery/resolve",
        "_refuse_with",
        "(view) or True",
        "the inspection is of this epoch, so it has a view",
    ),
    Survivor("session/inspection/verifier", "_ask", 'else "XXXX")', "neither text is an object in JSON"),
    Survivor(
        "session/inspection/verifier", "_unknown", 'Verified("unknown", True, why)', "only an absence can be fenced"
    ),
    Survivor(
        "tools/writes/postcondition_check",
        "_has_intended_content",
        "evidence.intended_bytes or 1",
        "no content of one byte has the digest of the empty one",
    ),
    Survivor(
        "tools/writes/planned_write",
        "PlannedChange._report_unchanged",
        "evidence.intended_bytes or 1",
        "no content of one byte has the digest of the empty one",
    ),
    *(
        Survivor("domain/ledger/ledger", "Ledger.apply_unrecorded", change, "a record that is only shown has no place")
        for change in ("seq=1", '"XXXX", sum', 'sum="XXXX"')
    ),
)


def explanation_of(mutant: Mutant, lines: tuple[str, ...]) -> str | None:
    """Return why this mistake may survive; None if nobody has said."""
    if _changes_words_only(lines):
        return WORDS
    made = [line[2:] for line in lines if line.startswith("+")]
    for one in SURVIVORS:
        if (one.module, one.function) == (mutant.module, mutant.function) and any(one.change in line for line in made):
            return one.why
    return None


def _changes_words_only(lines: tuple[str, ...]) -> bool:
    """Whether the line is the same but for texts that are sentences, as mutmut changes them: `XX…XX`, or the case."""
    before, after = ([line[2:] for line in lines if line.startswith(sign)] for sign in "-+")
    if len(before) != 1 or len(after) != 1:
        return False
    old, new = _TEXT.findall(before[0]), _TEXT.findall(after[0])
    if len(old) != len(new) or _TEXT.sub('""', before[0]) != _TEXT.sub('""', after[0]):
        return False
    changed = [(was, now) for was, now in zip(old, new, strict=True) if was != now]
    return bool(changed) and all(
        " " in was.strip() and now in (f"XX{was}XX", was.lower(), was.upper()) for was, now in changed
    )
