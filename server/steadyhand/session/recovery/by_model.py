"""The model's tools for an uncertain effect (row B5): it inspects, and settles with the inspection as evidence.

Both are steps of its turn, which counts as parked meanwhile. A settlement is recorded as the model's. No stored
arguments enter the prompt here.
"""

from __future__ import annotations

from typing import Literal

from steadyhand.domain.errors import Refused
from steadyhand.domain.views.types import InspectionView
from steadyhand.session.inspection.inspect import finding_text, inspect_files, record_of
from steadyhand.session.origin_reading import origin_required_text
from steadyhand.session.recovery.resolve import ResolutionRequest, resolve
from steadyhand.session.session import Session
from steadyhand.tools.contract import StepResult
from steadyhand_values import frozen

PATHS_TOLD_MAX = 50
OF_ORIGIN = (
    "It is an effect of the session that this one was forked from. Only the user can settle it, in that session."
)


@frozen
class ModelRecovery:
    """The model's recovery tools in one open session."""

    session: Session

    async def inspect(self, attempt_id: str) -> StepResult:
        """Inspect an attempt of any session of the workspace, or of a fork's origin (row S3)."""
        await self.session.wait_for_origins()
        holder = self._holder(attempt_id)
        if holder is None:
            return await self._inspect_there(attempt_id)
        try:
            with self.session.waiting_for_user():
                done = await resolve(holder, ResolutionRequest(attempt_id, "inspect", by="model"))
        except Refused as refused:
            return StepResult(False, refused.message, refused.kind)
        assert done.inspection is not None
        return StepResult(True, _inspection_text(done.inspection))

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> StepResult:
        """Confirm or waive for that inspection; never an effect of a fork's origin."""
        if any(attempt_id in origin.attempts for origin in self.session.ledger.origins):
            return StepResult(False, OF_ORIGIN, "notOffered")
        holder = self._holder(attempt_id)
        if holder is None:
            return _unknown_attempt(attempt_id)
        try:
            with self.session.waiting_for_user():
                await resolve(holder, ResolutionRequest(attempt_id, action, inspection_id=inspection_id, by="model"))
        except Refused as refused:
            return StepResult(False, refused.message, refused.kind)
        settlement = holder.ledger.attempts[attempt_id].settlement
        assert settlement is not None, "a resolution that returned has settled it"
        return StepResult(True, f"Settled: {settlement.settled}. Calls that it held back can run now.")

    async def _inspect_there(self, attempt_id: str) -> StepResult:
        """Look at an effect of the origin that another process owns. Nothing is recorded, so nothing rests on it."""
        doubt = next((one for one in self.session.origins.doubts() if one.attempt_id == attempt_id), None)
        if doubt is None:
            return _unknown_attempt(attempt_id)
        if doubt.attempt is None or doubt.ledger is None:
            return StepResult(False, origin_required_text(doubt), "not_found")
        context, tool_context = self.session.context, self.session.tool_context
        found = await context.in_thread(inspect_files, tool_context, doubt.ledger, doubt.attempt)
        text = finding_text(doubt.attempt, record_of(context.ids, doubt.attempt, found, "model"))
        return StepResult(True, f"{text} {OF_ORIGIN}")

    def _holder(self, attempt_id: str) -> Session | None:
        return next((o for o in self.session.neighbours() if attempt_id in o.ledger.attempts), None)


def _unknown_attempt(attempt_id: str) -> StepResult:
    return StepResult(False, f"There is no attempt {attempt_id} in this workspace.", "not_found")


def _inspection_text(found: InspectionView) -> str:
    lines = [found.text, f"Inspection {found.inspection_id}, state {found.state}."]
    lines += [f"{path.path}: {path.check}" for path in found.paths[:PATHS_TOLD_MAX]]
    lines += [f"still running: {one.pid} {_program_name(one.command)}" for one in found.survivors[:PATHS_TOLD_MAX]]
    lines += [f"changed since: {path}" for path in found.changed[:PATHS_TOLD_MAX]]
    return "\n".join(lines)


def _program_name(command: str) -> str:
    """Return the program's name alone: a shell's command line contains the stored arguments."""
    return command.split(maxsplit=1)[0].rpartition("/")[2] if command.strip() else "?"
