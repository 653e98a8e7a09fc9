"""Which compaction of a conversation counts, and where the conversation behind it begins (row K4).

A compaction is a record of the conversation like others, and nothing is rewritten. It counts as long as the record that
it was cut behind is part of the conversation: a rewind to before the cut makes it void, one to after it does not. Of
several that count, the latest does.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.ledger.state import TranscriptEntry
from steadyhand.domain.records.record import Compaction, CompactionCut
from steadyhand_values import frozen

NOTHING_CUT = CompactionCut(seq=0, sum="00000000")
"""The cut of a compaction that only leaves out outputs."""


@frozen
class Standing:
    """The compaction that counts, and the calls whose outputs are left out.

    `place`: of the first entry behind its cut; `entry` None: nothing is cut off."""

    entry: TranscriptEntry | None = None
    place: int = 0
    omitted: frozenset[str] = frozenset()

    @property
    def record(self) -> Compaction | None:
        """Its record."""
        record = self.entry.record if self.entry is not None else None
        return record if isinstance(record, Compaction) else None


NOT_COMPACTED = Standing()


def standing_in(said: Sequence[TranscriptEntry]) -> Standing:
    """Return what counts in a conversation. A record without a text leaves outputs out and cuts nothing off."""
    omitted: set[str] = set()
    for entry in reversed(said):
        if not isinstance(entry.record, Compaction):
            continue
        place = _place_behind(said, entry.record.cut)
        if place is not None:
            omitted.update(entry.record.omitted)
            if entry.record.text:
                return Standing(entry, place, frozenset(omitted))
    return Standing(omitted=frozenset(omitted)) if omitted else NOT_COMPACTED


def has_cut(before: Sequence[TranscriptEntry], record: object) -> bool:
    """Return whether this is a compaction whose cut is in that part of the conversation."""
    return isinstance(record, Compaction) and _place_behind(before, record.cut) is not None


def sent_entries(said: Sequence[TranscriptEntry], standing: Standing) -> Sequence[TranscriptEntry]:
    """Return the entries of a conversation that go to the model: the compaction first, then what is behind its cut."""
    behind = [entry for entry in said[standing.place :] if not isinstance(entry.record, Compaction)]
    return [standing.entry, *behind] if standing.entry is not None else behind


def _place_behind(said: Sequence[TranscriptEntry], cut: CompactionCut) -> int | None:
    if cut == NOTHING_CUT:
        return 0
    return next((at + 1 for at, entry in enumerate(said) if (entry.seq, entry.sum) == (cut.seq, cut.sum)), None)
