"""The chain of a path: which attempts led to the content that the file has now (row V5).

Each attempt on a path is a link from the content before it to the content after it. Within a session the journal's
order holds. Between sessions no clock is asked: a link follows another where its content before is the other's content
after. The chain is read from its end: from what the file has now, back over link after link, until no attempt of ours
made the content that is needed. If no attempt of ours made what is there now, the chain is empty: somebody else did.

An attempt whose outcome is not known counts by what was found later: by its content after, it happened; by its content
before, it did not; by anything else, the chain ends there. docs/architecture.md has this as a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Evidence, Review, ReviewOf
from steadyhand_values import define, frozen

STEPS_MAX = 20_000
"""Steps of one walk. A chain that needs more ends earlier, so that more is spared."""
BRANCHINGS_MAX = 12
"""Places of one walk where several sessions could come next and each is tried; after them the first one is taken."""

Certainty = Literal["certain", "perhaps"]


@frozen
class Kept:
    """The user kept what was there after a link; later changes are compared with `base` (None: no file)."""

    base: str | None
    hunks: tuple[str, ...] = ()  # ids of hunks of lines
    partial: bool = False  # True: what else led to the link's content stays under review


@frozen
class Link:
    """One attempt on one path."""

    session_id: str
    turn_id: str
    attempt_id: str
    tool: str
    evidence: Evidence
    certainty: Certainty
    position: int = 0  # of its start among the session's `file_events`
    kept: Kept | None = None  # of the change that this link is the last one of
    review_of: ReviewOf | None = None  # of an undo

    @property
    def before(self) -> str | None:
        """Digest of the content before; None: no file."""
        return self.evidence.before if self.evidence.existed else None

    @property
    def after(self) -> str | None:
        """Digest of the content after; None: no file."""
        return self.evidence.intended


@frozen
class Chain:
    """The links that led to the present content without a break, oldest first; empty: it is not ours."""

    path: str  # absolute, after links
    links: tuple[Link, ...] = ()

    @property
    def is_ours(self) -> bool:
        """Whether the present content is the last link's content after."""
        return bool(self.links)

    @property
    def oldest(self) -> str | None:
        """Digest of the oldest content that the chain reaches; None: no file. Only for a chain that is ours."""
        return self.links[0].before

    def reaches(self, link: Link) -> bool:
        """Whether this attempt is one of the chain."""
        return any(one.attempt_id == link.attempt_id for one in self.links)


@frozen
class SessionChanges:
    """What one session did to files: its links by path, in journal order, and the attempts that are not settled."""

    session_id: str
    links: Mapping[str, tuple[Link, ...]] = attrs.field(factory=dict)
    unresolved: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)  # path → attempt ids


def changes_of(session_id: str, events: Iterable[Attempt | Review]) -> SessionChanges:
    """Return the changes of a session from its ledger's `file_events`."""
    links: dict[str, list[Link]] = {}
    unresolved: dict[str, list[str]] = {}
    for position, event in enumerate(events):
        if isinstance(event, Review):
            _attach(links.get(event.path, []), event)
            continue
        for evidence in event.started.evidence if event.started is not None else ():
            if event.uncertain or event.open:
                unresolved.setdefault(evidence.resolved, []).append(event.attempt_id)
            if evidence.is_only_in_buffer:
                continue  # whoever saves the document changes the file
            link = _link(session_id, event, evidence, position)
            if link is not None:
                links.setdefault(evidence.resolved, []).append(link)
    return SessionChanges(
        session_id,
        {path: tuple(some) for path, some in links.items()},
        {path: tuple(some) for path, some in unresolved.items()},
    )


def _attach(of_path: list[Link], review: Review) -> None:
    """Attach what the user kept to its link. Where that cannot be read, nothing is kept."""
    for at in range(len(of_path) - 1, -1, -1):
        if review.attempt_id in (None, of_path[at].attempt_id):
            earlier = of_path[at].kept
            hunks = (*(earlier.hunks if earlier is not None else ()), *review.hunks)
            of_path[at] = attrs.evolve(of_path[at], kept=Kept(review.base, hunks, review.partial))
            return


def chain_of(path: str, sessions: Sequence[SessionChanges], now: str | None) -> Chain:
    """Return the chain that ends in the present content. `now`: its digest; None: there is no file.

    Where the contents allow several orders of sessions, the longest chain counts, then the order of `sessions`. That
    there is no file says little: it is ours only if the latest certain link of every session leads to it.
    """
    some = [links for one in sessions if (links := one.links.get(path))]
    found = _Walk(some).back([len(links) for links in some], now)
    if now is None and not all(_latest_certain(links) <= {link.attempt_id for link in found} for links in some):
        return Chain(path)
    return Chain(path, tuple(reversed(found)))


def _latest_certain(links: Sequence[Link]) -> frozenset[str]:
    """Return the id of the latest attempt that certainly happened, if there is one."""
    certain = [link.attempt_id for link in links if link.certainty == "certain"]
    return frozenset(certain[-1:])


def certainty_of(attempt: Attempt) -> Certainty | None:
    """Return whether the attempt is known to have happened; None: it is known not to have changed anything."""
    settled = attempt.settlement.settled if attempt.settlement is not None else None
    if attempt.has_certainly_happened:
        return "certain"
    if settled is not None:
        return None if settled in ("checked_absent", "superseded") else "perhaps"
    if attempt.result is None:
        return "perhaps" if attempt.started is not None else None
    outcome = attempt.result.outcome
    return "perhaps" if outcome in ("stopped", "unknown", "unknown_after_restart") else None


def _link(session_id: str, attempt: Attempt, evidence: Evidence, position: int) -> Link | None:
    certainty = certainty_of(attempt)
    link = Link(
        session_id,
        attempt.turn_id,
        attempt.attempt_id,
        attempt.tool,
        evidence,
        certainty or "perhaps",
        position,
        review_of=attempt.review_of,
    )
    return link if certainty is not None and link.before != link.after else None


@frozen
class _Step:
    """One possible step back: what is left of each session, the content before it, and its link (None: passed over)."""

    left: tuple[int, ...]
    content: str | None
    link: Link | None


@define
class _Walk:
    """One walk from the present content back."""

    sessions: Sequence[Sequence[Link]]
    steps: int = 0

    def back(self, left: Sequence[int], content: str | None, branchings: int = 0) -> list[Link]:
        """Return the links that led to the content, newest first. `left`: how many links of each session are left."""
        taken: list[Link] = []
        while self.steps < STEPS_MAX:
            self.steps += 1
            options = list(self._options(tuple(left), content))
            if not options:
                break
            if len(options) > 1 and branchings < BRANCHINGS_MAX:
                ways = [self._follow(option, branchings + 1) for option in options]
                return taken + max(ways, key=len)
            left, content = options[0].left, options[0].content
            taken += [options[0].link] if options[0].link is not None else []
        return taken

    def _follow(self, option: _Step, branchings: int) -> list[Link]:
        own = [option.link] if option.link is not None else []
        return own + self.back(option.left, option.content, branchings)

    def _options(self, left: tuple[int, ...], content: str | None) -> Iterator[_Step]:
        for at, count in enumerate(left):
            if count == 0:
                continue
            link = self.sessions[at][count - 1]
            rest = (*left[:at], count - 1, *left[at + 1 :])
            if link.after == content:
                yield _Step(rest, link.before, link)
            elif link.certainty == "perhaps" and link.before == content:
                yield _Step(rest, content, None)
