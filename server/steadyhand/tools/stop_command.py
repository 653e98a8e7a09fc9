"""`stop_command {jobId}`: end a background command and what it started; also one that a crash left behind (row E5).

What it ends is known by the job's mark, with pid and start time, so that nobody else's process is meant. It touches no
file, and so holds nothing back.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.command_output import id_shown_digits, job_id_of, told
from steadyhand.tools.tool import Done, Ground, Preview, Refusal, Running


class StopCommand:
    """The tool; see `tool.Tool`."""

    name = "stop_command"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "End a background command and everything it started.",
        canonical_json(
            {
                "type": "object",
                "properties": {"jobId": {"type": "string", "description": "As run_command gave it."}},
                "required": ["jobId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedStop | Refusal:
        try:
            job_id = job_id_of(self.name, Fields(self.name, arguments.value, ("jobId",)))
        except Unfit as unfit:
            return unfit.refusal
        return PlannedStop(f"{self.name}: {job_id[:id_shown_digits]}", job_id)


@attrs.frozen
class PlannedStop(PlannedAside):
    job_id: str

    effect: ClassVar[EffectClass] = "opaque"

    def preview(self) -> Preview | Refusal:
        return Preview(f"Ends the background command {self.job_id} and what it started.")

    async def run(self, running: Running) -> Done:
        look = await running.jobs.stop(self.job_id)
        done = told(self.job_id, look)
        if look is None or look.state not in ("runs", "left", "untold"):
            return done
        return attrs.evolve(done, outcome="failed", reason="not_ended")
