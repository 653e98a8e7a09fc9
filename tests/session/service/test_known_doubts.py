"""No effect is admitted before the doubts are known (A8, B1, case 163), whatever path leads to a folder (case 164)."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.ports.disk import Disk, Folder
from steadyhand.session.calls import holdback
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service import acquire, known_doubts
from steadyhand.session.service.known_doubts import KnownDoubts
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.editor import ScriptedEditor
from tests.support.faults import GatedDisk, Operation, WatchedDisk, carries
from tests.support.folding_disk import folding_disk
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.redo import inspect_attempt
from tests.support.session_state import change_states, states
from tests.support.systems import linux_only, mounted_at
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.timeout(120)]

WRITE = 'write a.txt with "new\\n"'
SOMEBODYS = "somebody's\n"


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    return place


def make_doubt(place: Workspace, prompt: str = WRITE) -> None:
    """Kill a server right before the result of the call, and let somebody change the file: nothing is proved."""
    kill_in_turn(place, prompt, carries("result"))
    if prompt == WRITE:
        place.write("a.txt", SOMEBODYS)


@asynccontextmanager
async def careful_server(
    place: Workspace, *folders: str, free_s: float = 10.0, **more: Any
) -> AsyncIterator[tuple[InProcessServer, KnownDoubts]]:
    """A later run whose effects wait until the doubts of its folders are known."""
    async with practice_server(place, **{"run": 2, "editor": ScriptedEditor(), **more}) as server:
        yield server, KnownDoubts(server.registry, lambda: folders or (place.uri,), free_s)


def is_verdict_write(operation: Operation) -> bool:
    """An opening that records its verdict, and no result of this process."""
    return operation.verb == "write" and {"epoch", "result"} <= set(operation.kinds)


@pytest.mark.parametrize("prompt", [WRITE, "run echo x > b.txt", "delete a.txt", "move a.txt to b.txt"])
async def test_first_effect_waits_until_the_doubtful_session_was_opened(place: Workspace, prompt: str) -> None:
    """Case 163, B1: while the session with the doubt is being opened, the first effect of a new session waits. Then it
    is held back. A read does not wait."""
    make_doubt(place)
    disk = GatedDisk(is_verdict_write)
    async with careful_server(place, disk=disk) as (server, _):
        session = await server.session()
        accepted = await server.send(session, prompt)
        await disk.wait_reached()
        other = await server.session()
        assert (await server.say(other, "show a.txt")).reason == "done"
        assert states(other) == ["returned"]
        assert change_states(session) == ["waiting"]
        assert server.content("a.txt") == SOMEBODYS
        disk.go.set()
        await server.ended(session, accepted.turn_id)
        assert len(server.editor.held_back_questions) == 1
        assert change_states(session) == ["refused"]
        assert server.content("a.txt") == SOMEBODYS
        assert not (place.root / "b.txt").exists()


async def test_doubt_holds_back_the_same_name_in_other_letters(place: Workspace) -> None:
    """Case 133, W12, B1: an uncertain effect at `Src/x.txt` holds back `src/X.txt`, on a system that folds names and on
    one that does not [I6]. Another name goes on."""
    make_doubt(place, "write Src/x.txt with new")
    place.write("Src/x.txt", SOMEBODYS)
    for run, disk in ((2, None), (3, folding_disk(str(place.base)))):
        async with careful_server(place, run=run, disk=disk) as (server, _):
            session = await server.session()
            await server.say(session, "write src/X.txt with b")
            assert len(server.editor.held_back_questions) == 1
            assert change_states(session) == ["refused"]
            await server.say(session, "write src/y.txt with b")
            assert change_states(session)[-1] == "returned"
    assert server.content("Src/x.txt") == SOMEBODYS


async def test_effect_that_waits_noticeably_says_so(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 163: one message says what it waits for. A wait that is short is not mentioned."""
    make_doubt(place)
    monkeypatch.setattr(holdback, "DOUBTS_NOTICE_S", 0.01)
    disk = GatedDisk(is_verdict_write)
    async with careful_server(place, disk=disk) as (server, _):
        session = await server.session()
        accepted = await server.send(session, WRITE)
        await server.until(lambda: [text for text in server.editor.messages if "is waiting" in text] or None)
        disk.go.set()
        await server.ended(session, accepted.turn_id)
        waits = [text for text in server.editor.messages if "is waiting" in text]
        assert waits == [f"“write_file: a.txt” is waiting: {holdback.WAITING_FOR_DOUBTS}"]
        await server.say(session, "write b.txt with b")
        assert [text for text in server.editor.messages if "is waiting" in text] == waits


async def test_effect_whose_doubts_stay_unknown_is_refused(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 163, I13: the wait is bounded. The call did not run and says why; the next one runs once all is known."""
    make_doubt(place)
    monkeypatch.setattr(holdback, "DOUBTS_WAIT_S_MAX", 0.2)
    disk = GatedDisk(is_verdict_write)
    async with careful_server(place, disk=disk) as (server, doubts):
        session = await server.session()
        await server.say(session, WRITE)
        *_, call = session.ledger.calls.values()
        assert call.reply is not None
        assert (call.reply.outcome, call.reply.reason) == ("refused", "recovery_required")
        assert "were not read" in call.reply.text
        assert server.content("a.txt") == SOMEBODYS
        disk.go.set()
        with anyio.fail_after(60):
            await doubts.read()
        await server.say(session, "write b.txt with b")
        assert change_states(session)[-1] == "returned"


async def test_stopped_turn_does_not_wait_for_the_doubts(place: Workspace) -> None:
    """G8: a turn that is stopped while its call waits ends, and the sessions are read all the same."""
    make_doubt(place)
    disk = GatedDisk(is_verdict_write)
    async with careful_server(place, disk=disk) as (server, doubts):
        session = await server.session()
        accepted = await server.send(session, WRITE)
        await disk.wait_reached()
        await server.registry.close(session.session_id)
        assert session.ledger.turns[accepted.turn_id].ended is not None
        assert SESSION not in server.registry.sessions
        disk.go.set()
        await doubts.read()
        assert SESSION in server.registry.sessions
        assert server.content("a.txt") == SOMEBODYS


# The same folder under another path.


@pytest.fixture
def linked(place: Workspace) -> Workspace:
    os.symlink(place.root, place.base / "link")
    return place


async def refuses_to_write(server: InProcessServer, folder: Path, prompt: str = WRITE) -> Session:
    """A new session in this folder; its write is held back and refused."""
    session_id = (await server.registry.create(None, folder.as_uri())).session_id
    session = await server.registry.open_session(session_id)
    await server.say(session, prompt)
    assert len(server.editor.held_back_questions) == 1
    assert change_states(session) == ["refused"]
    return session


async def test_folder_opened_through_a_link_finds_the_doubt(linked: Workspace) -> None:
    """Case 164: the folder is opened through a link. The doubt is reported, and it holds the write back."""
    make_doubt(linked)
    link = linked.base / "link"
    async with careful_server(linked, link.as_uri()) as (server, _):
        await refuses_to_write(server, link)
        assert any("1 earlier effect is uncertain" in text for text in server.editor.messages)
        assert linked.content("a.txt") == SOMEBODYS


@pytest.mark.parametrize("name", ["link", "ws/inner", "."])
async def test_uncertain_command_is_found_by_its_folder_alone(linked: Workspace, name: str) -> None:
    """Case 164: it names no path. The opened folder is a link to its folder, is in it, or contains it."""
    linked.write("inner/a.txt", "old\n")
    make_doubt(linked, "run echo x > b.txt")
    folder = linked.base / name
    async with careful_server(linked, folder.as_uri()) as (server, _):
        await refuses_to_write(server, folder)


async def test_doubt_of_a_session_created_through_a_link_is_found(linked: Workspace) -> None:
    """Case 164: the other way round. What was recorded names the link, and the folder is opened by its own path."""
    make_doubt(Workspace(linked.base / "link", linked.state))
    assert b"/link" in linked.journal(SESSION), "the recorded spelling stays"
    async with careful_server(linked) as (server, _):
        await refuses_to_write(server, linked.root)


@pytest.mark.parametrize("opened", ["inner", "outer"])
async def test_nested_folders_find_each_others_doubts(place: Workspace, opened: str) -> None:
    """Case 164: one folder is inside the other. A doubt in either is known in both."""
    inner = Workspace(place.root / "sub", place.state)
    inner.write("a.txt", "old\n")
    make_doubt(place if opened == "inner" else inner, WRITE if opened == "outer" else 'write sub/a.txt with "new\\n"')
    inner.write("a.txt", SOMEBODYS)
    here = inner.root if opened == "inner" else place.root
    async with careful_server(place, here.as_uri()) as (server, _):
        prompt = WRITE if opened == "inner" else 'write sub/a.txt with "again\\n"'
        await refuses_to_write(server, here, prompt)
        assert inner.content("a.txt") == SOMEBODYS


async def test_nested_folders_of_one_window_hold_each_other_back(place: Workspace) -> None:
    """Case 164, B1: both sessions are open in this process, and their folders differ."""
    inner = Workspace(place.root / "sub", place.state)
    inner.write("a.txt", "old\n")
    make_doubt(place, 'write sub/a.txt with "new\\n"')
    inner.write("a.txt", SOMEBODYS)
    async with practice_server(place, run=2, editor=ScriptedEditor()) as server:
        await server.open(SESSION)
        await refuses_to_write(server, inner.root)


@pytest.fixture
def mounted(place: Workspace) -> Iterator[Path]:
    """The workspace at a second path, without a link."""
    yield from mounted_at(place.root, place.base / "mounted")


async def test_folder_mounted_at_a_second_path_finds_the_doubt(place: Workspace, mounted: Path) -> None:
    """Case 164: a bind mount is the same folder, though no path says so."""
    make_doubt(place)
    async with careful_server(place, mounted.as_uri()) as (server, _):
        await refuses_to_write(server, mounted)
        assert place.content("a.txt") == SOMEBODYS


async def test_second_name_of_the_doubtful_file_is_held_back(place: Workspace) -> None:
    """Case 164: a hard link to the doubtful file."""
    make_doubt(place)
    os.link(place.root / "a.txt", place.root / "b.txt")
    async with careful_server(place) as (server, _):
        await refuses_to_write(server, place.root, 'write b.txt with "new\\n"')


@pytest.fixture
def elsewhere(place: Workspace) -> Workspace:
    """A folder beside the workspace, with the same state directory."""
    other = Workspace(place.base / "elsewhere", place.state)
    other.write("a.txt", "old\n")
    return other


async def test_doubt_about_a_file_of_the_folder_counts_whatever_its_session(
    place: Workspace, elsewhere: Workspace
) -> None:
    """Case 164: a session of a folder elsewhere has an uncertain write to a file of this folder."""
    make_doubt(elsewhere, f'write {place.root / "a.txt"} with "new\\n"')
    place.write("a.txt", SOMEBODYS)
    async with careful_server(place) as (server, _):
        await refuses_to_write(server, place.root)


async def test_session_of_an_unrelated_folder_is_left_alone(place: Workspace, elsewhere: Workspace) -> None:
    """A8: it is neither opened nor changed, and holds nothing back."""
    make_doubt(elsewhere)
    journal = elsewhere.journal(SESSION)
    async with careful_server(place) as (server, _):
        session = await server.session()
        assert (await server.say(session, WRITE)).reason == "done"
        assert change_states(session) == ["returned"]
        assert SESSION not in server.registry.sessions
    assert elsewhere.journal(SESSION) == journal


# Who waits, and what is told.


async def test_restore_and_retry_wait_for_the_doubts_too(place: Workspace) -> None:
    """Case 163, I6: a command of another session is uncertain and nobody opened that session. A restore of the first
    effect is refused, as it would be if it had been opened."""
    kill_in_turn(place, "run echo x > b.txt", carries("result"))
    async with practice_server(place, run=2, settle="ask") as server:
        other = await server.create()
        session = server.registry.sessions[other]
        await server.say(other, WRITE)
        assert change_states(session) == ["returned"]
    async with careful_server(place, run=3) as (server, _):
        reopened = await server.opened(other)
        *_, attempt = reopened.ledger.attempts.values()
        attempt.stage = "uncertain"  # as if its result had not been recorded
        inspection = await inspect_attempt(reopened, attempt)
        with pytest.raises(Refused) as refused:
            await resolve(
                reopened, ResolutionRequest(attempt.attempt_id, "restore", inspection_id=inspection.inspection_id)
            )
        assert refused.value.kind == "recoveryRequired"
        assert refused.value.more["uncertain"]
    assert place.content("a.txt") == "new\n"


class UnlistedState(WatchedDisk):
    """The folder of the sessions cannot be listed while `fails`."""

    def __init__(self, inner: Disk) -> None:
        super().__init__(inner)
        self.fails = True

    def names(self, folder: Folder) -> list[str]:
        if self.fails and self.inner.real_path(folder).endswith("/sessions"):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        return super().names(folder)


async def test_effect_is_refused_while_the_sessions_cannot_be_listed(place: Workspace) -> None:
    """Case 163: nobody knows what is uncertain, so nothing runs, and the reply says what to do. The next effect looks
    again."""
    make_doubt(place)
    disk = UnlistedState(system_disk())
    async with careful_server(place, disk=disk) as (server, _):
        session = await server.session()
        await server.say(session, "write b.txt with b")
        *_, call = session.ledger.calls.values()
        assert call.reply is not None
        assert call.reply.reason == "recovery_required"
        assert "The state directory" in call.reply.text
        assert "not known whether an uncertain effect touches the same files" in call.reply.text
        assert not (place.root / "b.txt").exists()
        disk.fails = False
        await server.say(session, "write b.txt with b")
        assert change_states(session)[-1] == "returned"
        assert SESSION in server.registry.sessions


async def test_session_that_cannot_be_read_is_reported_and_holds_nothing_back(place: Workspace) -> None:
    """Case 163, S6: nobody knows what it holds. It fails alone, and one message says so."""
    make_doubt(place)
    journal = place.session_directory(SESSION) / "journal.jsonl"
    journal.rename(journal.with_name("elsewhere"))
    journal.mkdir()
    async with careful_server(place) as (server, _):
        session = await server.session()
        await server.say(session, "write b.txt with b")
        assert change_states(session) == ["returned"]
        (told,) = [text for text in server.editor.messages if "cannot be read" in text]
        assert SESSION[:8] in told
        assert "not known whether an effect there is uncertain" in told


async def test_session_whose_owner_ended_later_is_read_before_the_next_effect(place: Workspace) -> None:
    """Case 163, J11: another process owned the session at the scan. It ended since, and left a doubt."""
    make_doubt(place)
    async with careful_server(place, free_s=0.2) as (server, _):
        with server.owned_elsewhere(SESSION):
            session = await server.session()
            await server.say(session, "write b.txt with b")
            assert change_states(session) == ["returned"]
        await server.say(session, WRITE)
        assert len(server.editor.held_back_questions) == 1
        assert change_states(session)[-1] == "refused"


async def test_shown_session_whose_owner_ended_is_taken_over_before_the_next_effect(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 163, J11: the client looked at a session while another process ran a call in it. That process was killed."""
    monkeypatch.setattr(acquire, "OWNER_WAIT_S_MAX", 0.2)
    make_doubt(place)
    async with careful_server(place, free_s=0.2) as (server, _):
        with server.owned_elsewhere(SESSION):
            view = await server.open(SESSION)
            assert view.session.read_only is not None
        await refuses_to_write(server, place.root)


async def test_folder_added_later_is_read_before_its_first_effect(place: Workspace) -> None:
    """Case 163: the client adds a folder after the start."""
    second = Workspace(place.base / "second", place.state)
    second.write("a.txt", "old\n")
    make_doubt(second)
    folders = [place.uri]
    async with practice_server(place, run=2, editor=ScriptedEditor()) as server:
        doubts = KnownDoubts(server.registry, lambda: folders)
        await doubts.read()
        assert SESSION not in server.registry.sessions
        folders.append(second.uri)
        await refuses_to_write(server, second.root)


async def test_sessions_of_a_folder_are_read_once(place: Workspace) -> None:
    """Case 163: many effects wait for one reading."""
    make_doubt(place)
    async with careful_server(place) as (server, doubts):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(doubts.read)
        await doubts.read([place.uri])
        assert len([text for text in server.editor.messages if "uncertain" in text]) == 1


async def test_defect_in_one_opening_concerns_that_session_alone(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S6, case 163: an opening that fails in an unexpected way is reported as unread, and effects go on."""
    make_doubt(place)
    async with careful_server(place) as (server, _):

        async def fails(session_id: str, anew: bool = False, kept_open: bool = True) -> Session:
            if session_id == SESSION:
                raise AssertionError("a defect")
            return await open_session(session_id, anew, kept_open)

        open_session = server.registry.open_session
        session = await server.session()
        monkeypatch.setattr(server.registry, "open_session", fails)
        await server.say(session, "write b.txt with b")
        assert change_states(session) == ["returned"]
        (told,) = [text for text in server.editor.messages if "cannot be read" in text]
        assert "something failed inside Steadyhand" in told


async def test_scan_that_ends_without_a_result_leaves_the_doubts_unknown(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 163: whatever the scan dies of, nothing runs on the belief that it has ended well."""
    make_doubt(place)

    async def dies(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async with careful_server(place) as (server, _):
        monkeypatch.setattr(known_doubts, "open_unsettled", dies)
        session = await server.session()
        await server.say(session, WRITE)
        assert change_states(session) == ["refused"]
        assert place.content("a.txt") == SOMEBODYS
        monkeypatch.undo()
        await server.say(session, WRITE)
        assert len(server.editor.held_back_questions) == 1


async def test_folder_that_only_the_session_knows_is_read_too(place: Workspace) -> None:
    """Case 163: the client names no folder, as the command line does."""
    make_doubt(place)
    async with practice_server(place, run=2, editor=ScriptedEditor()) as server:
        KnownDoubts(server.registry, list)
        await refuses_to_write(server, place.root)


async def test_scan_that_dies_of_a_defect_leaves_the_doubts_unknown(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 163: nobody set why it is not known, and still nothing runs."""
    make_doubt(place)

    async def dies(*_: object) -> None:
        raise AssertionError("a defect")

    async with careful_server(place) as (server, _), anyio.create_task_group() as tasks:

        async def swallow(work: Callable[[], Awaitable[None]]) -> None:
            with suppress(AssertionError):
                await work()

        monkeypatch.setattr(server.registry.context, "spawn", lambda work, _: tasks.start_soon(swallow, work))
        monkeypatch.setattr(known_doubts, "open_unsettled", dies)
        session = await server.session()
        await server.say(session, WRITE)
        assert change_states(session) == ["refused"]
        assert place.content("a.txt") == SOMEBODYS


async def test_doubt_that_arises_after_the_scan_holds_back(place: Workspace) -> None:
    """Case 163, I6: another process creates a session after the scan, leaves a doubt in it and ends."""
    async with careful_server(place) as (server, _):
        session = await server.session()
        await server.say(session, "write b.txt with b")
        await anyio.to_thread.run_sync(make_doubt, place)
        before = place.content("a.txt")
        await server.say(session, "write a.txt with mine")
        assert change_states(session) == ["returned", "refused"]
        assert place.content("a.txt") == before


async def test_doubt_of_a_session_that_was_idle_at_the_scan_holds_back(place: Workspace) -> None:
    """Case 163, I6: its owner was idle when the sessions were read; it then begins a write and dies."""
    make_doubt(place)
    journal = place.session_directory(SESSION) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    idle = next(number for number, line in enumerate(lines) if b'"kind":"user"' in line)
    journal.write_bytes(b"".join(lines[:idle]))
    async with careful_server(place) as (server, _):
        with server.owned_elsewhere(SESSION):
            session = await server.session()
            await server.say(session, "write b.txt with b")
            with journal.open("ab") as file:
                file.write(b"".join(lines[idle:]))
        before = place.content("a.txt")
        await server.say(session, "write a.txt with mine")
        assert change_states(session) == ["returned", "refused"]
        assert place.content("a.txt") == before


async def test_folder_that_is_added_later_hides_no_change_in_the_first_one(place: Workspace) -> None:
    """Case 163, I6: reading the sessions of another folder does not count as having looked at this one's again."""
    second = Workspace(place.base / "second", place.state)
    second.write("b.txt", "old\n")
    folders = [place.uri]
    async with practice_server(place, run=2, editor=ScriptedEditor()) as server:
        KnownDoubts(server.registry, lambda: folders)
        session = await server.session()
        await server.say(session, "write b.txt with b")
        await anyio.to_thread.run_sync(make_doubt, place)
        folders.append(second.uri)
        before = place.content("a.txt")
        await server.say(session, "write a.txt with mine")
        assert change_states(session) == ["returned", "refused"]
        assert place.content("a.txt") == before
