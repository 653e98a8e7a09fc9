"""What of a file is under review: the base, the present change, and what was kept or undone (row V4).

The *base* is the content before the first change of the session that is neither kept nor undone. A change of another
session on top of it belongs to the same difference; one below it does not. What the user kept in another session ends
no review of this one. What the user took back is no new change: an undo, a restore or a rewind that reaches the base,
or older content, leaves nothing to review.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import attrs

from steadyhand.domain.changes.chain import Chain, Link
from steadyhand.domain.records.identity import canonical_json, sha256
from steadyhand.domain.records.record import Change
from steadyhand_values import define, frozen

TAKE_BACKS = frozenset({"restore", "undo", "rewind"})
"""Tools with which the user brings earlier content back."""
HUNK_ID_DIGITS = 32
RESOLVED_MAX = 50
"""Hunks of one file that were kept or undone; older ones are not listed."""

HunkState = Literal["new", "kept", "undone", "gone"]
Line: TypeAlias = "tuple[int, int]"
"""Lines from the first one on, counted from 0, up to and without the second one."""


@frozen
class Hunk:
    """One part of a file's change. A whole file is one hunk without lines."""

    hunk_id: str
    state: HunkState
    before: Line | None = None  # in the base
    after: Line | None = None  # in the file now


@frozen
class Reviewed:
    """The change of one file of a session. `base` and `last`: digests; None: no file."""

    path: str  # absolute, after links
    base: str | None
    last: str | None
    links: tuple[Link, ...]  # that led from the base to `last`; empty: nothing is under review
    is_present: bool  # False: somebody else changed the file since
    change: Change  # what the change under review, else everything that the session did, made of the path
    resolved: tuple[Hunk, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether something is under review."""
        return bool(self.links)

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """What was kept or undone, then what is under review as one hunk."""
        if not self.is_open:
            return self.resolved
        present = Hunk(hunk_id_of(self.path, self.base, self.last), "new" if self.is_present else "gone")
        return (*(one for one in self.resolved if one.hunk_id != present.hunk_id), present)


def hunk_id_of(
    path: str, base: str | None, last: str | None, before: Line | None = None, after: Line | None = None
) -> str:
    """Return the id of a hunk: the beginning of a digest of everything that it depends on."""
    ranges = [list(lines) if lines is not None else None for lines in (before, after)]
    content = canonical_json([path, base, last, *ranges]).encode("utf-8", "surrogatepass")
    return sha256(content)[:HUNK_ID_DIGITS]


def reviewed(session_id: str, chain: Chain, own: Iterable[Link]) -> Reviewed | None:
    """Return the review of one path. `own`: all links of the session on it, in order. None: it changed nothing there.

    Where the chain is broken between two changes of the session, the part after the break is under review. If nothing
    is, a part that somebody else changed since is, and it is not present.
    """
    every = list(own)
    if not every:
        return None
    resolved = _resolved(session_id, every)
    lost = [link for link in every if not chain.reaches(link)]
    for links, is_present in ((list(chain.links), True), (lost, False)):
        base = _ReviewFold(session_id)
        base.follow_all(links)
        if base.unkept and links[-1].after != base.content:
            change = _change(base.content, links[-1].after)
            return Reviewed(chain.path, base.content, links[-1].after, tuple(base.unkept), is_present, change, resolved)
    last = every[-1].after
    return Reviewed(chain.path, last, last, (), chain.is_ours, _change(every[0].before, last), resolved)


def _change(before: str | None, after: str | None) -> Change:
    return "created" if before is None else "deleted" if after is None else "modified"


@define
class _ReviewFold:
    """The base while links are followed, oldest first."""

    session_id: str
    content: str | None = None
    unkept: list[Link] = attrs.field(factory=list)
    is_known: bool = False
    _older: list[str | None] = attrs.field(factory=list)  # contents that were there before the base
    _newer: set[str | None] = attrs.field(factory=set)  # contents of changes since the base

    def follow_all(self, links: Iterable[Link]) -> None:
        for link in links:
            self.follow(link)

    def follow(self, link: Link) -> None:
        if not self.is_known:
            self._set(link.before)
        if link.tool in TAKE_BACKS:
            self._follow_take_back(link)
        elif self.unkept or link.session_id == self.session_id:
            self._add(link)
        else:  # a change of another session below everything of this one
            self._set(link.after)
        if link.kept is not None and link.session_id == self.session_id:
            self._set(link.kept.base)

    def _follow_take_back(self, link: Link) -> None:
        if link.after == self.content:
            self.unkept = []
        elif link.after in self._older:
            self._set(link.after)
        elif self.unkept or link.after in self._newer:  # a part; or an undo that was itself taken back
            self._add(link)
        else:
            self._set(link.after)

    def _add(self, link: Link) -> None:
        self.unkept.append(link)
        self._newer.add(link.after)

    def _set(self, content: str | None) -> None:
        if self.is_known:
            self._older.append(self.content)
        self.content, self.unkept, self.is_known = content, [], True
        self._newer.clear()


def _resolved(session_id: str, own: Iterable[Link]) -> tuple[Hunk, ...]:
    """Return what the user kept or undid as whole files, each hunk once with its latest state."""
    base, found = _ReviewFold(session_id), dict[str, Hunk]()
    for link in own:
        before_it = base.content
        base.follow(attrs.evolve(link, kept=None))
        for hunk in _resolved_by(link, before_it, base):
            found.pop(hunk.hunk_id, None)
            found[hunk.hunk_id] = hunk
        if link.kept is not None:
            base = _ReviewFold(session_id, link.kept.base, is_known=True)
    return tuple(found.values())[-RESOLVED_MAX:]


def _resolved_by(link: Link, base_before: str | None, base: _ReviewFold) -> Iterator[Hunk]:
    path = link.evidence.resolved
    if link.tool == "undo" and link.after == base_before:
        yield Hunk(hunk_id_of(path, link.after, link.before), "undone")
    if link.kept is not None and link.kept.base == link.after != base.content:
        yield Hunk(hunk_id_of(path, base.content, link.after), "kept")
