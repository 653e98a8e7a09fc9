"""What the proof consists of, as jobs for two processes; a fork for each job, so that no patch outlives it.

A job is a layer, a share of it, and perhaps a variant. The full proof has all shares; the short one, part of `make
test`, has samples of the same layers and every variant. No pool and no thread is needed: the parent forks, waits for
whoever is done, and forks again.
"""

from __future__ import annotations

import os
import pickle
import select
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import attrs

from steadyhand.core.recovery import SettleSetting
from tests.crash.promises import HAND, WORDS
from tests.prove import decisions, faults, flips, generations, interposed, kills, messages, power_loss, zombies
from tests.prove.decisions import DECISIONS, LAST, Decision
from tests.prove.lives import watched
from tests.prove.stories import STORIES
from tests.prove.tally import Enough, Tally
from tests.prove.variants import VARIANTS, Variant
from tests.support.fakes import own_marks

workers_max = 2
BROKE_OFF = "the layer broke off"
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
        # What breaks so badly that nothing can be judged is caught too; of the product itself it is a failure.
        tally.first_is_enough = False
        tally.violation(BROKE_OFF, traceback.format_exc()[-2000:])
    tally.seconds = _cpu_s() - begun
    return tally


def _is_enough(error: BaseException) -> bool:
    """Also where it came out of a task group."""
    inner = getattr(error, "exceptions", ())
    return isinstance(error, Enough) or (bool(inner) and all(map(_is_enough, inner)))


def _cpu_s() -> float:
    """Of this process and the children it waited for."""
    return sum(os.times()[:4])


# What the jobs are.


def _power(story: str, part: int, parts: int) -> Work:
    return lambda tally: power_loss.lose_power(STORIES[story], tally, "byte", part, parts)


def _sectors(*stories: str, parts: int = 1, nested: bool = False) -> Work:
    def work(tally: Tally) -> None:
        for story in stories:
            power_loss.lose_power(STORIES[story], tally, "sector", 0, parts, product=24, nested=nested)

    return work


def _killed(story: str, part: int, parts: int, settle: SettleSetting = "checked") -> Work:
    return lambda tally: power_loss.kill_then_lose_power(STORIES[story], tally, part, parts, settle)


SETTLING: tuple[Decision, ...] = ("confirm", "waive", "reject")
REDOING: tuple[Decision, ...] = ("undo", "retry")  # an undone restore begins with a restore


def _decided(story: str, wanted: tuple[Decision, ...], part: int, parts: int, *after: int) -> Work:
    at = after or decisions.after_body_operations
    return lambda tally: decisions.decide_and_lose_power(STORIES[story], tally, part, parts, wanted, at)


def _failed(story: str, part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: faults.fail_everywhere(STORIES[story], tally, part, parts, each)


def _flipped(story: str, part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: flips.flip_every_byte(STORIES[story], tally, part, parts, each)


def _cut(part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: flips.cut_at_every_byte(STORIES["plain"], tally, part, parts, each)


def _odd(tally: Tally) -> None:
    flips.odd_sessions(STORIES["plain"], tally)


def _all(*works: Work) -> Work:
    def work(tally: Tally) -> None:
        for one in works:
            one(tally)

    return work


SHARES = {
    "again": 24, "asked": 4, "stopped": 8, "saved at the exchange": 8, "saved before the gate": 8, "moved": 6,
    "saved at the move": 8, "handed": 24, "no exchange": 10,
}  # fmt: skip
"""Of these stories every so manieth state is taken; of "plain" each."""

SAMPLES: dict[str, Work] = {
    "L1": _all(_sectors("plain", nested=True), _sectors("again")),
    "L1 saves": _sectors("saved at the exchange", "saved before the gate"),
    "L1 moves": _all(_sectors("moved", "saved at the move"), _sectors("handed", parts=4), _killed("handed", 0, 4)),
    "L1 stops": _sectors("stopped"),
    "L1 asks": _sectors("asked"),
    "L1 killed": _killed("plain", 0, 6),
    "L1 decisions": _decided("plain", SETTLING, 0, 18),
    "L1 restores": _all(_decided("plain", ("undo",), 0, 2, LAST), _decided("moved", ("undo",), 0, 2, LAST)),
    "L1 retries": _all(_decided("plain", ("retry",), 1, 4, 0), messages.try_again),
    "L1 the model": _decided("plain", ("model",), 1, 4, 5),
    "L2": _failed("plain", 0, 1, each=4),
    "L3": lambda tally: kills.kill_everywhere(tally, HAND, 0, 1, each=23),
    "L6": _all(_flipped("plain", 0, 1, each=41), _cut(0, 1, each=61), _odd),
    "L7": _all(zombies.left_jobs, zombies.stopped_attempts, lambda tally: zombies.stopped_owners(tally, 0, 1, each=23)),
    "L8": lambda tally: generations.live_and_die(tally, 0, lives=15),
}
"""A part of each layer that takes seconds; what a variant is judged by."""


def short() -> list[Job]:
    """A smaller sample of each layer but the interposer, and every variant."""
    smaller = {
        "L1": _all(_sectors("plain", parts=2, nested=True), _sectors("again", parts=2)),
        "L1 killed": _killed("plain", 1, 12),
        "L1 moves": _all(_sectors("moved", "saved at the move", "handed", parts=8), _killed("handed", 1, 12)),
        "L1 restores": _decided("plain", ("undo",), 0, 2, LAST),
        "L1 retries": _decided("plain", ("retry",), 1, 4, 0),
        "L2": _failed("plain", 3, 25),
    }
    return [Job(name, "", smaller.get(name, work)) for name, work in SAMPLES.items()] + mutants()


def mutants() -> list[Job]:
    """Every variant under its layer."""
    return [Job(variant.layer, variant.breaks, SAMPLES[variant.layer], variant) for variant in VARIANTS]


def full() -> list[Job]:
    """All of every layer, and every variant."""
    jobs = [Job("L1", "plain", _power("plain", part, 4)) for part in range(4)]
    jobs += [Job("L1", story, _power(story, 0, parts)) for story, parts in SHARES.items()]
    jobs += [Job("L1 killed", "plain", _killed("plain", part, 4)) for part in range(4)]
    jobs += [Job("L1 killed", story, _killed(story, 1, parts)) for story, parts in SHARES.items()]
    jobs += [Job("L1 killed", "asked to settle", _killed("plain", 0, 4, "ask"))]
    jobs += [Job("L1 decisions", "settled", _decided("plain", SETTLING, part, 4)) for part in range(2)]
    jobs += [Job("L1 decisions", story, _decided(story, REDOING, 0, 1)) for story in ("plain", "moved")]
    jobs += [Job("L1 decisions", "handed", _decided("handed", DECISIONS, 3, 10))]
    jobs += [Job("L1 decisions", "the model", _decided("plain", ("model",), 1, 3))]
    jobs += [Job("L1 decisions", "messages", messages.try_again)]
    jobs += [Job("L2", "plain", _failed("plain", part, 2)) for part in range(2)]
    jobs += [Job("L2", story, _failed(story, 0, 1, each=7)) for story in ("moved", "handed", "no exchange")]
    for story_name in ("plain", "moved"):
        jobs += [Job("L2", f"{story_name}, decisions", partial(faults.fail_in_decisions, STORIES[story_name], each=2))]
    for name, story in (("words", WORDS), ("hand", HAND)):
        jobs += [Job("L3", name, partial(kills.kill_everywhere, story=story, part=part, parts=2)) for part in range(2)]
    jobs += [Job("L4", "", partial(interposed.kill_the_installed, part=part, parts=2)) for part in range(2)]
    jobs += [Job("L6", story, _flipped(story, part, 2)) for story in ("plain", "stopped") for part in range(2)]
    jobs += [Job("L6", "handed", _flipped("handed", 0, 1, each=3))]
    jobs += [Job("L6", "cut and odd", _all(_cut(part, 2), *([] if part else [_odd]))) for part in range(2)]
    jobs += [Job("L7", "owners", partial(zombies.stopped_owners, part=part, parts=2)) for part in range(2)]
    hiding = _all(zombies.left_jobs, zombies.stopped_attempts, zombies.hiding_children)
    jobs += [Job("L7", "attempts, children", hiding)]
    jobs += [Job("L8", "", partial(generations.live_and_die, seed=seed, lives=150)) for seed in range(2)]
    return jobs + mutants()


def layers(ended: Sequence[Ended]) -> dict[str, Tally]:
    """What each layer found of the product itself."""
    found: dict[str, Tally] = {}
    for one in ended:
        if one.job.variant is None:
            found.setdefault(one.job.layer, Tally()).add(one.tally)
    return found


def caught(ended: Sequence[Ended]) -> dict[str, list[str]]:
    """Variant → the layers that caught it; an empty list: it survived."""
    found: dict[str, list[str]] = {variant.breaks: [] for variant in VARIANTS}
    for one in ended:
        # That something merely broke is not yet a promise that is seen to be broken.
        if one.job.variant is not None and set(one.tally.violations) - {BROKE_OFF}:
            found[one.job.variant.breaks].append(one.job.layer)
    return found
