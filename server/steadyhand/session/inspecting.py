"""Inspection: a look at the world for one attempt, stored before it is answered (row A4).

Reads only. Whether an executor can still act is asked of the mark that every child of an attempt carries; where that
cannot be told, the answer says so and "none" is never claimed (row E5). A command's changed files are a hint.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.ledger import Ledger
from steadyhand.core.postcondition import Present, check_whole, partial_state
from steadyhand.core.record import Author, Check, Evidence, Inspection, InspectionState, PathFinding, SurvivorFound
from steadyhand.core.show import shown_arguments
from steadyhand.core.views import InspectedPath, InspectionView, SurvivorView
from steadyhand.core.words import aim_of, finding_sentence, verified_sentence
from steadyhand.ports import Ids, Processes
from steadyhand.session.checking import saves_beside, slipped_in
from steadyhand.session.texts import diff_bytes_max, difference, sides, texts
from steadyhand.tools.changed_files import ChangedFiles, changed_after
from steadyhand.tools.check import check
from steadyhand.tools.tool import Ground, Verified

summary_chars_max = 500
"""Of what a verifier says."""


coarse_clock_ns = 20_000_000
"""How far a file's time may lie behind the clock that a record was stamped by; the list is a hint all the same."""


@attrs.frozen
class Found:
    """What one look found. `survivors` None: it cannot be told here."""

    check: Check | None
    findings: tuple[PathFinding, ...]
    survivors: tuple[SurvivorFound, ...] | None
    changed: ChangedFiles
    verified: Verified | None = None  # None: its tool offers no verifier

    @property
    def fenced(self) -> bool:
        """Whether no earlier executor can still act. The owner lock proves that the process before is gone."""
        return self.survivors == ()


def look_at(ground: Ground, attempt: Attempt) -> Found:
    """One look; blocks."""
    evidence = attempt.started.evidence if attempt.started else ()
    findings = tuple(_beside_saves(ground, *pair) for pair in zip(evidence, check(ground, evidence), strict=True))
    whole = check_whole(finding.check for finding in findings) if findings else None
    survivors = survivors_of(ground.processes, attempt)
    changed = ChangedFiles()
    if attempt.effect == "opaque" and attempt.started_at is not None:
        with suppress(OSError):  # the workspace cannot be listed: a hint less
            changed = changed_after(ground, nanoseconds(attempt.started_at) - coarse_clock_ns)
    return Found(whole, findings, survivors, changed)


def survivors_of(processes: Processes, attempt: Attempt) -> tuple[SurvivorFound, ...] | None:
    """Living processes that carry the attempt's mark; a file tool has no children."""
    if attempt.effect == "writes_files":
        return ()
    found = processes.survivors(attempt.attempt_id)
    if found is None:
        return None
    return tuple(SurvivorFound(one.pid, one.started, one.command) for one in found)


def state_of(found: Found) -> InspectionState:
    """From check to inspection state (wire.md, "States"); a verifier's word takes the place of the check (row F4)."""
    if found.verified is not None:
        if found.verified.state == "present":
            return "present"
        absent = found.verified.state == "absent" and found.verified.fenced
        return "absent_fenced" if absent and found.fenced else "unknown"
    if found.check == "satisfied":
        return "postcondition_satisfied"
    if found.check == "unchanged" and found.fenced:
        return "absent_fenced"
    return "unknown"


def record_of(ids: Ids, attempt: Attempt, found: Found, by: Author) -> Inspection:
    return Inspection(
        ids.new(), attempt.attempt_id, attempt.call_id, state_of(found), by, found.check, found.findings,
        found.survivors or (), found.survivors is not None, found.changed.paths, found.changed.more,
        found.verified.summary[:summary_chars_max] if found.verified is not None else None,
    )  # fmt: skip


def view_of(ground: Ground, ledger: Ledger, attempt: Attempt, record: Inspection, at: str) -> InspectionView:
    """The inspection as it is answered, with its texts. Blocks."""
    paths: list[InspectedPath] = []
    diffs: list[str] = []
    evidence = attempt.started.evidence if attempt.started else ()
    for one, finding in zip(evidence, record.findings, strict=False):
        found = texts(ground, ledger, attempt, one)
        now = Present(finding.digest, finding.bytes or 0) if finding.digest is not None else None
        before, intended, present = sides(ground, attempt, one, now, found)
        paths.append(InspectedPath(finding.path, finding.check, before, intended, present, finding.reason))
        diff = difference(found, finding.path, finding.check == "satisfied")
        if diff is not None:
            diffs.append(diff)
    call = ledger.calls.get(attempt.call_id)
    return InspectionView(
        inspection_id=record.inspection_id,
        attempt_id=attempt.attempt_id,
        at=at,
        state=record.state,
        paths=tuple(paths),
        arguments=shown_arguments(call.arguments) if call else "{}",
        survivors=tuple(SurvivorView(one.pid, one.started, one.command) for one in record.survivors),
        changed=record.changed,
        changed_more=record.changed_more,
        text=sentence(attempt, record),
        check=record.check,
        diff="".join(diffs).encode("utf-8", "replace")[:diff_bytes_max].decode("utf-8", "ignore") or None,
    )


def sentence(attempt: Attempt, record: Inspection) -> str:
    """What was found, in one sentence that says that it speaks of now."""
    if record.verified is not None:
        return f"“{attempt.title}”: {verified_sentence(record.state, record.verified)}"
    if record.findings and record.check == "conflict" and len(record.findings) > 1:
        state = partial_state((one.path, one.check) for one in record.findings)
        return f"“{attempt.title}”: its paths disagree ({state}); this speaks of now, not of what happened."
    if record.findings and record.check is not None:
        reasons = [one.reason for one in record.findings if one.reason]
        return finding_sentence(attempt.title, record.check, aim_of(attempt), reasons)
    return f"“{attempt.title}”: {_of_command(record)} Its outcome stays unknown; this speaks of now."


def same_world(record: Inspection, found: Found) -> bool:
    """Whether an effect still looks as that inspection found it, path by path, and to its verifier."""
    if (record.verified is None) != (found.verified is None):
        return False
    same = found.verified is None or state_of(found) == record.state
    return same and _seen(record.findings) == _seen(found.findings)


def nanoseconds(at: str) -> int:
    """A journal time as nanoseconds since the epoch of the system's file times."""
    moment = datetime.strptime(at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return int(moment.timestamp() * 1000) * 1_000_000


def _of_command(record: Inspection) -> str:
    count = len(record.survivors)
    if not record.survivors_known:
        alive = "whether a process of it still lives cannot be told here,"
    elif count:
        alive = f"{count} process{'es' if count != 1 else ''} of it still live{'' if count != 1 else 's'},"
    else:
        alive = "no process with its mark was found (one that shed the mark would not be seen),"
    files = len(record.changed) + record.changed_more
    return f"{alive} and {files} file{'s' if files != 1 else ''} of the workspace changed since it started (a hint)."


def _beside_saves(ground: Ground, evidence: Evidence, finding: PathFinding) -> PathFinding:
    """Opening removes what the attempt left beside the path; what still lies there is somebody's save (row W9)."""
    kept = saves_beside(ground, evidence)
    return slipped_in(finding, kept) if kept else finding


def _seen(findings: Sequence[PathFinding]) -> list[tuple[str, Check, bool | None, str | None]]:
    return [(one.path, one.check, one.exists, one.digest) for one in findings]
