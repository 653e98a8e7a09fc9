"""A session whose lock, folder or journal was taken away: nothing starts, nothing is said for certain, the user is told
once (cases 161, 162).

`tests/prove/taken.py` does this at every moment of a turn on a simulated disk. Here are the moments beside a turn, on
the disk of this system, with a second server on the same state directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Damage, ModeSet
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.journal.journal import JournalBroken
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.session.session_status import SessionStatus
from steadyhand.session.storage import directory
from steadyhand.session.storage.summary import SUMMARY
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.faults import between
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, run, says, write
from tests.support.session_state import calls_of, on_disk, outcomes, replies, states

pytestmark = pytest.mark.anyio


def _remove_lock(folder: Path) -> None:
    (folder / "owner.lock").unlink()


def _replace_by_backup(folder: Path) -> None:
    """Put the folder's copy of an earlier moment in its place."""
    folder.rename(folder.with_name("away"))
    shutil.copytree(_backup(folder), folder)


def _backup(folder: Path) -> Path:
    return folder.parent.with_name("backup")


def _keep(session: Session) -> Path:
    """Make a backup of the session's folder, and return the folder."""
    folder = Path(session.path)
    shutil.copytree(folder, _backup(folder))
    return folder


TAKES: list[Callable[[Path], None]] = [_remove_lock, _replace_by_backup, shutil.rmtree]
each_take = pytest.mark.parametrize("take", TAKES)


class _Commands:
    """Commands that do `effect`, which the test chooses when the session is there."""

    def __init__(self) -> None:
        self.effect: Callable[[], object] = lambda: None
        self.script = Script((b"done\n",), effect=self._happen)

    def _happen(self, asked: Run) -> None:
        self.effect()


def losses(stage: InProcessServer) -> list[str]:
    """The messages that say that a session was taken away."""
    told = [one.text for one in stage.editor.told if isinstance(one, MessageNotification) and one.level == "error"]
    return [text for text in told if "cannot go on here" in text]


async def refused_prompt(stage: InProcessServer, session: Session) -> Refused:
    with pytest.raises(Refused) as refused:
        await stage.send(session, "more")
    return refused.value


@each_take
async def test_idle_session_that_was_taken_away_is_shown_read_only(
    tmp_path: Path, take: Callable[[Path], None]
) -> None:
    """Cases 161, 162: the next prompt finds it; the session then says why it is read-only, and the user is told
    once."""
    async with scripted_server(tmp_path, says("one"), says("two")) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        folder = _keep(session)
        take(folder)
        refused = await refused_prompt(stage, session)
        assert refused.kind == "journalBroken"
        assert str(folder) in refused.message
        assert (await refused_prompt(stage, session)).more["readOnly"]["reason"] == "disk"  # type: ignore[index]  # JSON
        assert session.status is SessionStatus.LOST
        shown = session.view().read_only
        assert shown is not None
        assert shown.text in losses(stage)[0]
        assert len(losses(stage)) == 1
        assert stage.model.requests == stage.model.requests[:1], "no model is asked any more"


@each_take
async def test_command_during_which_the_session_is_taken_away_is_unknown(
    tmp_path: Path, take: Callable[[Path], None]
) -> None:
    """Case 162: it ran, and no later process can know of it, so its end is not told as certain; the next call does not
    start."""
    commands = _Commands()
    processes = FakeProcesses(otherwise=commands.script)
    async with scripted_server(tmp_path, asks(run("one")), asks(run("two")), says("ok"), processes=processes) as stage:
        session = await stage.session("auto")
        folder = _keep(session)
        commands.effect = lambda: take(folder)
        ended = await stage.say(session, "go")
        assert ended.reason == "journalBroken"
        assert states(session)[0] == "unknown"
        assert "could not be recorded, so its outcome is unknown" in replies(session)[0]
        assert len(processes.runs) == 1, "nothing starts any more"
        assert next(iter(session.ledger.attempts.values())).uncertain
        assert len(losses(stage)) == 1


async def test_second_owner_keeps_its_records_and_the_first_stops(tmp_path: Path) -> None:
    """Case 161: the lock's file is removed, a second process takes the session and works; the first one records and
    changes nothing more, writes no summary at its end, and is shown who owns the session."""
    async with scripted_server(tmp_path, asks(write("a.txt", "mine\n")), says("ok")) as stage:
        session = await stage.session("auto")
        _remove_lock(Path(session.path))
        async with scripted_server(tmp_path, asks(write("b.txt", "theirs\n")), says("ok"), run=2) as other:
            taken = await other.opened(session.session_id)
            assert (await other.say(taken, "go")).reason == "done"
            journal = stage.workspace.journal(session.session_id)
            assert (await refused_prompt(stage, session)).kind == "journalBroken"
            assert stage.content("a.txt") is None
            assert stage.content("b.txt") == "theirs\n"
            reopened = await stage.opened(session.session_id)
            assert reopened.status is SessionStatus.OWNED_ELSEWHERE
            with pytest.raises(Refused, match="open in process"):
                reopened.require_owned()
        assert stage.workspace.journal(session.session_id) == journal
        assert len(losses(stage)) == 1


async def test_session_that_was_taken_away_is_taken_up_again_by_opening(tmp_path: Path) -> None:
    """Case 161: nobody else took it: opening takes a new lock, under a new epoch, and the session goes on."""
    async with scripted_server(tmp_path, says("one"), asks(write("a.txt", "new\n")), says("ok")) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        _remove_lock(Path(session.path))
        await refused_prompt(stage, session)
        again = await stage.opened(session.session_id)
        assert (again.status, again.read_only) == (SessionStatus.OPEN, None)
        assert again.epoch != session.epoch
        assert (await stage.say(again, "second")).reason == "done"
        assert stage.content("a.txt") == "new\n"
        assert again.ledger.refused == []


@each_take
async def test_question_that_was_open_when_the_session_was_taken_away_permits_nothing(
    tmp_path: Path, take: Callable[[Path], None]
) -> None:
    """Case 161: the answer cannot be recorded, so the call does not run."""
    park = Park()
    async with scripted_server(
        tmp_path, asks(write("a.txt", "new\n")), says("ok"), editor=ScriptedEditor(park)
    ) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await park.wait_open()
        take(_keep(session))
        park.answer_with("once")
        assert (await stage.ended(session, accepted.turn_id)).reason == "journalBroken"
        assert states(session) == ["notRun"]
        assert stage.content("a.txt") is None
        assert len(losses(stage)) == 1


async def test_job_of_a_session_that_was_taken_away_is_left_running_and_not_said_to_be_recorded(
    tmp_path: Path,
) -> None:
    """Case 162: a background command runs on; its end is shown and not stored, and nothing new starts."""
    processes = FakeProcesses(otherwise=Script((b"up\n",), hangs=True))
    async with scripted_server(tmp_path, asks(run("serve", background=True)), says("ok"), processes=processes) as stage:
        session = await stage.session("auto")
        await stage.say(session, "go")
        folder = _keep(session)
        _replace_by_backup(folder)
        there = (folder / "journal.jsonl").read_bytes()
        assert (await refused_prompt(stage, session)).kind == "journalBroken"
        (job,) = session.jobs.running.values()
        assert not job.over.is_set()
        await stage.registry.close(session.session_id)
        assert job.over.is_set(), "closing the session ends its jobs"
        assert (folder / "journal.jsonl").read_bytes() == there


async def test_decision_in_a_session_that_was_taken_away_changes_nothing(tmp_path: Path) -> None:
    """Case 161: an inspection, a decision or a mode cannot be recorded, so it is refused and nothing is settled."""
    commands = _Commands()
    processes = FakeProcesses(otherwise=commands.script)
    async with scripted_server(tmp_path, asks(run("one")), says("ok"), processes=processes) as stage:
        session = await stage.session("auto")
        folder = _keep(session)
        commands.effect = lambda: _remove_lock(folder)
        await stage.say(session, "go")
        (attempt,) = session.ledger.uncertain()
        with pytest.raises(Refused, match="owner lock"):
            await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
        with pytest.raises(Refused, match="owner lock"):
            await session.set_mode("ask")
        assert session.ledger.uncertain() == [attempt]
        assert outcomes(session) == []


async def test_closing_session_writes_no_summary_into_another_owners_folder(tmp_path: Path) -> None:
    """Cases 161, 162: the cache of a list must not say of a journal what another journal has."""
    async with scripted_server(tmp_path, says("one")) as stage:
        session = await stage.session("auto")
        folder = _keep(session)
        await stage.say(session, "first")
        _replace_by_backup(folder)
        summary = folder / SUMMARY
        summary.unlink(missing_ok=True)
        await stage.registry.close(session.session_id)
        assert not summary.exists()
        found = directory.summary(stage.registry.context, session.session_id)
        assert found is not None
        assert found.title == "", "the backup has no prompt"


async def test_session_that_was_taken_away_is_not_deleted(tmp_path: Path) -> None:
    """Case 161: its journal may be another owner's by now."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        folder = Path(session.path)
        _remove_lock(folder)
        async with scripted_server(tmp_path, run=2) as other:
            await other.opened(session.session_id)
            with pytest.raises(Refused, match="owner lock"):
                await stage.registry.delete(session.session_id, force=True)
            assert (folder / "journal.jsonl").exists()
            assert session.status is SessionStatus.LOST
            assert session.view().read_only is not None
            assert len(losses(stage)) == 1
            await other.opened(session.session_id)


async def test_session_with_a_linked_journal_opens_read_only(tmp_path: Path) -> None:
    """Case 161: a second name means that another session may write into the same bytes."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        path = Path(session.path) / "journal.jsonl"
    (tmp_path / "second").hardlink_to(path)
    before = path.read_bytes()
    async with scripted_server(tmp_path, run=2) as stage:
        shown = (await stage.open(session.session_id)).session.read_only
        assert shown is not None
        assert "has 2 names" in shown.text
        assert path.read_bytes() == before
        (tmp_path / "second").unlink()
        assert (await stage.open(session.session_id)).session.read_only is None


async def test_prompt_whose_session_is_taken_away_in_its_barrier_runs_when_it_is_sent_again(tmp_path: Path) -> None:
    """Rows J6, S2, case 162: it was refused, so the same request is no duplicate once the folder is back."""
    armed: list[Path] = []

    def take(number: int, name: str) -> None:
        if name == "sync" and armed:
            folder = armed.pop()
            folder.rename(folder.with_name("away"))

    async with scripted_server(tmp_path, says("one"), says("two"), disk=between(take)) as stage:
        session = await stage.session("auto")
        await stage.say(session, "first")
        folder = Path(session.path)
        armed.append(folder)
        with pytest.raises(Refused) as refused:
            await stage.send(session, "more", "a-message")
        assert refused.value.kind == "journalBroken"
        folder.with_name("away").rename(folder)
        again = await stage.opened(session.session_id)
        assert (await stage.say(again, "more", "a-message")).reason == "done"
        assert [damage.unacknowledged for damage in on_disk(again) if isinstance(damage, Damage)] != []
        assert len(stage.model.requests) == 2


async def test_record_that_nobody_waits_for_finds_the_loss_too(tmp_path: Path) -> None:
    """Case 161: the session does not wait for a barrier to notice, and remembers no record as unacknowledged."""
    async with scripted_server(tmp_path) as stage:
        session = await stage.session()
        _remove_lock(Path(session.path))
        with pytest.raises(JournalBroken):
            await session.log.append([ModeSet(mode="plan")], barrier=False)
        assert session.status is SessionStatus.LOST
        assert session.log.unacknowledged is None
        assert not await session.log.may_act()
        assert calls_of(session) == []
