"""L2: every operation of a scenario fails, with EIO, ENOSPC, EINTR or a short write, once and from then on.

`fail_in_decisions` does the same to a restore and to a retry, in the process after the one that was killed.

The process lives on. What it reported must be true: a call reported as returned has its record, a call reported as not
run has no body. Then it opens the session again (row J6), in the same process and on a disk that works again, and power
is lost: at the end of the scenario, and after that opening. A failed sync counts in both ways: as one that never wrote
anything, and as one that wrote everything.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import get_args

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.notifications import EditorNotification
from steadyhand.domain.views.types import Action, CallChanged, TurnEvent
from tests.prove.decisions import before_result, decide
from tests.prove.power import Gate, states
from tests.prove.power_loss import Prover
from tests.prove.simulated_server import SESSION, Scenario, seen, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import Truth, broken_on_disk, read, truths
from tests.support.sim_disk import Error, Fault, SimDisk

share = 4
"""One in this many states after a run is opened: every operation fails in six ways, and each way leaves many states."""
Wanted = Callable[[str, str], bool]
"""Whether an operation of this kind, on a target of this name, is wanted."""
not_run = frozenset({"notRun", "refused"})
life_s_max = 20.0


@attrs.define
class _Reported:
    states: dict[str, str] = attrs.field(factory=dict)  # call id → the last state that was reported in the faulty turn
    attempts: dict[str, str] = attrs.field(factory=dict)  # call id → attempt id
    created: bool = False
    reopened_at: int | None = None  # length of the log


def fail_everywhere(
    scenario: Scenario, tally: Tally, part: int, parts: int, each: int = 1, also: Wanted = lambda verb, target: False
) -> None:
    """Each operation (or every `each`-th, and those that `also` names), each error. `states` counts the process runs
    and the crash states after them."""
    operations = enumerate(scenario.played().begun)
    cases = [
        Fault(number + 1, error, for_good)
        for number, operation in operations
        if number % each == 0 or also(*operation)
        for error in get_args(Error)
        for for_good in (False, True)
    ]
    for number, fault in enumerate(cases):
        if number % parts == part:
            _one(scenario, tally, fault)


def fail_in_decisions(scenario: Scenario, tally: Tally, each: int = 1) -> None:
    """The first effect was killed right before its result and is restored; or right after its entry, and is retried."""
    disk = scenario.played()
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
                    _one_decision(scenario, tally, left, action, f"{error} at operation {number} of a {action}")


def _one_decision(scenario: Scenario, tally: Tally, disk: SimDisk, action: Action, where: str) -> None:
    try:
        anyio.run(_decided, disk, action)
    except Exception as error:
        tally.violation(f"a fault raises out of a decision: {_root(error)}", where)
        return
    if not disk.failed:
        return
    tally.states += 1
    for sentence in broken_on_disk(scenario.scene, truths(disk.log)[-1], seen(disk)):
        tally.violation(sentence, where)
    gates: tuple[Gate, ...] = ("lost", "kept") if any(entry[0] == "failed_sync" for entry in disk.log) else ("lost",)
    for gate in gates:
        _lose_power(scenario, tally, disk, _Reported(), gate, where)


async def _decided(disk: SimDisk, action: Action) -> None:
    async with simulated_server(disk, 2, settle="ask") as server:
        with anyio.fail_after(life_s_max):
            await server.registry.open(SESSION, 100)
            for attempt in (await server.main_session()).ledger.uncertain():
                with suppress(Refused):
                    await decide(server, attempt.attempt_id, action)


def _one(scenario: Scenario, tally: Tally, fault: Fault) -> None:
    disk = scenario.disk()
    disk.fault = fault
    where = f"{fault.error} at operation {fault.number}{' and from then on' if fault.for_good else ''}"
    reported = _Reported()
    try:
        anyio.run(_live, scenario, disk, reported)
    except Exception as error:
        tally.violation(f"a fault raises out of the server: {_root(error)}", where)
        return
    if not disk.failed:
        return
    tally.states += 1
    truth = truths(disk.log)[-1]
    _told_the_truth(reported, truth, disk, tally, where)
    for sentence in broken_on_disk(scenario.scene, truth, seen(disk)):
        tally.violation(sentence, where)
    gates: tuple[Gate, ...] = ("lost", "kept") if any(entry[0] == "failed_sync" for entry in disk.log) else ("lost",)
    for gate in gates:
        _lose_power(scenario, tally, disk, reported, gate, where)


def _lose_power(scenario: Scenario, tally: Tally, disk: SimDisk, reported: _Reported, gate: Gate, where: str) -> None:
    known = truths(disk.log)
    prover = Prover(scenario.scene, tally)
    after = reported.reopened_at if reported.reopened_at is not None else len(disk.log)
    for state in states(disk, after, "whole", gate, product=6, parts=share):
        prover.one_state(state.tree, known[state.marks], f"{where}; power lost after {state.prefix}", 4)


async def _live(scenario: Scenario, disk: SimDisk, reported: _Reported) -> None:
    async with scenario.server(disk) as server:
        try:
            with anyio.fail_after(life_s_max):
                await server.create()
                reported.created = True
                await scenario.play(server)
        except Refused:
            pass
        reported.states = _states(server.editor.told)
        if not reported.created:
            return
        ledger = (await server.registry.open_session(SESSION)).ledger
        reported.attempts = {id: call.attempt.attempt_id for id, call in ledger.calls.items() if call.attempt}
        disk.fault = None
        reported.reopened_at = len(disk.log)
        with anyio.fail_after(life_s_max):
            await server.registry.open(SESSION, 100)
            with suppress(Refused):
                await server.turn("say on", "p9")


def _states(told: list[EditorNotification]) -> dict[str, str]:
    events = [one.event for one in told if isinstance(one, TurnEvent)]
    return {event.call.call_id: event.call.state for event in events if isinstance(event, CallChanged)}


def _told_the_truth(reported: _Reported, truth: Truth, disk: SimDisk, tally: Tally, where: str) -> None:
    raw = read(seen(disk).journal or b"")
    started = {record["callId"] for record in raw.of("started")}
    for call_id, state in reported.states.items():
        attempt = reported.attempts.get(call_id)
        if state in not_run and attempt in truth.ran:
            tally.violation("a call whose body was entered was reported as not run", where)
        if state == "returned" and call_id in started and attempt is not None:
            kept = {(r["seq"], r["sum"]) for r in raw.of("result") if r["callId"] == call_id and not r.get("by")}
            if not kept & set(truth.kept):
                tally.violation("a call was reported as returned and its result was not kept", where)


def _root(error: BaseException) -> str:
    """The first error of an exception group."""
    while inner := getattr(error, "exceptions", ()):
        error = inner[0]
    return f"{type(error).__name__}: {error}"
