"""`crash {}`: kill the server with SIGKILL, so that a user can watch what a crash leaves (row O1, practice model).

Only the practice model has this tool (`tools.registry.PROVIDER_TOOLS`). It is an opaque effect over everything and
needs permission as a command does. Its body does nothing else: it never returns, so the call has no result, and the
next opening of the session finds a start without an end.
"""

from __future__ import annotations

import signal
from typing import ClassVar

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Scope
from steadyhand.domain.records.scope import EVERYTHING
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_no_effect import PlannedNoEffect
from steadyhand.tools.contract import CallContext, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand_values import frozen


class Crash:
    """The tool; see `contract.Tool`."""

    name = "crash"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "Kill the server with SIGKILL, to show what it says after a crash.",
        canonical_json({"type": "object", "properties": {}, "additionalProperties": False}),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedCrash | Refusal:
        try:
            ArgumentFields(self.name, arguments.value, ())
        except InvalidArguments as invalid:
            return invalid.refusal
        return PlannedCrash(self.name)


@frozen
class PlannedCrash(PlannedNoEffect):
    """One call; see `contract.Planned`."""

    effect: ClassVar[EffectClass] = "opaque"
    scope: ClassVar[Scope] = EVERYTHING

    def preview(self) -> Preview | Refusal:
        return Preview("Kills the server with SIGKILL. It changes no file.")

    async def run(self, running: CallContext) -> ToolOutcome:
        signal.raise_signal(signal.SIGKILL)
        raise AssertionError("the process ends above")
