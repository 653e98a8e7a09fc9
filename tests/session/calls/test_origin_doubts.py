"""The unresolved effects of a fork's origin hold back in the fork, whoever owns the origin (rows S3, B1, N2, B6)."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.model.transcript import outgoing_messages
from steadyhand.domain.records.record import Notice, Permission
from steadyhand.domain.views.sentences import unknown_reply
from steadyhand.domain.views.types import Action
from steadyhand.session.calls import holdback
from steadyhand.session.changes.review import Selection, undo
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service import prompt_queue
from steadyhand.session.service.fork import fork
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.service.revise import revise
from steadyhand.session.session import Session
from tests.support.editor import Park, ScriptedEditor, uncertain_of
from tests.support.faults import DyingDisk, carries, on
from tests.support.forks import run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server, scripted_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.model import asks, call, says
from tests.support.redo import open_attempt, redo
from tests.support.session_state import change_states, journal_path, on_disk, replies
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.timeout(120)]

WRITE = 'write a.txt with "new\\n"'
SOMEBODYS = "somebody's\n"
OTHER = "run echo more > c.txt"  # may touch everything


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """A session was killed right before the result of its write, and somebody changed the file: nothing is proved."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    kill_in_turn(place, WRITE, carries("result"))
    place.write("a.txt", SOMEBODYS)
    return place


async def forked(server: InProcessServer, session_id: str = SESSION) -> Session:
    view = await fork(server.registry, session_id, None, None)
    return server.registry.sessions[view.session_id]


def doubt_of(copy: Session) -> str:
    (origin,) = copy.ledger.origins
    (attempt_id,) = origin.attempts
    return attempt_id


@pytest.mark.parametrize(("answer", "settled"), [("confirm", "user_confirmed"), ("waive", "waived")])
async def test_answer_is_carried_out_in_an_origin_that_nobody_owns(place: Workspace, answer: str, settled: str) -> None:
    """S3, B4: the usual question; the decision is recorded in the origin, and the call goes on. A call on another file
    is not held back."""
    editor = ScriptedEditor(answer)
    async with practice_server(place, run=2, editor=editor) as server:
        copy = await forked(server)
        await server.say(copy, "write b.txt with text")
        assert change_states(copy)[-1] == "returned"
        assert editor.held_back_questions == []
        await server.say(copy, OTHER)
        (question,) = editor.held_back_questions
        assert [option.id for option in question.options] == ["inspect", "confirm", "waive", "refuse"]
        assert uncertain_of(question).session_id == SESSION
        assert change_states(copy)[-1] == "returned"
        origin = await server.opened(SESSION)
        settlement = origin.ledger.attempts[doubt_of(copy)].settlement
        assert settlement is not None
        assert settlement.settled == settled
        assert "settlement" not in {one.kind for one in on_disk(copy)}


async def test_origin_of_another_process_can_only_be_refused(place: Workspace) -> None:
    """S3: one answer, and the sentence that says where to settle it. The origin's journal is not written."""
    editor = ScriptedEditor("refuse")
    async with practice_server(place, run=2, editor=editor) as server:
        copy = await forked(server)
        await server.opened(SESSION)
        await server.registry.stop()
    before = place.journal(SESSION)
    editor = ScriptedEditor("refuse")
    async with practice_server(place, run=3, editor=editor) as server:
        with server.owned_elsewhere(SESSION):
            again = await server.opened(copy.session_id)
            await server.say(again, OTHER)
        (question,) = editor.held_back_questions
        assert [(one.id, one.label) for one in question.options] == [("refuse", "Refuse")]
        title = again.ledger.title.removesuffix(" (fork)")
        assert question.text.endswith(f"Settle it in session {title}.")
        assert uncertain_of(question).attempt_id == doubt_of(again)
        assert uncertain_of(question).actions == ()
        call = list(again.ledger.calls.values())[-1]
        assert call.reply is not None
        assert call.reply.reason == "denied"
        assert place.content("a.txt") == SOMEBODYS
    assert place.journal(SESSION) == before


async def test_question_is_withdrawn_when_the_owner_settles(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3, B4: a resolution by another door counts as the answer, in another process too."""
    monkeypatch.setattr(holdback, "ORIGIN_POLL_S", 0.01)
    async with practice_server(place, run=2) as server:
        copy_id = (await forked(server)).session_id
    async with practice_server(place, run=3) as owner:
        origin = await owner.opened(SESSION)
        async with practice_server(place, run=4, editor=ScriptedEditor(park := Park())) as server:
            copy = await server.opened(copy_id)
            accepted = await server.send(copy, OTHER)
            await park.wait_any()
            looked = await resolve(origin, ResolutionRequest(doubt_of(copy), "inspect"))
            assert looked.inspection is not None
            waive = ResolutionRequest(doubt_of(copy), "waive", inspection_id=looked.inspection.inspection_id)
            await resolve(origin, waive)
            await server.ended(copy, accepted.turn_id)
            assert park.withdrawn
            assert change_states(copy)[-1] == "returned"


async def test_origin_that_cannot_be_read_holds_everything_back(place: Workspace) -> None:
    """S3, [I3] [I6]: what is not known may be everywhere. Reading goes on; nobody to ask refuses."""
    async with practice_server(place, run=2) as server:
        copy_id = (await forked(server)).session_id
    journal = journal_path(place.state, SESSION)
    journal.rename(journal.with_name("kept"))
    journal.symlink_to("kept")
    editor = ScriptedEditor("refuse")
    async with practice_server(place, run=3, editor=editor) as server:
        copy = await server.opened(copy_id)
        await server.say(copy, "show a.txt")
        await server.say(copy, "write other.txt with text")
        (question,) = editor.held_back_questions
        assert [one.id for one in question.options] == ["refuse"]
        assert question.uncertain is None
        editor.somebody = False
        await server.say(copy, "write other.txt with text")
        assert change_states(copy)[-2:] == ["refused", "refused"]
        reply = list(copy.ledger.calls.values())[-1].reply
        assert reply is not None
        assert reply.reason == "recovery_required"
        assert doubt_of(copy) in reply.text


async def test_record_that_was_lost_in_the_origin_holds_everything_back(place: Workspace) -> None:
    """S3, [I3]: an origin that no longer has the attempt does not say that it did not happen."""
    async with practice_server(place, run=2) as server:
        copy_id = (await forked(server)).session_id
    journal = journal_path(place.state, SESSION)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]))
    async with practice_server(place, run=3, editor=ScriptedEditor(somebody=False)) as server:
        copy = await server.opened(copy_id)
        await server.say(copy, "write other.txt with text")
        assert change_states(copy)[-1] == "refused"


async def test_deleted_origin_is_said_once_and_holds_nothing(place: Workspace) -> None:
    """S3: durable, so that a restart does not say it again; the model is told too."""
    async with practice_server(place, run=2) as server:
        copy_id = (await forked(server)).session_id
    shutil.rmtree(journal_path(place.state, SESSION).parent)
    for run in (3, 4):
        async with practice_server(place, run=run) as server:
            copy = await server.opened(copy_id)
            await server.say(copy, "write other.txt with text")
            await server.say(copy, "delete other.txt")
            assert change_states(copy)[-2:] == ["returned", "returned"]
            notices = [one for one in on_disk(copy) if isinstance(one, Notice) and "was deleted" in one.text]
            assert [one.model for one in notices] == [True]
            said = [text for text in server.editor.messages if "was deleted" in text]
            assert len(said) == (1 if run == 3 else 0)


@pytest.mark.parametrize("action", ["inspect", "confirm", "reject", "waive", "retry", "restore"])
async def test_every_action_of_the_fork_on_them_is_not_offered(place: Workspace, action: Action) -> None:
    """S3: the wire's actions name a session and one of its own attempts."""
    async with practice_server(place, run=2) as server:
        copy = await forked(server)
        with pytest.raises(Refused) as refused:
            await resolve(copy, ResolutionRequest(doubt_of(copy), action))
        assert refused.value.kind == "notOffered"
        assert SESSION in str(refused.value.more["why"])


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_model_may_inspect_them_and_not_settle_them(place: Workspace, elsewhere: bool) -> None:
    """S3, B5: `inspect_effect` looks, in an origin that another process owns too; `settle_effect` is not offered."""
    async with practice_server(place, run=2) as server:
        copy = await forked(server)
        attempt_id, copy_id = doubt_of(copy), copy.session_id
    answers = (
        asks(call("inspect_effect", attemptId=attempt_id)),
        asks(call("settle_effect", attemptId=attempt_id, inspectionId="0" * 32, action="waive", evidence="none")),
        says("done"),
    )
    async with scripted_server(place.base, *answers, run=3) as server:
        copy = await server.opened(copy_id)
        if elsewhere:
            with server.owned_elsewhere(SESSION):
                await server.say(copy, "look")
        else:
            await server.say(copy, "look")
        looked, settled = replies(copy)[-2:]
        assert "a.txt" in looked
        assert ("Inspection" in looked) == (not elsewhere)
        assert list(copy.ledger.calls.values())[-1].reply.reason == "notOffered"  # type: ignore[union-attr]
        assert "in that session" in settled


async def test_key_counts_what_the_origin_knows_to_have_happened(tmp_path: Path) -> None:
    """N2, B6, S3: the same call in the fork waits for the origin's. Once the user confirms that one, this is another
    occurrence, and it is asked about as a repeat, once."""
    place = Workspace.under(tmp_path / "place")
    kill_in_turn(place, "run echo hi", carries("result"))
    editor = ScriptedEditor("confirm", "once")
    async with practice_server(place, run=2, editor=editor) as server:
        copy = await forked(server)
        await server.say(copy, "run echo hi")
        await server.say(copy, "run echo hi")
        assert change_states(copy)[-2:] == ["returned", "returned"]
        again, third = copy.ledger.attempts.values()
        origin = await server.opened(SESSION)
        first = origin.ledger.attempts[doubt_of(copy)]
        assert [one.occurrence for one in (first, again, third)] == [0, 1, 2]
        permissions = [one for one in on_disk(copy) if isinstance(one, Permission)]
        assert [one.confirmed_before for one in permissions] == [(first.attempt_id,)]
        assert len(editor.questions) == 1


async def test_fork_of_a_fork_waits_for_the_first_origin(place: Workspace) -> None:
    """S3, [I6]: what is unresolved two forks ago holds back too, and is settled there."""
    editor = ScriptedEditor("waive")
    async with practice_server(place, run=2, editor=editor) as server:
        second = await forked(server, (await forked(server)).session_id)
        assert [one.session_id for one in second.ledger.origins][1:] == [SESSION]
        view = second.view().origin
        assert view is not None
        assert view.session_id == second.ledger.origins[0].session_id
        await server.say(second, OTHER)
        assert [uncertain_of(one).session_id for one in editor.held_back_questions] == [SESSION]
        assert change_states(second)[-1] == "returned"


async def test_undo_in_the_fork_waits_for_the_origin(place: Workspace) -> None:
    """S3, [I6]: bringing content back is an effect too."""
    async with practice_server(place, run=2, editor=ScriptedEditor("waive")) as server:
        copy = await forked(server)
        await server.say(copy, "write b.txt with text")
    journal = journal_path(place.state, SESSION)
    journal.rename(journal.with_name("kept"))
    journal.symlink_to("kept")
    async with practice_server(place, run=3) as server:
        copy = await server.opened(copy.session_id)
        with pytest.raises(Refused) as refused:
            await undo(copy, copy.epoch, Selection(every=True))
        assert refused.value.kind == "recoveryRequired"
        assert place.content("b.txt") == "text"


async def test_retry_in_the_origin_takes_the_doubt_over(tmp_path: Path) -> None:
    """S3, [I3] [I6], N2: the origin's owner retried the effect after the fork and was killed in it. The retry is what
    is unresolved now, and the key counts it once it is known to have happened."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    kill_in_turn(place, WRITE, on("exchange", "a.txt"))
    async with practice_server(place, run=2, settle="ask") as server:
        await server.opened(SESSION)
        copy_id = (await forked(server)).session_id

    async def run_until_killed() -> None:
        async with practice_server(place, run=3, settle="ask", retry=True, disk=DyingDisk(carries("result"))) as owner:
            origin, first = await open_attempt(owner)
            await redo(origin, first, "retry")

    assert run_in_fork(run_until_killed).signal == signal.SIGKILL
    place.write("a.txt", SOMEBODYS)
    editor = ScriptedEditor("refuse")
    async with practice_server(place, run=4, settle="ask", editor=editor) as server:
        with server.owned_elsewhere(SESSION):
            copy = await server.opened(copy_id)
            await server.say(copy, OTHER)
        (question,) = editor.held_back_questions
        assert [one.id for one in question.options] == ["refuse"]
        assert uncertain_of(question).attempt_id != doubt_of(copy)
        assert list(copy.ledger.calls.values())[-1].reply.reason == "denied"  # type: ignore[union-attr]
    editor = ScriptedEditor("confirm")
    async with practice_server(place, run=5, settle="ask", editor=editor) as server:
        copy = await server.opened(copy_id)
        await server.say(copy, WRITE)
        assert uncertain_of(editor.held_back_questions[0]).session_id == SESSION
        assert list(copy.ledger.attempts.values())[-1].occurrence == 1


@pytest.mark.parametrize("readable", [True, False])
async def test_compaction_of_the_fork_names_what_is_unresolved_in_the_origin(place: Workspace, readable: bool) -> None:
    """S3, K4: the copied reply with the words for an unknown outcome is cut off; a line from the journal takes its
    place. Nothing that a model writes removes it."""
    async with practice_server(place, run=2) as server:
        copy = await forked(server)
        attempt_id, copy_id = doubt_of(copy), copy.session_id
        assert unknown_reply(None) in str(outgoing_messages(copy.ledger))
    if not readable:
        journal = journal_path(place.state, SESSION)
        journal.rename(journal.with_name("kept"))
        journal.symlink_to("kept")
    async with practice_server(place, run=3) as server:
        copy = await server.opened(copy_id)
        assert copy.epoch is not None
        done = await prompt_queue.compact(copy, copy.epoch, None)
        assert done.compacted, done
        (message,) = outgoing_messages(copy.ledger)
        assert f"{unknown_reply(None)} Its attempt is {attempt_id}." in message.text


@pytest.mark.parametrize("how", ["revise", "rewind"])
async def test_fork_without_its_copied_turn_still_names_what_is_unresolved(place: Workspace, how: str) -> None:
    """S3, S8: the words for an unknown outcome go with the conversation; the message about what stays has them."""
    async with practice_server(place, run=2) as server:
        copy = await forked(server)
        (first,) = copy.ledger.turns
        assert copy.epoch is not None
        if how == "revise":
            await server.ended(copy, (await revise(copy, copy.epoch, first, "m2", "say hello")).turn_id)
        else:
            await rewind(copy, copy.epoch, first, "conversation")
            await server.say(copy, "say hello")
        told = next(one.text for one in outgoing_messages(copy.ledger) if "rewound" in one.text)
        assert f"{unknown_reply(None)} Its attempt is {doubt_of(copy)}." in told
