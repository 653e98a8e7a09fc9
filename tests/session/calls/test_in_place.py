"""The question of a write in place: when it is asked, what covers it, and what the journal has (row W11)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import Intent, Mode, Permission, Started
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.questions import Choice
from steadyhand.tools.registry import SUBJECTS
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import on
from tests.support.in_process_server import InProcessServer, practice_server, scripted_server
from tests.support.killed_runs import SESSION, kill_in_turn, retrying_server
from tests.support.model import asks, says, write
from tests.support.redo import inspect_attempt, open_attempt, redo
from tests.support.session_state import on_disk, outcomes, states
from tests.support.systems import linux_only, posix_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, posix_only]

OLD, NEW = "old\n", "new\n"
TITLE = "Write in place: a.txt"


def rule(text: str) -> PermissionRule:
    found = parse_rule(text, SUBJECTS)
    assert isinstance(found, PermissionRule)
    return found


def lay(root: Path, *names: str) -> None:
    """a.txt with these other names."""
    (root / "a.txt").write_text(OLD)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(root / "a.txt", root / name)


def identity(path: Path) -> str:
    seen = path.stat()
    return f"{seen.st_dev}:{seen.st_ino}"


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_write_in_place_asks_in_every_mode(tmp_path: Path, mode: Mode) -> None:
    """W11: one question, with its title, two options and the names; not even a rule that allows everything covers it.
    Intent and start say what it touches and how."""
    park = Park()
    settings = Settings(rules=PermissionRules(allow=(rule("*"),)))
    async with scripted_server(
        tmp_path, asks(write("a.txt", NEW)), editor=ScriptedEditor(park), settings=settings
    ) as stage:
        lay(stage.root, "b.txt")
        session = await stage.session(mode)
        accepted = await stage.send(session, "go on")
        question = await park.wait_open()
        assert question.title == TITLE
        assert [option.id for option in question.options] == ["once", "reject"]
        assert "2 names, 2 of them in this workspace: a.txt, b.txt." in question.text
        assert question.diff is not None
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        assert states(session) == ["returned"]
        assert stage.content("b.txt") == NEW
        assert len(stage.editor.questions) == 1
        records = on_disk(session)
        (intent,) = [record for record in records if isinstance(record, Intent)]
        (started,) = [record for record in records if isinstance(record, Started)]
        assert intent.scope.paths == tuple(str(stage.root / name) for name in ("a.txt", "b.txt"))
        assert intent.scope.identities == (identity(stage.root / "a.txt"),)
        assert (started.scope, [one.in_place for one in started.evidence]) == (None, [True])


@pytest.mark.parametrize("answer", ["session", "workspace", "user"])
async def test_grant_never_covers_a_write_in_place(tmp_path: Path, answer: str) -> None:
    """W11: a grant for every write of the session, workspace or user was given before; the question comes again each
    time, and an answer that is not offered counts as none."""
    editor = ScriptedEditor(answer, "once", answer)
    plays = [asks(write("c.txt", NEW)), asks(write("a.txt", NEW)), asks(write("a.txt", OLD)), says("ok")]
    async with scripted_server(tmp_path, *plays, editor=editor) as stage:
        lay(stage.root, "b.txt")
        session = await stage.session("ask")
        await stage.say(session)
        assert [question.title for question in editor.questions] == ["write_file: c.txt", TITLE, TITLE]
        assert outcomes(session) == [("returned", None), ("returned", None), ("refused", "not_answered")]
        assert stage.content("b.txt") == NEW


async def test_write_in_place_with_nobody_to_ask_is_refused(tmp_path: Path) -> None:
    """W11: `not_answered`; nothing starts."""
    async with scripted_server(
        tmp_path, asks(write("a.txt", NEW)), says("ok"), editor=ScriptedEditor(somebody=False)
    ) as stage:
        lay(stage.root, "b.txt")
        session = await stage.session("auto")
        await stage.say(session)
        assert outcomes(session) == [("refused", "not_answered")]
        assert stage.content("b.txt") == OLD


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        (Settings(rules=PermissionRules(deny=(rule("write_file(secret/**)"),))), "auto"),
        (Settings(trusted=False), "auto"),
        (Settings(), "plan"),
    ],
    ids=["deny rule for another name", "untrusted", "plan"],
)
async def test_write_in_place_is_refused_unasked_where_no_write_may_be(
    tmp_path: Path, settings: Settings, mode: Mode
) -> None:
    """W11, G2: a rule that forbids one of its names forbids the write, whatever name the call says."""
    async with scripted_server(tmp_path, asks(write("a.txt", NEW)), says("ok"), settings=settings) as stage:
        lay(stage.root, "secret/b.txt")
        session = await stage.session(mode)
        await stage.say(session)
        assert outcomes(session) == [("refused", "policy")]
        assert stage.editor.questions == []
        assert stage.content("secret/b.txt") == OLD


async def test_rejected_write_in_place_changes_nothing(tmp_path: Path) -> None:
    """W11: a no is a no."""
    async with scripted_server(
        tmp_path, asks(write("a.txt", NEW)), says("ok"), editor=ScriptedEditor(Choice("reject"))
    ) as stage:
        lay(stage.root, "b.txt")
        session = await stage.session("auto")
        await stage.say(session)
        assert outcomes(session) == [("refused", "denied")]
        assert stage.content("b.txt") == OLD


async def test_file_outside_is_looked_at_after_its_permission_and_asks_again(tmp_path: Path) -> None:
    """W11, case 125: the first question is made from the call alone. The second one knows the names; the start records
    what the intent could not know."""
    async with scripted_server(tmp_path, editor=ScriptedEditor()) as stage:
        there = tmp_path / "there.txt"
        there.write_text(OLD)
        os.link(there, stage.root / "b.txt")
        stage.model.answers[:] = [asks(write(str(there), NEW)), says("ok")]
        session = await stage.session("auto")
        await stage.say(session)
        first, second = stage.editor.questions
        assert first.title.startswith("write_file: /")
        assert "names" not in first.text
        assert second.title.startswith("Write in place: /")
        assert second.text.startswith(f"{second.title}. It has names outside the workspace: {there}.")
        assert "2 names, 1 of them in this workspace: b.txt." in second.text
        assert second.diff is not None
        assert stage.content("b.txt") == NEW
        records = on_disk(session)
        (intent,) = [record for record in records if isinstance(record, Intent)]
        (started,) = [record for record in records if isinstance(record, Started)]
        assert [one.answer for one in records if isinstance(one, Permission)] == ["once", "once"]
        assert (intent.scope.paths, intent.scope.identities) == ((str(there),), ())
        assert started.scope is not None
        assert started.scope.paths == tuple(sorted((str(there), str(stage.root / "b.txt"))))
        attempt = session.ledger.attempts[intent.attempt_id]
        assert (attempt.scope, attempt.intended.scope) == (started.scope, intent.scope)


async def test_file_outside_is_refused_where_the_second_question_is_not_answered(tmp_path: Path) -> None:
    """W11: the permission for the path does not cover the write in place."""
    async with scripted_server(tmp_path, editor=ScriptedEditor("once", None)) as stage:
        there = tmp_path / "there.txt"
        there.write_text(OLD)
        os.link(there, tmp_path / "other.txt")
        stage.model.answers[:] = [asks(write(str(there), NEW)), says("ok")]
        session = await stage.session("auto")
        await stage.say(session)
        assert outcomes(session) == [("refused", "not_answered")]
        assert there.read_text() == OLD


# After a crash.


class TestAfterACrash:
    """A kill in the middle of the write, and what holds afterwards."""

    pytestmark = linux_only

    @staticmethod
    def killed(place: Workspace) -> None:
        """Killed after half of the new bytes were written over the old ones."""
        lay(place.root, "b.txt", "c.txt")
        kill_in_turn(place, 'write a.txt with "changed\\n"', on("truncate", "a.txt"))

    @pytest.fixture
    def torn(self, tmp_path: Path) -> Workspace:
        place = Workspace.under(tmp_path / "place")
        self.killed(place)
        (place.root / "a.txt").write_text("chan")  # what a power loss leaves of it
        return place

    async def test_kill_in_the_middle_is_a_conflict(self, torn: Workspace) -> None:
        """W11, I3: it is neither there nor absent, and the words say how that came."""
        async with practice_server(torn, run=2) as server:
            session, attempt = await open_attempt(server)
            assert (attempt.uncertain, attempt.check) == (True, "conflict")
            found = await inspect_attempt(session, attempt)
            assert "neither as it was before nor as intended (it was written in place and may hold" in found.text

    async def test_restore_is_in_place_and_asks_nobody(self, torn: Workspace) -> None:
        """W11, A5: every name has the old content again; choosing it is the permission (decision 17)."""
        inode = (torn.root / "a.txt").stat().st_ino
        async with practice_server(torn, run=2) as server:
            session, attempt = await open_attempt(server)
            asked = len(server.editor.questions)
            new = await redo(session, attempt, "restore")
            assert new.started is not None
            assert [one.in_place for one in new.started.evidence] == [True]
            assert new.scope.identities == (identity(torn.root / "a.txt"),)
            assert attempt.settlement is not None
            assert attempt.settlement.settled == "restored"
            assert len(server.editor.questions) == asked
        for name in ("a.txt", "b.txt", "c.txt"):
            assert (torn.root / name).read_text() == OLD
        assert (torn.root / "a.txt").stat().st_ino == inode

    async def test_retry_is_in_place_and_asks(self, tmp_path: Path) -> None:
        """W11, F2: nothing was written; the retry asks as every write in place does."""
        place = Workspace.under(tmp_path / "place")
        lay(place.root, "b.txt")
        kill_in_turn(place, 'write a.txt with "new\\n"', on("write", "a.txt"))
        async with retrying_server(place, settle="ask") as server:
            session, attempt = await open_attempt(server)
            new = await redo(session, attempt, "retry")
            assert server.editor.questions[-1].title == TITLE
            assert new.started is not None
            assert [one.in_place for one in new.started.evidence] == [True]
        assert (place.root / "b.txt").read_text() == NEW

    async def test_any_name_of_the_file_is_held_back(self, torn: Workspace) -> None:
        """W11, I6: a recorded name, and a later one that only the inode tells, although the recorded ones are gone."""
        os.link(torn.root / "a.txt", torn.root / "later.txt")
        for name in ("a.txt", "b.txt", "c.txt"):
            os.unlink(torn.root / name)
        async with practice_server(torn, run=2) as server:
            await server.open(SESSION)
            for name in ("later.txt", "c.txt"):
                await server.say(SESSION, f'write {name} with "x\\n"', name)
                assert last_outcome(server) == ("refused", "denied")
            await server.say(SESSION, 'write other.txt with "x\\n"', "other")
            assert last_outcome(server) == ("returned", None)


def last_outcome(server: InProcessServer) -> tuple[str, str | None]:
    ledger: Ledger = server.ledger(SESSION)
    reply = list(ledger.calls.values())[-1].reply
    assert reply is not None
    return reply.outcome, reply.reason
