"""Three things that an opening must not take for proof; the proof in tests/prove finds each of them too.

A journal of another session in this session's folder; a settlement before the result that it rests on; an inspection
that an earlier process made. The uncertain write comes from a run that its disk killed right before *result*.
"""

from __future__ import annotations

import pytest

from steadyhand.domain.errors import Refused
from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.records.record import Result, Settlement
from steadyhand.domain.views.recovery_snapshot import actions, is_inspected
from steadyhand.journal.format import read_journal
from steadyhand.session.recovery.resolve import ResolutionRequest, latest_view
from steadyhand.session.recovery.survivors import end_survivors
from steadyhand.session.service.resolutions import resolve
from tests.support.in_process_server import practice_server
from tests.support.journals import attempt_id, begun, ident, intends, journal, prompt, proposes, starts, verdict
from tests.support.killed_runs import SESSION
from tests.support.redo import NEW, inspect_attempt, kinds, open_attempt, settlements
from tests.support.systems import linux_only
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


# A journal in the wrong folder.


async def test_journal_of_another_session_is_shown_and_never_written(place: Workspace) -> None:
    """J11, J9: a verdict in it would be about another session's call. Both files stay as they are."""
    async with practice_server(place, run=2) as harness:
        other = await harness.create()
    theirs = place.session_directory(other) / "journal.jsonl"
    theirs.write_bytes(place.journal(SESSION))
    before = theirs.read_bytes()
    async with practice_server(place, run=3) as harness:
        snapshot = await harness.open(other)
        read_only = snapshot.session.read_only
        assert read_only is not None
        assert read_only.reason == "disk"
        assert f"belongs to another session, {SESSION[:8]}" in read_only.text
        session = harness.registry.sessions[other]
        with pytest.raises(Refused):
            await harness.send(other, "write a.txt with x")
        for attempt in session.ledger.attempts.values():
            with pytest.raises(Refused):
                await resolve(session, ResolutionRequest(attempt.attempt_id, "inspect"))
    assert theirs.read_bytes() == before
    assert place.files() == {"a.txt": NEW}


# A settlement before its result.


def settled_by(record: Settlement | Result, *others: Settlement | Result) -> Ledger:
    content = journal(
        [*begun(), prompt("turn"), proposes("turn", "one"), intends("one"), starts("one"), record, *others]
    )
    loaded = read_journal(content)
    return fold(loaded.records, loaded.breaks)


def test_settlement_before_the_result_is_refused_by_the_ledger() -> None:
    """J14, J2: what has no end cannot be settled; the result after it leaves the attempt uncertain."""
    settlement = Settlement(
        attempt_id=attempt_id("one"), call_id=ident("one"), settled="checked_present", by="recovery", check="satisfied"
    )
    result = verdict("one", "unknown_after_restart")
    wrong = settled_by(settlement, result)
    assert len(wrong.refused) == 1
    assert [attempt.attempt_id for attempt in wrong.uncertain()] == [attempt_id("one")]
    right = settled_by(result, settlement)
    assert (right.refused, right.uncertain()) == ([], [])


async def test_opening_records_the_result_before_its_settlement(place: Workspace) -> None:
    """J2: each beginning of what an opening appends is true, wherever a kill cuts it; the next opening goes on."""
    whole = place.journal(SESSION)
    async with practice_server(place, run=2) as harness:
        await open_attempt(harness)
    content = place.journal(SESSION)
    there = kinds(place)
    assert there.index("result") < there.index("settlement")
    lines = content[len(whole) :].splitlines(keepends=True)
    path = place.session_directory(SESSION) / "journal.jsonl"
    for count in range(len(lines) + 1):
        path.write_bytes(whole + b"".join(lines[:count]))
        async with practice_server(place, run=3 + count) as harness:
            session, attempt = await open_attempt(harness)
            assert session.ledger.refused == []
            assert (attempt.stage, attempt.check) == ("checked", "satisfied")
        assert settlements(place) == [(attempt.attempt_id, "checked_present")]
        assert kinds(place).count("result") == 1


# An inspection of an earlier process.


async def test_inspection_of_an_earlier_process_is_no_basis_for_a_decision(place: Workspace) -> None:
    """[I8], A9: the same attempt, the same inspection id, unchanged files: and still it must be inspected again."""
    async with practice_server(place, run=2, settle="ask") as harness:
        session, attempt = await open_attempt(harness)
        seen = await inspect_attempt(session, attempt)
        assert is_inspected(attempt, session.epoch)
        assert "confirm" in actions(attempt, session.snapshot_context())
    async with practice_server(place, run=3, settle="ask") as harness:
        session, attempt = await open_attempt(harness)
        assert attempt.inspection is not None
        assert attempt.inspection.inspection_id == seen.inspection_id
        assert not is_inspected(attempt, session.epoch)
        assert actions(attempt, session.snapshot_context()) == ("inspect",)
        assert await latest_view(session, attempt) is None
        before = kinds(place)
        for action in ("confirm", "reject", "waive", "restore"):
            with pytest.raises(Refused) as refused:
                await resolve(session, ResolutionRequest(attempt.attempt_id, action, inspection_id=seen.inspection_id))
            assert refused.value.kind == "inspectFirst"
        with pytest.raises(Refused) as refused:
            await end_survivors(session, attempt.attempt_id, seen.inspection_id)
        assert refused.value.kind == "inspectFirst"
        assert kinds(place) == before
        again = await inspect_attempt(session, attempt)
        await resolve(session, ResolutionRequest(attempt.attempt_id, "confirm", inspection_id=again.inspection_id))
        assert settlements(place) == [(attempt.attempt_id, "checked_present")]
