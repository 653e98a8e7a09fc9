"""`todo {items: [{text, state}]}`: the model's plan, whole, shown to the person; it replaces the one before.

It is told as an event of the turn and stands in the transcript as the arguments of this call, nowhere else.
"""

from __future__ import annotations

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.core.views import PlanItem
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.aside import PlannedAside
from steadyhand.tools.tool import Done, Ground, Refusal, Running

items_max = 100
item_chars_max = 500


class Todo:
    """The tool; see `tool.Tool`."""

    name = "todo"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "Show the user your plan, whole, whenever it changes: short items in order, each open, doing or done.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": items_max,
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

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedTodo | Refusal:
        try:
            members = Fields(self.name, arguments.value, ("items",)).listed("items", items_max)
            items = tuple(_item(number, member) for number, member in enumerate(members))
        except Unfit as unfit:
            return unfit.refusal
        return PlannedTodo(f"{self.name}: {len(items)} {'item' if len(items) == 1 else 'items'}", items)


@attrs.frozen
class PlannedTodo(PlannedAside):
    items: tuple[PlanItem, ...]

    async def run(self, running: Running) -> Done:
        running.person.plan(self.items)
        done = sum(item.state == "done" for item in self.items)
        return Done("returned", f"The plan is shown: {done} of {len(self.items)} done.")


def _item(number: int, member: object) -> PlanItem:
    where = f"{Todo.name}: items[{number}]"
    fields = Fields(where, member, ("text", "state"))
    text, state = " ".join(fields.text("text").split()), fields.text("state")
    if not text or len(text) > item_chars_max:
        raise Unfit(f"{where}: the field `text` is empty or longer than {item_chars_max} characters.")
    match state:
        case "open" | "doing" | "done":
            return PlanItem(text, state)
        case _:
            raise Unfit(f"{where}: the field `state` must be open, doing or done.")
