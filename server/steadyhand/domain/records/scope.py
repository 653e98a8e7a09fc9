"""Decide whether two effects may touch the same thing (rows B1, B2).

Paths are absolute and resolved; a folder contains what is below it. *Everything* overlaps every effect that touches
something; an effect that touches nothing overlaps none. Two files with the same `device:inode` are one file. Paths are
compared in folded form on every system, so what some file system takes for one file is held back as one (row W12).
"""

from __future__ import annotations

from steadyhand.domain.records.record import Scope
from steadyhand.domain.text.folding import fold

EVERYTHING = Scope(everything=True)
NOTHING = Scope()


def overlaps(first: Scope, second: Scope) -> bool:
    """Return whether the scopes have something in common."""
    if first == NOTHING or second == NOTHING:
        return False
    if first.everything or second.everything:
        return True
    if set(first.identities) & set(second.identities):
        return True
    others = [fold(path) for path in second.paths]
    return any(_within(a, b) or _within(b, a) for a in map(fold, first.paths) for b in others)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
