"""What a rewind takes back of a path: the content before the session's first change since the target turn (row G4)."""

from __future__ import annotations

from collections.abc import Iterable

from steadyhand.domain.changes.chain import Chain, Link
from steadyhand_values import frozen


@frozen
class Rewound:
    """One path that changed since a turn. `links`: the unbroken chain of what is taken back, oldest first.

    Empty `links`: the present content is not ours, so the path is spared. `is_broken`: somebody else changed the file
    between two changes of the session; only the part after that is taken back."""

    path: str  # absolute, after links
    changed: tuple[Link, ...]  # everything that the session did to the path since the turn
    links: tuple[Link, ...] = ()
    is_broken: bool = False

    @property
    def is_spared(self) -> bool:
        """Whether nothing of it can be taken back."""
        return not self.links

    @property
    def is_done(self) -> bool:
        """Whether the path has the content that comes back already."""
        return bool(self.links) and self.links[0].before == self.links[-1].after


def rewound(session_id: str, chain: Chain, own: Iterable[Link], since: int) -> Rewound | None:
    """Return what is taken back of a path. None: the session did not change it since.

    `own`: the session's links on it; `since`: the `position` from which on links count."""
    changed = tuple(link for link in own if link.position >= since)
    if not changed:
        return None
    links: tuple[Link, ...] = ()
    for at, link in enumerate(chain.links):
        if link.session_id == session_id and link.position >= since:
            links = chain.links[at:]
            break
    reached = {link.attempt_id for link in links}
    missed = [link for link in changed if link.attempt_id not in reached and link.certainty == "certain"]
    return Rewound(chain.path, changed, links, bool(missed))
