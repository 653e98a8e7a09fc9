"""What the proof consists of, as jobs for two processes; a fork for each job, so that no patch outlives it.

A job is a layer, a share of it, and perhaps a variant. The full proof has all shares; the short one, part of `make
test`, has samples of the same layers and every variant. No pool and no thread is needed: the parent forks, waits for
whoever is done, and forks again.
"""

from __future__ import annotations

import os
import pickle
import select
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from tests.prove import decisions, faults, flips, kills, power_loss, zombies
from tests.prove.lives import STORIES, watched
from tests.prove.tally import Tally
from tests.prove.variants import VARIANTS, Variant

workers_max = 2
Work = Callable[[Tally], None]
UNDER_THE_LAYER: dict[str, str] = {
    "L1": "power loss",
    "L2": "failing operations",
    "L3": "SIGKILL",
    "L4": "interposer",
    "L6": "flipped, cut and odd journals",
    "L7": "zombies",
    "L8": "generations",
}


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
        content = pickle.dumps(_done(job))
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(0)


def _done(job: Job) -> Tally:
    tally = Tally()
    begun = time.monotonic()
    try:
        if job.variant is not None:
            job.variant.apply()
        watched()
        job.work(tally)
    except BaseException:
        # What breaks so badly that nothing can be judged is caught too; of the product itself it is a failure.
        tally.violation("the layer broke off", traceback.format_exc()[-2000:])
    tally.seconds = time.monotonic() - begun
    return tally


# The full proof.


def _power(story: str, part: int, parts: int) -> Work:
    return lambda tally: power_loss.lose_power(STORIES[story], tally, "byte", part, parts)


def _killed(story: str, part: int, parts: int) -> Work:
    return lambda tally: power_loss.kill_then_lose_power(STORIES[story], tally, part, parts)


def _asked(story: str, part: int, parts: int) -> Work:
    return lambda tally: power_loss.kill_then_lose_power(STORIES[story], tally, part, parts, "ask")


def _decided(part: int, parts: int) -> Work:
    return lambda tally: decisions.decide_and_lose_power(STORIES["plain"], tally, part, parts)


def _failed(story: str, part: int, parts: int, each: int = 1) -> Work:
    return lambda tally: faults.fail_everywhere(STORIES[story], tally, part, parts, each)
