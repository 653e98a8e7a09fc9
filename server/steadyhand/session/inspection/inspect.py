"""Inspection: how the files and processes of one attempt are now; it is recorded before it is answered (row A4).

Reads only. Every child process of an attempt carries its mark, so an inspection finds those that still run. Where the
system cannot tell, the inspection says so and never claims that there are none (row E5). Changed files of a command
are a hint.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import (
    Author,
    Check,
    Inspection,
    InspectionState,
    PathFinding,
    SurvivorFound,
)
from steadyhand.domain.recovery.postcondition import Present, check_all_paths, partial_state
from steadyhand.domain.views.render import display_arguments
from steadyhand.domain.views.sentences import aim_of, finding_sentence, verified_sentence
from steadyhand.domain.views.types import InspectedPath, InspectionView, SurvivorView
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Ids
from steadyhand.session.inspection.file_state import is_editor_living, name_what_is_beside
from steadyhand.session.inspection.versions import DIFF_BYTES_MAX, diff_of, sides_of, versions_of
from steadyhand.tools.contract import ToolContext, Verified
from steadyhand.tools.workspace.modified_since import ChangedFiles, find_changed_files
from steadyhand.tools.writes.kept_attributes import restore_note
from steadyhand.tools.writes.postcondition_check import check_paths
from steadyhand.tools.writes.restore import restore_obstacle
from steadyhand_values import frozen

SUMMARY_CHARS_MAX = 500
"""Of what a verifier says."""


EDITOR_LIVES = "the editor that was to make the change still runs and may make it yet"
COARSE_CLOCK_NS = 20_000_000
"""How far a file's time may lie behind the clock that a record was stamped by; the list is a hint all the same."""


@frozen
class InspectionResult:
    """What one inspection found. `survivors` None: this system cannot tell."""

    check: Check | None
    findings: tuple[PathFinding, ...]
    survivors: tuple[SurvivorFound, ...] | None
    changed: ChangedFiles
    verified: Verified | None = None  # None: its tool offers no verifier
    editor_lives: bool = False  # whether the editor that it went through still runs

    @property
    def is_fenced(self) -> bool:
        """Whether no process of the attempt can still act. The owner lock proves that the earlier server is gone."""
        return self.survivors == () and not self.editor_lives


def inspect_files(tool_context: ToolContext, ledger: Ledger, attempt: Attempt) -> InspectionResult:
    """Inspect the files and processes of an attempt. Blocks."""
    evidence = attempt.started.evidence if attempt.started else ()
    findings = tuple(
        name_what_is_beside(tool_context, ledger, attempt, *pair)
        for pair in zip(evidence, check_paths(tool_context, evidence), strict=True)
    )
    whole = check_all_paths(finding.check for finding in findings) if findings else None
    survivors = find_survivors(tool_context.processes, attempt)
    changed = ChangedFiles()
    if attempt.effect == "opaque" and attempt.started_at is not None:
        with suppress(OSError):  # the workspace cannot be listed: there is no hint then
            changed = find_changed_files(tool_context, nanoseconds(attempt.started_at) - COARSE_CLOCK_NS)
    lives = is_editor_living(tool_context.processes, attempt)
    if lives and whole == "unchanged":
        findings = tuple(attrs.evolve(one, reason=one.reason or EDITOR_LIVES) for one in findings)
    return InspectionResult(whole, findings, survivors, changed, editor_lives=lives)


def find_survivors(processes: Processes, attempt: Attempt) -> tuple[SurvivorFound, ...] | None:
    """Return the running processes that carry the attempt's mark; a file tool has none. None: nobody can tell."""
    if attempt.effect == "writes_files":
        return ()
    found = processes.survivors(attempt.attempt_id)
    if found is None:
        return None
    return tuple(SurvivorFound(pid=one.pid, started=one.started, command=one.command) for one in found)


def state_of(found: InspectionResult) -> InspectionState:
    """Return the state of an inspection (docs/protocol.md#states); a verifier replaces the check (row F4)."""
    if found.verified is not None:
        if found.verified.state == "present":
            return "present"
        absent = found.verified.state == "absent" and found.verified.is_fenced
        return "absent_fenced" if absent and found.is_fenced else "unknown"
    if found.check == "satisfied":
        return "postcondition_satisfied"
    if found.check == "unchanged" and found.is_fenced:
        return "absent_fenced"
    return "unknown"


def record_of(ids: Ids, attempt: Attempt, found: InspectionResult, by: Author) -> Inspection:
    """Return the record of an inspection."""
    return Inspection(
        inspection_id=ids.new(),
        attempt_id=attempt.attempt_id,
        call_id=attempt.call_id,
        state=state_of(found),
        by=by,
        check=found.check,
        findings=found.findings,
        survivors=found.survivors or (),
        survivors_known=found.survivors is not None,
        changed=found.changed.paths,
        changed_more=found.changed.more,
        verified=found.verified.summary[:SUMMARY_CHARS_MAX] if found.verified is not None else None,
    )


def view_of(tool_context: ToolContext, ledger: Ledger, attempt: Attempt, record: Inspection, at: str) -> InspectionView:
    """Return the inspection as it is answered, with its diffs. Blocks."""
    paths: list[InspectedPath] = []
    diffs: list[str] = []
    evidence = attempt.started.evidence if attempt.started else ()
    for one, finding in zip(evidence, record.findings, strict=False):
        found = versions_of(tool_context, ledger, attempt, one)
        now = Present(finding.digest, finding.bytes or 0) if finding.digest is not None else None
        before, intended, present = sides_of(tool_context, attempt, one, now, found)
        paths.append(InspectedPath(finding.path, finding.check, before, intended, present, finding.reason))
        diff = diff_of(found, finding.path, finding.check == "satisfied")
        if diff is not None:
            diffs.append(diff)
    call = ledger.calls.get(attempt.call_id)
    offered = record.check not in (None, "unchanged") and restore_obstacle(evidence) is None
    return InspectionView(
        inspection_id=record.inspection_id,
        attempt_id=attempt.attempt_id,
        at=at,
        state=record.state,
        paths=tuple(paths),
        arguments=display_arguments(call.arguments) if call else "{}",
        survivors=tuple(SurvivorView(one.pid, one.started, one.command) for one in record.survivors),
        changed=record.changed,
        changed_more=record.changed_more,
        text=finding_text(attempt, record) + (restore_note(tool_context, evidence, record.findings) if offered else ""),
        check=record.check,
        diff="".join(diffs).encode("utf-8", "replace")[:DIFF_BYTES_MAX].decode("utf-8", "ignore") or None,
    )


def finding_text(attempt: Attempt, record: Inspection) -> str:
    """Return what was found in one sentence, which says that it speaks of now."""
    if record.verified is not None:
        return f"“{attempt.title}”: {verified_sentence(record.state, record.verified)}"
    if record.findings and record.check == "conflict" and len(record.findings) > 1:
        state = partial_state((one.path, one.check) for one in record.findings)
        return f"“{attempt.title}”: its paths disagree ({state}). This describes the files now, not what ran."
    if record.findings and record.check is not None:
        reasons = [one.reason for one in record.findings if one.reason]
        return finding_sentence(attempt.title, record.check, aim_of(attempt), reasons)
    return f"“{attempt.title}”: {_command_finding(record)} Its outcome stays unknown. This describes the state now."


def is_same_finding(record: Inspection, found: InspectionResult) -> bool:
    """Return whether an effect is still as that inspection found it, path by path, and for its verifier."""
    if (record.verified is None) != (found.verified is None):
        return False
    same = found.verified is None or state_of(found) == record.state
    return same and _comparable(record.findings) == _comparable(found.findings)


def nanoseconds(at: str) -> int:
    """Return a journal time as nanoseconds since the epoch of file times."""
    moment = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return int(moment.timestamp() * 1000) * 1_000_000


def _command_finding(record: Inspection) -> str:
    count = len(record.survivors)
    if not record.survivors_known:
        alive = "Steadyhand cannot check here whether a process of it still runs,"
    elif count:
        alive = f"{count} process{'es' if count != 1 else ''} of it still run{'' if count != 1 else 's'},"
    else:
        alive = "no running process has its mark (a process that removed the mark is not found),"
    files = len(record.changed) + record.changed_more
    return f"{alive} and {files} file{'s' if files != 1 else ''} of the workspace changed since it started (a hint)."


def _comparable(findings: Sequence[PathFinding]) -> list[tuple[str, Check, bool | None, str | None]]:
    return [(one.path, one.check, one.exists, one.digest) for one in findings]
