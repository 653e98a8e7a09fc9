"""Mistakes in moves, deletions, restores, retries, background commands, and the model's own settlements.

Somebody could have written each of them; tests/prove/variants.py says in words what it is and which layer catches it.
"""

from __future__ import annotations

from typing import Any

import attrs

from steadyhand.domain.records.record import Intent, Settlement
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.calls import redo
from steadyhand.session.inspection import file_state
from steadyhand.session.inspection.inspect import InspectionResult
from steadyhand.session.jobs import jobs
from steadyhand.session.service import acquire
from steadyhand.session.session import Session
from steadyhand.session.session_log import SessionLog
from steadyhand.tools.builtin.run_command import PlannedCommand
from steadyhand.tools.builtin.settle_effect import PlannedSettlement
from steadyhand.tools.contract import ToolOutcome
from steadyhand.tools.writes import move as relocate
from tests.prove.mistakes import Patch, Unsynced, replaced
from tests.support.sim_disk import SimDisk


def move_replaces() -> None:
    move = SimDisk.rename_to

    def over(self: SimDisk, folder: Any, name: str, other: Any, new: str, exclusive: bool) -> None:
        move(self, folder, name, other, new, False)

    replaced(SimDisk, "rename_to", over)


def moved_unseen() -> None:
    replaced(relocate, "matches_evidence", lambda *_: True)


def moved_names_not_synced() -> None:
    """Nothing syncs the folders of a move."""
    move = relocate._MoveRun.rename

    def lazy(self: Any) -> Any:
        self._disk = Unsynced(self._disk)
        return move(self)

    replaced(relocate._MoveRun, "rename", lazy)


def old_name_removed_first() -> None:
    """In a move by copy neither path has the content for a moment."""
    copy = relocate._MoveRun.copy_and_remove

    def early(self: Any, piece: Any) -> Any:
        self._disk.rename_new(self._here, self._old_name, self._start.temporary)
        self._disk.sync_folder(self._here)
        self._disk.rename_new(self._here, self._start.temporary, self._old_name)
        return copy(self, piece)

    replaced(relocate._MoveRun, "copy_and_remove", early)


def half_is_whole() -> None:
    replaced(file_state, "check_all_paths", lambda checks: "satisfied" if "satisfied" in set(checks) else "unchanged")


def nothing_kept(*places: Any) -> Patch:
    def apply() -> None:
        for place in places:
            replaced(place, "store_content", lambda tool_context, standing, attempt_id: None)

    return apply


def restored_before_it_is() -> None:
    record = SessionLog.record_or_refuse

    async def early(self: SessionLog, records: Any) -> None:
        await record(self, records)
        for one in records:
            if isinstance(one, Intent) and one.restore_of is not None:
                old = self._state.ledger.attempts[one.restore_of]
                seen = old.inspection.inspection_id if old.inspection else None
                await record(
                    self,
                    [
                        Settlement(
                            attempt_id=old.attempt_id,
                            call_id=old.call_id,
                            settled="restored",
                            by="user",
                            inspection_id=seen,
                        )
                    ],
                )

    replaced(SessionLog, "record_or_refuse", early)


def retry_with_a_new_key() -> None:
    def another(**given: Any) -> Intent:
        return Intent(**{**given, "key": given["key"][::-1]} if given.get("retry_of") else given)

    replaced(redo, "Intent", another)


def retry_without_a_fence() -> None:
    replaced(InspectionResult, "is_fenced", property(lambda self: True))


def retry_of_another_scope() -> None:
    planned_again = redo._plan_again

    async def loose(session: Session, attempt: Any) -> Any:
        scope, attempt.scope = attempt.scope, _Any()
        try:
            return await planned_again(session, attempt)
        finally:
            attempt.scope = scope

    replaced(redo, "_plan_again", loose)


class _Any:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def superseded_first() -> None:
    """The old attempt is superseded before the new one is recorded."""
    record = SessionLog.record_or_refuse

    async def apart(self: SessionLog, records: Any) -> None:
        given_up = [one for one in records if isinstance(one, Settlement) and one.settled == "superseded"]
        if given_up:
            await record(self, given_up)
        await record(self, [one for one in records if one not in given_up])

    replaced(SessionLog, "record_or_refuse", apart)


def never_given_up() -> None:
    record = SessionLog.record_or_refuse

    async def kept(self: SessionLog, records: Any) -> None:
        await record(self, [r for r in records if not isinstance(r, Settlement) or r.settled != "superseded"])

    replaced(SessionLog, "record_or_refuse", kept)


def background_is_uncertain() -> None:
    background = PlannedCommand._start_in_background

    async def doubtful(self: PlannedCommand, running: Any) -> ToolOutcome:
        return attrs.evolve(await background(self, running), outcome="unknown")

    replaced(PlannedCommand, "_start_in_background", doubtful)


def stopped_by_its_number() -> None:
    stop = jobs._stop_earlier

    async def by_number(session: Session, job_id: str) -> Any:
        if (job := session.ledger.jobs.get(job_id)) is not None:
            await session.context.processes.end(OrphanProcess(job.pid, "", ""))
        return await stop(session, job_id)

    replaced(jobs, "_stop_earlier", by_number)


def left_jobs_untold() -> None:
    look = jobs.find_left_jobs

    async def silent(session: Session) -> None:
        await look(session)
        for job_id in list(session.jobs.left):
            session.jobs.forget_left(job_id)

    replaced(acquire, "find_left_jobs", silent)


def model_settles_as_a_read() -> None:
    replaced(PlannedSettlement, "effect", "reads")
