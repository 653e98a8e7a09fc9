"""What the tests of restore and retry share: they open an uncertain effect, act on it, and read what the journal has.

The uncertain effect comes from an earlier process run, which its disk killed in the middle of the exchange or right
before *result*. `tests/e2e/test_restore_retry.py` shows restore and retry to a client, and
`tests/crash/test_redo_killed.py` tests them under kills.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Settlement, Stamped, Unknown
from steadyhand.domain.views.types import Action, CallChanged, InspectionView, TurnEvent
from steadyhand.journal.format import read_journal
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.editor import Park
from tests.support.in_process_server import InProcessServer
from tests.support.killed_runs import SESSION
from tests.support.workspace import Workspace

OLD, NEW = "old\n", "new\n"
WRITE = 'write a.txt with "new\\n"'
Tree = dict[str, str]


async def open_attempt(harness: InProcessServer) -> tuple[Session, Attempt]:
    """The session, and the one attempt with an effect."""
    await harness.open(SESSION)
    session = harness.registry.sessions[SESSION]
    (attempt,) = [attempt for attempt in session.ledger.attempts.values() if attempt.effect != "reads"]
    return session, attempt


async def inspect_attempt(session: Session, attempt: Attempt) -> InspectionView:
    done = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
    assert done.inspection is not None
    return done.inspection


async def redo(session: Session, attempt: Attempt, action: Action, inspection_id: str | None = None) -> Attempt:
    """Inspect (unless an inspection is given) and carry out the action. Returns the new attempt."""
    inspection = inspection_id or (await inspect_attempt(session, attempt)).inspection_id
    await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=inspection))
    new = list(session.ledger.attempts.values())[-1]
    assert attempt.attempt_id in (new.retry_of, new.restore_of)
    return new


async def cancel_asked_retry(harness: InProcessServer, park: Park) -> Attempt:
    """Retry in mode ask, and cancel it while its permission is asked. Returns the new attempt."""
    session, attempt = await open_attempt(harness)
    await session.set_mode("ask")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(redo, session, attempt, "retry")
        with anyio.fail_after(60):
            await park.wait_open()
        tasks.cancel_scope.cancel()
    assert park.withdrawn
    return list(session.ledger.attempts.values())[-1]


async def assert_refused(
    place: Workspace, session: Session, attempt: Attempt, action: Action, inspection_id: str | None
) -> Refused:
    """Check that the action is refused. The files and the journal are unchanged, except for an inspection that the
    refusal carries.
    """
    before, files = kinds(place), place.files()
    with pytest.raises(Refused) as found:
        await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=inspection_id))
    new = kinds(place)[len(before) :]
    assert new == (["inspection"] if "inspection" in found.value.more else [])
    assert place.files() == files
    return found.value


def kinds(place: Workspace) -> list[str]:
    records = [stamped.record for stamped in read_journal(place.journal(SESSION)).records]
    return [record.kind for record in records if not isinstance(record, Unknown)]


def on_disk(place: Workspace, kind: type) -> list[Stamped]:
    return [stamped for stamped in read_journal(place.journal(SESSION)).records if isinstance(stamped.record, kind)]


def settlements(place: Workspace) -> list[tuple[str, str]]:
    """(attempt, settled), in order."""
    found = [stamped.record for stamped in on_disk(place, Settlement)]
    return [(one.attempt_id, one.settled) for one in found if isinstance(one, Settlement)]


def notices(session: Session) -> list[str]:
    return [message.text for message in session.messages(99)[0] if message.role == "notice"]


async def run_uncertain_command(harness: InProcessServer, session_id: str) -> Attempt:
    """A command of another session that became uncertain before that session knew of the first uncertain effect."""
    session = harness.registry.sessions[session_id]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "neighbours", lambda: [session])
        await _lose_a_command(harness, session_id)
    (attempt,) = session.ledger.uncertain()
    return attempt


async def _lose_a_command(harness: InProcessServer, session_id: str) -> None:
    context = harness.registry.context
    tool = context.tools["run_command"]
    context.tools["run_command"] = LosingTool(tool)
    await harness.say(session_id, "run touch later.txt", "other")
    context.tools["run_command"] = tool


class LosingTool:
    """A tool whose calls fail without a known outcome."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def prepare(self, *arguments: Any) -> Any:
        planned = self._inner.prepare(*arguments)

        class Planned:
            def __getattr__(self, name: str) -> Any:
                return getattr(planned, name)

            async def run(self, running: Any) -> Any:
                raise ConnectionError

        return Planned()


def call_states(harness: InProcessServer, call_id: str) -> list[str]:
    events = [one.event for one in harness.editor.told if isinstance(one, TurnEvent)]
    return [event.call.state for event in events if isinstance(event, CallChanged) and event.call.call_id == call_id]
