"""The clock, random ids, and an optional program that excludes files from a text search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TextFilter(Protocol):
    """A program that may exist on this machine and excludes files from a search faster than we read them.

    Never required.
    """

    def may_hold(
        self, text: bytes, paths: Sequence[str], time_s: float, folders: Sequence[str] = ()
    ) -> frozenset[str] | None:
        """Return those of these absolute paths whose bytes may contain `text` or a NUL; block at most `time_s` seconds.

        The program must not come from the workspace `folders` (row O4).

        Every file that contains one of them is returned; others may be returned too. A path that is left out was read
        whole and contains neither. None: the program cannot tell, for whatever reason.
        """
        ...


class Clock(Protocol):
    """The time."""

    def now(self) -> str:
        """Return the time in UTC as RFC 3339 with milliseconds: 2026-01-02T03:04:05.678Z."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that only grow, from an arbitrary zero."""
        ...


class Ids(Protocol):
    """Random ids."""

    def new(self) -> str:
        """Return 32 random lower-case hex digits."""
        ...
