"""What the planned calls share that touch nothing of the workspace: no scope, no evidence, nothing to show before."""

from __future__ import annotations

from typing import ClassVar

import attrs

from steadyhand.core.record import EffectClass, Scope
from steadyhand.core.scope import NOTHING
from steadyhand.tools.tool import Done, Gathered, Preview, Refusal, Running


@attrs.frozen
class PlannedAside:
    """One call; see `tool.Planned`."""

    title: str

    effect: ClassVar[EffectClass] = "reads"
    scope: ClassVar[Scope] = NOTHING
    outside: ClassVar[tuple[str, ...]] = ()
    protected: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[tuple[str, str] | None] = None

    def preview(self) -> Preview | Refusal:
        return Preview(f"{self.title}.")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        return Gathered()

    async def run(self, running: Running) -> Done:
        raise NotImplementedError
