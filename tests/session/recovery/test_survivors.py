"""End what an uncertain command left running: exactly what the latest inspection of this epoch found (row E5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.attempt_states import Stage
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Notice
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.recovery.by_model import ModelRecovery
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.recovery.survivors import EndedOrphans, end_survivors
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.tools.contract import StepResult
from tests.support.fakes import FakeProcesses, Script
from tests.support.faults import CountingDisk
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, run, says
from tests.support.redo import inspect_attempt
from tests.support.session_state import on_disk

pytestmark = pytest.mark.anyio

LEFT = [OrphanProcess(5, "s5", "sleep 5"), OrphanProcess(6, "s6", "sleep 6"), OrphanProcess(7, "s7", "sleep 7")]


@asynccontextmanager
async def uncertain_command(
    tmp_path: Path, disk: CountingDisk | None = None
) -> AsyncIterator[tuple[Session, Attempt, FakeProcesses]]:
    """A session after a crash, whose command left three processes; one of them cannot be ended."""
    started = anyio.Event()
    processes = FakeProcesses(otherwise=Script(hangs=True, started=started))
    async with scripted_server(tmp_path, asks(run("make")), processes=processes) as stage:
        session = await stage.session("auto")
        await stage.send(session, "go")
        await started.wait()
        state = stage.crashed(tmp_path / "later")
    later = FakeProcesses()
    async with scripted_server(tmp_path, says("ok"), state=state, run=2, processes=later, disk=disk) as stage:
        session = await stage.opened(session.session_id)
        (attempt,) = session.ledger.uncertain()
        later.survivors_of[attempt.attempt_id] = LEFT
        later.living |= {5, 6}
        later.immortal = {6}
        yield session, attempt, later


async def test_survivors_that_still_run_are_ended_and_counted(tmp_path: Path) -> None:
    """E5: what is gone already is not ended again and counts as neither; one durable notice tells of it."""
    async with uncertain_command(tmp_path) as (session, attempt, processes):
        seen = await inspect_attempt(session, attempt)
        assert [one.pid for one in seen.survivors] == [5, 6, 7]
        found = await end_survivors(session, attempt.attempt_id, seen.inspection_id)
        assert found == EndedOrphans(1, 1)
        assert processes.ended == LEFT[:2]
        told = [record for record in on_disk(session) if isinstance(record, Notice)][-1]
        assert told.text == (f"At the user's request, Steadyhand ended 1 of 2 processes left by “{attempt.title}”.")
        assert told.turn_id == attempt.turn_id
        assert attempt.uncertain, "it settles nothing"


async def test_end_of_survivors_is_told_durably(tmp_path: Path) -> None:
    """E5, J4: the notice is synced before the answer."""
    disk = CountingDisk(system_disk())
    async with uncertain_command(tmp_path, disk) as (session, attempt, _):
        seen = await inspect_attempt(session, attempt)
        await end_survivors(session, attempt.attempt_id, seen.inspection_id)
        written = [number for number, line in enumerate(disk.log) if line.endswith('"notice"')][-1]
        assert any(line.startswith("sync ") and "journal" in line for line in disk.log[written:])


async def test_refusal_to_end_survivors_does_not_wait_for_a_decision(tmp_path: Path) -> None:
    """A6: what is refused anyway is refused at once, also while another resolution is carried out."""
    async with uncertain_command(tmp_path) as (session, _, _), session.settling:
        with anyio.fail_after(60), pytest.raises(Refused) as refused:
            await end_survivors(session, "0" * 32, "0" * 32)
        assert refused.value.kind == "staleSnapshot"


@pytest.mark.parametrize("asked", ["inspect", "settle"])
async def test_model_is_told_why_a_settled_effect_is_not_decided_again(tmp_path: Path, asked: str) -> None:
    """B5: the refusal's sentence and its word; an attempt that nobody knows is not found."""
    async with uncertain_command(tmp_path) as (session, attempt, _):
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "waive", inspection_id=seen.inspection_id))
        by_model = ModelRecovery(session)

        async def ask(attempt_id: str) -> StepResult:
            if asked == "inspect":
                return await by_model.inspect(attempt_id)
            return await by_model.settle(attempt_id, seen.inspection_id, "confirm")

        assert await ask(attempt.attempt_id) == StepResult(False, "This effect is already settled.", "alreadyResolved")
        assert await ask("0" * 32) == StepResult(
            False, f"There is no attempt {'0' * 32} in this workspace.", "not_found"
        )


async def test_nothing_left_is_told_to_nobody(tmp_path: Path) -> None:
    """E5: where all are gone nothing was done, so there is nothing to tell."""
    async with uncertain_command(tmp_path) as (session, attempt, processes):
        seen = await inspect_attempt(session, attempt)
        processes.living = {1}
        before = on_disk(session)
        assert await end_survivors(session, attempt.attempt_id, seen.inspection_id) == EndedOrphans(0, 0)
        assert (processes.ended, on_disk(session)) == ([], before)


async def test_survivors_of_another_inspection_are_not_ended(tmp_path: Path) -> None:
    """E5, [I8]: only the latest inspection counts, and an attempt without one has none."""
    async with uncertain_command(tmp_path) as (session, attempt, processes):
        for inspection_id in ("0" * 32, ""):
            with pytest.raises(Refused) as refused:
                await end_survivors(session, attempt.attempt_id, inspection_id)
            assert refused.value.kind == "inspectFirst"
        first = await inspect_attempt(session, attempt)
        await inspect_attempt(session, attempt)
        with pytest.raises(Refused) as refused:
            await end_survivors(session, attempt.attempt_id, first.inspection_id)
        assert refused.value.kind == "inspectFirst"
        assert refused.value.message == (
            "Inspect it first; only processes that the latest inspection found can be ended."
        )
        assert processes.ended == []


async def test_survivors_of_an_unknown_attempt_are_refused_with_the_revision(tmp_path: Path) -> None:
    """E5, A6: the caller lists again; the revision says what there is now."""
    async with uncertain_command(tmp_path) as (session, _, processes):
        with pytest.raises(Refused) as refused:
            await end_survivors(session, "0" * 32, "0" * 32)
        assert (refused.value.kind, refused.value.message) == (
            "staleSnapshot",
            "There is no such uncertain effect; list them again.",
        )
        assert refused.value.more == {"revision": session.snapshot().revision}
        assert processes.ended == []


@pytest.mark.parametrize(
    ("stage", "ended"), [("uncertain", 1), ("checked", 1), ("closed", 1), ("certain", 0), ("started", 0)]
)
async def test_survivors_can_be_ended_as_long_as_the_effect_is_shown(tmp_path: Path, stage: Stage, ended: int) -> None:
    """E5: also after a decision; never those of a call that runs, or of one that ended for certain."""
    async with uncertain_command(tmp_path) as (session, attempt, processes):
        seen = await inspect_attempt(session, attempt)
        attempt.stage = stage
        if ended:
            assert (await end_survivors(session, attempt.attempt_id, seen.inspection_id)).ended == ended
        else:
            with pytest.raises(Refused) as refused:
                await end_survivors(session, attempt.attempt_id, seen.inspection_id)
            assert refused.value.kind == "staleSnapshot"
        attempt.stage = "uncertain"
        assert (processes.ended != []) == bool(ended)
