"""`command_output {jobId, waitMs?}`: what a background command wrote since the last look, and how it stands (row E5).

It waits until the job has ended, `waitMs` at the longest. Each byte is told once; where more came than a reply holds,
beginning and end are told. Of one that is not heard any more it is what was kept. `job_id_of` and `told` serve
`stop_command` too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass, JobEnd
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.place import one_line
from steadyhand.tools.run_command import left_told_max, notes_of, process_chars_max
from steadyhand.tools.tool import Done, Ground, JobLook, Refusal, Running

wait_ms_max = 60_000
id_shown_digits = 8

_ENDED: dict[JobEnd, str] = {
    "stopped": "it was stopped on request",
    "closed": "it was ended with its session",
    "timeout": "it was ended at its time limit",
    "gone": "after a crash it was found gone",
}


class CommandOutput:
    """The tool; see `tool.Tool`."""

    name = "command_output"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Read what a background command wrote since the last look, and whether it runs or how it ended. To see it end"
        " give waitMs.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "jobId": {"type": "string", "description": "As run_command gave it."},
                    "waitMs": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": wait_ms_max,
                        "description": "Wait for its end, so many milliseconds at the longest; 0 if left out.",
                    },
                },
                "required": ["jobId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedLook | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("jobId", "waitMs"))
            job_id = job_id_of(self.name, fields)
            wait_ms = fields.optional_whole("waitMs", 0, wait_ms_max) or 0
        except Unfit as unfit:
            return unfit.refusal
        return PlannedLook(f"{self.name}: {job_id[:id_shown_digits]}", job_id, wait_ms / 1000)


@attrs.frozen
class PlannedLook(PlannedAside):
    job_id: str
    wait_s: float

    async def run(self, running: Running) -> Done:
        return told(self.job_id, await running.jobs.look(self.job_id, self.wait_s))


def job_id_of(tool: str, fields: Fields) -> str:
    """The field `jobId`. Raises Unfit."""
    job_id = fields.text("jobId")
    if not re.fullmatch(r"[0-9a-f]{32}", job_id):
        raise Unfit(f"{tool}: the field `jobId` is not 32 lower-case hex digits, as run_command gave them.")
    return job_id


def told(job_id: str, look: JobLook | None) -> Done:
    """A look in words."""
    if look is None:
        return Done("failed", f"There is no background command {job_id} in this session.", "not_found")
    text = look.news.text if look.news is not None else ""
    notes = "".join(f"\n[{note}]" for note in _notes(look))
    cut = look.news is not None and look.news.cut
    size = look.news.bytes if look.news is not None else 0
    unheard = look.news is None or (look.state == "ended" and look.finished is None)
    shown = text or (look.title if unheard else "(no new output)")
    return Done("returned", shown + notes, bytes=max(size, len((shown + notes).encode())), truncated=cut)


def _notes(look: JobLook) -> Iterator[str]:
    ended = f"; {_ENDED[look.reason]}" if look.reason is not None else ""
    match look.state:
        case "runs":
            if look.news is not None and look.news.note:
                yield look.news.note
            yield "it runs"
        case "ended" if look.finished is not None and look.news is not None:
            yield from notes_of(look.finished, look.news)
            yield f"it has ended{ended}"
        case "ended":
            code = f", exit code {look.exit_code}" if look.exit_code is not None else ""
            wrote = "what it wrote is no longer at hand" if look.news is None else look.news.note
            yield f"it has ended{ended}{code}; {wrote}"
        case "left":
            yield f"an earlier process started it, which crashed; it still runs, unheard: {_processes(look)}"
        case "over":
            yield "an earlier process started it, which crashed; nothing that carries its mark runs any more"
        case "untold":
            yield "an earlier process started it, which crashed; whether it still runs cannot be told here"


def _processes(look: JobLook) -> str:
    more = f" and {len(look.processes) - left_told_max} more" if len(look.processes) > left_told_max else ""
    return ", ".join(one_line(one, process_chars_max) for one in look.processes[:left_told_max]) + more
