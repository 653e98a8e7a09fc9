"""Whether two effects may touch the same thing (rows B1, B2).

Paths are absolute and resolved; a folder contains what is below it. Everything overlaps whatever touches anything;
an effect that touches nothing overlaps nothing.
"""

from __future__ import annotations

from steadyhand.core.record import Scope

EVERYTHING = Scope(everything=True)
NOTHING = Scope()


def overlaps(first: Scope, second: Scope) -> bool:
    if first == NOTHING or second == NOTHING:
        return False
    if first.everything or second.everything:
        return True
    return any(_within(a, b) or _within(b, a) for a in first.paths for b in second.paths)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
