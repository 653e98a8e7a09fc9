"""Whether a call may start: policy, what holds it back, and permission, in this order (rows G2, B1, C5, E3).

Decided before *started*, from facts alone. Reads and inspections are never held back [I6]. A standing grant never
covers protected paths, what leaves the workspace, or a held-back call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from steadyhand.core.ledger import Attempt
from steadyhand.core.record import EffectClass, Mode, Permission, Scope
from steadyhand.core.scope import overlaps


@attrs.frozen
class Wanted:
    """The facts about one call that admission reads."""

    tool: str
    effect: EffectClass
    scope: Scope
    outside: bool  # leaves the workspace
    protected: bool  # touches a path that asks in every mode
    command: tuple[str, str] | None = None  # (command, cwd)


@attrs.frozen
class Admit:
    """It may start now."""


@attrs.frozen
class AskFirst:
    """The person decides. `why` is a clause for the question; `lasting`: may be allowed for the session."""

    why: str
    lasting: bool


@attrs.frozen
class Deny:
    """Policy says no, whoever asks."""

    text: str


Admission: TypeAlias = "Admit | AskFirst | Deny"


def permit(wanted: Wanted, mode: Mode, grants: Iterable[Permission]) -> Admission:
    """What mode and grants say of the call; what holds it back is `holding_back`'s."""
    if wanted.effect == "reads" and not wanted.outside:
        return Admit()
    if mode == "plan" and wanted.effect != "reads":
        return Deny("The session is in plan mode, in which nothing is changed. Describe the change instead.")
    if wanted.outside:
        return AskFirst("it leaves the workspace", lasting=False)
    if wanted.protected:
        return AskFirst("it touches a protected path", lasting=False)
    if mode == "auto" or (mode == "edits" and wanted.effect == "writes_files"):
        return Admit()
    if any(_covers(grant, wanted) for grant in grants):
        return Admit()
    return AskFirst("this mode asks before each change", lasting=_may_last(wanted))


def holding_back(wanted: Wanted, unresolved: Iterable[Attempt], except_for: str | None = None) -> list[Attempt]:
    """Unresolved effects whose scope overlaps, oldest first; `except_for` is the attempt a retry or restore is of."""
    if wanted.effect == "reads":
        return []
    return [
        attempt for attempt in unresolved if attempt.attempt_id != except_for and overlaps(attempt.scope, wanted.scope)
    ]


def _may_last(wanted: Wanted) -> bool:
    """Whether a grant for the session could ever cover such a call; only then it is offered."""
    return wanted.command is not None or wanted.effect == "writes_files"


def _covers(grant: Permission, wanted: Wanted) -> bool:
    if grant.answer != "session" or grant.tool != wanted.tool:
        return False
    if wanted.command is not None:
        return (grant.command, grant.cwd) == wanted.command
    return wanted.effect == "writes_files"
