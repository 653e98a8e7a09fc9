"""`inspect_effect {attemptId}`: the model inspects an uncertain effect (row B5). Reads; never held back.

The reply is the finding in words, the check of each path, survivors, changed files, and the id of the inspection, which
a settlement needs; never the stored arguments.
"""

from __future__ import annotations

import re

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.contract import CallContext, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen

ID_SHOWN_DIGITS = 8


class InspectEffect:
    """The tool; see `contract.Tool`."""

    name = "inspect_effect"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Inspect an effect whose outcome is unknown, by its attempt id. It repeats and changes nothing.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "attemptId": {"type": "string", "description": "The id in the reply of the uncertain call."}
                },
                "required": ["attemptId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedInspection | Refusal:
        try:
            attempt_id = id_of(self.name, ArgumentFields(self.name, arguments.value, ("attemptId",)), "attemptId")
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedInspection(f"{self.name}: {attempt_id[:ID_SHOWN_DIGITS]}", attempt_id)


@frozen
class PlannedInspection(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    attempt_id: str

    async def run(self, running: CallContext) -> ToolOutcome:
        result = await running.person.inspect(self.attempt_id)
        return ToolOutcome("returned" if result.is_done else "failed", result.text, result.reason)


def id_of(tool: str, fields: ArgumentFields, name: str) -> str:
    """Return a field that is an id of this server. Raises InvalidArguments."""
    found = fields.text(name)
    if re.fullmatch(r"[0-9a-f]{32}", found) is None:
        raise InvalidArguments(f"{tool}: the field `{name}` must be an id of 32 hex digits.")
    return found
