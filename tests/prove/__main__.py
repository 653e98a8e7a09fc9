"""`make prove`: every layer and every variant, in two processes; the result is one table.

The exit code is 1 if a promise is broken, if there are fewer states than `states_min`, if a variant survives, or if a
layer did not run and does not say why.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from tests.prove.jobs import Ended, caught, full, layers, run, short
from tests.prove.tally import Tally

states_min = 150_000
"""Distinct crash states of L1."""
TITLES = {
    "L1": "power loss at every byte",
    "L1 killed": "killed, opened, power loss",
    "L1 decisions": "power loss in decisions",
    "L2": "every operation fails",
    "L3": "SIGKILL at every operation",
    "L4": "the program under an interposer",
    "L5": "lock, folder or journal taken away",
    "L6": "journals flipped, cut, odd",
    "L7": "zombies and hiding children",
    "L8": "generations of crashes",
}


def main(arguments: Sequence[str]) -> int:
    """The exit code. `--short`: the selection that is part of `make test`."""
    begun = time.monotonic()
    ended: list[Ended] = []
    is_short = "--short" in arguments
    for one in run(short() if is_short else full()):
        ended.append(one)
        if one.job.variant is None:
            what = f"{one.job.layer} {one.job.name}".strip()
            sys.stderr.write(f"{time.monotonic() - begun:4.0f} s: {what}, {one.tally.states:,} states or runs\n")
    found, mutants = layers(ended), caught(ended)
    sys.stdout.write(table(found, mutants) + f"\n{time.monotonic() - begun:.0f} s in all\n")
    wrong = problems(found, mutants, is_short)
    for sentence in wrong:
        sys.stdout.write(f"WRONG: {sentence}\n")
    return 1 if wrong else 0


def table(found: dict[str, Tally], mutants: dict[str, list[str]]) -> str:
    """One line for each layer, then the counts, and which layer caught which variant."""
    lines = [f"{'layer':<46}{'states, runs':>13}{'CPU s':>8}{'violations':>12}{'variants caught':>17}"]
    for layer in sorted(found):
        tally = found[layer]
        title = f"{layer}: {TITLES.get(layer, 'a sample')}"
        count = sum(layer in by for by in mutants.values())
        if tally.skipped:
            lines.append(f"{title:<46} not run: {tally.skipped}")
            continue
        violations = sum(tally.violations.values())
        lines.append(f"{title:<46}{tally.states:>13,}{tally.seconds:>8.0f}{violations:>12}{count:>17}")
    power = sum(tally.states for layer, tally in found.items() if layer.startswith("L1"))
    lines.append(f"{'distinct crash states of L1':<46}{power:>13,}")
    lines.append(f"{'variants':<46}{len(mutants):>13}{'':>20}{sum(map(bool, mutants.values())):>17}")
    lines += [f"  {', '.join(by) or 'SURVIVED':<14}{name}" for name, by in mutants.items()]
    counted = {name: count for tally in found.values() for name, count in tally.counted.items()}
    lines += [f"counted, no violation: {name}: {count:,}" for name, count in sorted(counted.items())]
    return "\n".join(lines)


def problems(found: dict[str, Tally], mutants: dict[str, list[str]], is_short: bool = False) -> list[str]:
    """What makes the proof fail, one sentence each."""
    wrong = []
    for layer, tally in found.items():
        for sentence, count in tally.violations.items():
            wrong.append(f"{layer}: {sentence} ({count} times), as in: {tally.examples[sentence][0]}")
        if not tally.states and not tally.skipped:
            wrong.append(f"{layer} did not run and does not say why")
    power = sum(tally.states for layer, tally in found.items() if layer.startswith("L1"))
    least = 10_000 if is_short else states_min
    if power < least:
        wrong.append(f"{power} crash states are fewer than {least}")
    wrong += [f"a variant survives: {name}" for name, by in mutants.items() if not by]
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
