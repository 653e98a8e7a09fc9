"""Compare places by what they are: one file or folder can have several paths (case 164). Pure.

Two paths lead to the same place through a link, through a mount of a folder at a second path, or because a file has
two names. The recorded paths stay as they are; places are found where they are compared (`tools/workspace/places.py`).
Names that differ in case or Unicode form alone count as one where places may overlap (row W12); `names_below` compares
them as they are spelled.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import NOTHING
from steadyhand.domain.text.folding import fold
from steadyhand_values import frozen

Identity = tuple[int, int]
"""Device and inode."""


@frozen
class Place:
    """Where a path leads now. `identities[n]`: of the first `n` names together; None: nothing is there, or not known.

    Names that do not exist follow the ones that do."""

    names: tuple[str, ...]  # from `/` on, links resolved
    identities: tuple[Identity | None, ...]  # one more than names; of `/` it is not known


def names_below(inner: Place, outer: Place) -> tuple[str, ...] | None:
    """Return the names that lead from the second place to the first.

    None: the first place is neither the second one nor in it."""
    if inner.names[: len(outer.names)] == outer.names:
        return inner.names[len(outer.names) :]
    known = max((at for at, identity in enumerate(outer.identities) if identity is not None), default=None)
    if known is None:
        return None
    rest = outer.names[known:]  # nothing of this exists, or it is not known what it is
    for at, identity in enumerate(inner.identities):
        if identity == outer.identities[known] and inner.names[at : at + len(rest)] == rest:
            return inner.names[at + len(rest) :]
    return None


def is_within(inner: Place, outer: Place) -> bool:
    """Return whether the first place may be the second one or below it, by its folded names or by what they are."""
    return names_below(_folded(inner), _folded(outer)) is not None


def share_a_place(first: Iterable[Place], second: Iterable[Place]) -> bool:
    """Return whether a place of one is in a place of the other, or the same."""
    others = tuple(second)
    return any(is_within(one, other) or is_within(other, one) for one in first for other in others)


def leads_to(places: Iterable[Place], identities: Iterable[str]) -> bool:
    """Return whether one of the places is a file with one of these identities (`identity_text`)."""
    known = set(identities)
    return any(place.identities[-1] is not None and identity_text(place.identities[-1]) in known for place in places)


def identity_text(identity: Identity) -> str:
    """Return `device:inode`, as a scope names it."""
    return f"{identity[0]}:{identity[1]}"


def needs_places(first: Scope, second: Scope) -> bool:
    """Return whether only their places can say that two scopes overlap: both name paths."""
    return NOTHING not in (first, second) and not first.everything and not second.everything


def _folded(place: Place) -> Place:
    return attrs.evolve(place, names=tuple(map(fold, place.names)))
