"""Room on disk: what two starts remove, and what stays (row K6)."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.model.transcript import outgoing_messages
from steadyhand.domain.settings import Settings
from steadyhand.session.changes.review import Selection, keep, undo
from steadyhand.session.changes.rewind import rewind
from steadyhand.session.service import retention
from steadyhand.session.service.retention import Retention, apply_retention, count_retention
from steadyhand.session.service.session_settings import checkpoints
from tests.support.fakes import FakeClock
from tests.support.faults import MatchingFault, carries
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.session_state import journal_path
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.timeout(120)]

DAY_S = 86_400
ALL = Selection(every=True)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """One turn is kept in place of 200, so that a test need not run 201."""
    monkeypatch.setattr(retention, "TURNS_KEPT", 1)
    monkeypatch.setattr(retention, "JOURNAL_BYTES_MIN", 0)
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    return place


def pass_days(server: InProcessServer, days: float) -> None:
    clock = server.registry.context.clock
    assert isinstance(clock, FakeClock)
    clock.advance(days * DAY_S)


@asynccontextmanager
async def started(place: Workspace, day: float, run: int = 2, **more: Any) -> AsyncIterator[InProcessServer]:
    """A start so many days after the session was made, with its retention done."""
    async with practice_server(place, run=run, **more) as server:
        pass_days(server, day)
        await apply_retention(server.registry)
        yield server


async def counted(place: Workspace, day: float, run: int = 2, **more: Any) -> tuple[int, int]:
    """What a start leaves named, and what was removed so far."""
    async with started(place, day, run, **more) as server:
        found = count_retention(server.registry.context)
        return found.named, found.removed


def stored(place: Workspace, name: str = "checkpoints", session_id: str = SESSION) -> set[str]:
    folder = place.session_directory(session_id) / name
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


async def make_session(place: Workspace, *prompts: str, reviewed: bool = True) -> None:
    """A session whose first turn replaces a.txt and has a long reply; then what it changed is kept."""
    async with practice_server(place) as server:
        session = await server.session()
        assert session.session_id == SESSION
        await server.say(session, "replace old with new in a.txt\nrun seq 1 9000")
        for prompt in prompts or ("say later",):
            await server.say(session, prompt)
        if reviewed:
            await keep(session, session.epoch, ALL)


async def test_one_start_names_and_another_removes_after_seven_days(place: Workspace) -> None:
    """K6: not at once, not after six days, not before `retention.days`; no journal is written."""
    await make_session(place)
    journal, messages = place.journal(SESSION), ""
    assert (len(stored(place)), len(stored(place, "outputs"))) == (1, 1)
    assert await counted(place, 89) == (0, 0)
    assert await counted(place, 91, 3) == (2, 0)
    assert await counted(place, 97.9, 4) == (2, 0)
    assert (len(stored(place)), len(stored(place, "outputs"))) == (1, 1)
    assert await counted(place, 98.1, 5) == (0, 2)
    assert (stored(place), stored(place, "outputs")) == (set(), set())
    assert place.journal(SESSION) == journal
    async with practice_server(place, run=6) as server:
        session = await server.opened(SESSION)
        messages = repr(outgoing_messages(session.ledger))
        assert "9000" in messages, "the reply's beginning and end are in the journal"
        assert session.damaged == 0


async def test_list_and_rewind_say_that_the_content_is_gone(place: Workspace) -> None:
    """K6, G4: `expired` in the list; a rewind leaves the file with that reason and takes back what it can."""
    await make_session(place, "write b.txt with text")
    assert await counted(place, 91) == (2, 0)
    async with started(place, 99, 3) as server:
        session = await server.opened(SESSION)
        listed = await checkpoints(session)
        assert [turn.expired for turn in listed] == [True, None]
        done = await rewind(session, session.epoch, listed[0].turn_id, "files")
        assert [(one.path, one.why) for one in done.left if one.why != "command"] == [("a.txt", "expired")]
        assert [one.path for one in done.restored] == ["b.txt"]
        assert place.content("a.txt") == "new\n"


async def test_unreviewed_change_keeps_its_content_until_it_is_kept(place: Workspace) -> None:
    """K6, V4: what can still be undone in a review stays."""
    await make_session(place, reviewed=False)
    assert await counted(place, 91) == (1, 0)
    assert await counted(place, 99, 3) == (0, 1)
    assert len(stored(place)) == 1
    async with started(place, 100, 4) as server:
        session = await server.opened(SESSION)
        await undo(session, session.epoch, ALL)
        assert place.content("a.txt") == "old\n"
        listed = stored(place)
    assert await counted(place, 200, 5) == (0, 1)
    assert stored(place) == listed, "the undo can be taken back, and its contents are both"


@pytest.mark.parametrize("settled", [False, True])
async def test_unresolved_and_restorable_effects_keep_their_contents(place: Workspace, settled: bool) -> None:
    """K6, A5, B3: one that is uncertain, and one that a check settled, can be restored."""
    kill_in_turn(place, "replace old with new in a.txt", carries("result"))
    if not settled:
        place.write("a.txt", "somebody's\n")
    async with practice_server(place, run=2) as server:
        session = await server.opened(SESSION)
        assert len(session.ledger.uncertain()) == (not settled)
        for text in ("say one", "say two"):
            await server.say(session, text)
    assert await counted(place, 100, 3) == (0, 0)
    assert await counted(place, 200, 4) == (0, 0)
    assert len(stored(place)) == 1


async def test_newest_turns_keep_what_they_refer_to_however_old(place: Workspace) -> None:
    """K6: age alone removes nothing, and the same content in a new turn keeps it."""
    await make_session(place, 'write a.txt with "old\\n"', "replace old with third in a.txt")
    assert await counted(place, 91) == (2, 0), "the output, and what the second turn replaced"
    async with practice_server(place, run=3) as server:
        pass_days(server, 92)
        session = await server.opened(SESSION)
        await server.say(session, 'write a.txt with "new\\n"')
        await server.say(session, "replace new with fifth in a.txt")
    before = stored(place)
    assert await counted(place, 99, 4) == (0, 1), "the output is gone; a file under review keeps everything"
    assert stored(place) == before
    async with practice_server(place, run=5) as server:
        pass_days(server, 99)
        session = await server.opened(SESSION)
        await keep(session, session.epoch, ALL)
    assert await counted(place, 100, 6) == (1, 1), "what the third turn replaced; the newest turn needs the other"
    assert stored(place) == before


async def test_damaged_newer_owned_and_busy_sessions_are_left_alone(place: Workspace) -> None:
    """K6: never in a damaged or newer session, one that another process owns, or one with a background command."""
    await make_session(place)
    assert await counted(place, 91) == (2, 0)
    path = journal_path(place.state, SESSION)
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    flipped, cut = whole.replace(b"say later", b"say lates"), b"".join(lines[:-1]) + lines[-1][:-9]
    for run, content in enumerate((flipped, cut), 3):
        path.write_bytes(content)
        assert await counted(place, 120, run) == (2, 0)
        assert len(stored(place)) == 1
    path.write_bytes(whole)
    async with practice_server(place, run=5) as server:
        pass_days(server, 120)
        with server.owned_elsewhere(SESSION):
            await apply_retention(server.registry)
            assert count_retention(server.registry.context) == Retention(2, 0)
        session = await server.opened(SESSION)
        await server.say(session, "say another")
        with session.resolution():
            await apply_retention(server.registry)
        assert count_retention(server.registry.context) == Retention(2, 0)
        await apply_retention(server.registry)
        assert count_retention(server.registry.context) == Retention(0, 2)


async def test_session_that_is_open_and_idle_is_handled_too(place: Workspace) -> None:
    """K6: the session that an editor opens at each start is no exception; it goes on afterwards."""
    await make_session(place)
    for run, day, expected in ((2, 91.0, (2, 0)), (3, 99.0, (0, 2))):
        async with practice_server(place, run=run) as server:
            session = await server.opened(SESSION)
            pass_days(server, day)
            await apply_retention(server.registry)
            found = count_retention(server.registry.context)
            assert (found.named, found.removed) == expected
            assert (await server.say(session, "say on")).reason == "done"


async def test_setting_of_zero_keeps_everything_and_takes_names_back(place: Workspace) -> None:
    """K6: 0 is never; switched on again, the seven days begin anew."""
    await make_session(place)
    never = Settings(mode="auto", retention_days=0)
    assert await counted(place, 91) == (2, 0)
    assert await counted(place, 120, 3, settings=never) == (0, 0)
    assert await counted(place, 121, 4) == (2, 0)
    assert len(stored(place)) == 1
    assert await counted(place, 60, 5, settings=Settings(mode="auto", retention_days=30)) == (2, 0)


async def test_clock_that_was_wrong_once_removes_nothing(place: Workspace) -> None:
    """K6: a name from the future, or a file that says nothing sound, counts as named now."""
    await make_session(place)
    assert await counted(place, 40_000) == (2, 0)
    assert await counted(place, 91, 3) == (2, 0)
    file = place.session_directory(SESSION) / "retention.json"
    for run, content in enumerate(("{", '{"v":1}', file.read_text().replace("T", " ")), 4):
        file.write_text(content)
        assert await counted(place, 97, run) == (2, 0)
    assert await counted(place, 103.9, 7) == (2, 0)
    assert await counted(place, 104.1, 8) == (0, 2)


async def test_failing_disk_fails_that_session_alone(place: Workspace) -> None:
    """K6, J7: what cannot be removed stays named, and the start goes on with the next session."""
    await make_session(place)
    async with practice_server(place, run=2) as server:
        second = await server.session()
        await server.say(second, "replace new with third in a.txt")
        await keep(second, second.epoch, ALL)
        await server.say(second, "say later")
        name = second.session_id
    assert await counted(place, 91, 3) == (3, 0)
    disk = MatchingFault(
        system_disk(), lambda one: one.verb == "unlink" and SESSION in one.target, errno.EROFS, times=None
    )
    assert await counted(place, 99, 4, disk=disk) == (2, 1)
    assert stored(place, session_id=name) == set()
    assert len(stored(place)) == 1
