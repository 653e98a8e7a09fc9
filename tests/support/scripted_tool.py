"""A tool whose body is a function of the test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome


@attrs.define
class ScriptedTool:
    """`tools.Tool` whose body is the test's. `fails`: what `prepare` raises."""

    name: str
    body: Callable[[CallContext], Awaitable[ToolOutcome]]
    effect: EffectClass = "reads"
    fails: Exception | None = None
    outside: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # absolute: its scope; without them everything

    @property
    def offer(self) -> ToolOffer:
        return ToolOffer(self.name, "A tool of a test.", canonical_json({"type": "object"}))

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> ScriptedPlan | Refusal:
        if self.fails is not None:
            raise self.fails
        return ScriptedPlan(self.name, self.effect, self.body, self.outside, self.paths)


@attrs.frozen
class ScriptedPlan:
    """One call of it."""

    title: str
    effect: EffectClass
    body: Callable[[CallContext], Awaitable[ToolOutcome]]
    outside: tuple[str, ...]
    paths: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    command: tuple[str, str] | None = None

    @property
    def scope(self) -> Scope:
        if self.paths:
            return Scope(paths=self.paths)
        return NOTHING if self.effect == "reads" else EVERYTHING

    def preview(self) -> Preview | Refusal:
        return Preview("It does what the test says.")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        return EvidenceResult()

    async def run(self, running: CallContext) -> ToolOutcome:
        return await self.body(running)
