"""An inspection: its state, its record, its sentence, and whether a later one finds the same (rows A4, E5, W7, F4)."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import (
    Check,
    EffectClass,
    Evidence,
    Inspection,
    InspectionState,
    PathFinding,
    Scope,
    Started,
    SurvivorFound,
)
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.domain.views.types import SurvivorView
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.inspection.inspect import (
    COARSE_CLOCK_NS,
    SUMMARY_CHARS_MAX,
    InspectionResult,
    find_survivors,
    finding_text,
    inspect_files,
    is_same_finding,
    nanoseconds,
    record_of,
    state_of,
    view_of,
)
from steadyhand.tools.contract import Verified
from steadyhand.tools.workspace.modified_since import ChangedFiles
from tests.support.fakes import FakeIds, FakeProcesses, id_of
from tests.support.tool_calls import ToolWorkspace

AT = "2026-01-02T03:04:05.678Z"
NONE = ChangedFiles()
ALIVE = (SurvivorFound(pid=7, started="s7", command="sleep 7"),)


def result(
    check: Check | None, survivors: tuple[SurvivorFound, ...] | None = (), verified: Verified | None = None
) -> InspectionResult:
    findings = () if check is None else (PathFinding(path="a", check=check, exists=True, digest="d"),)
    return InspectionResult(check, findings, survivors, NONE, verified)


def attempt_of(effect: EffectClass = "writes_files", evidence: tuple[Evidence, ...] = ()) -> Attempt:
    found = Attempt("a" * 32, "c" * 32, "t" * 32, "tool", "the title", effect, EVERYTHING, AT, started_at=AT)
    found.started = Started(attempt_id=found.attempt_id, call_id=found.call_id, evidence=evidence)
    return found


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (result("satisfied"), "postcondition_satisfied"),
        (result("satisfied", ALIVE), "postcondition_satisfied"),
        (result("unchanged"), "absent_fenced"),
        (result("unchanged", ALIVE), "unknown"),
        (result("unchanged", None), "unknown"),
        (result("conflict"), "unknown"),
        (result("unknown"), "unknown"),
        (result(None), "unknown"),
        (result("unchanged", (), Verified("present", False, "x")), "present"),
        (result("satisfied", (), Verified("absent", True, "x")), "absent_fenced"),
        (result(None, (), Verified("absent", False, "x")), "unknown"),
        (result(None, ALIVE, Verified("absent", True, "x")), "unknown"),
        (result(None, None, Verified("absent", True, "x")), "unknown"),
        (result("satisfied", (), Verified("unknown", True, "x")), "unknown"),
    ],
)
def test_state_of_an_inspection_needs_the_check_and_the_fence(found: InspectionResult, state: InspectionState) -> None:
    """A4, F3, F4: absent counts only where nothing can act any more; a verifier replaces the check."""
    assert state_of(found) == state


def test_record_of_an_inspection_has_everything_that_was_found() -> None:
    """A4: it is stored before it is answered."""
    found = InspectionResult(
        "conflict",
        result("conflict").findings,
        ALIVE,
        ChangedFiles(("b", "c"), 4),
        Verified("unknown", False, "s" * 900),
    )
    record = record_of(FakeIds(3), attempt_of(), found, "model")
    assert record == Inspection(
        inspection_id=id_of(3),
        attempt_id="a" * 32,
        call_id="c" * 32,
        state="unknown",
        by="model",
        check="conflict",
        findings=found.findings,
        survivors=ALIVE,
        survivors_known=True,
        changed=("b", "c"),
        changed_more=4,
        verified="s" * SUMMARY_CHARS_MAX,
    )
    untold = record_of(FakeIds(), attempt_of(), result(None, None), "user")
    assert (untold.survivors, untold.survivors_known, untold.verified, untold.by) == ((), False, None, "user")


def record(check: Check | None, *findings: PathFinding, **more: object) -> Inspection:
    made = Inspection(
        inspection_id="i", attempt_id="a", call_id="c", state="unknown", by="user", check=check, findings=findings
    )
    return attrs.evolve(made, **more)  # type: ignore[arg-type]  # members of the record


ONE = PathFinding(path="a", check="conflict", exists=True, digest="d")


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (ONE, True),
        (attrs.evolve(ONE, reason="in other words", bytes=5), True),
        (attrs.evolve(ONE, digest="other"), False),
        (attrs.evolve(ONE, exists=None), False),
        (attrs.evolve(ONE, check="unknown"), False),
        (attrs.evolve(ONE, path="b"), False),
    ],
)
def test_finding_is_the_same_by_path_check_and_content(now: PathFinding, same: bool) -> None:
    """[I8], A5: a decision rests on these; words may differ."""
    assert is_same_finding(record("conflict", ONE), InspectionResult(now.check, (now,), (), NONE)) is same


def test_finding_of_a_verifier_is_the_same_by_its_state() -> None:
    """F4, [I8]: with and without a verifier are two findings; what the verifier says may be worded anew."""
    seen = record(None, verified="it is there", state="present")
    assert is_same_finding(seen, result(None, (), Verified("present", False, "still there")))
    assert not is_same_finding(seen, result(None, (), Verified("unknown", False, "it is there")))
    assert not is_same_finding(seen, result(None))
    assert not is_same_finding(record(None), result(None, (), Verified("present", False, "x")))
    both = record("conflict", ONE, verified="x", state="present")
    assert not is_same_finding(both, result("satisfied", (), Verified("present", False, "x")))


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        (
            record("satisfied", attrs.evolve(ONE, check="satisfied")),
            "“the title” was checked: the file has the intended content now."
            " This describes the file now, not what ran.",
        ),
        (
            record("unknown", attrs.evolve(ONE, check="unknown", reason="it is a pipe")),
            "“the title” was checked: the current state of the file is unknown (it is a pipe)."
            " This describes the file now, not what ran.",
        ),
        (
            record("conflict", attrs.evolve(ONE, check="satisfied"), attrs.evolve(ONE, path="b", check="unchanged")),
            "“the title”: its paths disagree (a: satisfied, b: unchanged). This describes the files now, not what ran.",
        ),
        (
            record(None),
            "“the title”: no running process has its mark (a process that removed the mark is not found), and 0 files"
            " of the workspace changed since it started (a hint). Its outcome stays unknown."
            " This describes the state now.",
        ),
        (
            record(None, survivors=ALIVE, changed=("b",)),
            "“the title”: 1 process of it still runs, and 1 file of the workspace changed since it started (a hint)."
            " Its outcome stays unknown. This describes the state now.",
        ),
        (
            record(None, survivors=(*ALIVE, *ALIVE), changed=("b",), changed_more=2),
            "“the title”: 2 processes of it still run, and 3 files of the workspace changed since it started (a hint)."
            " Its outcome stays unknown. This describes the state now.",
        ),
        (
            record(None, survivors_known=False),
            "“the title”: Steadyhand cannot check here whether a process of it still runs, and 0 files of the"
            " workspace changed since it started (a hint). Its outcome stays unknown. This describes the state now.",
        ),
        (
            record(None, state="present", verified="the mail  is there."),
            "“the title”: its own tool found that it happened (the mail is there).",
        ),
    ],
)
def test_finding_is_told_in_one_sentence_about_now(seen: Inspection, text: str) -> None:
    """A4, W7, [I9]: it never says what ran."""
    effect: EffectClass = "writes_files" if seen.findings else "opaque"
    evidence = (Evidence(path="a", resolved="/w/a", existed=False, intended="d"),) if seen.findings else ()
    assert finding_text(attempt_of(effect, evidence), seen) == text


def test_survivors_are_known_for_file_tools_and_asked_for_commands() -> None:
    """E5: a file tool starts no process. Where the system cannot tell, nobody claims that there are none."""
    processes = FakeProcesses()
    processes.survivors_of["a" * 32] = [OrphanProcess(7, "s7", "sleep 7")]
    assert find_survivors(processes, attempt_of("writes_files")) == ()
    assert find_survivors(processes, attempt_of("opaque")) == ALIVE
    processes.untold = True
    assert find_survivors(processes, attempt_of("opaque")) is None
    assert find_survivors(processes, attempt_of("writes_files")) == ()


def test_moment_of_a_record_is_in_nanoseconds() -> None:
    """E5: the same unit as a file's time, to the millisecond."""
    assert nanoseconds("1970-01-01T00:00:01.234Z") == 1_234_000_000
    assert nanoseconds("2026-01-02T03:04:05.678Z") == 1_767_323_045_678_000_000


def test_changed_files_of_a_command_begin_a_clock_tick_before_its_start(tmp_path: Path) -> None:
    """E5: a file's time may lie a little behind the clock that stamped the record; file tools have no such hint."""
    workspace = ToolWorkspace.under(tmp_path)
    start = nanoseconds(AT)
    for name, offset in (("before", -COARSE_CLOCK_NS - 1), ("edge", -COARSE_CLOCK_NS), ("after", 5)):
        os.utime(workspace.write(name, name), ns=(start + offset, start + offset))
    found = inspect_files(workspace.tool_context(), Ledger(), attempt_of("opaque"))
    assert (found.check, found.findings, found.survivors) == (None, (), ())
    assert found.changed == ChangedFiles(("after", "edge"), 0)
    assert inspect_files(workspace.tool_context(), Ledger(), attempt_of("writes_files")).changed == NONE
    unstarted = attempt_of("opaque")
    unstarted.started_at = None
    assert inspect_files(workspace.tool_context(), Ledger(), unstarted).changed == NONE


def test_view_of_an_inspection_has_the_versions_and_the_diff_of_each_path(tmp_path: Path) -> None:
    """A4: what is missing of the effect where it is not there; the survivors and the changed files with it."""
    workspace = ToolWorkspace.under(tmp_path)
    workspace.write("a", "now\n")
    evidence = Evidence(path="a", resolved=str(workspace.root / "a"), existed=False, intended="i", intended_bytes=4)
    attempt = attempt_of("writes_files", (evidence,))
    attempt.scope = Scope(paths=(evidence.resolved,))
    finding = PathFinding(path="a", check="conflict", reason="why", exists=True, digest="d", bytes=4)
    seen = record("conflict", finding, survivors=ALIVE, changed=("b",), changed_more=2)
    view = view_of(workspace.tool_context(), Ledger(), attempt, seen, AT)
    assert (view.inspection_id, view.attempt_id, view.at, view.state, view.check) == (
        "i",
        attempt.attempt_id,
        AT,
        "unknown",
        "conflict",
    )
    assert view.survivors == (SurvivorView(7, "s7", "sleep 7"),)
    assert (view.changed, view.changed_more, view.arguments) == (("b",), 2, "{}")
    assert view.text == finding_text(attempt, seen)
    (path,) = view.paths
    assert (path.path, path.check, path.reason) == ("a", "conflict", "why")
    assert (path.before.exists, path.before.uri) == (False, f"steadyhand:/attempt/{attempt.attempt_id}/before/a")
    assert (path.intended.exists, path.intended.digest, path.intended.bytes, path.intended.uri) == (True, "i", 4, None)
    assert (path.now.exists, path.now.digest, path.now.bytes) == (True, "d", 4)
    assert path.now.uri == f"steadyhand:/attempt/{attempt.attempt_id}/now/a"
    assert view.diff is None, "the intended content is not known"
    there = view_of(
        workspace.tool_context(), Ledger(), attempt, record("satisfied", attrs.evolve(finding, check="satisfied")), AT
    )
    assert there.diff is not None
    assert "+now" in there.diff
    missing = attrs.evolve(finding, digest=None, bytes=None, exists=False)
    assert (
        view_of(workspace.tool_context(), Ledger(), attempt, record("conflict", missing), AT).paths[0].now.digest
        is None
    )
