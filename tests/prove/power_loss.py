"""L1: power loss at every moment of a scenario, of the recovery after it, and of the decisions in that recovery.

For each state the promises are judged on the disk. Then the session is opened, judged again, and opened once more,
which must change nothing. If an opening did something that no opening before did in the same way, power is lost again
at every moment of it, down to a depth of `depth_max`. Besides power loss from the start, a process is killed after each
operation of a scenario, so that the next one works on data that is not durable, and power is lost during that one.
"""

from __future__ import annotations

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.recovery.tables import SettleSetting
from tests.prove.in_the_editor import EDITOR_PID, editor_after
from tests.prove.power import Torn, states
from tests.prove.simulated_server import SESSION, Reopened, Scenario, many, outcomes, reopened, seen, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import Bytes, Scene, Truth, broken_by_recovery, broken_on_disk, counted, read, truths
from tests.support.sim_disk import SimDisk, Tree

depth_max = 3
nested_each = 400
"""One in this many states is followed by power loss, although its recovery does the same as an earlier one."""


@attrs.define
class Prover:
    """Judges the states of one scenario and puts what it finds into `tally`."""

    scene: Scene
    tally: Tally
    settle: SettleSetting = "checked"
    _shapes: set[tuple[object, ...]] = attrs.field(factory=set)
    _opened_again: set[int] = attrs.field(factory=set)

    def every_state(
        self, disk: SimDisk, before: Truth, where: str, torn: Torn, *, after: int = 0, part: int = 0, parts: int = 1,
        product: int = 600, depth: int = 1,
    ) -> None:  # fmt: skip
        """Every state that a power loss leaves of this log, judged and opened."""
        known = truths(disk.log, before)
        for state in states(disk, after, torn, "lost", product, part, parts):
            told = f"{where}; power lost after operation {state.prefix} of {len(disk.log)}"
            self.one_state(state.tree, known[state.marks], told, depth)

    def one_state(self, tree: Tree, truth: Truth, where: str, depth: int) -> None:
        self.tally.states += 1
        self.judged(SimDisk(tree), truth, where, depth)

    def judged(self, disk: SimDisk, truth: Truth, where: str, depth: int) -> Reopened | None:
        """Judge the disk as it is, open it, judge that, open it again; then lose power in the opening."""
        lies = seen(disk, self.scene.session_id)
        self._found(broken_on_disk(self.scene, truth, lies), where)
        begun = len(disk.log)
        found = self._opened(disk, truth, lies, where, depth)
        if found is None:
            return None
        done = disk.log[begun:]
        self._again(disk, found, truth, where, depth)
        if depth < depth_max and self._new(done, found, depth):
            self.every_state(
                SimDiskPart.of(disk, len(done) + begun), truth, f"{where}, then opened", "sector", after=begun + 1,
                product=40, depth=depth + 1,
            )  # fmt: skip
        return found

    def _opened(
        self, disk: SimDisk, truth: Truth, lies: Bytes, where: str, depth: int, *, editor_lives: bool = False
    ) -> Reopened | None:
        editor, living = (editor_after(truth), (EDITOR_PID,)) if editor_lives else (None, ())
        try:
            found = reopened(disk, 10 * depth, self.settle, self.scene.session_id, editor, living)
        except Exception as error:
            self._found([f"opening raises {type(error).__name__}: {error}"], where)
            return None
        if found is None:
            if truth.created:
                self._found(["an acknowledged session cannot be opened"], where)
            return None
        if not found.writable:
            self._found([f"the session is read-only: {found.why}"], where)
        after = seen(disk, self.scene.session_id)
        now = truth.after(entry[1] for entry in disk.log if entry[0] == "mark") if disk.log else truth
        self._found(broken_by_recovery(self.scene, truth, lies, after, found.ledger), f"{where}, then opened")
        self._found(broken_on_disk(self.scene, now, after), f"{where}, then opened")
        if depth == 1:
            self.tally.counted += counted(truth, lies, found.ledger, found.damaged)
        return found

    def _again(self, disk: SimDisk, found: Reopened, truth: Truth, where: str, depth: int) -> None:
        before = seen(disk, self.scene.session_id)
        if self._known(before, found, depth):
            return
        disk.die()
        again = reopened(disk, 10 * depth + 1, self.settle, self.scene.session_id)
        after = seen(disk, self.scene.session_id)
        if again is None and not truth.created and not read(before.journal or b"").records:
            return  # it was never acknowledged, and nothing of it is there
        if again is None or (before.journal, before.work) != (after.journal, after.work):
            self._found(["opening again changes something"], where)
        elif outcomes(again.ledger) != outcomes(found.ledger):
            self._found(["opening again says something else"], where)

    def _known(self, before: Bytes, found: Reopened, depth: int) -> bool:
        """Whether an opening of exactly this disk was judged already; bytes cut off a journal are never read again."""
        stored = frozenset(each for each in before.stored.items() if not each[0].startswith("torn-"))
        key = hash((depth, before.journal, frozenset(before.work.items()), stored, frozenset(outcomes(found.ledger))))
        known = key in self._opened_again
        self._opened_again.add(key)
        return known

    def _new(self, done: list[tuple[object, ...]], found: Reopened, depth: int) -> bool:
        shape = (
            depth,
            tuple(str(entry[0]) for entry in done if entry[0] not in ("mark", "write")),
            frozenset(outcomes(found.ledger).values()),
        )
        if shape in self._shapes:
            return self.tally.states % nested_each == 0
        self._shapes.add(shape)
        return True

    def _found(self, sentences: list[str], where: str) -> None:
        for sentence in sentences:
            self.tally.violation(sentence, where)


class SimDiskPart(SimDisk):
    """A disk with only a prefix of its log."""

    @staticmethod
    def of(disk: SimDisk, length: int) -> SimDisk:
        found = SimDisk(disk.first)
        found.log = disk.log[:length]
        return found


def lose_power(
    scenario: Scenario, tally: Tally, torn: Torn, part: int, parts: int, product: int = 600, *, nested: bool = True
) -> None:
    """Every state of a scenario, or a share of them; `nested`: also of its recovery."""
    disk = scenario.played()
    _ended_in_order(scenario, disk, tally)
    Prover(scenario.scene, tally).every_state(
        disk, Truth(), scenario.name, torn, part=part, parts=parts, product=product, depth=1 if nested else depth_max
    )


def _ended_in_order(scenario: Scenario, disk: SimDisk, tally: Tally) -> None:
    """If nothing failed, each body that was entered has its result, cancelled or not [I2]."""
    ended = {record["attemptId"] for record in read(seen(disk).journal or b"").of("result")}
    if not truths(disk.log)[-1].ran <= ended:
        tally.violation("a result is lost though nothing failed", scenario.name)
    if disk.misused:
        tally.violation("a closed handle is used", scenario.name)


def kill_then_lose_power(
    scenario: Scenario, tally: Tally, part: int, parts: int, settle: SettleSetting = "checked"
) -> None:
    """Kill after each operation, open in the next process, and lose power at every moment since then."""
    disk = scenario.played()
    known = truths(disk.log)
    prover = Prover(scenario.scene, tally, settle)
    marks = 0
    for prefix in range(len(disk.log) + 1):
        if prefix % parts == part:
            found = SimDisk.killed_after(disk, prefix)
            tally.states += 1
            where = f"{scenario.name}, killed after operation {prefix}"
            lies = seen(found)
            prover._found(broken_on_disk(scenario.scene, known[marks], lies), where)
            lives = bool(known[marks].buffers)
            if prover._opened(found, known[marks], lies, where, depth_max + 1, editor_lives=lives) is not None:
                prover.every_state(found, Truth(), f"{where}, opened", "sector", after=prefix, product=24, depth=2)
            if not known[marks].created:
                _worked_on(scenario, prover, SimDisk.killed_after(disk, prefix), where)
        marks += prefix < len(disk.log) and disk.log[prefix][0] == "mark"


def kill_and_open(scenario: Scenario, tally: Tally) -> None:
    """Kill after each operation and open in the next process; power is not lost."""
    disk = scenario.played()
    known = truths(disk.log)
    prover = Prover(scenario.scene, tally)
    marks = 0
    for prefix in range(len(disk.log) + 1):
        found = SimDisk.killed_after(disk, prefix)
        tally.states += 1
        where = f"{scenario.name}, killed after operation {prefix}"
        lies = seen(found)
        prover._found(broken_on_disk(scenario.scene, known[marks], lies), where)
        prover._opened(found, known[marks], lies, where, depth_max + 1, editor_lives=bool(known[marks].buffers))
        marks += prefix < len(disk.log) and disk.log[prefix][0] == "mark"


def _worked_on(scenario: Scenario, prover: Prover, disk: SimDisk, where: str) -> None:
    """Killed before a client was told of the session. The process that finds the session works in it, and that work is
    promised then."""
    begun = len(disk.log)
    if not anyio.run(_work, disk):
        return
    prover.every_state(disk, Truth(), f"{where}, worked in", "sector", after=begun, product=24, depth=depth_max)


async def _work(disk: SimDisk) -> bool:
    async with simulated_server(disk, 2) as server:
        try:
            await server.registry.open(SESSION, 100)
        except Refused:
            return False
        await server.turn(f'write new.txt with "{many("new")}"')
        disk.mark("created")
        return True
