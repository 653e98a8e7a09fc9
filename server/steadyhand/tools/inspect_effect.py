"""`inspect_effect {attemptId}`: the model looks at an uncertain effect (row B5). Reads; never held back.

What it gets is the finding in words, the check of each path, survivors and changed files, and the id of the inspection
to base a settlement on; never the stored arguments.
"""

from __future__ import annotations

import re

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.tool import Done, Ground, Refusal, Running

id_shown_digits = 8


class InspectEffect:
    """The tool; see `tool.Tool`."""

    name = "inspect_effect"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Look at an effect whose outcome is unknown, by its attempt id. Repeats and changes nothing.",
        canonical_json(
            {
                "type": "object",
                "properties": {"attemptId": {"type": "string", "description": "As the uncertain reply named it."}},
                "required": ["attemptId"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedInspection | Refusal:
        try:
            attempt_id = id_of(self.name, Fields(self.name, arguments.value, ("attemptId",)), "attemptId")
        except Unfit as unfit:
            return unfit.refusal
        return PlannedInspection(f"{self.name}: {attempt_id[:id_shown_digits]}", attempt_id)


@attrs.frozen
class PlannedInspection(PlannedAside):
    attempt_id: str

    async def run(self, running: Running) -> Done:
        said = await running.person.inspect(self.attempt_id)
        return Done("returned" if said.done else "failed", said.text, said.reason)


def id_of(tool: str, fields: Fields, name: str) -> str:
    """An id of ours. Raises Unfit."""
    found = fields.text(name)
    if re.fullmatch(r"[0-9a-f]{32}", found) is None:
        raise Unfit(f"{tool}: the field `{name}` is not an id of 32 hex digits.")
    return found
