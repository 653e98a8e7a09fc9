"""The present state of uncertain file effects: temporary files cleared, made durable, checked, settled (rows W9, B3).

Used by opening and by inspection. Blocks; called in a thread. Nothing is executed here [I4], and what is decided
rests on the journal and the world, never on earlier output of recovery [I5].
"""

from __future__ import annotations

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.ledger import Ledger
from steadyhand.core.postcondition import check_whole
from steadyhand.core.record import Check, Evidence, PathFinding
from steadyhand.tools.catalogue import intended_content
from steadyhand.tools.check import check, clear_temporary, make_durable
from steadyhand.tools.place import display, entered, parts_of
from steadyhand.tools.tool import Ground


@attrs.frozen
class Looked:
    """What a look found. `check` None: there is nothing to check, as for a command."""

    check: Check | None
    findings: tuple[PathFinding, ...] = ()
    kept: tuple[str, ...] = ()  # files beside the target that are somebody's save
    durable: bool = False


def look(ground: Ground, ledger: Ledger, attempt: Attempt) -> Looked:
    """Reads only. For diagnostics and inspection."""
    if attempt.started is None or not attempt.started.evidence:
        return Looked(None)
    findings = check(ground, attempt.started.evidence)
    return Looked(check_whole(finding.check for finding in findings), findings)


def recover(ground: Ground, ledger: Ledger, attempt: Attempt) -> Looked:
    """Clear what the attempt left beside its target, make durable what is there, then check.

    A temporary file that is somebody's save is kept, and its path is a conflict. What cannot be made durable is
    *unknown*: a verdict must not outlive the bytes it rests on.
    """
    if attempt.started is None or not attempt.started.evidence:
        return Looked(None)
    evidence = attempt.started.evidence
    kept: tuple[str, ...] = ()
    for path in evidence:
        if path.temporary is not None:
            kept += clear_temporary(ground, path, _intended(ground, ledger, attempt, path))
    durable = make_durable(ground, evidence)
    findings = check(ground, evidence)
    if kept:
        findings = tuple(slipped_in(finding, kept) for finding in findings)
    whole = check_whole(finding.check for finding in findings)
    return Looked(whole if durable or whole == "conflict" else "unknown", findings, kept, durable)


def saves_beside(ground: Ground, evidence: Evidence) -> tuple[str, ...]:
    """The file under the attempt's temporary name beside the path, as the user is told it. Reads only."""
    parts = parts_of(evidence.resolved)
    if evidence.temporary is None or not parts:
        return ()
    try:
        with entered(ground, parts[:-1]) as folder:
            there = ground.disk.look(folder, evidence.temporary) is not None
    except OSError:
        return ()
    return (display(ground.root, "/" + "/".join((*parts[:-1], evidence.temporary))),) if there else ()


def slipped_in(finding: PathFinding, kept: tuple[str, ...]) -> PathFinding:
    """A path beside which somebody's save is kept: the person has to look, whatever stands in it."""
    return attrs.evolve(finding, check="conflict", reason=f"a save that slipped in is kept as {', '.join(kept)}")


def _intended(ground: Ground, ledger: Ledger, attempt: Attempt, evidence: Evidence) -> bytes | None:
    """The bytes intended for one path, computed again from the stored arguments and the kept content before."""
    call = ledger.calls.get(attempt.call_id)
    if call is None:
        return None
    return intended_content(ground, attempt.tool, call.arguments, evidence)
