"""A start that a journal holds only as a line without its end (row J8)."""

from __future__ import annotations

from steadyhand_values import frozen


@frozen
class TornStart:
    """`position`: index in the journal's records before which it stood; `attempt`: the beginning of an attempt id."""

    position: int
    attempt: str
