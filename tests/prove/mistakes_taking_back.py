"""Mistakes in undo, rewind and revise: patches of the product's own functions; see tests/prove/variants.py."""

from __future__ import annotations

from typing import Any

import attrs

from steadyhand.domain.records.record import Intent, Rewind, Told, User
from steadyhand.session.changes import rewind
from steadyhand.session.recovery import settlement_records
from steadyhand.session.session_log import SessionLog
from tests.prove.mistakes import Patch, replaced


def told_before_it_is_undone() -> None:
    record = SessionLog.record_or_refuse

    async def early(self: SessionLog, records: Any) -> None:
        await record(self, records)
        if any(isinstance(one, Intent) and one.review_of is not None for one in records):
            early_told = Told(message_id=self._state.context.ids.new(), text="It is undone.", from_="review")
            await record(self, [early_told])

    replaced(SessionLog, "record_or_refuse", early)


def rewind_recorded_first() -> None:
    take_back = rewind._take_files_back

    async def late(session: Any, turn_id: str, found: Any, units: Any) -> Any:
        early = Rewind(turn_id=turn_id, target=found.target.turn_id, what="both", epoch=session.context.ids.new())
        await session.log.record_or_refuse([early])
        return await take_back(session, turn_id, found, units)

    replaced(rewind, "_take_files_back", late)


def without_a_barrier(kind: type, *, replacing: bool = False) -> Patch:
    """An answer is given before its record is durable."""

    def apply() -> None:
        record = SessionLog.record_or_refuse

        async def lazy(self: SessionLog, records: Any) -> None:
            if any(isinstance(one, kind) and (not replacing or getattr(one, "replaces", None)) for one in records):
                await self.append(records, barrier=False)
            else:
                await record(self, records)

        replaced(SessionLog, "record_or_refuse", lazy)

    return apply


def revision_beside_the_old() -> None:
    record = SessionLog.record_or_refuse

    async def beside(self: SessionLog, records: Any) -> None:
        plain = [attrs.evolve(one, replaces=None, epoch=None) if isinstance(one, User) else one for one in records]
        await record(self, plain)

    replaced(SessionLog, "record_or_refuse", beside)


def begun_counts_as_done() -> None:
    count = settlement_records._count_files

    def hopeful(attempt: Any) -> int:
        return count(attempt) or len(attempt.started.evidence if attempt.started is not None else ())

    replaced(settlement_records, "_count_files", hopeful)
