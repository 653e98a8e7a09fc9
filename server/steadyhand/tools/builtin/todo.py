"""`todo {items: [{text, state}]}`: the model's whole plan, shown to the user; it replaces the previous one.

It is an event of the turn, and the transcript has it as the arguments of this call, nowhere else.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.views.types import PlanItem
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.contract import CallContext, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen

ITEMS_MAX = 100
ITEM_CHARS_MAX = 500


class Todo:
    """The tool; see `contract.Tool`."""

    name = "todo"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Show the user your whole plan whenever it changes: short items in order, each open, doing or done.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": ITEMS_MAX,
                        "items": {
                            "type": "object",
                            "properties": {
                                "text": {"type": "string"},
                                "state": {"type": "string", "enum": ["open", "doing", "done"]},
                            },
                            "required": ["text", "state"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["items"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedTodo | Refusal:
        try:
            members = ArgumentFields(self.name, arguments.value, ("items",)).sequence("items", ITEMS_MAX)
            items = tuple(_item(number, member) for number, member in enumerate(members))
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedTodo(f"{self.name}: {len(items)} {'item' if len(items) == 1 else 'items'}", items)


@frozen
class PlannedTodo(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    items: tuple[PlanItem, ...]

    async def run(self, running: CallContext) -> ToolOutcome:
        running.person.show_plan(self.items)
        done = sum(item.state == "done" for item in self.items)
        return ToolOutcome("returned", f"The plan is shown: {done} of {len(self.items)} done.")


def _item(number: int, member: object) -> PlanItem:
    where = f"{Todo.name}: items[{number}]"
    fields = ArgumentFields(where, member, ("text", "state"))
    text, state = " ".join(fields.text("text").split()), fields.text("state")
    if not text or len(text) > ITEM_CHARS_MAX:
        raise InvalidArguments(f"{where}: the field `text` is empty or longer than {ITEM_CHARS_MAX} characters.")
    match state:
        case "open" | "doing" | "done":
            return PlanItem(text, state)
        case _:
            raise InvalidArguments(f"{where}: the field `state` must be open, doing or done.")
