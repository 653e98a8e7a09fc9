"""A tool with a verifier: what its word makes of an uncertain effect, and when it may be tried again (rows F2-F4, N2).

The tool sends to a service that knows idempotency keys (tests/support/sink.py). A try ends uncertain because its body
throws, before or after the message has arrived; no restart is needed for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from steadyhand.core.folded import Attempt
from steadyhand.core.record import Inspection, Intent, Settlement
from steadyhand.core.refusal import Refused
from steadyhand.core.settings import Settings
from steadyhand.core.snapshot import actions
from steadyhand.core.views import Action, InspectionView
from steadyhand.ports import Survivor
from steadyhand.session import verifying
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.tools.tool import Done, Running
from tests.support.fakes import FakeProcesses
from tests.support.scripted import ScriptedTool, Stage, asks, assert_closed, call, kinds, on_disk, says, staged, write
from tests.support.sink import Lost, SendTool, Sink

pytestmark = pytest.mark.anyio

SEND = call("send", text="hello")
RETRYING = Settings(mode="auto", retry=True)


@attrs.frozen
class Desk:
    """A session with one uncertain `send`."""

    stage: Stage
    owner: Owner
    tool: SendTool
    processes: FakeProcesses
    attempt: Attempt

    async def look(self, attempt: Attempt | None = None) -> InspectionView:
        done = await resolve(self.owner, Wanted((attempt or self.attempt).attempt_id, "inspect"))
        assert done.inspection is not None
        return done.inspection

    async def decide(self, action: Action, inspection_id: str) -> None:
        await resolve(self.owner, Wanted(self.attempt.attempt_id, action, inspection_id=inspection_id))

    async def refused(self, action: Action, inspection_id: str) -> Refused:
        """It is refused, and nothing is recorded but, perhaps, a new inspection."""
        before, arrived = kinds(self.owner), self.tool.sink.arrived()
        with pytest.raises(Refused) as refused:
            await self.decide(action, inspection_id)
        new = kinds(self.owner)[len(before) :]
        assert new == (["inspection"] if "inspection" in refused.value.more else [])
        assert self.tool.sink.arrived() == arrived
        return refused.value

    @property
    def offered(self) -> tuple[Action, ...]:
        return actions(self.attempt, self.owner.stand())

    def new_attempt(self) -> Attempt:
        return list(self.owner.ledger.attempts.values())[-1]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """It did not arrive, and its verifier shuts out what is under way."""
    async for made in _desks(tmp_path, SendTool(_sink(tmp_path), fails="before")):
        yield made


def _sink(folder: Path) -> Sink:
    (folder / "service").mkdir()
    return Sink(folder / "service")


async def _desks(folder: Path, tool: SendTool, settings: Settings = RETRYING) -> AsyncIterator[Desk]:
    processes = FakeProcesses()
    async with staged(folder, asks(SEND), says("done"), tools=[tool], settings=settings, processes=processes) as stage:
        owner = await stage.session()
        assert (await stage.say(owner)).reason == "done"
        (attempt,) = owner.ledger.uncertain()
        tool.fails = None
        yield Desk(stage, owner, tool, processes, attempt)


async def test_from_unknown_over_absent_to_present(desk: Desk) -> None:
    """F2, F3, F4, N2, [I10]: nothing can be said; absent, but it may still arrive; absent and shut out: tried again,
    once, with the same key; then it is present."""
    desk.tool.unreachable = True
    seen = await desk.look()
    assert (seen.state, seen.check) == ("unknown", None)
    assert "cannot say for certain" in seen.text
    assert "retry" not in desk.offered
    assert (await desk.refused("retry", seen.inspection_id)).kind == "retryUnsafe"

    desk.tool.unreachable, desk.tool.fences = False, False
    seen = await desk.look()
    assert seen.state == "unknown"
    assert "The service does not have it yet" in seen.text
    assert "retry" not in desk.offered
    assert (await desk.refused("retry", seen.inspection_id)).kind == "retryUnsafe"

    desk.tool.fences = True
    seen = await desk.look()
    assert seen.state == "absent_fenced"
    assert "did not happen" in seen.text
    assert desk.offered == ("inspect", "confirm", "reject", "waive", "retry")
    await desk.decide("retry", seen.inspection_id)
    assert desk.tool.sink.arrived() == [desk.attempt.key]

    new = desk.new_attempt()
    assert new.key == desk.attempt.key
    assert (new.retry_of, new.occurrence) == (desk.attempt.attempt_id, desk.attempt.occurrence)
    assert new.attempt_id != desk.attempt.attempt_id
    assert new.call_id != desk.attempt.call_id
    assert new.result is not None
    assert new.result.outcome == "returned"
    assert desk.owner.ledger.uncertain() == []
    assert desk.owner.ledger.refused == []
    assert desk.owner.snapshot().statistics.retried == 1
    assert_closed(desk.owner)


async def test_the_verifier_is_asked_for_that_very_intention(desk: Desk) -> None:
    """F4: by the recorded key and the stored arguments."""
    await desk.look()
    assert desk.tool.asked == [((), desk.attempt.key, '{"text":"hello"}')]


async def test_intent_and_settlement_stand_in_one_append(desk: Desk) -> None:
    """F2: the new intent, then `superseded` with the new attempt's id, next to one another; then its start."""
    seen = await desk.look()
    await desk.decide("retry", seen.inspection_id)
    after = kinds(desk.owner)[kinds(desk.owner).index("inspection") :]
    assert after == ["inspection", "intent", "settlement", "notice", "started", "result", "tool", "notice"]
    records = on_disk(desk.owner)
    (settled,) = [record for record in records if isinstance(record, Settlement)]
    intent = [record for record in records if isinstance(record, Intent)][-1]
    assert (settled.settled, settled.superseded_by) == ("superseded", intent.attempt_id)
    assert (settled.attempt_id, settled.inspection_id) == (desk.attempt.attempt_id, seen.inspection_id)


async def test_a_second_retry_is_refused(desk: Desk) -> None:
    """F2, J14: the old request runs nothing any more."""
    seen = await desk.look()
    await desk.decide("retry", seen.inspection_id)
    refused = await desk.refused("retry", seen.inspection_id)
    assert (refused.kind, refused.more) == ("alreadyResolved", {"settled": "superseded"})


async def test_a_changed_scope_is_refused(desk: Desk) -> None:
    """F3, F4: what it may touch must be what was recorded."""
    seen = await desk.look()
    desk.tool.paths = ("/elsewhere",)
    refused = await desk.refused("retry", seen.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "what was recorded" in str(refused.more["why"])


async def test_a_survivor_keeps_it_from_being_tried_again(desk: Desk) -> None:
    """F3: absence is not enough while a process of the earlier try lives, whatever its verifier says."""
    desk.processes.survivors_of[desk.attempt.attempt_id] = [Survivor(77, "start-77", "curl")]
    seen = await desk.look()
    assert seen.state == "unknown"
    assert "retry" not in desk.offered
    refused = await desk.refused("retry", seen.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "may still act" in str(refused.more["why"])


@pytest.mark.parametrize("told", [True, False])
async def test_a_survivor_that_comes_after_the_inspection(desk: Desk, told: bool) -> None:
    """F3, wire.md: it is looked at once more at that moment; what is different now is shown first. Where it cannot be
    told whether something lives, it is not said that nothing does."""
    seen = await desk.look()
    assert seen.state == "absent_fenced"
    if told:
        desk.processes.survivors_of[desk.attempt.attempt_id] = [Survivor(77, "start-77", "curl")]
    else:
        desk.processes.untold = True
    refused = await desk.refused("retry", seen.inspection_id)
    assert refused.kind == "inspectFirst"
    shown = refused.more["inspection"]
    assert isinstance(shown, dict)
    assert shown["state"] == "unknown"
    assert (await desk.refused("retry", shown["inspectionId"])).kind == "retryUnsafe"


@pytest.mark.parametrize("action", ["retry", "confirm"])
async def test_it_arrives_after_the_inspection(desk: Desk, action: Action) -> None:
    """F3, A5: a late arrival is seen before anything is tried again or settled as absent."""
    seen = await desk.look()
    assert seen.state == "absent_fenced"
    desk.tool.deliver(desk.attempt.key)
    refused = await desk.refused(action, seen.inspection_id)
    assert refused.kind == "inspectFirst"
    shown = refused.more["inspection"]
    assert isinstance(shown, dict)
    assert shown["state"] == "present"
    assert desk.owner.ledger.uncertain() == [desk.attempt]


async def test_a_later_effect_makes_it_unsafe(desk: Desk) -> None:
    """F3: an effect that overlaps has started since, in another session; so its absence is not its own any more."""
    other = await desk.stage.session()
    other.neighbours = lambda: [other]  # as if it had not been there when the doubt came up
    desk.stage.model.answers = [asks(write("b.txt", "b")), says("done")]
    await desk.stage.say(other)
    assert desk.stage.content("b.txt") == "b"
    seen = await desk.look()
    assert seen.state == "absent_fenced"
    refused = await desk.refused("retry", seen.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "has started since" in str(refused.more["why"])


# --- what a confirm settles -----------------------------------------------------------------------------------------


async def test_confirming_what_the_verifier_found_absent(desk: Desk) -> None:
    """A5, F4: settled as absent, so the same intention has the same key when it is asked again (N2)."""
    seen = await desk.look()
    await desk.decide("confirm", seen.inspection_id)
    assert _settled(desk) == ("checked_absent", "user")
    assert "did not happen" in _notice(desk)
    desk.stage.model.answers = [asks(SEND), says("done")]
    assert (await desk.stage.say(desk.owner)).reason == "done"
    assert desk.tool.sink.arrived() == [desk.attempt.key]


async def test_confirming_what_the_verifier_found_present(tmp_path: Path) -> None:
    """A5, F4: the key was found, so that very intention has happened; asking again is a new one with a new key (N2)."""
    async for desk in _desks(tmp_path, SendTool(_sink(tmp_path), fails="after")):
        seen = await desk.look()
        assert seen.state == "present"
        assert "its own tool found that it happened" in seen.text
        assert (await desk.refused("retry", seen.inspection_id)).kind == "retryUnsafe"
        await desk.decide("confirm", seen.inspection_id)
        assert _settled(desk) == ("checked_present", "user")
        assert "no repeat" in _notice(desk)
        desk.stage.model.answers = [asks(SEND), says("done")]
        assert (await desk.stage.say(desk.owner)).reason == "done"
        first, second = desk.tool.sink.arrived()
        assert first == desk.attempt.key != second


async def test_without_a_readable_start_no_verifier_is_asked(desk: Desk) -> None:
    """N2, J9: the key may stand in the damaged *started* alone, and of another key nothing is concluded."""
    desk.attempt.started = None
    desk.tool.asked.clear()
    seen = await desk.look()
    assert seen.state == "unknown"
    assert "its start cannot be read" in seen.text
    assert desk.tool.asked == []


async def test_confirming_what_nobody_can_tell(desk: Desk) -> None:
    """A5: then it is the user's word."""
    desk.tool.unreachable = True
    seen = await desk.look()
    await desk.decide("confirm", seen.inspection_id)
    assert _settled(desk) == ("user_confirmed", "user")


def _settled(desk: Desk) -> tuple[str, str]:
    (record,) = [record for record in on_disk(desk.owner) if isinstance(record, Settlement)]
    return record.settled, record.by


def _notice(desk: Desk) -> str:
    (text,) = [said.text for said in desk.owner.messages(99)[0] if said.role == "notice"]
    return text


# --- bounds of the contract -----------------------------------------------------------------------------------------


async def test_a_verifier_has_its_time(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4, [I13]: one that does not answer says nothing."""
    monkeypatch.setattr(verifying, "verify_s_max", 0.01)
    desk.tool.hangs = True
    seen = await desk.look()
    assert seen.state == "unknown"
    assert "did not answer in time" in seen.text


async def test_what_it_said_is_kept(desk: Desk) -> None:
    """A4: the inspection in the journal says what the verifier said."""
    await desk.look()
    (record,) = [record for record in on_disk(desk.owner) if isinstance(record, Inspection)]
    assert record.verified == "The service does not have it and takes it no more."


async def test_opening_asks_no_verifier(tmp_path: Path) -> None:
    """F4, [I4]: after a restart it is unknown until somebody asks; then it can be tried again, with the same key."""
    tool = SendTool(_sink(tmp_path), fails="before")
    async for desk in _desks(tmp_path, tool):
        session_id, key = desk.owner.session_id, desk.attempt.key
        left = desk.stage.crashed(tmp_path / "left")
    async with staged(tmp_path, tools=[tool], settings=RETRYING, state=left, life=2) as stage:
        owner = await stage.opened(session_id)
        assert tool.asked == []
        (attempt,) = owner.ledger.uncertain()
        done = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
        assert done.inspection is not None
        await resolve(owner, Wanted(attempt.attempt_id, "retry", inspection_id=done.inspection.inspection_id))
        assert tool.sink.arrived() == [key]


async def test_without_a_verifier_it_is_never_tried_again(tmp_path: Path) -> None:
    """F4: neither offered nor done, with the switch on and off."""

    async def lost(_: Running) -> Done:
        raise Lost

    bare = ScriptedTool("bare", lost, effect="opaque")
    async with staged(tmp_path, asks(call("bare")), says("done"), tools=[bare], settings=RETRYING) as stage:
        owner = await stage.session()
        await stage.say(owner)
        (attempt,) = owner.ledger.uncertain()
        done = await resolve(owner, Wanted(attempt.attempt_id, "inspect"))
        assert done.inspection is not None
        assert done.inspection.state == "unknown"
        assert "retry" not in actions(attempt, owner.stand())
        with pytest.raises(Refused) as refused:
            await resolve(owner, Wanted(attempt.attempt_id, "retry", inspection_id=done.inspection.inspection_id))
        assert refused.value.kind == "notOffered"


async def test_with_the_switch_off_it_is_not_shown(tmp_path: Path) -> None:
    """F1: a verifier changes nothing about the switch."""
    async for desk in _desks(tmp_path, SendTool(_sink(tmp_path), fails="before"), Settings(mode="auto")):
        seen = await desk.look()
        assert seen.state == "absent_fenced"
        assert "retry" not in desk.offered
        assert (await desk.refused("retry", seen.inspection_id)).kind == "retryDisabled"
