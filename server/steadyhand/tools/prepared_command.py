"""What is fixed for a command right before its *started*: its sandbox, and what stood below its roots (row O1)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from steadyhand.domain.records.record import SandboxUse
from steadyhand.ports.sandbox import Confinement
from steadyhand_values import frozen


@frozen
class EntryMark:
    """What of an entry is compared: it differs if the entry was written, replaced, or got another mode or owner."""

    kind: str
    identity: tuple[int, int]  # (device, inode)
    size: int  # bytes
    mode: int
    changed_ns: int
    target: str | None  # of a link


@frozen
class RootsListing:
    """The entries below the roots of a command, without folders and without what is in a `.git` folder.

    `protected`: those with a protected name on the way, and what in a `.git` folder chooses programs (row O1).
    `tops`: the protected names themselves, nearest first. `repositories`: the `.git` folders.
    """

    files: Mapping[str, EntryMark] = attrs.field(factory=dict)  # absolute path → mark
    protected: Mapping[str, EntryMark] = attrs.field(factory=dict)
    tops: tuple[str, ...] = ()
    repositories: frozenset[str] = frozenset()
    is_complete: bool = False  # False: a bound or an unreadable folder ended it
    moment_ns: int = 0  # time of the wall clock before it began


@frozen
class Cause:
    """What is known to make a confined command fail, if it fails with one of these words in its output."""

    words: tuple[str, ...]
    sentence: str
    also: tuple[str, ...] = ()  # one of these must be in the output too; empty: none
    is_git: bool = False  # it says something only about commands of git


@frozen
class PreparedCommand:
    """One command right before its start. `confinement` None: it is not confined."""

    confinement: Confinement | None = None
    warning: str | None = None  # why it is not confined, although it should be where that works; one sentence
    before: RootsListing = RootsListing()
    causes: tuple[Cause, ...] = ()

    @property
    def sandbox(self) -> SandboxUse | None:
        """What *started* says about the sandbox."""
        return None if self.confinement is None else SandboxUse(kind=self.confinement.kind)
