"""The ledger of a journal that was read, its torn starts counted (case 134)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.journal.format import LoadedJournal
from steadyhand.journal.journal import load
from steadyhand.ports.disk import Disk, Folder


def ledger_of(loaded: LoadedJournal, unacknowledged: int | None = None) -> Ledger:
    """Return the fold of everything that was read. `unacknowledged`: the first seq that does not count (row J6)."""
    return fold(loaded.records, loaded.breaks, unacknowledged, loaded.torn_starts)


def load_with_ledger(disk: Disk, folder: Folder) -> tuple[LoadedJournal, Ledger]:
    """Read a journal and fold it. Blocks; raise OSError as `load` does."""
    with _no_collection():
        loaded = load(disk, folder)
        return loaded, ledger_of(loaded)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let no search for cyclic garbage run: it would walk all records again and again while they grow in number.

    Where two journals are read at once, the first to end lets it run again; that costs only time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
