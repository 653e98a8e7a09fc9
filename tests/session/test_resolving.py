"""Resolutions and held-back calls from inside: what two, a turn and a prompt do to one another (A3, A6, B1, B4).

The uncertain effect is one of another life of the rig, killed by its disk right before *result*, with a file that
somebody changed since. `tests/e2e/test_recovery_*.py` show the same to a client.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import attrs
import pytest

from steadyhand.adapters.disk import system_disk
from steadyhand.core.questions import Answer, HeldBackQuestion, PermissionQuestion
from steadyhand.core.record import Inspection, Notice, Reject, Settlement, Stamped
from steadyhand.core.refusal import Refused
from steadyhand.core.views import Action
from steadyhand.journal.format import read_journal
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Resolved, Wanted, inspect, resolve
from tests.support.disks import MatchingFault, Operation, WatchedDisk, carries
from tests.support.fakes import id_of
from tests.support.scripted import GatedDisk
from tests.support.systems import linux_only
from tests.support.turns import Place, Rig, ScriptedEditor, forked, rig

pytestmark = [pytest.mark.anyio, linux_only]

T = TypeVar("T")
SESSION = id_of(1)
DECISIONS: tuple[Action, ...] = ("confirm", "reject", "waive")


class DyingDisk(WatchedDisk):
    """Ends this process right before the first operation that matches."""

    def __init__(self, matches: Callable[[Operation], bool]) -> None:
        super().__init__(system_disk())
        self._matches = matches

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if self._matches(operation):
            os.kill(os.getpid(), signal.SIGKILL)
        return act()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A session with one write that may have happened, to a file that somebody changed since."""
    place = Place.under(tmp_path / "place")
    place.write("a.txt", "old\n")

    async def life() -> None:
        async with rig(place, disk=DyingDisk(carries("result"))) as house:
            assert await house.create() == SESSION
            await house.say(SESSION, "write a.txt with new")

    assert forked(life).signal == signal.SIGKILL
    place.write("a.txt", "somebody's\n")
    return place


async def opened(house: Rig) -> tuple[Owner, str]:
    """The owner, and the uncertain attempt's id."""
    await house.open(SESSION)
    owner = house.house.owners[SESSION]
    (attempt,) = owner.ledger.uncertain()
    return owner, attempt.attempt_id


async def looked(owner: Owner, attempt_id: str) -> str:
    done = await resolve(owner, Wanted(attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection.inspection_id


def on_disk(place: Place, kind: type) -> list[Stamped]:
    return [stamped for stamped in read_journal(place.journal(SESSION)).records if isinstance(stamped.record, kind)]


# --- one at a time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", DECISIONS)
@pytest.mark.parametrize("second", DECISIONS)
async def test_two_at_once(place: Place, first: Action, second: Action) -> None:
    """A6, J14: of two that start in the same moment one wins and the other is told; what is recorded is the first."""
    async with rig(place, life=2) as house:
        owner, attempt_id = await opened(house)
        seen = await looked(owner, attempt_id)
        outcomes: list[Resolved | str] = []

        async def decide(action: Action) -> None:
            try:
                outcomes.append(await resolve(owner, Wanted(attempt_id, action, inspection_id=seen)))
            except Refused as refused:
                outcomes.append(refused.kind)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide, first)
            tasks.start_soon(decide, second)
        refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if first == "reject" and second == "reject":
            assert refused == ["notOffered"]
        elif "reject" in (first, second) and first != second:
            # A reject closes nothing: the other decision may follow it, and never precedes it.
            assert refused in ([], ["alreadyResolved"])
        else:
            assert refused == ["alreadyResolved"]
        assert len(on_disk(place, Settlement)) == (0 if first == second == "reject" else 1)
        assert len(on_disk(place, Reject)) <= 1
        assert owner.ledger.refused == []


async def test_two_inspections_at_once(place: Place) -> None:
    """A4, A6: both are stored; only the later is a basis for a decision."""
    async with rig(place, life=2) as house:
        owner, attempt_id = await opened(house)
        found: list[str] = []

        async def look() -> None:
            found.append(await looked(owner, attempt_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            tasks.start_soon(look)
        assert len(on_disk(place, Inspection)) == 2
        with pytest.raises(Refused) as refused:
            await resolve(owner, Wanted(attempt_id, "waive", inspection_id=found[0]))
        assert refused.value.kind == "inspectFirst"
        await resolve(owner, Wanted(attempt_id, "waive", inspection_id=found[1]))


async def test_a_prompt_queues_while_a_resolution_runs(place: Place) -> None:
    """A3: no turn starts while one is carried out; the prompt is kept, and begins right after it."""
    disk = GatedDisk(carries("inspection"))
    async with rig(place, life=2, disk=disk) as house, anyio.create_task_group() as tasks:
        owner, attempt_id = await opened(house)
        tasks.start_soon(resolve, owner, Wanted(attempt_id, "inspect"))
        await disk.wait_reached()
        assert owner.resolving == 1
        tasks.start_soon(house.send, SESSION, "say hello", "later")
        await anyio.wait_all_tasks_blocked()
        assert owner.turn is None
        disk.go.set()
        turn_id = await house.until(lambda: owner.ledger.prompts.get("later"))
        assert (await owner.wait_ended(turn_id[0])).reason == "done"
        kinds = [stamped.record.kind for stamped in read_journal(place.journal(SESSION)).records]
        assert kinds.index("inspection") < kinds.index("queue") < len(kinds) - 1 - kinds[::-1].index("user")


async def test_a_resolution_waits_for_no_turn(place: Place) -> None:
    """A3: while a turn runs, every action is refused with its id and records nothing."""
    async with rig(place, life=2, disk=(disk := GatedDisk(_creates("b.txt")))) as house:
        owner, attempt_id = await opened(house)
        accepted = await house.send(SESSION, "write b.txt with b", "turn")
        await disk.wait_reached()
        before = place.journal(SESSION)
        for action in ("inspect", *DECISIONS):
            with pytest.raises(Refused) as refused:
                await resolve(owner, Wanted(attempt_id, action))
            assert refused.value.kind == "turnRunning"
            assert refused.value.more == {"turnId": accepted.turn_id}
        assert place.journal(SESSION) == before
        disk.go.set()
        assert (await owner.wait_ended(accepted.turn_id)).reason == "done"


async def test_an_inspection_that_cannot_be_stored_is_not_shown(place: Place) -> None:
    """A4, J6: nothing is answered that does not stand on disk; the journal is broken for this process."""
    disk = MatchingFault(system_disk(), carries("inspection"), errno.ENOSPC)
    async with rig(place, life=2, disk=disk) as house:
        owner, attempt_id = await opened(house)
        with pytest.raises(Refused) as refused:
            await resolve(owner, Wanted(attempt_id, "inspect"))
        assert refused.value.kind == "journalBroken"
        assert owner.ledger.attempts[attempt_id].inspection is None
        assert owner.resolving == 0
        with pytest.raises(Refused) as refused:
            await resolve(owner, Wanted(attempt_id, "inspect"))
        assert refused.value.kind == "journalBroken"


async def test_a_decision_of_the_model_is_never_the_user_s(place: Place) -> None:
    """B5, A5: recorded as the model's."""
    async with rig(place, life=2) as house:
        owner, attempt_id = await opened(house)
        (attempt,) = owner.ledger.uncertain()
        record, _ = await inspect(owner, attempt, "model")
        assert record.by == "model"
        await resolve(owner, Wanted(attempt_id, "confirm", inspection_id=record.inspection_id, by="model"))
        (settled,) = on_disk(place, Settlement)
        assert isinstance(settled.record, Settlement)
        assert (settled.record.settled, settled.record.by) == ("model_confirmed", "model")


@pytest.mark.parametrize("action", ["confirm", "waive"])
async def test_going_on_after_a_resolution(place: Place, action: Action) -> None:
    """A7: the next prompt is an ordinary turn: nothing is repeated by itself, nothing is held back or asked any more,
    and the model is told once what was decided."""
    async with rig(place, life=2) as house:
        owner, attempt_id = await opened(house)
        attempts = len(owner.ledger.attempts)
        seen = await looked(owner, attempt_id)
        await resolve(owner, Wanted(attempt_id, action, inspection_id=seen))
        assert len(owner.ledger.attempts) == attempts
        assert (await house.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
        assert house.editor.questions == []
        assert owner.snapshot().settled == ()
        notices = [one.record for one in on_disk(place, Notice) if isinstance(one.record, Notice)]
        assert [one.attempt_id for one in notices if "is settled" in one.text] == [attempt_id]
    assert place.files()["a.txt"] == "mine"


# --- held back ------------------------------------------------------------------------------------------------------


async def test_a_turn_of_the_other_session_is_waited_for(place: Place) -> None:
    """B1, B4: the effect is of a session whose own turn runs; nothing can be inspected in it yet, so the call waits,
    and is asked about as soon as that turn has ended. It is not refused for it."""
    disk = GatedDisk(_creates("b.txt"))
    async with rig(place, life=2, disk=disk) as house:
        owner, _ = await opened(house)
        running = await house.send(SESSION, "write b.txt with b", "other")
        await disk.wait_reached()
        fresh = await house.create()
        waiting = await house.send(fresh, "write a.txt with mine", "mine")
        await house.until(lambda: _parked(house, fresh))
        assert house.editor.questions == []
        house.editor.held_back = lambda _: Answer("waive")
        disk.go.set()
        assert (await owner.wait_ended(running.turn_id)).reason == "done"
        ended = await house.house.owners[fresh].wait_ended(waiting.turn_id)
        assert ended.reason == "done"
        assert place.files()["a.txt"] == "mine"
        (question,) = house.editor.questions
        assert isinstance(question, HeldBackQuestion)
        assert question.uncertain.session_id == SESSION


async def test_each_answer_rests_on_the_inspection_of_its_question(place: Place) -> None:
    """B4, W7, [I8]: the question reads well and speaks of now; the file changes while the person thinks: their Confirm
    settles nothing, and they are asked anew with what is there now."""
    findings: list[str] = []

    def answer(question: HeldBackQuestion) -> Answer:
        findings.append(question.text)
        if len(findings) == 1:
            place.write("a.txt", "new")
        return Answer("confirm")

    async with rig(place, life=2, editor=ScriptedEditor(held_back=answer)) as house:
        await house.open(SESSION)
        assert (await house.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
    assert len(findings) == 2
    assert findings[0] == (
        "“write_file: a.txt” waits, because an earlier effect is uncertain and may touch the same files. “write_file:"
        " a.txt” was checked: the file is now neither as it was before nor as intended. This speaks of the file now,"
        " not of what happened. Settle that effect, or refuse the call."
    )
    assert "has the intended content now" in findings[1]
    (settled,) = on_disk(place, Settlement)
    assert isinstance(settled.record, Settlement)
    assert settled.record.settled == "checked_present"


async def test_nobody_is_attached(place: Place) -> None:
    """B4: without an editor nothing is inspected and nobody waits: the call is refused with every way out."""
    async with rig(place, life=2, editor=ScriptedEditor(somebody=False)) as house:
        owner, attempt_id = await opened(house)
        assert (await house.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
        replies = [call.reply.text for call in owner.ledger.calls.values() if call.reply is not None]
        assert any(attempt_id in text and "/recovery" in text for text in replies)
        assert owner.snapshot().statistics.held_back == 1
    assert on_disk(place, Inspection) == []
    assert place.files()["a.txt"] == "somebody's\n"


@attrs.define
class BusyEditor(ScriptedEditor):
    """Lets something happen while the person decides about a permission, and then allows it."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        self.questions.append(question)
        if self.meanwhile is not None:
            await self.meanwhile()
        return Answer("once")


async def test_a_doubt_that_comes_while_permission_is_asked(tmp_path: Path) -> None:
    """[I6]: another session's write becomes uncertain while the person decides on a command: it is held back although
    they allowed it, since they could not know."""
    disk = MatchingFault(system_disk(), carries("result"), errno.EIO)
    editor = BusyEditor()
    async with rig(Place.under(tmp_path / "place"), disk=disk, editor=editor) as house:
        one, other = await house.create(), await house.create()
        await house.house.owners[one].set_mode("ask")

        async def meanwhile() -> None:
            await house.say(other, "write a.txt with other", "other")
            if not house.ledger(other).uncertain():
                raise RuntimeError("the other write was to become uncertain")

        editor.meanwhile = meanwhile
        await house.say(one, "run echo mine > a.txt", "mine")
    assert house.place.files()["a.txt"] == "other"


async def test_the_chat_of_another_session_settles_it(place: Place) -> None:
    """B1, B4: what holds a call back here is settled from here by chat text, though it is another session's."""
    async with rig(place, life=2) as house:
        owner, attempt_id = await opened(house)
        here = await house.create()

        async def told(line: str) -> str:
            await house.say(here, line, line)
            return house.house.owners[here].messages(1)[0][0].text

        listed = f"1. {attempt_id[:8]} write_file: a.txt (session “{owner.name()}”): conflict"
        assert (await told("/recovery")).startswith(listed)
        assert "/recovery waive again" in await told(f"/recovery waive {attempt_id[:8]}")
        assert "goes on without knowing" in await told(f"/recovery waive  {attempt_id[:8]}")
        assert await told("/recovery ") == "Nothing is uncertain.", "what is settled there is shown there"
        assert owner.ledger.uncertain() == []
        assert len(on_disk(place, Settlement)) == 1


def _creates(name: str) -> Callable[[Operation], bool]:
    return lambda operation: operation.verb == "create" and name in operation.target


def _parked(house: Rig, session_id: str) -> bool | None:
    turn = house.house.owners[session_id].turn
    return True if turn is not None and turn.parked else None
