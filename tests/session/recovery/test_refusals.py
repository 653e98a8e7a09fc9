"""What each refused decision says: its kind, its reason, and what the caller needs next (rows A6, A9).

`tests/e2e/test_recovery_refusals.py` shows their order to a client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Notice
from steadyhand.domain.views.types import Action
from steadyhand.session.recovery.resolve import ResolutionRequest, refuse_beforehand
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.faults import carries
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import kill_in_turn
from tests.support.redo import NEW, OLD, inspect_attempt, kinds, on_disk, open_attempt, redo, settlements
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]

NO_ID = "0" * 32
ACTIONS: tuple[Action, ...] = ("inspect", "confirm", "reject", "waive", "restore", "retry")


@asynccontextmanager
async def uncertain(place: Workspace, retry: bool = True) -> AsyncIterator[tuple[Session, Attempt]]:
    async with practice_server(place, run=2, settle="ask", retry=retry) as harness:
        yield await open_attempt(harness)


async def refusal(session: Session, attempt_id: str, action: Action, **more: str | None) -> Refused:
    """The refusal; nothing is recorded."""
    before = next(iter(session.ledger.attempts.values())).inspection
    with pytest.raises(Refused) as refused:
        await resolve(session, ResolutionRequest(attempt_id, action, **more))  # type: ignore[arg-type]  # texts
    assert next(iter(session.ledger.attempts.values())).inspection == before
    return refused.value


async def not_offered(session: Session, attempt: Attempt, action: Action, inspection_id: str | None = None) -> str:
    """Why it is not offered, which the sentence says too."""
    found = await refusal(session, attempt.attempt_id, action, inspection_id=inspection_id)
    assert found.kind == "notOffered"
    why = str(found.more["why"])
    assert found.message == f"This cannot be done: {why}."
    return why


async def test_decision_on_an_unknown_or_ended_attempt_is_stale(place: Workspace) -> None:
    """A6: the answer has the revision to list again with; so has one for another revision."""
    async with uncertain(place) as (session, attempt):
        expected = {"revision": session.snapshot().revision}
        for action in ACTIONS:
            found = await refusal(session, NO_ID, action)
            assert (found.kind, found.more) == ("staleSnapshot", expected)
            found = await refusal(session, attempt.attempt_id, action, revision="0" * 64)
            assert (found.kind, found.more) == ("staleSnapshot", expected)
        attempt.stage = "certain"
        for action in ACTIONS:
            found = await refusal(session, attempt.attempt_id, action)
            assert found.kind == "staleSnapshot"


async def test_decision_for_another_epoch_is_refused(place: Workspace) -> None:
    """A9, [I7]: an answer to an earlier process decides nothing here; for this epoch it does."""
    async with uncertain(place) as (session, attempt):
        for action in ACTIONS:
            assert (await refusal(session, attempt.attempt_id, action, epoch=NO_ID)).kind == "staleEpoch"
        done = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect", epoch=session.epoch))
        assert done.inspection is not None
        assert done.snapshot == session.snapshot()
        revision = session.snapshot().revision
        request = ResolutionRequest(attempt.attempt_id, "waive", session.epoch, revision, done.inspection.inspection_id)
        refuse_beforehand(session, request)
        assert (await resolve(session, request)).inspection is None
        assert settlements(place) == [(attempt.attempt_id, "waived")]


@pytest.mark.parametrize("action", ["confirm", "reject", "waive", "restore", "retry"])
async def test_decision_without_the_latest_inspection_is_refused(place: Workspace, action: Action) -> None:
    """[I8]: none, an unknown one, and one that a newer one replaced. `refuse_beforehand` lets this one pass."""
    async with uncertain(place) as (session, attempt):
        for inspection_id in (None, NO_ID):
            found = await refusal(session, attempt.attempt_id, action, inspection_id=inspection_id)
            assert found.kind == "inspectFirst"
        first = await inspect_attempt(session, attempt)
        await inspect_attempt(session, attempt)
        found = await refusal(session, attempt.attempt_id, action, inspection_id=first.inspection_id)
        assert found.kind == "inspectFirst"
        refuse_beforehand(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=first.inspection_id))


async def test_inspection_that_names_an_inspection_must_name_the_latest(place: Workspace) -> None:
    """[I8]: `inspect` needs none, and compares one that is given."""
    async with uncertain(place) as (session, attempt):
        first = await inspect_attempt(session, attempt)
        second = await resolve(
            session, ResolutionRequest(attempt.attempt_id, "inspect", inspection_id=first.inspection_id)
        )
        assert second.inspection is not None
        found = await refusal(session, attempt.attempt_id, "inspect", inspection_id=first.inspection_id)
        assert found.kind == "inspectFirst"


async def test_second_decision_names_the_first(place: Workspace) -> None:
    """A6, J14: a settled effect is settled; the answer says how."""
    async with uncertain(place) as (session, attempt):
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "waive", inspection_id=seen.inspection_id))
        for action in ACTIONS:
            found = await refusal(session, attempt.attempt_id, action, inspection_id=seen.inspection_id)
            assert (found.kind, found.more) == ("alreadyResolved", {"settled": "waived"})
            with pytest.raises(Refused) as refused:
                refuse_beforehand(session, ResolutionRequest(attempt.attempt_id, action))
            assert refused.value.kind == "alreadyResolved"


async def test_checked_effect_can_be_restored_and_not_be_decided(place: Workspace) -> None:
    """A5: the check settled it. Inspect and restore remain; retry remains as long as nothing else has run."""
    async with practice_server(place, run=2, retry=True) as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.stage == "checked"
        seen = await inspect_attempt(session, attempt)
        for action in ("confirm", "reject", "waive"):
            found = await refusal(session, attempt.attempt_id, action, inspection_id=seen.inspection_id)
            assert (found.kind, found.more) == ("alreadyResolved", {"settled": "checked_present"})
        found = await refusal(session, attempt.attempt_id, "retry", inspection_id=seen.inspection_id)
        assert found.kind == "retryUnsafe"
        await harness.say(session, "say hello")
        why = await not_offered(session, attempt, "retry", seen.inspection_id)
        assert why == "it was settled earlier, and other work has run since"
        await redo(session, attempt, "restore", seen.inspection_id)
        assert place.files() == {"a.txt": OLD}


async def test_retry_that_is_switched_off_is_refused(place: Workspace) -> None:
    """F1: before an inspection is asked for."""
    async with uncertain(place, retry=False) as (session, attempt):
        assert (await refusal(session, attempt.attempt_id, "retry")).kind == "retryDisabled"
        assert (await refusal(session, attempt.attempt_id, "waive")).kind == "inspectFirst"


async def test_what_is_never_offered_says_why(place: Workspace) -> None:
    """A5, F3: a reject twice, a restore to what is there already, a retry of a restore."""
    async with uncertain(place) as (session, attempt):
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "reject", inspection_id=seen.inspection_id))
        assert await not_offered(session, attempt, "reject", seen.inspection_id) == "it is already rejected"
        place.write("a.txt", OLD)
        seen = await inspect_attempt(session, attempt)
        why = await not_offered(session, attempt, "restore", seen.inspection_id)
        assert why == "the earlier content is already there"
        place.write("a.txt", NEW)
        new = await redo(session, attempt, "restore", (await inspect_attempt(session, attempt)).inspection_id)
        new.stage = "uncertain"
        why = await not_offered(session, new, "retry")
        assert why == "a restore cannot be retried; restore again instead"
        evidence = new.started.evidence[0] if new.started is not None else None
        assert evidence is not None
        object.__setattr__(evidence, "checkpoint", None)
        assert await not_offered(session, new, "restore") == "the earlier content of a.txt was not stored"


async def test_command_is_neither_restored_nor_retried(tmp_path: Path) -> None:
    """F4, A5: it left no evidence, and nothing can check it."""
    place = Workspace.under(tmp_path / "place")
    kill_in_turn(place, "run echo hello", carries("result"))
    async with uncertain(place) as (session, attempt):
        assert await not_offered(session, attempt, "restore") == "it left no evidence of what was there before"
        why = await not_offered(session, attempt, "retry")
        assert why == "it cannot be checked, so it is never certain that it did not happen"
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=seen.inspection_id))
        assert settlements(place) == [(attempt.attempt_id, "user_confirmed")]


async def test_absent_effect_is_settled_as_checked_by_a_confirm(place: Workspace) -> None:
    """A5: *unchanged* and durable is `checked_absent`; the notice names what was found."""
    place.write("a.txt", OLD)
    async with uncertain(place) as (session, attempt):
        seen = await inspect_attempt(session, attempt)
        assert seen.state == "absent_fenced"
        await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=seen.inspection_id))
        assert settlements(place) == [(attempt.attempt_id, "checked_absent")]
        assert attempt.settlement is not None
        assert (attempt.settlement.inspection_id, attempt.settlement.check) == (seen.inspection_id, "unchanged")
        assert (attempt.settlement.by, attempt.settlement.call_id) == ("user", attempt.call_id)
        told = on_disk(place, Notice)[-1].record
        assert isinstance(told, Notice)
        assert (told.attempt_id, told.turn_id) == (attempt.attempt_id, attempt.turn_id)
        assert "so the change is not there" in told.text
        assert kinds(place)[-2:] == ["settlement", "notice"]


async def test_reject_records_its_inspection_and_one_notice(place: Workspace) -> None:
    """A5: it closes nothing; the model is told once that it shall not be repeated."""
    async with uncertain(place) as (session, attempt):
        seen = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "reject", inspection_id=seen.inspection_id))
        assert kinds(place)[-2:] == ["reject", "notice"]
        told = on_disk(place, Notice)[-1].record
        assert isinstance(told, Notice)
        assert (told.attempt_id, told.turn_id) == (attempt.attempt_id, attempt.turn_id)
        assert told.text.startswith(f"The user rejected the uncertain call “{attempt.title}”")
        assert attempt.uncertain
        assert attempt.rejected
