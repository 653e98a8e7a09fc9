"""What of a file is under review: the base, the present change, and what was kept or undone (row V4).

The *base* is the content before the first change of the session that is neither kept nor undone. A change of another
session on top of it belongs to the same difference; one below it does not. What the user kept in another session ends
no review of this one. What the user took back is no new change: an undo, a restore or a rewind that reaches the base,
or older content, leaves nothing to review.

A hunk that is kept changes the base, one that is undone changes the last content. Where somebody else changed the file,
the file's content is not the last content of ours; the hunks that they left as they were are still under review.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

import attrs

from steadyhand.domain.changes.chain import Chain, Kept, Link, SessionChanges, chain_of
from steadyhand.domain.changes.hunks import FileHunks, Line
from steadyhand.domain.records.identity import canonical_json, sha256
from steadyhand.domain.records.record import Change
from steadyhand_values import define, frozen

TAKE_BACKS = frozenset({"restore", "undo", "rewind"})
"""Tools with which the user brings earlier content back."""
HUNK_ID_DIGITS = 32
RESOLVED_MAX = 50
"""Hunks of one file that were kept or undone; older ones are not listed."""

PARTS_MAX = 20
"""Parts of a broken chain of which the newest one under review is searched."""

HunkState = Literal["new", "kept", "undone", "gone"]


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
    lines: FileHunks | None = None  # None: the change is one hunk

    @property
    def is_open(self) -> bool:
        """Whether something is under review."""
        return bool(self.links)

    @property
    def open_hunks(self) -> tuple[Hunk, ...]:
        """What is under review: the hunks of lines in their order, or the whole file."""
        if not self.is_open:
            return ()
        if self.lines is None:
            return (Hunk(hunk_id_of(self.path, self.base, self.last), "new" if self.is_present else "gone"),)
        return tuple(
            Hunk(
                hunk_id_of(self.path, self.base, self.last, hunk.before, hunk.after),
                "gone" if place is None else "new",
                hunk.before,
                place,
            )
            for hunk, place in zip(self.lines.hunks, self.lines.places, strict=True)
        )

    @property
    def hunks(self) -> tuple[Hunk, ...]:
        """What was kept or undone, then what is under review."""
        present = self.open_hunks
        ids = {one.hunk_id for one in present}
        return (*(one for one in self.resolved if one.hunk_id not in ids), *present)

    def numbers(self, hunk_ids: Collection[str]) -> frozenset[int]:
        """Return the numbers of these hunks among the open ones."""
        return frozenset(at for at, one in enumerate(self.open_hunks) if one.hunk_id in hunk_ids)


def hunk_id_of(
    path: str, base: str | None, last: str | None, before: Line | None = None, after: Line | None = None
) -> str:
    """Return the id of a hunk: the beginning of a digest of everything that it depends on."""
    ranges = [list(lines) if lines is not None else None for lines in (before, after)]
    content = canonical_json([path, base, last, *ranges]).encode("utf-8", "surrogatepass")
    return sha256(content)[:HUNK_ID_DIGITS]


def reviewed(session_id: str, chain: Chain, sessions: Sequence[SessionChanges]) -> Reviewed | None:
    """Return the review of one path. `sessions`: what led to `chain`. None: the session changed nothing there.

    Where the chain is broken between two changes of the session, the part after the break is under review. If nothing
    is, the newest part that somebody else changed since is, and it is not present.
    """
    own = next((one.links.get(chain.path, ()) for one in sessions if one.session_id == session_id), ())
    if not own:
        return None
    resolved = _resolved(session_id, own)
    for part, is_present in _parts(session_id, chain, sessions, own):
        base = _ReviewFold(session_id)
        base.follow_all(part.links)
        if base.unkept and part.links[-1].after != base.content:
            last = part.links[-1].after
            change = _change(base.content, last)
            return Reviewed(chain.path, base.content, last, tuple(base.unkept), is_present, change, resolved)
    last = own[-1].after
    return Reviewed(chain.path, last, last, (), chain.is_ours, _change(own[0].before, last), resolved)


def _parts(
    session_id: str, chain: Chain, sessions: Sequence[SessionChanges], own: Sequence[Link]
) -> Iterator[tuple[Chain, bool]]:
    """Return the chain that leads to what is there, then those that end in an earlier change, newest first."""
    yield chain, True
    ours = _without_theirs(own)
    alike = {one.attempt_id for one, link in zip(ours, own, strict=True) if one.after == link.after}
    reached = {link.attempt_id for link in chain.links if link.session_id != session_id or link.attempt_id in alike}
    found = 0
    for count in range(len(ours), 0, -1):
        link = ours[count - 1]
        if link.attempt_id in reached:
            continue
        found += 1
        if found > PARTS_MAX:
            return
        until = SessionChanges(session_id, {chain.path: tuple(ours[:count])})
        others = [one for one in sessions if one.session_id != session_id]
        part = chain_of(chain.path, [until, *others], link.after)
        part = part if part.is_ours else Chain(chain.path, (link,))
        yield part, False
        reached.update(one.attempt_id for one in part.links)


def _without_theirs(own: Sequence[Link]) -> list[Link]:
    """Return the links as if nobody else had changed the file: an undo of hunks leads from our last content to that
    without them, and its own undo back."""
    found: list[Link] = []
    undos: list[Link] = []
    for link in own:
        undo = _take_reversed(link, undos)
        spared = link.review_of.spared if link.review_of is not None else None
        theirs = undo.review_of.spared if undo is not None and undo.review_of is not None else None
        if spared is not None:
            found.append(_between(link, spared.before, spared.after))
        elif theirs is not None:
            found.append(_between(link, theirs.after, theirs.before))
        else:
            found.append(link)
        if link.review_of is not None:
            undos.append(link)
    return found


def _between(link: Link, before: str, after: str) -> Link:
    return attrs.evolve(link, evidence=attrs.evolve(link.evidence, existed=True, before=before, intended=after))


def _take_reversed(link: Link, undos: list[Link]) -> Link | None:
    """Take the undo that this link takes back itself out of the list; None: it takes back none."""
    for undo in reversed(undos if link.tool in TAKE_BACKS else ()):
        if (undo.before, undo.after) == (link.after, link.before):
            undos.remove(undo)
            return undo
    return None


def is_reviewed(session_id: str, own: Sequence[Link]) -> bool:
    """Return whether all that a session did to one path was kept or taken back. `own`: its links on it, in order.

    It does not ask what the file has now: that may change, and with it what a review shows. Where a link does not
    follow the one before it, the earlier ones are under review for themselves."""
    for links in (own, _without_theirs(own)):
        fold = _ReviewFold(session_id)
        for at, link in enumerate(links):
            if at and links[at - 1].after != link.before:
                if fold.unkept:
                    return False
                fold = _ReviewFold(session_id)
            fold.follow(link)
        if fold.unkept:
            return False
    return True


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
            self.keep(link.kept)

    def keep(self, kept: Kept) -> None:
        if not kept.partial:
            self._set(kept.base)
        elif self.unkept:  # the other hunks stay under review
            self._older.append(self.content)
            self.content = kept.base

    def _follow_take_back(self, link: Link) -> None:
        if link.after == self.content:
            self.unkept = []
        elif link.after in self._older and not (link.review_of is not None and link.review_of.partial):
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


def _resolved(session_id: str, own: Sequence[Link]) -> tuple[Hunk, ...]:
    """Return what the user kept or undid, each hunk once with its latest state."""
    base, found = _ReviewFold(session_id), dict[str, Hunk]()
    undos: list[Link] = []
    for link, ours in zip(own, _without_theirs(own), strict=True):
        before_it = base.content
        base.follow(attrs.evolve(ours, kept=None))
        undo = _take_reversed(link, undos)
        for hunk_id in undo.review_of.hunks if undo is not None and undo.review_of is not None else ():
            found.pop(hunk_id, None)
        for hunk in _resolved_by(link, before_it, base):
            found.pop(hunk.hunk_id, None)
            found[hunk.hunk_id] = hunk
        if link.kept is not None and link.kept.partial:
            base.keep(link.kept)
        elif link.kept is not None:
            base = _ReviewFold(session_id, link.kept.base, is_known=True)
        if link.review_of is not None:
            undos.append(link)
    return tuple(found.values())[-RESOLVED_MAX:]


def _resolved_by(link: Link, base_before: str | None, base: _ReviewFold) -> Iterator[Hunk]:
    path = link.evidence.resolved
    if link.review_of is not None and link.review_of.hunks and link.certainty == "certain":
        yield from (Hunk(hunk_id, "undone") for hunk_id in link.review_of.hunks)
    elif link.tool == "undo" and link.after == base_before:
        yield Hunk(hunk_id_of(path, link.after, link.before), "undone")
    if link.kept is not None and link.kept.hunks:
        yield from (Hunk(hunk_id, "kept") for hunk_id in link.kept.hunks)
    elif link.kept is not None and link.kept.base == link.after != base.content:
        yield Hunk(hunk_id_of(path, base.content, link.after), "kept")
