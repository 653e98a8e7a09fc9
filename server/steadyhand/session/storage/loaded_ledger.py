"""The ledger of a journal that was read, its torn starts counted (case 134)."""

from __future__ import annotations

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.journal.format import LoadedJournal


def ledger_of(loaded: LoadedJournal, unacknowledged: int | None = None) -> Ledger:
    """Return the fold of everything that was read. `unacknowledged`: the first seq that does not count (row J6)."""
    return fold(loaded.records, loaded.breaks, unacknowledged, loaded.torn_starts)
