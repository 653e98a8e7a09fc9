"""L2: every operation of a story fails, with EIO, ENOSPC, EINTR or a short write, once and for good.

`fail_in_decisions` does the same to a restore and to a retry, in the process after the one that was killed.

The process lives on: what it told must be true, a call called returned has its record, one called not run has no body.
Then it opens the session anew (row J6), in the same process and on a disk that works again, and power is lost: at the
end of the story, and after that opening. A failed sync is taken both ways, as one that wrote nothing for ever, and as
one that wrote it all.
"""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

import anyio
import attrs

from steadyhand.core.refusal import Refused
from steadyhand.core.told import Told
from steadyhand.core.views import Action, CallChanged, TurnEvent
from tests.prove.decisions import before_result, decide
from tests.prove.lives import SESSION, Story, life, seen
from tests.prove.power import Gate, states
from tests.prove.power_loss import Prover
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_on_disk, read, truths
from tests.support.sim_disk import Error, Fault, SimDisk

share = 4
"""Of the states after a life, so manieth are opened: every operation fails in six ways, and each way leaves many."""
not_run = frozenset({"notRun", "refused"})
life_s_max = 20.0


@attrs.define
class _Lived:
    states: dict[str, str] = attrs.field(factory=dict)  # call id → the last state told in the faulty turn
    attempts: dict[str, str] = attrs.field(factory=dict)  # call id → attempt id
    created: bool = False
    reopened_at: int | None = None  # length of the log


def fail_everywhere(story: Story, tally: Tally, part: int, parts: int, each: int = 1) -> None:
    """Each operation (or every `each`-th), each error; `states` counts the lives and the crash states after them."""
    count = story.told().count
    cases = [
        Fault(number, error, for_good)
        for number in range(1, count + 1, each)
        for error in get_args(Error)
        for for_good in (False, True)
    ]
    for number, fault in enumerate(cases):
        if number % parts == part:
            _one(story, tally, fault)


def fail_in_decisions(story: Story, tally: Tally, each: int = 1) -> None:
    """The first effect was killed right before its result and is restored; or right after its entry, and is tried
    again."""
    disk = story.told()
    entered = next(at for at, entry in enumerate(disk.log) if entry[0] == "mark" and "ran" in str(entry[1]))
    cases: list[tuple[Action, int]] = [("restore", before_result(disk, entered)), ("retry", entered + 1)]
    for action, prefix in cases:
        unharmed = SimDisk.killed_after(disk, prefix)
        anyio.run(_decided, unharmed, action)
        for number in range(1, unharmed.count + 1, each):
            for error in get_args(Error):
                for for_good in (False, True):
                    left = SimDisk.killed_after(disk, prefix)
                    left.fault = Fault(number, error, for_good)
                    _one_decision(story, tally, left, action, f"{error} at operation {number} of a {action}")


def _one_decision(story: Story, tally: Tally, disk: SimDisk, action: Action, where: str) -> None:
    try:
        anyio.run(_decided, disk, action)
    except Exception as error:
        tally.violation(f"a fault gets out of a decision: {_root(error)}", where)
        return
    if not disk.failed:
        return
    tally.states += 1
    for sentence in broken_on_disk(story.scene, truths(disk.log)[-1], seen(disk)):
        tally.violation(sentence, where)
    gates: tuple[Gate, ...] = ("lost", "kept") if any(entry[0] == "failed_sync" for entry in disk.log) else ("lost",)
    for gate in gates:
        _lose_power(story, tally, disk, _Lived(), gate, where)


async def _decided(disk: SimDisk, action: Action) -> None:
    async with life(disk, 2, settle="ask") as stage:
        with anyio.fail_after(life_s_max):
            await stage.house.open(SESSION, 100)
            for attempt in (await stage.owner()).ledger.uncertain():
                with suppress(Refused):
                    await decide(stage, attempt.attempt_id, action)


def _one(story: Story, tally: Tally, fault: Fault) -> None:
    disk = story.disk()
    disk.fault = fault
    where = f"{fault.error} at operation {fault.number}{' and from then on' if fault.for_good else ''}"
    lived = _Lived()
    try:
        anyio.run(_live, story, disk, lived)
    except Exception as error:
        tally.violation(f"a fault gets out: {_root(error)}", where)
        return
    if not disk.failed:
        return
    tally.states += 1
    truth = truths(disk.log)[-1]
    _told_the_truth(lived, truth, disk, tally, where)
    for sentence in broken_on_disk(story.scene, truth, seen(disk)):
        tally.violation(sentence, where)
    gates: tuple[Gate, ...] = ("lost", "kept") if any(entry[0] == "failed_sync" for entry in disk.log) else ("lost",)
    for gate in gates:
        _lose_power(story, tally, disk, lived, gate, where)


def _lose_power(story: Story, tally: Tally, disk: SimDisk, lived: _Lived, gate: Gate, where: str) -> None:
    known = truths(disk.log)
    prover = Prover(story.scene, tally)
    after = lived.reopened_at if lived.reopened_at is not None else len(disk.log)
    for state in states(disk, after, "whole", gate, product=6, parts=share):
        prover.one_state(state.tree, known[state.marks], f"{where}; power lost after {state.prefix}", 4)


async def _live(story: Story, disk: SimDisk, lived: _Lived) -> None:
    async with story.stage(disk) as stage:
        try:
            with anyio.fail_after(life_s_max):
                await stage.create()
                lived.created = True
                await story.tell(stage)
        except Refused:
            pass
        lived.states = _states(stage.editor.told)
        if not lived.created:
            return
        ledger = (await stage.house.owner(SESSION)).ledger
        lived.attempts = {id: call.attempt.attempt_id for id, call in ledger.calls.items() if call.attempt}
        disk.fault = None
        lived.reopened_at = len(disk.log)
        with anyio.fail_after(life_s_max):
            await stage.house.open(SESSION, 100)
            with suppress(Refused):
                await stage.say("say on", "p9")


def _states(told: list[Told]) -> dict[str, str]:
    events = [one.event for one in told if isinstance(one, TurnEvent)]
    return {event.call.call_id: event.call.state for event in events if isinstance(event, CallChanged)}


def _told_the_truth(lived: _Lived, truth: Truth, disk: SimDisk, tally: Tally, where: str) -> None:
    raw = read(seen(disk).journal or b"")
    started = {record["callId"] for record in raw.of("started")}
    for call_id, state in lived.states.items():
        attempt = lived.attempts.get(call_id)
        if state in not_run and attempt in truth.ran:
            tally.violation("a call whose body was entered was told as not run", where)
        if state == "returned" and call_id in started and attempt is not None:
            kept = {(r["seq"], r["sum"]) for r in raw.of("result") if r["callId"] == call_id and not r.get("by")}
            if not kept & set(truth.kept):
                tally.violation("a call was told as returned and its result was not kept", where)


def _root(error: BaseException) -> str:
    """The first error of a group of them."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return f"{type(error).__name__}: {error}"
