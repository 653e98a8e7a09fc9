"""Resolutions and held-back calls from inside: how two resolutions, a turn and a prompt affect each other (A3, A6,
B1, B4).

The uncertain effect comes from an earlier process run of the harness, which its disk killed right before *result*.
Someone changed the file since. `tests/e2e/test_recovery_*.py` show the same to a client.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Inspection, Notice, Reject, Settlement, Stamped
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, PermissionQuestion
from steadyhand.domain.views.types import Action
from steadyhand.journal.format import read_journal
from steadyhand.session.recovery.resolve import ResolutionRequest, ResolutionResult, inspect
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.editor import ScriptedEditor, uncertain_of
from tests.support.fakes import id_of
from tests.support.faults import GatedDisk, MatchingFault, Operation, WatchedDisk, carries
from tests.support.forks import run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.session_state import kinds
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

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
def place(tmp_path: Path) -> Workspace:
    """A session with one write that may have happened, to a file that someone changed since."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")

    async def run_until_killed() -> None:
        async with practice_server(place, disk=DyingDisk(carries("result"))) as harness:
            assert await harness.create() == SESSION
            await harness.say(SESSION, "write a.txt with new")

    assert run_in_fork(run_until_killed).signal == signal.SIGKILL
    place.write("a.txt", "somebody's\n")
    return place


async def open_uncertain(harness: InProcessServer) -> tuple[Session, str]:
    """The session, and the uncertain attempt's id."""
    await harness.open(SESSION)
    session = harness.registry.sessions[SESSION]
    (attempt,) = session.ledger.uncertain()
    return session, attempt.attempt_id


async def inspect_attempt(session: Session, attempt_id: str) -> str:
    done = await resolve(session, ResolutionRequest(attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection.inspection_id


def on_disk(place: Workspace, kind: type) -> list[Stamped]:
    return [stamped for stamped in read_journal(place.journal(SESSION)).records if isinstance(stamped.record, kind)]


# One resolution at a time.


@pytest.mark.parametrize("first", DECISIONS)
@pytest.mark.parametrize("second", DECISIONS)
async def test_two_resolutions_at_once_have_one_winner(place: Workspace, first: Action, second: Action) -> None:
    """A6, J14: of two that start at the same moment one wins and the other is refused. The first one is recorded."""
    async with practice_server(place, run=2) as harness:
        session, attempt_id = await open_uncertain(harness)
        latest_id = await inspect_attempt(session, attempt_id)
        outcomes: list[ResolutionResult | str] = []

        async def decide(action: Action) -> None:
            try:
                outcomes.append(await resolve(session, ResolutionRequest(attempt_id, action, inspection_id=latest_id)))
            except Refused as refused:
                outcomes.append(refused.kind)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(decide, first)
            tasks.start_soon(decide, second)
        refused = [outcome for outcome in outcomes if isinstance(outcome, str)]
        if first == "reject" and second == "reject":
            assert refused == ["notOffered"]
        elif "reject" in (first, second) and first != second:
            # A reject closes nothing: the other decision may follow it, and never comes before it.
            assert refused in ([], ["alreadyResolved"])
        else:
            assert refused == ["alreadyResolved"]
        assert len(on_disk(place, Settlement)) == (0 if first == second == "reject" else 1)
        assert len(on_disk(place, Reject)) <= 1
        assert session.ledger.refused == []


async def test_two_inspections_at_once_are_both_stored_and_the_later_counts(place: Workspace) -> None:
    """A4, A6: both are stored. Only the later one is a basis for a decision."""
    async with practice_server(place, run=2) as harness:
        session, attempt_id = await open_uncertain(harness)
        found: list[str] = []

        async def inspect_once() -> None:
            found.append(await inspect_attempt(session, attempt_id))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inspect_once)
            tasks.start_soon(inspect_once)
        assert len(on_disk(place, Inspection)) == 2
        with pytest.raises(Refused) as refused:
            await resolve(session, ResolutionRequest(attempt_id, "waive", inspection_id=found[0]))
        assert refused.value.kind == "inspectFirst"
        await resolve(session, ResolutionRequest(attempt_id, "waive", inspection_id=found[1]))


async def test_prompt_during_a_resolution_is_queued(place: Workspace) -> None:
    """A3: no turn starts while a resolution is carried out. The prompt is kept, and starts right after it."""
    disk = GatedDisk(carries("inspection"))
    async with practice_server(place, run=2, disk=disk) as harness, anyio.create_task_group() as tasks:
        session, attempt_id = await open_uncertain(harness)
        tasks.start_soon(resolve, session, ResolutionRequest(attempt_id, "inspect"))
        await disk.wait_reached()
        assert session.resolutions == 1
        tasks.start_soon(harness.send, SESSION, "say hello", "later")
        await anyio.wait_all_tasks_blocked()
        assert session.turn is None
        disk.go.set()
        turn_id = await harness.until(lambda: session.ledger.prompts.get("later"))
        assert (await session.feed.wait_until_ended(turn_id[0])).reason == "done"
        there = kinds(session)
        assert there.index("inspection") < there.index("queue") < len(there) - 1 - there[::-1].index("user")


async def test_resolution_during_a_turn_is_refused(place: Workspace) -> None:
    """A3: while a turn runs, every action is refused with the turn's id and records nothing."""
    async with practice_server(place, run=2, disk=(disk := GatedDisk(creates("b.txt")))) as harness:
        session, attempt_id = await open_uncertain(harness)
        accepted = await harness.send(SESSION, "write b.txt with b", "turn")
        await disk.wait_reached()
        before = place.journal(SESSION)
        for action in ("inspect", *DECISIONS):
            with pytest.raises(Refused) as refused:
                await resolve(session, ResolutionRequest(attempt_id, action))
            assert refused.value.kind == "turnRunning"
            assert refused.value.more == {"turnId": accepted.turn_id}
        assert place.journal(SESSION) == before
        disk.go.set()
        assert (await session.feed.wait_until_ended(accepted.turn_id)).reason == "done"


async def test_inspection_that_cannot_be_stored_is_refused(place: Workspace) -> None:
    """A4, J6: nothing is answered that is not on disk. The journal is broken for this process."""
    disk = MatchingFault(system_disk(), carries("inspection"), errno.ENOSPC)
    async with practice_server(place, run=2, disk=disk) as harness:
        session, attempt_id = await open_uncertain(harness)
        with pytest.raises(Refused) as refused:
            await resolve(session, ResolutionRequest(attempt_id, "inspect"))
        assert refused.value.kind == "journalBroken"
        assert session.ledger.attempts[attempt_id].inspection is None
        assert session.resolutions == 0
        with pytest.raises(Refused) as refused:
            await resolve(session, ResolutionRequest(attempt_id, "inspect"))
        assert refused.value.kind == "journalBroken"


async def test_decision_of_the_model_is_recorded_as_the_model_s(place: Workspace) -> None:
    """B5, A5: it is never recorded as a decision of the user."""
    async with practice_server(place, run=2) as harness:
        session, attempt_id = await open_uncertain(harness)
        (attempt,) = session.ledger.uncertain()
        record, _ = await inspect(session, attempt, "model")
        assert record.by == "model"
        await resolve(session, ResolutionRequest(attempt_id, "confirm", inspection_id=record.inspection_id, by="model"))
        (settlement,) = on_disk(place, Settlement)
        assert isinstance(settlement.record, Settlement)
        assert (settlement.record.settled, settlement.record.by) == ("model_confirmed", "model")


@pytest.mark.parametrize("action", ["confirm", "waive"])
async def test_prompt_after_a_resolution_is_an_ordinary_turn(place: Workspace, action: Action) -> None:
    """A7: the next prompt repeats nothing, holds nothing back and asks nothing. The model is told once what
    was decided.
    """
    async with practice_server(place, run=2) as harness:
        session, attempt_id = await open_uncertain(harness)
        attempts = len(session.ledger.attempts)
        latest_id = await inspect_attempt(session, attempt_id)
        await resolve(session, ResolutionRequest(attempt_id, action, inspection_id=latest_id))
        assert len(session.ledger.attempts) == attempts
        assert (await harness.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
        assert harness.editor.all_questions == []
        assert session.snapshot().settled == ()
        notices = [one.record for one in on_disk(place, Notice) if isinstance(one.record, Notice)]
        assert [one.attempt_id for one in notices if "is settled" in one.text] == [attempt_id]
    assert place.files()["a.txt"] == "mine"


# Held-back calls.


async def test_held_back_call_waits_for_the_turn_of_the_other_session(place: Workspace) -> None:
    """B1, B4: the effect belongs to a session whose own turn runs, so it cannot be inspected yet. The call waits, and
    the user is asked as soon as that turn has ended. The call is not refused.
    """
    disk = GatedDisk(creates("b.txt"))
    async with practice_server(place, run=2, disk=disk) as harness:
        session, _ = await open_uncertain(harness)
        running = await harness.send(SESSION, "write b.txt with b", "other")
        await disk.wait_reached()
        new_session = await harness.create()
        waiting = await harness.send(new_session, "write a.txt with mine", "mine")
        await harness.until(lambda: is_parked(harness, new_session))
        assert harness.editor.all_questions == []
        harness.editor.held_back = lambda _: Choice("waive")
        disk.go.set()
        assert (await session.feed.wait_until_ended(running.turn_id)).reason == "done"
        ended = await harness.registry.sessions[new_session].feed.wait_until_ended(waiting.turn_id)
        assert ended.reason == "done"
        assert place.files()["a.txt"] == "mine"
        (question,) = harness.editor.all_questions
        assert isinstance(question, HeldBackQuestion)
        assert uncertain_of(question).session_id == SESSION


async def test_held_back_answer_counts_only_for_the_inspected_state(place: Workspace) -> None:
    """B4, W7, [I8]: the question is readable and describes the current file. The file changes while the user thinks:
    their Confirm settles nothing, and they are asked again with the new state.
    """
    findings: list[str] = []

    def answer(question: HeldBackQuestion) -> Choice:
        findings.append(question.text)
        if len(findings) == 1:
            place.write("a.txt", "new")
        return Choice("confirm")

    async with practice_server(place, run=2, editor=ScriptedEditor(held_back=answer)) as harness:
        await harness.open(SESSION)
        assert (await harness.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
    assert len(findings) == 2
    assert findings[0] == (
        "“write_file: a.txt” is waiting: an earlier effect is uncertain and may touch the same files. “write_file:"
        " a.txt” was checked: the file is now neither as it was before nor as intended. This describes the file now,"
        " not what ran. Settle that effect, or refuse the call."
    )
    assert "has the intended content now" in findings[1]
    (settlement,) = on_disk(place, Settlement)
    assert isinstance(settlement.record, Settlement)
    assert settlement.record.settled == "checked_present"


async def test_held_back_call_without_an_editor_is_refused_with_instructions(place: Workspace) -> None:
    """B4: without an editor nothing is inspected and nobody waits. The call is refused with every way to settle the
    effect.
    """
    async with practice_server(place, run=2, editor=ScriptedEditor(somebody=False)) as harness:
        session, attempt_id = await open_uncertain(harness)
        assert (await harness.say(SESSION, "write a.txt with mine", "mine")).reason == "done"
        replies = [call.reply.text for call in session.ledger.calls.values() if call.reply is not None]
        assert any(attempt_id in text and "/recovery" in text for text in replies)
        assert session.snapshot().statistics.held_back == 1
    assert on_disk(place, Inspection) == []
    assert place.files()["a.txt"] == "somebody's\n"


class BusyEditor(ScriptedEditor):
    """Runs something while the user decides about a permission, and then allows it."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        self.all_questions.append(question)
        if self.meanwhile is not None:
            await self.meanwhile()
        return Choice("once")


async def test_effect_uncertain_while_permission_is_asked_holds_the_call_back(tmp_path: Path) -> None:
    """[I6]: another session's write becomes uncertain while the user decides on a command. The command is held back
    although they allowed it, since they could not know.
    """
    disk = MatchingFault(system_disk(), carries("result"), errno.EIO)
    editor = BusyEditor()
    async with practice_server(Workspace.under(tmp_path / "place"), disk=disk, editor=editor) as harness:
        one, other = await harness.create(), await harness.create()
        await harness.registry.sessions[one].set_mode("ask")

        async def meanwhile() -> None:
            await harness.say(other, "write a.txt with other", "other")
            if not harness.ledger(other).uncertain():
                raise RuntimeError("the other write must become uncertain")

        editor.meanwhile = meanwhile
        await harness.say(one, "run echo mine > a.txt", "mine")
    assert harness.workspace.files()["a.txt"] == "other"


async def test_chat_of_another_session_can_settle_the_effect(place: Workspace) -> None:
    """B1, B4: an effect that holds a call back here can be settled by chat text here, although it belongs to another
    session.
    """
    async with practice_server(place, run=2) as harness:
        session, attempt_id = await open_uncertain(harness)
        this_session = await harness.create()

        async def answer_to(line: str) -> str:
            await harness.say(this_session, line, line)
            return harness.registry.sessions[this_session].messages(1)[0][0].text

        listed = f"1. {attempt_id[:8]} write_file: a.txt (session “{session.name}”): conflict"
        assert (await answer_to("/recovery")).startswith(listed)
        assert "/recovery waive again" in await answer_to(f"/recovery waive {attempt_id[:8]}")
        assert "continues without knowing" in await answer_to(f"/recovery waive  {attempt_id[:8]}")
        assert await answer_to("/recovery ") == "Nothing is uncertain.", "a settled attempt is shown in its own session"
        assert session.ledger.uncertain() == []
        assert len(on_disk(place, Settlement)) == 1


def creates(name: str) -> Callable[[Operation], bool]:
    return lambda operation: operation.verb == "create" and name in operation.target


def is_parked(harness: InProcessServer, session_id: str) -> bool | None:
    turn = harness.registry.sessions[session_id].turn
    return True if turn is not None and turn.is_parked else None
