"""The proof as jobs for two processes. Each job runs in a fork, so that no patch outlives it.

A job is a layer, a share of it, and optionally a variant. The full proof has all shares; the short one, part of `make
test`, has samples of the same layers and every variant. It needs no pool and no thread: the parent forks, waits for a
child that ends, and forks again.
"""

from __future__ import annotations

import os
import pickle
import select
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs

from steadyhand.domain.recovery.tables import SettleSetting
from tests.crash.promises import HAND, WORDS
from tests.prove import decisions, faults, flips, generations, interposed, kills, messages, power_loss, taken, zombies
from tests.prove.decisions import DECISIONS, LAST, Decision
from tests.prove.scenarios import SCENARIOS, TWO_NAMES
from tests.prove.simulated_server import watched
from tests.prove.tally import Enough, Tally
from tests.prove.variants import VARIANTS, Variant
from tests.support.fakes import own_marks

workers_max = 2
ABORTED = "the layer was aborted"
Work = Callable[[Tally], None]


@attrs.frozen
class Job:
    """One piece of work in a process of its own."""

    layer: str
    name: str
    work: Work
    variant: Variant | None = None


@attrs.frozen
class Ended:
    job: Job
    tally: Tally


def run(jobs: Iterable[Job]) -> Iterator[Ended]:
    """All jobs, `workers_max` at a time, in the order in which they end."""
    waiting = list(reversed(list(jobs)))
    running: dict[int, tuple[int, Job, list[bytes]]] = {}
    while waiting or running:
        while waiting and len(running) < workers_max:
            job = waiting.pop()
            pid, reading = _fork(job)
            running[reading] = (pid, job, [])
        for reading in select.select(list(running), [], [])[0]:
            pid, job, pieces = running[reading]
            if piece := os.read(reading, 1 << 20):
                pieces.append(piece)
                continue
            os.close(reading)
            os.waitpid(pid, 0)
            del running[reading]
            yield Ended(job, _tally(b"".join(pieces)))


def _tally(content: bytes) -> Tally:
    if not content:
        lost = Tally()
        lost.violation("a job of the proof died", "")
        return lost
    found: Tally = pickle.loads(content)
    return found


def _fork(job: Job) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    try:
        os.close(reading)
        own_marks()
        content = pickle.dumps(_done(job))
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(0)


def _done(job: Job) -> Tally:
    tally = Tally(first_is_enough=job.variant is not None)
    begun = _cpu_s()
    try:
        if job.variant is not None:
            try:
                job.variant.apply()
            except BaseException as error:
                tally.skipped = f"cannot be applied: {error}"
                return tally
        watched()
        job.work(tally)
    except BaseException as error:
        if _is_enough(error):
            tally.seconds = _cpu_s() - begun
            return tally
        # An exception that prevents any judgment counts too; without a variant it is a failure of the product.
        tally.first_is_enough = False
        tally.violation(ABORTED, traceback.format_exc()[-2000:])
    tally.seconds = _cpu_s() - begun
    return tally


def _is_enough(error: BaseException) -> bool:
    """Whether it is `Enough`, also inside an exception group."""
    inner = getattr(error, "exceptions", ())
    return isinstance(error, Enough) or (bool(inner) and all(map(_is_enough, inner)))


def _cpu_s() -> float:
    """CPU seconds of this process and of the children that it waited for."""
    return sum(os.times()[:4])


# The jobs.


def _power(scenario: str, part: int, parts: int) -> Work:
    return lambda tally: power_loss.lose_power(SCENARIOS[scenario], tally, "byte", part, parts)


def _sectors(*scenarios: str, parts: int = 1, nested: bool = False) -> Work:
    def work(tally: Tally) -> None:
        for scenario in scenarios:
            power_loss.lose_power(SCENARIOS[scenario], tally, "sector", 0, parts, product=24, nested=nested)

    return work


def _killed(scenario: str, part: int, parts: int, settle: SettleSetting = "checked") -> Work:
    return lambda tally: power_loss.kill_then_lose_power(SCENARIOS[scenario], tally, part, parts, settle)


def _opened(*scenarios: str) -> Work:
    def work(tally: Tally) -> None:
        for scenario in scenarios:
            power_loss.kill_and_open(SCENARIOS[scenario], tally)

    return work


SETTLING: tuple[Decision, ...] = ("confirm", "waive", "reject")
REDOING: tuple[Decision, ...] = ("undo", "retry")  # an undone restore begins with a restore


def _decided(scenario: str, wanted: tuple[Decision, ...], part: int, parts: int, *after: int) -> Work:
    at = after or decisions.after_body_operations
    return lambda tally: decisions.decide_and_lose_power(SCENARIOS[scenario], tally, part, parts, wanted, at)


def _failed(scenario: str, part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: faults.fail_everywhere(SCENARIOS[scenario], tally, part, parts, each)


def _failed_in_place(tally: Tally) -> None:
    """A sample of the operations, and every sync of a written file: no change of the scenario moves those out of it."""
    faults.fail_everywhere(
        SCENARIOS["in place"], tally, 0, 1, 5, lambda verb, name: verb == "sync" and name in TWO_NAMES
    )


def _flipped(scenario: str, part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: flips.flip_every_byte(SCENARIOS[scenario], tally, part, parts, each)


def _cut(part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: flips.cut_at_every_byte(SCENARIOS["plain"], tally, part, parts, each)


def _taken(scenario: str, each: int, *names: str) -> Work:
    takes = {name: taken.TAKES[name] for name in names or taken.TAKES}
    return lambda tally: taken.take_away(SCENARIOS[scenario], tally, 0, 1, each, takes)


def _odd(tally: Tally) -> None:
    flips.odd_sessions(SCENARIOS["plain"], tally)


def _all(*works: Work) -> Work:
    def work(tally: Tally) -> None:
        for one in works:
            one(tally)

    return work


SHARES = {
    "again": 24, "asked": 4, "stopped": 8, "saved at the exchange": 8, "saved before the gate": 8, "moved": 6,
    "saved at the move": 8, "handed": 24, "no exchange": 10, "in place": 8,
}  # fmt: skip
"""One in this many states of these scenarios is taken; every state of "plain" is."""

TAKING_BACK = ("undone", "rewound", "revised")
ONCE_MORE = {"undone": 80, "rewound": 80, "revised": 24, "in the editor": 24}
"""The same for what is killed at every operation too."""

OTHERS_FAILING = ("moved", "handed", "no exchange")
TAKING_FAILING = ("undone", "rewound", "in the editor")
REDONE = ("plain", "moved", "in place")

SAMPLES: dict[str, Work] = {
    "L1": _all(_sectors("plain", nested=True), _sectors("again")),
    "L1 saves": _sectors("saved at the exchange", "saved before the gate"),
    "L1 moves": _all(_sectors("moved", "saved at the move"), _sectors("handed", parts=4), _killed("handed", 0, 4)),
    "L1 stops": _sectors("stopped"),
    "L1 in place": _all(_sectors("in place", parts=4), _decided("in place", ("undo",), 0, 3, 3, LAST)),
    "L1 asks": _sectors("asked"),
    "L1 takes back": _all(_opened(*TAKING_BACK), _sectors(*TAKING_BACK, parts=2)),
    "L1 editor": _all(_opened("in the editor"), _sectors("in the editor")),
    "L1 killed": _killed("plain", 0, 6),
    "L1 decisions": _decided("plain", SETTLING, 0, 18),
    "L1 restores": _all(_decided("plain", ("undo",), 0, 2, LAST), _decided("moved", ("undo",), 0, 2, LAST)),
    "L1 retries": _all(_decided("plain", ("retry",), 1, 4, 0), messages.try_again),
    "L1 the model": _decided("plain", ("model",), 1, 4, 5),
    "L2": _failed("plain", 0, 1, each=4),
    "L2 in place": _failed_in_place,
    "L3": lambda tally: kills.kill_everywhere(tally, HAND, 0, 1, each=23),
    "L5": _all(_taken("plain", each=9), _taken("plain", 1, "the lock is removed")),
    "L6": _all(_flipped("plain", 0, 1, each=41), _cut(0, 1, each=61), _odd),
    "L7": _all(zombies.left_jobs, zombies.stopped_attempts, lambda tally: zombies.stopped_owners(tally, 0, 1, each=23)),
    "L8": lambda tally: generations.run_histories(tally, 0, histories=15),
}
"""A part of each layer that takes seconds; variants are judged by it."""


def short() -> list[Job]:
    """A smaller sample of each layer but the interposer, and every variant."""
    smaller = {
        "L1": _all(_sectors("plain", parts=2, nested=True), _sectors("again", parts=2)),
        "L1 killed": _killed("plain", 1, 12),
        "L1 moves": _all(_sectors("moved", "saved at the move", "handed", parts=8), _killed("handed", 1, 12)),
        "L1 restores": _decided("plain", ("undo",), 0, 2, LAST),
        "L1 retries": _decided("plain", ("retry",), 1, 4, 0),
        "L1 takes back": _all(_opened("revised"), _sectors(*TAKING_BACK, parts=24)),
        "L1 editor": _all(_opened("in the editor"), _sectors("in the editor", parts=4)),
        "L2": _failed("plain", 3, 25),
        "L2 in place": _failed("in place", 5, 25),
        "L5": _taken("plain", each=31),
    }
    return [Job(name, "", smaller.get(name, work)) for name, work in SAMPLES.items()] + mutants()


def mutants() -> list[Job]:
    """Every variant under its layer."""
    return [Job(variant.layer, variant.breaks, SAMPLES[variant.layer], variant) for variant in VARIANTS]


def full() -> list[Job]:
    """All of every layer, and every variant."""
    jobs = [Job("L1", "plain", _power("plain", part, 4)) for part in range(4)]
    jobs += [Job("L1", scenario, _power(scenario, 0, parts)) for scenario, parts in SHARES.items()]
    jobs += [Job("L1 killed", "plain", _killed("plain", part, 4)) for part in range(4)]
    jobs += [Job("L1 killed", scenario, _killed(scenario, 1, parts)) for scenario, parts in SHARES.items()]
    for name, parts in ONCE_MORE.items():
        jobs += [Job("L1", name, _power(name, 0, parts))]
        jobs += [Job("L1 killed", name, _all(_opened(name), _killed(name, 1, parts // 2)))]
    jobs += [Job("L1 killed", "asked to settle", _killed("plain", 0, 4, "ask"))]
    jobs += [Job("L1 decisions", "settled", _decided("plain", SETTLING, part, 4)) for part in range(2)]
    jobs += [Job("L1 decisions", scenario, _decided(scenario, REDOING, 0, 1)) for scenario in REDONE]
    jobs += [Job("L1 decisions", "handed", _decided("handed", DECISIONS, 3, 10))]
    jobs += [Job("L1 decisions", "the model", _decided("plain", ("model",), 1, 3))]
    jobs += [Job("L1 decisions", "messages", messages.try_again)]
    jobs += [Job("L2", "plain", _failed("plain", part, 2)) for part in range(2)]
    jobs += [Job("L2", scenario, _failed(scenario, 0, 1, each=7)) for scenario in OTHERS_FAILING]
    jobs += [Job("L2", scenario, _failed(scenario, 0, 1, each=29)) for scenario in TAKING_FAILING]
    jobs += [Job("L2", "in place", _failed_in_place)]
    for scenario_name in REDONE:
        jobs += [
            Job(
                "L2", f"{scenario_name}, decisions", partial(faults.fail_in_decisions, SCENARIOS[scenario_name], each=2)
            )
        ]
    for name, scenario in (("words", WORDS), ("hand", HAND)):
        jobs += [
            Job("L3", name, partial(kills.kill_everywhere, scenario=scenario, part=part, parts=2)) for part in range(2)
        ]
    jobs += [Job("L4", "", partial(interposed.kill_the_installed, part=part, parts=2)) for part in range(2)]
    jobs += [
        Job("L5", scenario, _taken(scenario, each))
        for scenario, each in (("plain", 2), ("asked", 7), ("moved", 7), ("handed", 7), ("again", 13))
    ]
    jobs += [Job("L6", scenario, _flipped(scenario, part, 2)) for scenario in ("plain", "stopped") for part in range(2)]
    jobs += [Job("L6", "handed", _flipped("handed", 0, 1, each=3))]
    jobs += [Job("L6", "cut and odd", _all(_cut(part, 2), *([] if part else [_odd]))) for part in range(2)]
    jobs += [Job("L7", "owners", partial(zombies.stopped_owners, part=part, parts=2)) for part in range(2)]
    hiding = _all(zombies.left_jobs, zombies.stopped_attempts, zombies.hiding_children)
    jobs += [Job("L7", "attempts, children", hiding)]
    jobs += [Job("L8", "", partial(generations.run_histories, seed=seed, histories=150)) for seed in range(2)]
    return jobs + mutants()


def layers(ended: Sequence[Ended]) -> dict[str, Tally]:
    """What each layer found in the product itself."""
    found: dict[str, Tally] = {}
    for one in ended:
        if one.job.variant is None:
            found.setdefault(one.job.layer, Tally()).add(one.tally)
    return found


def caught(ended: Sequence[Ended]) -> dict[str, list[str]]:
    """Variant → the layers that caught it; an empty list: it survived."""
    found: dict[str, list[str]] = {variant.breaks: [] for variant in VARIANTS}
    for one in ended:
        # An exception alone does not show that a promise is broken.
        if one.job.variant is not None and set(one.tally.violations) - {ABORTED}:
            found[one.job.variant.breaks].append(one.job.layer)
    return found
