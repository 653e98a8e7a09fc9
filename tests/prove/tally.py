"""The counts of one job of the proof, and how the counts of jobs are added."""

from __future__ import annotations

from collections import Counter

import attrs

examples_max = 3
"""For each kind of violation, with the state that shows it."""


class Enough(BaseException):
    """A variant is caught; more of it would show nothing new."""


@attrs.define
class Tally:
    """`states`: distinct crash states, or runs. `skipped`: why a layer could not run here."""

    states: int = 0
    violations: Counter[str] = attrs.field(factory=Counter)
    examples: dict[str, list[str]] = attrs.field(factory=dict)
    counted: Counter[str] = attrs.field(factory=Counter)
    seconds: float = 0.0
    skipped: str | None = None
    first_is_enough: bool = False

    def violation(self, sentence: str, where: str) -> None:
        self.violations[sentence] += 1
        shown = self.examples.setdefault(sentence, [])
        if len(shown) < examples_max:
            shown.append(where)
        if self.first_is_enough:
            raise Enough

    def add(self, other: Tally) -> None:
        self.states += other.states
        self.violations += other.violations
        self.counted += other.counted
        self.seconds += other.seconds
        self.skipped = self.skipped or other.skipped
        for sentence, shown in other.examples.items():
            mine = self.examples.setdefault(sentence, [])
            mine += shown[: examples_max - len(mine)]
