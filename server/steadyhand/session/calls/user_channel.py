"""How a tool's body reaches the user during one turn: it asks, shows a plan, lists and resolves uncertain effects."""

from __future__ import annotations

from typing import Literal

from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import overlaps
from steadyhand.domain.views.questions import UserQuestion
from steadyhand.domain.views.sentences import aim_of, check_sentence
from steadyhand.domain.views.types import PlanChanged, PlanItem
from steadyhand.session.recovery.by_model import ModelRecovery
from steadyhand.session.session import Session
from steadyhand.tools.contract import StepResult, UserAnswer
from steadyhand_values import frozen


@frozen
class TurnUserChannel:
    """Implements `tools.contract.UserChannel` for one turn of one session."""

    session: Session
    turn_id: str

    async def ask(self, question: str, options: tuple[str, ...]) -> UserAnswer:
        """Ask one question; `asked` False where no client is attached."""
        editor, ids = self.session.context.editor, self.session.context.ids
        if not editor.attached():
            return UserAnswer(None, was_asked=False)
        with self.session.waiting_for_user():
            asked = UserQuestion(ids.new(), self.session.session_id, self.turn_id, question, options)
            return UserAnswer(await editor.ask_user(asked))

    def show_plan(self, items: tuple[PlanItem, ...]) -> None:
        """Show the model's plan."""
        self.session.feed.notify(self.turn_id, PlanChanged(items))

    async def inspect(self, attempt_id: str) -> StepResult:
        """Inspect an uncertain effect for the model."""
        return await ModelRecovery(self.session).inspect(attempt_id)

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> StepResult:
        """Settle an uncertain effect for the model."""
        return await ModelRecovery(self.session).settle(attempt_id, inspection_id, action)

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        """Return a sentence for each uncertain effect that may touch the path, or for all of the workspace."""
        wanted = Scope(everything=True) if path is None else Scope(paths=(path,))
        return tuple(
            f"It is uncertain whether “{attempt.title}” of session “{session.name}” happened"
            f" (attempt {attempt.attempt_id}). {check_sentence(attempt.check, aim_of(attempt))}"
            for session in self.session.neighbours()
            for attempt in session.ledger.uncertain()
            if overlaps(wanted, attempt.scope)
        )
