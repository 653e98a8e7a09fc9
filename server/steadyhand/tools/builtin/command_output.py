"""`command_output {jobId, waitMs?}`: the new output of a background command, and its state (row E5).

It waits until the job has ended, at most `waitMs`. Each byte is reported once; if there is more than a reply holds, its
beginning and end are reported. For a job whose output is not read any more it reports what was stored. `stop_command`
also uses `job_id_of` and `job_outcome`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, JobEnd
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.commands.end_notes import LEFT_NAMED_MAX, PROCESS_CHARS_MAX, notes_of
from steadyhand.tools.contract import CallContext, JobStatus, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.paths import one_line
from steadyhand_values import frozen

WAIT_MS_MAX = 60_000
ID_SHOWN_DIGITS = 8

_ENDED: dict[JobEnd, str] = {
    "stopped": "it was stopped on request",
    "closed": "it was ended with its session",
    "timeout": "it was ended at its time limit",
    "gone": "after a crash it was not running any more",
}


class CommandOutput:
    """The tool; see `contract.Tool`."""

    name = "command_output"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Read the new output of a background command, and whether it is running or how it ended. Give waitMs to wait"
        " for its end.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "jobId": {"type": "string", "description": "The id that run_command returned."},
                    "waitMs": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": WAIT_MS_MAX,
                        "description": "How long to wait for its end, in milliseconds; the default is 0.",
                    },
                },
                "required": ["jobId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedJobRead | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("jobId", "waitMs"))
            job_id = job_id_of(self.name, fields)
            wait_ms = fields.optional_integer("waitMs", 0, WAIT_MS_MAX) or 0
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedJobRead(f"{self.name}: {job_id[:ID_SHOWN_DIGITS]}", job_id, wait_ms / 1000)


@frozen
class PlannedJobRead(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    job_id: str
    wait_s: float

    async def run(self, running: CallContext) -> ToolOutcome:
        return job_outcome(self.job_id, await running.jobs.wait_status(self.job_id, self.wait_s))


def job_id_of(tool: str, fields: ArgumentFields) -> str:
    """Return the field `jobId`. Raises InvalidArguments."""
    job_id = fields.text("jobId")
    if not re.fullmatch(r"[0-9a-f]{32}", job_id):
        raise InvalidArguments(
            f"{tool}: the field `jobId` must be the 32 lower-case hex digits that run_command returned."
        )
    return job_id


def job_outcome(job_id: str, status: JobStatus | None) -> ToolOutcome:
    """Return the reply for a job's status."""
    if status is None:
        return ToolOutcome("failed", f"There is no background command {job_id} in this session.", "not_found")
    text = status.new_output.text if status.new_output is not None else ""
    notes = "".join(f"\n[{note}]" for note in _notes(status))
    cut = status.new_output is not None and status.new_output.is_cut
    size = status.new_output.bytes if status.new_output is not None else 0
    is_without_output = status.new_output is None or (status.state == "ended" and status.finished is None)
    shown = text or (status.title if is_without_output else "(no new output)")
    return ToolOutcome("returned", shown + notes, bytes=max(size, len((shown + notes).encode())), is_truncated=cut)


def _notes(status: JobStatus) -> Iterator[str]:
    ended = f"; {_ENDED[status.reason]}" if status.reason is not None else ""
    match status.state:
        case "runs":
            if status.new_output is not None and status.new_output.note:
                yield status.new_output.note
            yield "it is running"
        case "ended" if status.finished is not None and status.new_output is not None:
            yield from notes_of(status.finished, status.new_output, status.notes)
            yield f"it has ended{ended}"
        case "ended":
            code = f", exit code {status.exit_code}" if status.exit_code is not None else ""
            wrote = "its output is no longer available" if status.new_output is None else status.new_output.note
            yield f"it has ended{ended}{code}; {wrote}"
        case "left":
            left = f"it is still running, and its output is not read: {_processes(status)}"
            yield f"the server process that started it crashed; {left}"
        case "over":
            yield "the server process that started it crashed; none of its processes is running any more"
        case "untold":
            yield "the server process that started it crashed; this system cannot say whether it is still running"


def _processes(status: JobStatus) -> str:
    more = f" and {len(status.processes) - LEFT_NAMED_MAX} more" if len(status.processes) > LEFT_NAMED_MAX else ""
    return ", ".join(one_line(one, PROCESS_CHARS_MAX) for one in status.processes[:LEFT_NAMED_MAX]) + more
