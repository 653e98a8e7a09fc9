"""Retry from inside: its effect on the files, the journal and the old attempt (rows F1-F3, J14).

`tests/support/redo.py` says where the uncertain effect comes from.
"""

from __future__ import annotations

import errno
import json
import os
import signal

import anyio
import attrs
import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules
from steadyhand.domain.records.record import Inspection, Intent, Settlement
from steadyhand.domain.views.notifications import RecoveryNotification
from steadyhand.domain.views.questions import Choice, PermissionQuestion
from steadyhand.domain.views.recovery_snapshot import actions
from steadyhand.ports.editor import OpenDocument
from steadyhand.session.inspection.inspect import InspectionResult
from steadyhand.session.inspection.verifier import inspect_now
from steadyhand.session.recovery import resolve as resolving
from steadyhand.session.recovery.resolve import ResolutionRequest
from steadyhand.session.service.resolutions import resolve
from steadyhand.session.session import Session
from tests.support.editor import Park, ScriptedEditor
from tests.support.fakes import FakeClock
from tests.support.faults import GatedDisk, on
from tests.support.forks import run_in_fork
from tests.support.in_process_server import practice_server
from tests.support.killed_runs import SESSION, retrying_server
from tests.support.redo import (
    NEW,
    OLD,
    assert_refused,
    call_states,
    cancel_asked_retry,
    inspect_attempt,
    kinds,
    notices,
    on_disk,
    open_attempt,
    redo,
    run_uncertain_command,
    settlements,
)
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


async def test_retry_of_an_absent_effect_runs_once_with_the_same_key(absent: Workspace) -> None:
    """F2, F3, B3, N2, [I10]: the effect is settled as absent and shown. After an inspection retry is offered. It runs
    once, with the same key and the stored arguments, and the new attempt supersedes the old one.
    """
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        (shown,) = session.snapshot().settled
        assert (shown.settled, shown.actions) == ("checked_absent", ("inspect",))
        inspection = await inspect_attempt(session, attempt)
        assert inspection.state == "absent_fenced"
        assert actions(attempt, session.snapshot_context()) == ("inspect", "retry")
        new = await redo(session, attempt, "retry", inspection.inspection_id)
        assert absent.files() == {"a.txt": NEW}
        assert (new.key, new.occurrence, new.tool) == (attempt.key, attempt.occurrence, attempt.tool)
        assert new.arguments_digest == attempt.arguments_digest
        assert session.ledger.calls[new.call_id].arguments == session.ledger.calls[attempt.call_id].arguments
        assert new.result is not None
        assert (new.result.outcome, new.result.check) == ("returned", "satisfied")
        assert settlements(absent) == [(attempt.attempt_id, "checked_absent"), (attempt.attempt_id, "superseded")]
        (last,) = [one.record for one in on_disk(absent, Settlement)][1:]
        assert isinstance(last, Settlement)
        assert last.superseded_by == new.attempt_id
        after = kinds(absent)[kinds(absent).index("inspection") :]
        assert after == ["inspection", "intent", "settlement", "notice", "started", "result", "tool", "notice"]
        assert any("The user retried" in text and "returned" in text for text in notices(session))
        assert (
            await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        ).kind == "alreadyResolved"
        assert session.ledger.refused == []


async def test_retry_in_ask_mode_asks_permission_and_shows_its_states(absent: Workspace) -> None:
    """F2, G2: a retry passes through every step of a call. Permission is asked with the stored arguments and a diff,
    and the call is shown as waiting meanwhile.
    """
    states: list[list[str]] = []

    def allow(question: PermissionQuestion) -> Choice:
        states.append(call_states(harness, question.call_id))
        return Choice("once")

    async with retrying_server(absent, editor=ScriptedEditor(permission=allow)) as harness:
        session, attempt = await open_attempt(harness)
        await session.set_mode("ask")
        new = await redo(session, attempt, "retry")
        (question,) = harness.editor.all_questions
        assert isinstance(question, PermissionQuestion)
        assert question.call_id == new.call_id
        assert json.loads(question.arguments) == {"path": "a.txt", "content": NEW}
        assert question.diff is not None
        assert states == [["waiting"]]
        assert call_states(harness, new.call_id) == ["waiting", "running", "returned"]
    assert absent.files() == {"a.txt": NEW}


@pytest.mark.parametrize(("answer", "reason"), [(Choice("reject"), "denied"), (None, "not_answered")])
async def test_retry_without_permission_is_refused_and_supersedes_the_old(
    absent: Workspace, answer: Choice | None, reason: str
) -> None:
    """F2: the new attempt is refused and did not run. The old one stays superseded, so nothing of it can run
    any more.
    """
    async with retrying_server(absent, editor=ScriptedEditor(permission=lambda _: answer)) as harness:
        session, attempt = await open_attempt(harness)
        await session.set_mode("ask")
        inspection = await inspect_attempt(session, attempt)
        new = await redo(session, attempt, "retry", inspection.inspection_id)
        assert new.result is not None
        assert (new.result.outcome, new.result.reason) == ("refused", reason)
        assert new.started is None
        assert settlements(absent)[-1] == (attempt.attempt_id, "superseded")
        assert any(
            f"The new attempt: refused. This call was refused ({reason})" in text for text in harness.editor.messages
        )
        assert (
            await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        ).kind == "alreadyResolved"
    assert absent.files() == {"a.txt": OLD}


async def test_retry_cancelled_while_permission_is_asked_did_not_run(absent: Workspace) -> None:
    """F2, G8, [I16]: it did not run and has its one end."""
    park = Park()
    async with retrying_server(absent, editor=ScriptedEditor(park)) as harness:
        new = await cancel_asked_retry(harness, park)
        session = harness.registry.sessions[SESSION]
        assert new.result is not None
        assert new.result.outcome == "not_started"
        assert session.ledger.open_calls() == []
        assert session.resolutions == 0
    assert absent.files() == {"a.txt": OLD}


async def test_retry_supersedes_the_old_attempt_before_permission_is_asked(absent: Workspace) -> None:
    """A6, B4: whoever holds a call back because of the old attempt learns at once that it is superseded."""
    resolved_before: list[bool] = []

    class WaitingEditor(ScriptedEditor):
        async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
            await anyio.lowlevel.checkpoint()
            resolved_before.append(resolved.is_set())
            return Choice("once")

    resolved = anyio.Event()
    async with (
        retrying_server(absent, settle="ask", editor=WaitingEditor()) as harness,
        anyio.create_task_group() as tasks,
    ):
        session, attempt = await open_attempt(harness)
        await session.set_mode("ask")
        inspection = await inspect_attempt(session, attempt)

        async def wait() -> None:
            while attempt.uncertain:
                await session.feed.wait_for_resolution()
            resolved.set()

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        await redo(session, attempt, "retry", inspection.inspection_id)
    assert resolved_before == [True]


async def test_retry_with_the_setting_off_is_disabled(absent: Workspace) -> None:
    """F1: it is not shown, and it is refused. The journal and the other actions are as before."""
    async with retrying_server(absent, retry=False) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        assert actions(attempt, session.snapshot_context()) == ("inspect",)
        assert (
            await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        ).kind == "retryDisabled"


async def test_retry_without_an_inspection_is_refused(absent: Workspace) -> None:
    """docs/protocol.md: a retry needs the latest inspection of the attempt."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        assert (await assert_refused(absent, session, attempt, "retry", None)).kind == "inspectFirst"


async def test_retry_of_a_present_effect_is_unsafe(present: Workspace) -> None:
    """F3: a retry requires that the effect is absent, and it is not."""
    async with retrying_server(present) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        assert "retry" not in actions(attempt, session.snapshot_context())
        assert (
            await assert_refused(present, session, attempt, "retry", inspection.inspection_id)
        ).kind == "retryUnsafe"


async def test_retry_of_a_file_changed_since_the_inspection_is_refused(absent: Workspace) -> None:
    """F3, docs/protocol.md: `inspectFirst` with the current state, in which the effect is no longer absent."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        absent.write("a.txt", "somebody's\n")
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert found.kind == "inspectFirst"
        shown = found.more["inspection"]
        assert isinstance(shown, dict)
        assert (await assert_refused(absent, session, attempt, "retry", shown["inspectionId"])).kind == "retryUnsafe"


async def test_retry_of_a_file_changed_at_the_last_moment_is_unsafe(
    absent: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F3, [I10]: the effect must be absent at that moment, and not only a moment before."""

    async def find_and_change(session: Session, attempt: Attempt) -> InspectionResult:
        found = await inspect_now(session, attempt)
        absent.write("a.txt", "somebody's\n")
        return found

    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        monkeypatch.setattr(resolving, "inspect_now", find_and_change)
        with pytest.raises(Refused) as found:
            await resolve(
                session, ResolutionRequest(attempt.attempt_id, "retry", inspection_id=inspection.inspection_id)
            )
        assert found.value.kind == "retryUnsafe"
    assert absent.files() == {"a.txt": "somebody's\n"}


async def test_retry_after_a_later_effect_on_the_file_is_unsafe(absent: Workspace) -> None:
    """F3: the file was restored by hand to its old content, and the effect is absent. But another effect has changed
    the file since.
    """
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        other = await harness.create()
        await harness.say(other, 'write a.txt with "other\\n"', "other")
        absent.write("a.txt", OLD)
        inspection = await inspect_attempt(session, attempt)
        assert inspection.state == "absent_fenced"
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "has started since" in str(found.more["why"])


async def test_retry_is_offered_until_a_later_effect_on_the_file_starts(absent: Workspace) -> None:
    """F3, A1: when an effect of another session on the same file starts, retry is no longer offered, and the client is
    notified.
    """
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        await inspect_attempt(session, attempt)
        other = await harness.create()
        await harness.say(other, "write free.txt with text", "free")
        assert "retry" in actions(attempt, session.snapshot_context())
        await harness.say(other, 'write a.txt with "other\\n"', "other")
        assert actions(attempt, session.snapshot_context()) == ("inspect",)
        snapshots = [one.snapshot for one in harness.editor.told if isinstance(one, RecoveryNotification)]
        shown = [one for one in snapshots if one.session_id == SESSION][-1]
        assert shown.revision == session.snapshot().revision
        assert [one.actions for one in shown.settled] == [("inspect",)]


@pytest.mark.parametrize("closed", [False, True])
async def test_retry_after_a_later_effect_is_unsafe_when_the_clock_went_back(absent: Workspace, closed: bool) -> None:
    """F3, case 166: the clock goes back a day, then another session writes the file and deletes that again by hand. By
    the clock its write came earlier. Retry is neither offered nor done, also once that session was closed."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        clock = harness.registry.context.clock
        assert isinstance(clock, FakeClock)
        clock.advance(-24 * 60 * 60)
        other = await harness.create()
        await harness.say(other, 'write a.txt with "other\\n"', "other")
        (later,) = [one for one in harness.ledger(other).attempts.values() if one.started_at is not None]
        assert later.started_at is not None
        assert attempt.started_at is not None
        assert later.started_at < attempt.started_at
        absent.write("a.txt", OLD)
        if closed:
            await harness.registry.close(other)
            assert other not in harness.registry.sessions
        inspection = await inspect_attempt(session, attempt)
        assert "retry" not in actions(attempt, session.snapshot_context())
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert "has started since" in str(found.more["why"])


async def test_retry_over_an_effect_of_unknown_order_is_unsafe(absent: Workspace) -> None:
    """F3, case 166: another session's journal has an effect on the same file. An earlier process started both, and no
    record says which came first. The times do, and are not believed, whatever they say."""
    async with practice_server(absent, run=2) as harness:
        other = await harness.create()
        await harness.say(other, 'write a.txt with "other\\n"', "other")
    absent.write("a.txt", OLD)
    for run, start in ((3, "2020"), (4, "2027")):
        async with retrying_server(absent, run=run, settle="ask") as harness:
            await harness.open(other)
            (earlier,) = [one for one in harness.ledger(other).attempts.values() if one.started_at is not None]
            earlier.started_at = f"{start}{(earlier.started_at or '')[4:]}"
            session, attempt = await open_attempt(harness)
            inspection = await inspect_attempt(session, attempt)
            assert inspection.state == "absent_fenced"
            assert "retry" not in actions(attempt, session.snapshot_context())
            assert (
                await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
            ).kind == "retryUnsafe"


async def test_retry_after_the_next_turn_is_not_offered(absent: Workspace) -> None:
    """F3, B3: it can be tried again only while it is shown."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        await harness.say(SESSION, "say hello", "next")
        inspection = await inspect_attempt(session, attempt)
        assert session.snapshot().settled == ()
        assert (await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)).kind == "notOffered"


async def test_retry_while_a_turn_is_parked_is_refused(absent: Workspace) -> None:
    """A3: in a parked turn every action except retry is carried out."""
    kinds_found: list[str] = []

    class ResolvingEditor(ScriptedEditor):
        async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
            session = harness.registry.sessions[SESSION]
            (attempt,) = [one for one in session.ledger.attempts.values() if one.result is not None]
            inspection = await inspect_attempt(session, attempt)
            for action in ("retry", "waive"):
                try:
                    await resolve(
                        session, ResolutionRequest(attempt.attempt_id, action, inspection_id=inspection.inspection_id)
                    )
                except Refused as refusal:
                    kinds_found.append(refusal.kind)
            return Choice("once")

    async with retrying_server(absent, settle="ask", editor=ResolvingEditor()) as harness:
        session, _ = await open_attempt(harness)
        await session.set_mode("ask")
        await harness.say(SESSION, "write other.txt with text", "next")
    assert kinds_found == ["turnRunning"]


async def test_retry_waits_for_another_uncertain_effect(absent: Workspace) -> None:
    """[I6], I10: only the effect that it retries does not count."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        other = await harness.create()
        await run_uncertain_command(harness, other)
        assert (
            await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        ).kind == "recoveryRequired"


async def test_retry_in_plan_mode_is_refused_before_anything_is_recorded(absent: Workspace) -> None:
    """F2, G2: the policy refuses it before anything is recorded, so that it can be tried again later."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        await session.set_mode("plan")
        inspection = await inspect_attempt(session, attempt)
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert (found.kind, found.more["why"]) == (
            "retryUnsafe", "the session is in plan mode, which allows no changes",
        )  # fmt: skip
        await session.set_mode("auto")
        new = await redo(session, attempt, "retry", inspection.inspection_id)
        assert new.result is not None
        assert new.result.outcome == "returned"
    assert absent.files() == {"a.txt": NEW}


async def test_retry_with_unsaved_changes_or_a_deny_rule_is_refused(absent: Workspace) -> None:
    """F2, G2, V2: a retry is refused with the reason when the editor has unsaved text of the file or a rule denies it.
    Nothing is recorded, and the old attempt can still be decided.
    """
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        path = str(absent.root / "a.txt")
        harness.editor.documents[path] = OpenDocument("mine\n", 2, True)
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "unsaved changes" in str(found.more["why"])
        del harness.editor.documents[path]
        harness.registry.context.settings = attrs.evolve(
            harness.registry.context.settings,
            rules=PermissionRules(deny=(PermissionRule("write_file", "write_file", None),)),
        )
        found = await assert_refused(absent, session, attempt, "retry", inspection.inspection_id)
        assert found.kind == "retryUnsafe"
        assert "permissions.deny forbids it" in str(found.more["why"])
        assert "retry" in actions(attempt, session.snapshot_context())


async def test_retry_that_fails_keeps_the_key_for_the_next_one(absent: Workspace) -> None:
    """F2, F3: a retry is an attempt like any other. After a failure, with the effect absent and fenced, the next one
    has the same key.
    """
    async with retrying_server(
        absent, disk=(disk := GatedDisk(on("exchange", "a.txt"), OSError(errno.EIO, "lost")))
    ) as harness:
        disk.go.set()
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "retry")
        assert new.result is not None
        assert new.result.outcome == "failed"
    intents = [stamped.record for stamped in on_disk(absent, Intent) if isinstance(stamped.record, Intent)]
    assert {intent.key for intent in intents if intent.tool == "write_file"} == {attempt.key}
    assert absent.files() == {"a.txt": OLD}


async def test_retry_killed_while_permission_is_asked_is_reported_once(absent: Workspace) -> None:
    """C5, C6, F2: the old attempt is superseded and the new one did not run. Model and user are told so once."""

    async def run_until_killed() -> None:
        def die(_: PermissionQuestion) -> Choice:
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        async with retrying_server(absent, run=3, editor=ScriptedEditor(permission=die)) as harness:
            session, attempt = await open_attempt(harness)
            await session.set_mode("ask")
            await redo(session, attempt, "retry")

    assert run_in_fork(run_until_killed).signal == signal.SIGKILL
    for number in (4, 5):
        async with retrying_server(absent, run=number) as harness:
            await harness.open(SESSION)
            session = harness.registry.sessions[SESSION]
            retry_notices = [text for text in notices(session) if "The user retried" in text]
            assert len(retry_notices) == 1
            assert "interrupted_before_execution" in retry_notices[0]
            assert "did not run" in retry_notices[0]
    assert [settled for _, settled in settlements(absent)] == ["checked_absent", "superseded"]
    assert absent.files() == {"a.txt": OLD}


async def test_retry_of_a_restore_is_refused(present: Workspace) -> None:
    """docs/protocol.md, `notOffered`."""
    async with retrying_server(present) as harness:
        session, attempt = await open_attempt(harness)
        new = await redo(session, attempt, "restore")
        await inspect_attempt(session, new)
        found = await assert_refused(
            present, session, new, "retry", new.inspection.inspection_id if new.inspection else None
        )
        assert found.kind == "staleSnapshot", "the restore is not uncertain"


async def test_inspection_is_stored_in_the_journal(absent: Workspace) -> None:
    """A4: the inspection is stored before it is answered."""
    async with retrying_server(absent) as harness:
        session, attempt = await open_attempt(harness)
        inspection = await inspect_attempt(session, attempt)
        (stored,) = on_disk(absent, Inspection)
        assert isinstance(stored.record, Inspection)
        assert stored.record.inspection_id == inspection.inspection_id
