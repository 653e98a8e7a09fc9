"""What planned calls share that do not touch the workspace: no scope, no evidence, nothing to preview."""

from __future__ import annotations

from typing import ClassVar

from steadyhand.domain.records.record import EffectClass, Scope
from steadyhand.domain.records.scope import NOTHING
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolOutcome
from steadyhand_values import frozen


@frozen
class PlannedNoEffect:
    """One call; see `contract.Planned`."""

    title: str

    effect: ClassVar[EffectClass] = "reads"
    scope: ClassVar[Scope] = NOTHING
    outside: ClassVar[tuple[str, ...]] = ()
    protected: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[tuple[str, str] | None] = None

    def preview(self) -> Preview | Refusal:
        return Preview(f"{self.title}.")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        return EvidenceResult()

    async def run(self, running: CallContext) -> ToolOutcome:
        raise NotImplementedError
