"""The present state of the files of uncertain effects: clear temporary files, make durable, check (rows W9, B3).

Opening and inspection call it in a thread; it blocks. Nothing is executed here [I4]. The result depends on the journal
and the files, never on earlier output of recovery [I5].
"""

from __future__ import annotations

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Check, Evidence, PathFinding
from steadyhand.domain.recovery.postcondition import check_all_paths
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.sentences import own_leftover_clause
from steadyhand.ports.processes import Processes
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.registry import intended_content
from steadyhand.tools.workspace.paths import open_folder, parts_of
from steadyhand.tools.writes.postcondition_check import (
    check_paths,
    is_durable_on_disk,
    is_own_leftover,
    make_durable,
    remove_temporary,
)
from steadyhand_values import frozen


@frozen
class FileCheck:
    """The result of a check. `check` None: there is nothing to check, as for a command."""

    check: Check | None
    findings: tuple[PathFinding, ...] = ()
    kept: tuple[str, ...] = ()  # files beside the target that are somebody's save
    durable: bool = False
    fenced: bool = True  # whether nothing can make the change any more
    own: tuple[str, ...] = ()  # temporary files of ours beside the target that cannot be removed now


def check_files(tool_context: ToolContext, ledger: Ledger, attempt: Attempt) -> FileCheck:
    """Compare the files with the attempt's evidence. Reads only."""
    if attempt.started is None or not attempt.started.evidence:
        return FileCheck(None)
    findings = check_paths(tool_context, attempt.started.evidence)
    return FileCheck(check_all_paths(finding.check for finding in findings), findings)


def clear_and_check(tool_context: ToolContext, ledger: Ledger, attempt: Attempt) -> FileCheck:
    """Clear what the attempt left beside its target, make durable what is there, then check.

    A temporary file that contains somebody's save is kept, and its path is a conflict. One of our own that cannot be
    removed, as in a read-only folder, is named and changes no check (case 168). What cannot be made durable is
    *unknown*: a verdict must not outlast the bytes it rests on.
    """
    if attempt.started is None or not attempt.started.evidence:
        return FileCheck(None)
    evidence = attempt.started.evidence
    kept: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    for path in evidence:
        if path.temporary is not None:
            intended = _intended_content(tool_context, ledger, attempt, path)
            left = remove_temporary(tool_context, path, intended)
            if left and is_own_leftover(tool_context, path, intended):
                own += left
            else:
                kept += left
    durable = make_durable(tool_context, evidence)
    findings = check_paths(tool_context, evidence)
    if kept:
        findings = tuple(mark_concurrent_save(finding, kept) for finding in findings)
    elif own:
        findings = tuple(name_own_leftover(finding, own) for finding in findings)
    whole = check_all_paths(finding.check for finding in findings)
    check = whole if durable or whole == "conflict" else "unknown"
    lasting = durable and is_durable_on_disk(tool_context, evidence)
    return FileCheck(check, findings, kept, lasting, not is_editor_living(tool_context.processes, attempt), own)


def is_editor_living(processes: Processes, attempt: Attempt) -> bool:
    """Return whether the editor that the attempt went through may still make its change (row V2)."""
    editor = attempt.started.editor if attempt.started is not None else None
    if editor is None:
        return False
    if editor.pid is None:
        return True  # the editor did not say which process it is
    is_same = editor.started is None or processes.started(editor.pid) in ("", editor.started)
    return processes.alive(editor.pid) and is_same


def name_what_is_beside(
    tool_context: ToolContext, ledger: Ledger, attempt: Attempt, evidence: Evidence, finding: PathFinding
) -> PathFinding:
    """Return the finding with the file under the attempt's temporary name beside the path, if there is one. Reads only.

    Opening removes what the attempt left there. So it is somebody's save, unless it is ours and could not be removed.
    """
    parts = parts_of(evidence.resolved)
    if evidence.temporary is None or not parts:
        return finding
    try:
        with open_folder(tool_context, parts[:-1]) as folder:
            there = tool_context.disk.look(folder, evidence.temporary) is not None
    except OSError:
        return finding
    if not there:
        return finding
    shown = (display_path("/" + "/".join((*parts[:-1], evidence.temporary)), tool_context.root),)
    intended = _intended_content(tool_context, ledger, attempt, evidence)
    ours = is_own_leftover(tool_context, evidence, intended)
    return name_own_leftover(finding, shown) if ours else mark_concurrent_save(finding, shown)


def mark_concurrent_save(finding: PathFinding, kept: tuple[str, ...]) -> PathFinding:
    """Return the finding as a conflict: somebody's save is kept beside the path, so the user has to decide."""
    return attrs.evolve(finding, check="conflict", reason=f"a concurrent save is kept as {', '.join(kept)}")


def name_own_leftover(finding: PathFinding, own: tuple[str, ...]) -> PathFinding:
    """Return the finding with the same check: nobody's content is in that file alone."""
    why = own_leftover_clause(own)
    return attrs.evolve(finding, reason=f"{finding.reason}; {why}" if finding.reason else why)


def _intended_content(tool_context: ToolContext, ledger: Ledger, attempt: Attempt, evidence: Evidence) -> bytes | None:
    """Return the bytes intended for one path, computed again from the stored arguments and content."""
    call = ledger.calls.get(attempt.call_id)
    if call is None:
        return None
    return intended_content(tool_context, attempt.tool, call.arguments, evidence)
