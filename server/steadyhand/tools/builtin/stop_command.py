"""`stop_command {jobId}`: end a background command and what it started, also one that a crash left running (row E5).

The job's mark, the pid and the start time identify each process, so no other process is ended. It changes no file, so
nothing is held back for it.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.command_output import ID_SHOWN_DIGITS, job_id_of, job_outcome
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.contract import CallContext, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen


class StopCommand:
    """The tool; see `contract.Tool`."""

    name = "stop_command"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "End a background command and everything it started.",
        canonical_json(
            {
                "type": "object",
                "properties": {"jobId": {"type": "string", "description": "The id that run_command returned."}},
                "required": ["jobId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedStop | Refusal:
        try:
            job_id = job_id_of(self.name, ArgumentFields(self.name, arguments.value, ("jobId",)))
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedStop(f"{self.name}: {job_id[:ID_SHOWN_DIGITS]}", job_id)


@frozen
class PlannedStop(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    job_id: str

    effect: ClassVar[EffectClass] = "opaque"

    def preview(self) -> Preview | Refusal:
        return Preview(f"Ends the background command {self.job_id} and what it started.")

    async def run(self, running: CallContext) -> ToolOutcome:
        status = await running.jobs.stop(self.job_id)
        outcome = job_outcome(self.job_id, status)
        if status is None or status.state not in ("runs", "left", "untold"):
            return outcome
        return attrs.evolve(outcome, outcome="failed", reason="not_ended")
