"""L5: lock, folder or journal are taken away from their owner at every moment of its work, beside a second process.

Somebody removes, moves, replaces, restores, cuts, changes or links one of them: right before each operation of the
port, and at each notification to the editor. At that moment a second process opens the session, if its lock is free by
then; at some of them it works in the session too. Then the owner goes on to the end of its turn and gets one more
prompt.

What must hold (rows J4, J11, [I1] [I3] [I12] [I15], cases 161, 162):
- after the operation that was under way nothing of the owner begins: no effect, no record
- what another process synced stays as it is in the journal
- a sure end of a call that is told after that moment is recorded in the journal that stands there
- an effect that happened nevertheless is told as unknown, unless its sure end is recorded there
- the user is told once, and nothing more is accepted
- the next process can open what is there, and calls nothing "not run" that its journal says was started
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

import anyio
import attrs

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.views.notifications import EditorNotification, MessageNotification
from steadyhand.domain.views.types import CallChanged, TurnEvent
from tests.prove.simulated_server import COUNTER, SESSION, Scenario, SimulatedServer, reopened, simulated_server
from tests.prove.tally import Tally
from tests.prove.truth import DID_NOT_RUN, STATE, WORK, digest, marks_in, read
from tests.support.outsider import Outsider
from tests.support.sim_disk import SimDisk

FOLDER = f"{STATE}/sessions/{SESSION}"
JOURNAL, LOCK = f"{FOLDER}/journal.jsonl", f"{FOLDER}/owner.lock"
AWAY = f"{STATE}/away"
LOSS = "cannot go on here"
SURE = frozenset({"returned", "failed", "stopped"})
life_s_max = 20.0
torn_bytes = 17

Files = Mapping[str, bytes]
Take = Callable[[Outsider, Files], None]
"""What somebody does. The files are the backup of the session's folder, made when the session was new."""


def _replace_folder(outsider: Outsider, backup: Files) -> None:
    outsider.move(FOLDER, AWAY)
    outsider.make_folder(FOLDER, backup)


def _now(outsider: Outsider) -> bytes:
    return outsider.files(FOLDER)["journal.jsonl"]


TAKES: Mapping[str, Take] = {
    "the lock is removed": lambda outsider, backup: outsider.remove(LOCK),
    "the lock is replaced": lambda outsider, backup: outsider.replace(LOCK, b""),
    "the lock gets a second name": lambda outsider, backup: outsider.link(LOCK, f"{STATE}/second"),
    "the folder is removed": lambda outsider, backup: outsider.remove(FOLDER),
    "the folder is moved away": lambda outsider, backup: outsider.move(FOLDER, AWAY),
    "the folder is replaced by its backup": _replace_folder,
    "the journal is removed": lambda outsider, backup: outsider.remove(JOURNAL),
    "the journal is replaced by a copy": lambda outsider, backup: outsider.replace(JOURNAL, _now(outsider)),
    "the journal is replaced by its backup": lambda outsider, backup: outsider.replace(
        JOURNAL, backup["journal.jsonl"]
    ),
    "the backup is written into the journal": lambda outsider, backup: outsider.change(
        JOURNAL, backup["journal.jsonl"]
    ),
    "the journal is cut": lambda outsider, backup: outsider.change(JOURNAL, _now(outsider)[:-torn_bytes]),
    "the journal is appended to": lambda outsider, backup: outsider.change(JOURNAL, _now(outsider) + b"other\n"),
    "the journal gets a second name": lambda outsider, backup: outsider.link(JOURNAL, f"{STATE}/second"),
}


@attrs.frozen
class Seen:
    """A moment: the journal under its name, the files of the workspace, the last told state of each call, and the
    attempts whose body was entered."""

    journal: bytes | None
    work: dict[str, bytes]
    told: dict[str, str]
    ran: frozenset[str]


@attrs.define(eq=False)
class Robbery:
    """One run of the owner, from whom `take` takes something away at the moment `at`."""

    disk: SimDisk
    at: int  # moments are numbered from 1; none has the number 0
    take: Take
    second_works: bool = False
    count: int = 0
    backup: Files = attrs.field(factory=dict)
    told: list[EditorNotification] = attrs.field(factory=list)
    second: bytes | None = None  # the journal after the second process; None: the lock was not free
    after: Seen | None = None  # when the operation that was under way is over
    attempts: dict[str, Attempt] = attrs.field(factory=dict)
    accepted: bool = False  # the prompt after it
    has_taken: bool = False  # False: the backup is what is there

    def before_operation(self, verb: str, target: str) -> None:
        self._moment()

    def at_notification(self) -> None:
        """Nothing is under way, so what comes after it came after the loss could be seen."""
        self._moment()
        if self.count == self.at:
            self.after = self.seen()

    def _moment(self) -> None:
        self.count += 1
        if self.count == self.at:
            watch, self.disk.before = self.disk.before, None
            try:
                standing = self.disk.now()
                self.take(Outsider(self.disk), self.backup)
                self.has_taken = self.disk.now() != standing
                self._open_beside()
            finally:
                self.disk.before = watch
        elif self.at and self.count > self.at and self.after is None:
            self.after = self.seen()

    def _open_beside(self) -> None:
        inode = self.disk._at(LOCK)
        if self.disk._at(JOURNAL) is None or inode in self.disk.locked:
            return
        if self.second_works and threading.current_thread() is not threading.main_thread():
            anyio.run(self._work_beside)
        elif reopened(self.disk, 50) is None:
            return
        self.second = self.disk.content(JOURNAL)

    async def _work_beside(self) -> None:
        async with simulated_server(self.disk, 60) as server:
            await server.registry.open(SESSION, 100)
            await server.turn('write theirs.txt with "theirs"', "theirs")

    def seen(self) -> Seen:
        files = {path: content for path, content in self.disk.now().walk().items() if content is not None}
        states: dict[str, str] = {
            one.event.call.call_id: one.event.call.state
            for one in self.told
            if isinstance(one, TurnEvent) and isinstance(one.event, CallChanged)
        }
        work = {
            path: content
            for path, content in files.items()
            if path.startswith(WORK + "/") and not path.endswith((".steadyhand", "/.save"))
        }
        marks = marks_in(self.disk.log)
        ran = frozenset(str(mark[1]) for mark in marks if isinstance(mark, tuple) and mark[0] == "ran")
        return Seen(files.get(JOURNAL), work, states, ran)


def moments(scenario: Scenario) -> int:
    """The number of moments of the scenario when nobody takes anything away."""
    robbery = Robbery(scenario.disk(), 0, lambda outsider, backup: None)
    anyio.run(_live, scenario, robbery)
    return robbery.count


def take_away(
    scenario: Scenario, tally: Tally, part: int, parts: int, each: int = 1, takes: Mapping[str, Take] = TAKES
) -> None:
    """Each way to take something away at each moment, or one in `each` of these. `states` counts the runs."""
    cases = [(at, name) for name in takes for at in range(1, moments(scenario) + 1)]
    random.Random(0).shuffle(cases)  # so that a share has every way at moments of every kind
    for number, (at, name) in enumerate(cases[part :: parts * each]):
        robbery = Robbery(scenario.disk(), at, takes[name], second_works=number % 4 == 0)
        where = f"{scenario.name}: {name} at moment {at}"
        tally.states += 1
        try:
            anyio.run(_live, scenario, robbery)
        except Exception as error:
            tally.violation(f"the server raises {type(error).__name__}: {error}", where)
            continue
        for sentence in _broken(robbery) if robbery.has_taken else ():
            tally.violation(sentence, where)


async def _live(scenario: Scenario, robbery: Robbery) -> None:
    async with scenario.server(robbery.disk) as server:
        await server.create()
        robbery.backup = Outsider(robbery.disk).files(FOLDER)
        _listen(server, robbery)
        with anyio.fail_after(life_s_max):
            with suppress(Refused):
                await scenario.play(server)
            robbery.attempts = dict((await server.main_session()).ledger.attempts)
            robbery.disk.before = None
            if robbery.at:
                robbery.after = robbery.after or robbery.seen()
                with suppress(Refused):
                    await server.turn('write late.txt with "late"', "late")
                    robbery.accepted = True


def _listen(server: SimulatedServer, robbery: Robbery) -> None:
    tell = server.editor.tell

    def listen(told: EditorNotification) -> None:
        tell(told)
        robbery.told.append(told)
        if robbery.disk.before is not None:
            robbery.at_notification()

    server.editor.tell = listen  # type: ignore[method-assign]  # a test listens
    robbery.disk.before = robbery.before_operation


def _broken(robbery: Robbery) -> list[str]:
    """The promises that do not hold."""
    after, end = robbery.after, robbery.seen()
    assert after is not None
    found = _journal_changed(robbery, after, end)
    found += _begun_late(robbery, after, end)
    found += _told_falsely(robbery, after, end)
    told = [one for one in robbery.told if isinstance(one, MessageNotification) and LOSS in one.text]
    if len(told) != 1:
        found.append(f"the user is told {len(told)} times that the session was taken away")
    if robbery.accepted or f"{WORK}/late.txt" in end.work:
        found.append("a session that was taken away accepts a prompt")
    return found + _read_falsely(robbery, end)


def _journal_changed(robbery: Robbery, after: Seen, end: Seen) -> list[str]:
    found = []
    if robbery.second is not None and not (end.journal or b"").startswith(robbery.second):
        found.append("bytes that another process synced were changed")
    if end.journal != after.journal:
        found.append("a record was written after the loss could be seen")
    return found


def _begun_late(robbery: Robbery, after: Seen, end: Seen) -> list[str]:
    """An effect that had begun may come to its end; none begins."""
    changed = {path for path in {*after.work, *end.work} if after.work.get(path) != end.work.get(path)}
    for attempt in robbery.attempts.values():
        if attempt.effect == "opaque" and attempt.attempt_id in after.ran and after.told[attempt.call_id] == "running":
            changed.discard(COUNTER)  # the command runs already
        for one in attempt.started.evidence if attempt.started else ():
            now = after.work.get(one.resolved)
            if (None if now is None else digest(now)) != one.before:
                changed -= {each.resolved for each in attempt.started.evidence} if attempt.started else set()
    return ["an effect began after the loss could be seen"] if changed else []


def _told_falsely(robbery: Robbery, after: Seen, end: Seen) -> list[str]:
    """What is told from that moment on is recorded where a later process finds it, or is no sure end."""
    raw = read(end.journal or b"")
    recorded = {record["callId"] for record in raw.of("result") if not record.get("by")}
    found = []
    for attempt in robbery.attempts.values():
        state = end.told.get(attempt.call_id)
        if state == after.told.get(attempt.call_id) or attempt.effect == "reads":
            continue
        if state in SURE and attempt.call_id not in recorded:
            found.append("a sure end is told, and the journal under its name does not have it")
        if attempt.attempt_id in end.ran and state == "notRun":
            found.append("a call whose body was entered is told as not run")
        if attempt.attempt_id in end.ran and state == "running":
            found.append("a call whose body was entered has no end")
    return found


def _read_falsely(robbery: Robbery, end: Seen) -> list[str]:
    """The next process opens what is there."""
    disk = robbery.disk
    disk.die()
    try:
        if disk._at(JOURNAL) is None or (found := reopened(disk, 90)) is None:
            return []
    except Exception as error:
        return [f"what is left cannot be opened: {type(error).__name__}: {error}"]
    for attempt in found.ledger.attempts.values():
        result = attempt.result if attempt.started is not None and attempt.attempt_id in end.ran else None
        if result is not None and result.outcome in DID_NOT_RUN:
            return ["a call that may have run is called not run"]
    return []
