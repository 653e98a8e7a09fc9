"""The person, as a tool's body reaches them during one turn: asked a question, told a plan, shown what is uncertain."""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.core.questions import UserQuestion
from steadyhand.core.record import Scope
from steadyhand.core.scope import overlaps
from steadyhand.core.views import PlanItem, PlanTold
from steadyhand.core.words import aim_of, check_sentence
from steadyhand.session.owner import Owner
from steadyhand.tools.tool import Asked, Said


@attrs.frozen
class TurnPerson:
    """Keeps `tools.tool.Person`."""

    owner: Owner
    turn_id: str

    async def ask(self, question: str, options: tuple[str, ...]) -> Asked:
        editor, ids = self.owner.world.editor, self.owner.world.ids
        if not editor.attached():
            return Asked(None, asked=False)
        with self.owner.parked():
            asked = UserQuestion(ids.new(), self.owner.session_id, self.turn_id, question, options)
            return Asked(await editor.ask_user(asked))

    def plan(self, items: tuple[PlanItem, ...]) -> None:
        self.owner.tell(self.turn_id, PlanTold(items))

    async def inspect(self, attempt_id: str) -> Said:
        return await self.owner.recovery.inspect(attempt_id)

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> Said:
        return await self.owner.recovery.settle(attempt_id, inspection_id, action)

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        wanted = Scope(everything=True) if path is None else Scope(paths=(path,))
        return tuple(
            f"It is uncertain whether “{attempt.title}” of session “{owner.name()}” happened"
            f" (attempt {attempt.attempt_id}). {check_sentence(attempt.check, aim_of(attempt))}"
            for owner in self.owner.neighbours()
            for attempt in owner.ledger.uncertain()
            if overlaps(wanted, attempt.scope)
        )
