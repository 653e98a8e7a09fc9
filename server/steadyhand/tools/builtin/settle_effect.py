"""`settle_effect {attemptId, inspectionId, action, evidence}`: the model proposes how to settle an uncertain effect.

It needs permission like any effect, and runs as a parked step of the turn (row B5). The record names the model, never
the user. It needs an inspection, like every resolution, and changes no file.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.inspect_effect import ID_SHOWN_DIGITS, id_of
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.contract import CallContext, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen

SettleAction = Literal["confirm", "waive"]
EVIDENCE_CHARS_MAX = 2_000


class SettleEffect:
    """The tool; see `contract.Tool`."""

    name = "settle_effect"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "Propose to settle an uncertain effect after inspecting it: confirm what the inspection found, or waive it and"
        " continue without knowing. Give your evidence. The user is asked.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "attemptId": {"type": "string"},
                    "inspectionId": {"type": "string", "description": "The id that inspect_effect returned."},
                    "action": {"type": "string", "enum": ["confirm", "waive"]},
                    "evidence": {"type": "string", "description": "What shows it, in one or two sentences."},
                },
                "required": ["attemptId", "inspectionId", "action", "evidence"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedSettlement | Refusal:
        names = ("attemptId", "inspectionId", "action", "evidence")
        try:
            fields = ArgumentFields(self.name, arguments.value, names)
            attempt_id, inspection_id = id_of(self.name, fields, names[0]), id_of(self.name, fields, names[1])
            evidence = fields.text("evidence").strip()
            action = _action(self.name, fields.text("action"))
            if not evidence or len(evidence) > EVIDENCE_CHARS_MAX:
                raise InvalidArguments(
                    f"{self.name}: the field `evidence` is empty or longer than {EVIDENCE_CHARS_MAX} characters."
                )
        except InvalidArguments as invalid:
            return invalid.refusal
        title = f"{self.name}: {action} {attempt_id[:ID_SHOWN_DIGITS]}"
        return PlannedSettlement(title, attempt_id, inspection_id, action, evidence)


@frozen
class PlannedSettlement(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    attempt_id: str
    inspection_id: str
    action: SettleAction
    evidence: str

    effect: ClassVar[EffectClass] = "opaque"

    def preview(self) -> Preview | Refusal:
        what = "as that inspection found it" if self.action == "confirm" else "as unknown, and continues"
        return Preview(f"Settles the uncertain effect {self.attempt_id} {what}. The model says: {self.evidence}")

    async def run(self, running: CallContext) -> ToolOutcome:
        result = await running.person.settle(self.attempt_id, self.inspection_id, self.action)
        return ToolOutcome("returned" if result.is_done else "failed", result.text, result.reason)


def _action(tool: str, word: str) -> SettleAction:
    match word:
        case "confirm" | "waive":
            return word
        case _:
            raise InvalidArguments(f"{tool}: the field `action` must be confirm or waive.")
