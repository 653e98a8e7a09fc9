"""`settle_effect {attemptId, inspectionId, action, evidence}`: the model proposes how an uncertain effect is settled.

It needs permission like any effect and is carried out as a parked step of the turn (row B5). It is recorded as the
model's, never as the user's; it rests on an inspection like every resolution, and touches no file itself.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.inspect_effect import id_of, id_shown_digits
from steadyhand.tools.tool import Done, Ground, Preview, Refusal, Running

SettleAction = Literal["confirm", "waive"]
evidence_chars_max = 2_000


class SettleEffect:
    """The tool; see `tool.Tool`."""

    name = "settle_effect"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "Propose to settle an uncertain effect after inspecting it: confirm what the inspection found, or waive it and"
        " go on without knowing. Say on what evidence. The user is asked.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "attemptId": {"type": "string"},
                    "inspectionId": {"type": "string", "description": "As inspect_effect gave it."},
                    "action": {"type": "string", "enum": ["confirm", "waive"]},
                    "evidence": {"type": "string", "description": "What shows it, in one or two sentences."},
                },
                "required": ["attemptId", "inspectionId", "action", "evidence"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedSettlement | Refusal:
        names = ("attemptId", "inspectionId", "action", "evidence")
        try:
            fields = Fields(self.name, arguments.value, names)
            attempt_id, inspection_id = id_of(self.name, fields, names[0]), id_of(self.name, fields, names[1])
            evidence = fields.text("evidence").strip()
            action = _action(self.name, fields.text("action"))
            if not evidence or len(evidence) > evidence_chars_max:
                raise Unfit(
                    f"{self.name}: the field `evidence` is empty or longer than {evidence_chars_max} characters."
                )
        except Unfit as unfit:
            return unfit.refusal
        title = f"{self.name}: {action} {attempt_id[:id_shown_digits]}"
        return PlannedSettlement(title, attempt_id, inspection_id, action, evidence)


@attrs.frozen
class PlannedSettlement(PlannedAside):
    attempt_id: str
    inspection_id: str
    action: SettleAction
    evidence: str

    effect: ClassVar[EffectClass] = "opaque"

    def preview(self) -> Preview | Refusal:
        what = "as that inspection found it" if self.action == "confirm" else "as unknown, and goes on"
        return Preview(f"Settles the uncertain effect {self.attempt_id} {what}. The model says: {self.evidence}")

    async def run(self, running: Running) -> Done:
        said = await running.person.settle(self.attempt_id, self.inspection_id, self.action)
        return Done("returned" if said.done else "failed", said.text, said.reason)


def _action(tool: str, word: str) -> SettleAction:
    match word:
        case "confirm" | "waive":
            return word
        case _:
            raise Unfit(f"{tool}: the field `action` is neither confirm nor waive.")
