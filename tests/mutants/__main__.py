"""Make single mistakes in the modules of modules.py and run the fast tests against each one: `make mutants`.

    python -m tests.mutants [--only MODULE ...] [--processes N] [--again] [--proof | --show | --known]

A run that was stopped goes on where it was; a function that changed is tried anew, and with `--again` also each mistake
that survived. `--proof` runs the slow tests against what survived. `--show` runs nothing. `--known` makes the mistakes
of known.py instead. The exit code is 1 if a mistake survives that survivors.py does not explain. docs/mutants.md says
what the columns mean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.mutants.known import unnoticed
from tests.mutants.modules import MODULES
from tests.mutants.proof import is_caught_by_proof, run_proof
from tests.mutants.results import Mutant, changes_of, mutants_of, record_type_errors, set_aside, take_back, try_again
from tests.mutants.survivors import WORDS, explanation_of
from tests.mutants.workspace import WORK, prepare

LOG = WORK / "mutmut.log"
FIRST = "steadyhand.domain.recovery.postcondition.x_partial_state__mutmut_1"
"""One mistake with one test: to try it, mutmut makes all mistakes and finds the tests of each."""


def main() -> int:
    arguments = _arguments()
    chosen = [module for module in MODULES if not arguments.only or any(part in module for part in arguments.only)]
    if not chosen:
        print(f"No module of tests/mutants/modules.py has {' or '.join(arguments.only)} in its name.", file=sys.stderr)
        return 2
    if arguments.known:
        return 1 if unnoticed() else 0
    for module in chosen if arguments.again else ():
        try_again(module)
    if arguments.proof:
        for mutant, _ in (one for module in chosen for one in _left(module)):
            print(f"{'caught' if run_proof(mutant) else 'survived'}: {mutant.name}", flush=True)
    elif not arguments.show and not _run(chosen, arguments.processes):
        print(f"mutmut failed; the end of {LOG} says why.", file=sys.stderr)
        return 2
    return _report(chosen)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", nargs="+", default=[], metavar="MODULE", help="modules with this in their name")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--again", action="store_true", help="try what survived again, after tests were added")
    parser.add_argument("--proof", action="store_true", help="run the slow tests against what survived")
    parser.add_argument("--show", action="store_true", help="show what the last run found")
    parser.add_argument("--known", action="store_true", help="make the mistakes of known.py")
    return parser.parse_args()


def _run(chosen: Sequence[str], processes: int) -> bool:
    """Try the mistakes in these modules that have no verdict yet."""
    prepare()
    for module in MODULES:
        take_back(module)
    if _mutmut(processes, FIRST) != 0:
        return False
    _check_types()
    for module in set(MODULES) - set(chosen):
        set_aside(module)
    try:
        return _mutmut(processes) == 0
    finally:
        for module in MODULES:
            take_back(module)


def _mutmut(processes: int, *names: str) -> int:
    command = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", str(processes), *names]
    with LOG.open("ab") as log:
        return subprocess.run(command, cwd=WORK, stdout=log, stderr=log, check=False).returncode


def _check_types() -> None:
    """Find the mistakes that the type checker catches: no test has to run against them."""
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--output", "json", "mutants/src/steadyhand"]
    checked = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=False)
    lines: dict[str, set[int]] = {}
    for error in map(json.loads, checked.stdout.splitlines()):
        if error["severity"] == "error":
            lines.setdefault(error["file"], set()).add(error["line"])
    for module in MODULES:
        record_type_errors(module, lines.get(f"mutants/src/steadyhand/{module}.py", set()))


def _report(modules: Sequence[str]) -> int:
    """Print a row for each module, and every survivor that nobody has explained; return the exit code."""
    print("| module | mistakes | types | tests | time | proof | words | explained | survived | not tried |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    survived: list[str] = []
    for module in modules:
        counted = Counter[str](mutant.verdict for mutant in mutants_of(module))
        for mutant, lines in _survivors(module):
            why = explanation_of(mutant, lines)
            if why is not None:
                counted["words" if why == WORDS else "explained"] += 1
            elif is_caught_by_proof(mutant):
                counted["proof"] += 1
            else:
                counted["left"] += 1
                survived.append("\n    ".join((f"{mutant.name} ({mutant.verdict})", *lines)))
        columns = [sum(counted[one] for one in VERDICTS), *(counted[one] for one in COLUMNS)]
        print(f"| {module} |", " | ".join(map(str, columns)), "|")
        total.update(counted)
    print("", *survived, sep="\n")
    caught = sum(total[one] for one in CAUGHT)
    counting = caught + total["left"] + total["words"]
    if counting:
        print(f"\n{caught} of {counting} caught: {100 * caught / counting:.1f} %.", end=" ")
        print(f"Without words: {100 * caught / (counting - total['words']):.1f} %.")
    return 1 if survived else 0


def _survivors(module: str) -> Iterator[tuple[Mutant, tuple[str, ...]]]:
    """Yield what the fast tests did not notice in a module, with the lines that it changes."""
    return changes_of([one for one in mutants_of(module) if one.verdict in ("survived", "no test")])


def _left(module: str) -> Iterator[tuple[Mutant, tuple[str, ...]]]:
    """Yield what nobody has explained and the slow tests have not seen yet."""
    for mutant, lines in _survivors(module):
        if explanation_of(mutant, lines) is None and is_caught_by_proof(mutant) is None:
            yield mutant, lines


VERDICTS = ("types", "tests", "time", "survived", "no test", "open")
CAUGHT = ("types", "tests", "time", "proof")
COLUMNS = (*CAUGHT, "words", "explained", "left", "open")

if __name__ == "__main__":
    raise SystemExit(main())
