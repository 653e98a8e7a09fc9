"""What every session did to files: open ones by their ledgers, closed ones by their journals (row V5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from steadyhand.domain.changes.chain import Chain
from steadyhand.domain.recovery.postcondition import Absent, Present, Unreadable
from steadyhand.session.inspection import file_changes
from steadyhand.session.inspection.file_changes import chains_of, read_changes, read_present
from steadyhand.session.session import Session
from tests.support.in_process_server import scripted_server
from tests.support.journals import digest
from tests.support.model import asks, says, write
from tests.support.session_state import journal_path

pytestmark = pytest.mark.anyio


async def chain_now(session: Session, path: str) -> Chain:
    changes = await read_changes(session)
    (evidence,) = [one.links[path][-1].evidence for one in changes if one.session_id == session.session_id]
    return chains_of([path], changes, await read_present(session, {path: evidence}))[path]


def tools_and_sessions(chain: Chain) -> list[tuple[str, str]]:
    return [(link.session_id, link.after or "") for link in chain.links]


async def test_changes_of_a_closed_session_are_read_from_its_journal(tmp_path: Path) -> None:
    """V5: the chain of a file joins an open session and a closed one; a journal that did not grow is read once."""
    answers = (asks(write("a.txt", "1\n")), says("done"), asks(write("a.txt", "2\n")), says("done"))
    async with scripted_server(tmp_path, *answers) as stage:
        closed, session = await stage.session("auto"), await stage.session("auto")
        await stage.say(closed)
        await stage.say(session)
        await stage.registry.close(closed.session_id)
        path = str(stage.root / "a.txt")
        expected = [(closed.session_id, digest("1\n")), (session.session_id, digest("2\n"))]
        found = await chain_now(session, path)
        assert tools_and_sessions(found) == expected
        assert found.oldest is None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_changes, "load", None)
            assert tools_and_sessions(await chain_now(session, path)) == expected


async def test_changes_of_an_unreadable_session_count_as_somebody_elses(tmp_path: Path) -> None:
    """V5: a journal that cannot be read explains nothing, so the chain ends where it would go on."""
    answers = (asks(write("a.txt", "1\n")), says("done"), asks(write("a.txt", "2\n")), says("done"))
    async with scripted_server(tmp_path, *answers) as stage:
        closed, session = await stage.session("auto"), await stage.session("auto")
        await stage.say(closed)
        await stage.say(session)
        await stage.registry.close(closed.session_id)
        journal_path(stage.state, closed.session_id).write_bytes(b"no journal\n")
        found = await chain_now(session, str(stage.root / "a.txt"))
        assert tools_and_sessions(found) == [(session.session_id, digest("2\n"))]


async def test_file_that_cannot_be_read_now_is_nobodys(tmp_path: Path) -> None:
    """V5: only what was read can be ours."""
    async with scripted_server(tmp_path, asks(write("a.txt", "1\n")), says("done")) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        path = str(stage.root / "a.txt")
        changes = await read_changes(session)
        assert chains_of([path], changes, {path: Present(digest("1\n"), 2)})[path].is_ours
        assert not chains_of([path], changes, {path: Unreadable("it is too large to be read whole")})[path].is_ours
        assert not chains_of([path], changes, {path: Absent()})[path].is_ours
