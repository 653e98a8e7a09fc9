"""Mistakes of moves, deletions, restores, retries, background commands, and the model's own way out.

Each is what somebody could have written; tests/prove/variants.py says in words what it is and which layer catches it.
"""

from __future__ import annotations

from typing import Any

import attrs

from steadyhand.core.record import Intent, Settlement
from steadyhand.ports import Survivor
from steadyhand.session import checking, house, jobs, redoing
from steadyhand.session.inspecting import Found
from steadyhand.session.owner import Owner
from steadyhand.tools import relocate
from steadyhand.tools.run_command import PlannedCommand
from steadyhand.tools.settle_effect import PlannedSettlement
from steadyhand.tools.tool import Done
from tests.prove.mistakes import Patch, Unsynced, replaced
from tests.support.sim_disk import SimDisk


def move_replaces() -> None:
    move = SimDisk.rename_to

    def over(self: SimDisk, folder: Any, name: str, other: Any, new: str, exclusive: bool) -> None:
        move(self, folder, name, other, new, False)

    replaced(SimDisk, "rename_to", over)


def moved_unseen() -> None:
    replaced(relocate, "stands", lambda *_: True)


def moved_names_not_synced() -> None:
    """The folders of a move are synced by nobody."""
    move = relocate._Moving.in_one_step

    def lazy(self: Any) -> Any:
        self._disk = Unsynced(self._disk)
        return move(self)

    replaced(relocate._Moving, "in_one_step", lazy)


def old_name_removed_first() -> None:
    """Of a move by copy: then neither path has the content for a moment."""
    copy = relocate._Moving.by_copy

    def early(self: Any, piece: Any) -> Any:
        self._disk.rename_new(self._here, self._old_name, self._start.temporary)
        self._disk.sync_folder(self._here)
        self._disk.rename_new(self._here, self._start.temporary, self._old_name)
        return copy(self, piece)

    replaced(relocate._Moving, "by_copy", early)


def half_is_whole() -> None:
    replaced(checking, "check_whole", lambda checks: "satisfied" if "satisfied" in set(checks) else "unchanged")


def nothing_kept(*places: Any) -> Patch:
    def apply() -> None:
        for place in places:
            replaced(place, "keep", lambda ground, standing, attempt_id: None)

    return apply


def restored_before_it_is() -> None:
    record = Owner.record_or_refuse

    async def early(self: Owner, records: Any) -> None:
        await record(self, records)
        for one in records:
            if isinstance(one, Intent) and one.restore_of is not None:
                old = self.ledger.attempts[one.restore_of]
                seen = old.inspection.inspection_id if old.inspection else None
                await record(self, [Settlement(old.attempt_id, old.call_id, "restored", "user", seen)])

    replaced(Owner, "record_or_refuse", early)


def retry_with_a_new_key() -> None:
    def another(**given: Any) -> Intent:
        return Intent(**{**given, "key": given["key"][::-1]} if given.get("retry_of") else given)

    replaced(redoing, "Intent", another)


def retry_without_a_fence() -> None:
    replaced(Found, "fenced", property(lambda self: True))


def retry_of_another_scope() -> None:
    planned_again = redoing._planned_again

    async def loose(owner: Owner, attempt: Any) -> Any:
        scope, attempt.scope = attempt.scope, _Any()
        try:
            return await planned_again(owner, attempt)
        finally:
            attempt.scope = scope

    replaced(redoing, "_planned_again", loose)


class _Any:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def superseded_first() -> None:
    """The old attempt is given up before the new one is anywhere."""
    record = Owner.record_or_refuse

    async def apart(self: Owner, records: Any) -> None:
        given_up = [one for one in records if isinstance(one, Settlement) and one.settled == "superseded"]
        if given_up:
            await record(self, given_up)
        await record(self, [one for one in records if one not in given_up])

    replaced(Owner, "record_or_refuse", apart)


def never_given_up() -> None:
    record = Owner.record_or_refuse

    async def kept(self: Owner, records: Any) -> None:
        await record(self, [r for r in records if not isinstance(r, Settlement) or r.settled != "superseded"])

    replaced(Owner, "record_or_refuse", kept)


def background_is_uncertain() -> None:
    background = PlannedCommand._in_background

    async def doubtful(self: PlannedCommand, running: Any) -> Done:
        return attrs.evolve(await background(self, running), outcome="unknown")

    replaced(PlannedCommand, "_in_background", doubtful)


def stopped_by_its_number() -> None:
    stop = jobs._stop_earlier

    async def by_number(owner: Owner, job_id: str) -> Any:
        if (job := owner.ledger.jobs.get(job_id)) is not None:
            await owner.world.processes.end(Survivor(job.pid, "", ""))
        return await stop(owner, job_id)

    replaced(jobs, "_stop_earlier", by_number)


def left_jobs_untold() -> None:
    look = jobs.look_for_left

    async def silent(owner: Owner) -> None:
        await look(owner)
        owner.left_jobs.clear()

    replaced(house, "look_for_left", silent)


def model_settles_as_a_read() -> None:
    replaced(PlannedSettlement, "effect", "reads")
