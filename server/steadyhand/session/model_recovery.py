"""The model's own way out of an uncertain effect (row B5): it looks, and proposes a settlement with its evidence.

Both are steps of its turn, which counts as parked meanwhile. A settlement is recorded as the model's. No stored
arguments enter the prompt here.
"""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.core.refusal import Refused
from steadyhand.core.views import InspectionView
from steadyhand.session.owner import Owner
from steadyhand.session.resolving import Wanted, resolve
from steadyhand.tools.tool import Said

paths_told_max = 50


@attrs.frozen
class ModelRecovery:
    """Keeps `owner.Recovery` for one open session."""

    owner: Owner

    async def inspect(self, attempt_id: str) -> Said:
        holder = self._holder(attempt_id)
        if holder is None:
            return _unknown(attempt_id)
        try:
            with self.owner.parked():
                done = await resolve(holder, Wanted(attempt_id, "inspect", by="model"))
        except Refused as refused:
            return Said(False, refused.message, refused.kind)
        assert done.inspection is not None
        return Said(True, _told(done.inspection))

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> Said:
        holder = self._holder(attempt_id)
        if holder is None:
            return _unknown(attempt_id)
        try:
            with self.owner.parked():
                await resolve(holder, Wanted(attempt_id, action, inspection_id=inspection_id, by="model"))
        except Refused as refused:
            return Said(False, refused.message, refused.kind)
        settlement = holder.ledger.attempts[attempt_id].settlement
        assert settlement is not None, "a resolution that returned has settled it"
        return Said(True, f"Settled: {settlement.settled}. What it held back may go on now.")

    def _holder(self, attempt_id: str) -> Owner | None:
        return next((o for o in self.owner.neighbours() if attempt_id in o.ledger.attempts), None)


def _unknown(attempt_id: str) -> Said:
    return Said(False, f"There is no attempt {attempt_id} in this workspace.", "not_found")


def _told(found: InspectionView) -> str:
    lines = [found.text, f"Inspection {found.inspection_id}, state {found.state}."]
    lines += [f"{path.path}: {path.check}" for path in found.paths[:paths_told_max]]
    lines += [f"still alive: {one.pid} {_program(one.command)}" for one in found.survivors[:paths_told_max]]
    lines += [f"changed since: {path}" for path in found.changed[:paths_told_max]]
    return "\n".join(lines)


def _program(command: str) -> str:
    """Its name alone: a shell's command line holds the stored arguments."""
    return command.split(maxsplit=1)[0].rpartition("/")[2] if command.strip() else "?"
