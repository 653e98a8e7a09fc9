"""A tool with a verifier: how its answer affects an uncertain effect, and when the effect may be tried again (rows
F2-F4, N2).

The tool sends to a service that knows idempotency keys (tests/support/sink.py). An attempt ends uncertain because
its body raises, before or after the message has arrived. No restart is needed for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Inspection, Intent, Settlement
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.recovery_snapshot import actions
from steadyhand.domain.views.types import Action, InspectionView
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.inspection import verifier
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from steadyhand.tools.contract import CallContext, ToolOutcome
from tests.support.fakes import FakeProcesses
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import asks, call, says, write
from tests.support.scripted_tool import ScriptedTool
from tests.support.session_state import assert_closed, kinds, on_disk
from tests.support.sink import Lost, SendTool, Sink

pytestmark = pytest.mark.anyio

SEND = call("send", text="hello")
RETRYING = Settings(mode="auto", retry=True)


@attrs.frozen
class SendHarness:
    """A session with one uncertain `send`."""

    harness: InProcessServer
    session: Session
    tool: SendTool
    processes: FakeProcesses
    attempt: Attempt

    async def inspect_attempt(self, attempt: Attempt | None = None) -> InspectionView:
        done = await resolve(self.session, ResolutionRequest((attempt or self.attempt).attempt_id, "inspect"))
        assert done.inspection is not None
        return done.inspection

    async def decide(self, action: Action, inspection_id: str) -> None:
        await resolve(self.session, ResolutionRequest(self.attempt.attempt_id, action, inspection_id=inspection_id))

    async def assert_refused(self, action: Action, inspection_id: str) -> Refused:
        """Check that the action is refused. Nothing is recorded except, perhaps, a new inspection."""
        before, arrived = kinds(self.session), self.tool.sink.arrived()
        with pytest.raises(Refused) as refused:
            await self.decide(action, inspection_id)
        new = kinds(self.session)[len(before) :]
        assert new == (["inspection"] if "inspection" in refused.value.more else [])
        assert self.tool.sink.arrived() == arrived
        return refused.value

    @property
    def offered_actions(self) -> tuple[Action, ...]:
        return actions(self.attempt, self.session.snapshot_context())

    def new_attempt(self) -> Attempt:
        return list(self.session.ledger.attempts.values())[-1]


@pytest.fixture
async def sender(tmp_path: Path) -> AsyncIterator[SendHarness]:
    """The message did not arrive, and the verifier fences off a late arrival."""
    async for harness_made in harnesses(tmp_path, SendTool(make_sink(tmp_path), fails="before")):
        yield harness_made


def make_sink(folder: Path) -> Sink:
    (folder / "service").mkdir()
    return Sink(folder / "service")


async def harnesses(folder: Path, tool: SendTool, settings: Settings = RETRYING) -> AsyncIterator[SendHarness]:
    processes = FakeProcesses()
    async with scripted_server(
        folder, asks(SEND), says("done"), tools=[tool], settings=settings, processes=processes
    ) as harness:
        session = await harness.session()
        assert (await harness.say(session)).reason == "done"
        (attempt,) = session.ledger.uncertain()
        tool.fails = None
        yield SendHarness(harness, session, tool, processes, attempt)


async def test_verifier_answer_moves_the_attempt_from_unknown_to_present(sender: SendHarness) -> None:
    """F2, F3, F4, N2, [I10]: first the state is unknown. Then the message is absent but may still arrive. Then it is
    absent and fenced: it is tried again, once, with the same key. Then it is present.
    """
    sender.tool.unreachable = True
    inspection = await sender.inspect_attempt()
    assert (inspection.state, inspection.check) == ("unknown", None)
    assert "cannot say for certain whether it happened (it failed: Lost)" in inspection.text
    assert "retry" not in sender.offered_actions
    assert (await sender.assert_refused("retry", inspection.inspection_id)).kind == "retryUnsafe"

    sender.tool.unreachable, sender.tool.fences = False, False
    inspection = await sender.inspect_attempt()
    assert inspection.state == "unknown"
    assert "The service does not have it yet" in inspection.text
    assert "retry" not in sender.offered_actions
    assert (await sender.assert_refused("retry", inspection.inspection_id)).kind == "retryUnsafe"

    sender.tool.fences = True
    inspection = await sender.inspect_attempt()
    assert inspection.state == "absent_fenced"
    assert "did not happen" in inspection.text
    assert sender.offered_actions == ("inspect", "confirm", "reject", "waive", "retry")
    await sender.decide("retry", inspection.inspection_id)
    assert sender.tool.sink.arrived() == [sender.attempt.key]

    new = sender.new_attempt()
    assert new.key == sender.attempt.key
    assert (new.retry_of, new.occurrence) == (sender.attempt.attempt_id, sender.attempt.occurrence)
    assert new.attempt_id != sender.attempt.attempt_id
    assert new.call_id != sender.attempt.call_id
    assert new.result is not None
    assert new.result.outcome == "returned"
    assert sender.session.ledger.uncertain() == []
    assert sender.session.ledger.refused == []
    assert sender.session.snapshot().statistics.retried == 1
    assert_closed(sender.session)


async def test_verifier_gets_the_recorded_key_and_arguments(sender: SendHarness) -> None:
    """F4: by the recorded key and the stored arguments."""
    await sender.inspect_attempt()
    assert sender.tool.asked == [((), sender.attempt.key, '{"text":"hello"}')]


async def test_retry_records_intent_and_settlement_in_one_append(sender: SendHarness) -> None:
    """F2: the new intent, then `superseded` with the new attempt's id, next to each other, and then its start."""
    inspection = await sender.inspect_attempt()
    await sender.decide("retry", inspection.inspection_id)
    after = kinds(sender.session)[kinds(sender.session).index("inspection") :]
    assert after == ["inspection", "intent", "settlement", "notice", "started", "result", "tool", "notice"]
    records = on_disk(sender.session)
    (settled,) = [record for record in records if isinstance(record, Settlement)]
    intent = [record for record in records if isinstance(record, Intent)][-1]
    assert (settled.settled, settled.superseded_by) == ("superseded", intent.attempt_id)
    assert (settled.attempt_id, settled.inspection_id) == (sender.attempt.attempt_id, inspection.inspection_id)


async def test_second_retry_of_an_attempt_is_refused(sender: SendHarness) -> None:
    """F2, J14: the old request runs nothing any more."""
    inspection = await sender.inspect_attempt()
    await sender.decide("retry", inspection.inspection_id)
    refused = await sender.assert_refused("retry", inspection.inspection_id)
    assert (refused.kind, refused.more) == ("alreadyResolved", {"settled": "superseded"})


async def test_retry_with_a_changed_scope_is_unsafe(sender: SendHarness) -> None:
    """F3, F4: the scope must be the recorded one."""
    inspection = await sender.inspect_attempt()
    sender.tool.paths = ("/elsewhere",)
    refused = await sender.assert_refused("retry", inspection.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "differ from the recorded ones" in str(refused.more["why"])


async def test_retry_with_a_surviving_process_is_unsafe(sender: SendHarness) -> None:
    """F3: absence is not enough while a process of the earlier attempt is alive, whatever the verifier says."""
    sender.processes.survivors_of[sender.attempt.attempt_id] = [OrphanProcess(77, "start-77", "curl")]
    inspection = await sender.inspect_attempt()
    assert inspection.state == "unknown"
    assert "retry" not in sender.offered_actions
    refused = await sender.assert_refused("retry", inspection.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "may still run" in str(refused.more["why"])


@pytest.mark.parametrize("told", [True, False])
async def test_retry_with_a_survivor_found_after_the_inspection_is_refused(sender: SendHarness, told: bool) -> None:
    """F3, docs/protocol.md: the state is checked once more at that moment, and a difference is shown first. Where the
    system cannot say whether a process is alive, the answer does not say that none is.
    """
    inspection = await sender.inspect_attempt()
    assert inspection.state == "absent_fenced"
    if told:
        sender.processes.survivors_of[sender.attempt.attempt_id] = [OrphanProcess(77, "start-77", "curl")]
    else:
        sender.processes.untold = True
    refused = await sender.assert_refused("retry", inspection.inspection_id)
    assert refused.kind == "inspectFirst"
    shown = refused.more["inspection"]
    assert isinstance(shown, dict)
    assert shown["state"] == "unknown"
    assert (await sender.assert_refused("retry", shown["inspectionId"])).kind == "retryUnsafe"


@pytest.mark.parametrize("action", ["retry", "confirm"])
async def test_action_after_a_late_arrival_is_refused_with_a_new_inspection(
    sender: SendHarness, action: Action
) -> None:
    """F3, A5: a late arrival is seen before anything is tried again or settled as absent."""
    inspection = await sender.inspect_attempt()
    assert inspection.state == "absent_fenced"
    sender.tool.deliver(sender.attempt.key)
    refused = await sender.assert_refused(action, inspection.inspection_id)
    assert refused.kind == "inspectFirst"
    shown = refused.more["inspection"]
    assert isinstance(shown, dict)
    assert shown["state"] == "present"
    assert sender.session.ledger.uncertain() == [sender.attempt]


async def test_retry_after_a_later_overlapping_effect_is_unsafe(
    sender: SendHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3: an overlapping effect has started since, in another session, so the absence may be due to that effect."""
    other = await sender.harness.session()
    monkeypatch.setattr(
        other, "neighbours", lambda: [other]
    )  # as if this session did not exist when the effect became uncertain
    sender.harness.model.answers = [asks(write("b.txt", "b")), says("done")]
    await sender.harness.say(other)
    assert sender.harness.content("b.txt") == "b"
    inspection = await sender.inspect_attempt()
    assert inspection.state == "absent_fenced"
    refused = await sender.assert_refused("retry", inspection.inspection_id)
    assert refused.kind == "retryUnsafe"
    assert "has started since" in str(refused.more["why"])


# The settlement of a confirm.


async def test_confirm_of_an_effect_found_absent_keeps_its_key(sender: SendHarness) -> None:
    """A5, F4: settled as absent, so the same intention has the same key when it is requested again (N2)."""
    inspection = await sender.inspect_attempt()
    await sender.decide("confirm", inspection.inspection_id)
    assert settlement_of(sender) == ("checked_absent", "user")
    assert "did not happen" in notice_of(sender)
    sender.harness.model.answers = [asks(SEND), says("done")]
    assert (await sender.harness.say(sender.session)).reason == "done"
    assert sender.tool.sink.arrived() == [sender.attempt.key]


async def test_confirm_of_an_effect_found_present_makes_the_next_key_new(tmp_path: Path) -> None:
    """A5, F4: the key was found, so that intention has happened. The next request is a new intention with a new key
    (N2).
    """
    async for sender in harnesses(tmp_path, SendTool(make_sink(tmp_path), fails="after")):
        inspection = await sender.inspect_attempt()
        assert inspection.state == "present"
        assert "its own tool found that it happened" in inspection.text
        assert (await sender.assert_refused("retry", inspection.inspection_id)).kind == "retryUnsafe"
        await sender.decide("confirm", inspection.inspection_id)
        assert settlement_of(sender) == ("checked_present", "user")
        assert "no repeat" in notice_of(sender)
        sender.harness.model.answers = [asks(SEND), says("done")]
        assert (await sender.harness.say(sender.session)).reason == "done"
        first, second = sender.tool.sink.arrived()
        assert first == sender.attempt.key != second


async def test_verifier_is_not_asked_without_a_readable_start(sender: SendHarness) -> None:
    """N2, J9: the key may be only in the damaged *started*, and another key proves nothing."""
    sender.attempt.started = None
    sender.tool.asked.clear()
    inspection = await sender.inspect_attempt()
    assert inspection.state == "unknown"
    assert "its start cannot be read" in inspection.text
    assert sender.tool.asked == []


async def test_confirm_of_an_unknown_effect_is_the_users_decision(sender: SendHarness) -> None:
    """A5: then the user decides."""
    sender.tool.unreachable = True
    inspection = await sender.inspect_attempt()
    await sender.decide("confirm", inspection.inspection_id)
    assert settlement_of(sender) == ("user_confirmed", "user")


def settlement_of(sender: SendHarness) -> tuple[str, str]:
    (record,) = [record for record in on_disk(sender.session) if isinstance(record, Settlement)]
    return record.settled, record.by


def notice_of(sender: SendHarness) -> str:
    (text,) = [message.text for message in sender.session.messages(99)[0] if message.role == "notice"]
    return text


# The limits of the contract.


async def test_verifier_that_does_not_answer_in_time_says_nothing(
    sender: SendHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F4, [I13]: a verifier that does not answer gives no result."""
    monkeypatch.setattr(verifier, "VERIFY_S_MAX", 0.01)
    sender.tool.hangs = True
    inspection = await sender.inspect_attempt()
    assert inspection.state == "unknown"
    assert "did not answer in time" in inspection.text


async def test_verifier_answer_is_stored_in_the_inspection(sender: SendHarness) -> None:
    """A4: the inspection in the journal has the verifier's answer."""
    await sender.inspect_attempt()
    (record,) = [record for record in on_disk(sender.session) if isinstance(record, Inspection)]
    assert record.verified == "The service does not have it and takes it no more."


async def test_session_open_does_not_ask_the_verifier(tmp_path: Path) -> None:
    """F4, [I4]: after a restart the effect is unknown until someone inspects it. Then it can be tried again, with the
    same key.
    """
    tool = SendTool(make_sink(tmp_path), fails="before")
    async for sender in harnesses(tmp_path, tool):
        session_id, key = sender.session.session_id, sender.attempt.key
        crashed_state = sender.harness.crashed(tmp_path / "left")
    async with scripted_server(tmp_path, tools=[tool], settings=RETRYING, state=crashed_state, run=2) as harness:
        session = await harness.opened(session_id)
        assert tool.asked == []
        (attempt,) = session.ledger.uncertain()
        done = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
        assert done.inspection is not None
        await resolve(
            session, ResolutionRequest(attempt.attempt_id, "retry", inspection_id=done.inspection.inspection_id)
        )
        assert tool.sink.arrived() == [key]


async def test_retry_of_a_tool_without_a_verifier_is_never_offered(tmp_path: Path) -> None:
    """F4: neither offered nor carried out, with the setting on and off."""

    async def lost(_: CallContext) -> ToolOutcome:
        raise Lost

    bare = ScriptedTool("bare", lost, effect="opaque")
    async with scripted_server(tmp_path, asks(call("bare")), says("done"), tools=[bare], settings=RETRYING) as harness:
        session = await harness.session()
        await harness.say(session)
        (attempt,) = session.ledger.uncertain()
        done = await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
        assert done.inspection is not None
        assert done.inspection.state == "unknown"
        assert "retry" not in actions(attempt, session.snapshot_context())
        with pytest.raises(Refused) as refused:
            await resolve(
                session, ResolutionRequest(attempt.attempt_id, "retry", inspection_id=done.inspection.inspection_id)
            )
        assert refused.value.kind == "notOffered"


async def test_retry_with_the_setting_off_is_disabled_despite_a_verifier(tmp_path: Path) -> None:
    """F1: a verifier does not change the effect of the setting."""
    async for sender in harnesses(tmp_path, SendTool(make_sink(tmp_path), fails="before"), Settings(mode="auto")):
        inspection = await sender.inspect_attempt()
        assert inspection.state == "absent_fenced"
        assert "retry" not in sender.offered_actions
        assert (await sender.assert_refused("retry", inspection.inspection_id)).kind == "retryDisabled"
