"""Diagnostics are computed from the session's present state, also where no snapshot was sent (row A8)."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from steadyhand.lsp import lsp_types as types
from steadyhand.lsp.features.diagnostics_publisher import DiagnosticsPublisher
from steadyhand.lsp.rpc.server import Server
from steadyhand.session.inspection.effect_places import find_places
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.faults import carries
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.killed_runs import SESSION, kill_in_turn
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


class RecordingServer:
    """Stands for the LSP server: keeps what is published, and runs no task by itself."""

    def __init__(self) -> None:
        self.client = SimpleNamespace(folders=(), encoding="utf-16")
        self.published: list[tuple[str, int]] = []  # document, number of diagnostics

    def on_lsp(self, method: str, run: object) -> None:
        pass

    def start(self, work: Callable[[], Awaitable[None]], subject: str) -> None:
        pass

    def notify(self, method: str, params: types.PublishDiagnosticsParams) -> None:
        self.published.append((params.uri, len(params.diagnostics)))


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """A session with one write that may have happened, to a file that someone changed since."""
    place = Workspace.under(tmp_path / "place")
    place.write("a.txt", "old\n")
    kill_in_turn(place, "write a.txt with new", carries("result"))
    place.write("a.txt", "somebody's\n")
    return place


async def open_uncertain(harness: InProcessServer) -> Session:
    await harness.open(SESSION)
    return harness.registry.sessions[SESSION]


async def waive(session: Session) -> None:
    """Settle the one uncertain effect."""
    (attempt,) = session.ledger.uncertain()
    seen = (await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))).inspection
    assert seen is not None
    await resolve(session, ResolutionRequest(attempt.attempt_id, "waive", inspection_id=seen.inspection_id))


async def test_save_after_a_settlement_without_a_snapshot_clears_the_diagnostic(place: Workspace) -> None:
    """A8: a taken-over session without uncertain effects sends no snapshot; a save still clears its diagnostic."""
    async with practice_server(place, run=2) as harness:
        session, server = await open_uncertain(harness), RecordingServer()
        publisher = DiagnosticsPublisher(cast(Server, server), harness.registry)
        publisher.follow_snapshot(session.snapshot())
        await publisher.flush()
        ((uri, count),) = server.published
        assert count == 1
        await waive(session)
        document = types.TextDocumentIdentifier(uri=uri)
        await publisher.follow_save(types.DidSaveTextDocumentParams(text_document=document))
        await publisher.flush()
        assert server.published[1:] == [(uri, 0)]


async def test_failure_of_one_session_does_not_lose_what_was_computed(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A8: if a session fails while its diagnostics are computed, those of the sessions before it are published."""
    async with practice_server(place, run=2) as harness:
        session, server = await open_uncertain(harness), RecordingServer()
        publisher = DiagnosticsPublisher(cast(Server, server), harness.registry)
        compute: Any = publisher._compute

        async def failing(session_id: str) -> object:
            found = await compute(session_id)
            publisher._stale.add("f" * 32)  # a second session, after this one
            if session_id != SESSION:
                raise OSError("no such session")
            return found

        monkeypatch.setattr(publisher, "_compute", failing)
        publisher.follow_snapshot(session.snapshot())
        with pytest.raises(OSError, match="no such session"):
            await publisher.flush()
        assert [count for _, count in server.published] == [1]


async def test_places_of_an_attempt_that_the_ledger_lost_are_left_out(place: Workspace) -> None:
    """A8: a session that is deleted meanwhile has an empty ledger; nothing fails."""
    async with practice_server(place, run=2) as harness:
        session = await open_uncertain(harness)
        (attempt,) = session.ledger.uncertain()
        assert list(await find_places(session, [attempt.attempt_id, "f" * 32])) == [attempt.attempt_id]
