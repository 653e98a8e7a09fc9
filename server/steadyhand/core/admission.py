"""Whether a call may start: policy, what holds it back, and permission, in this order (rows G2, B1, C5, E3).

Decided before *started*, from facts alone. The strictest word counts first: a workspace that is not trusted, a rule
that denies, the mode `plan`, what asks in every mode, a rule that asks; only then the mode, a grant or a rule that
allows lets it pass. Reads and inspections are never held back [I6]. A standing grant never covers protected paths, what
leaves the workspace, what a rule asks about, or a held-back call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from steadyhand.core.folded import Attempt
from steadyhand.core.record import EffectClass, Mode, Permission, Scope
from steadyhand.core.rules import NO_RULES, Rules, Target, loosening, tightening
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
    root: str | None = None  # the workspace, absolute; rules compare paths from there on

    @property
    def target(self) -> Target:
        """As rules see it."""
        return Target(self.tool, self.scope, self.root, self.command[0] if self.command is not None else None)


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


UNTRUSTED = Deny(
    "This workspace is not trusted, so the agent only reads in it: describe the change instead, or ask the user to"
    " trust the workspace in the editor."
)
PLANNING = Deny("The session is in plan mode, in which nothing is changed. Describe the change instead.")


def permit(
    wanted: Wanted, mode: Mode, grants: Iterable[Permission], rules: Rules = NO_RULES, trusted: bool = True
) -> Admission:
    """What trust, rules, mode and grants say of the call; what holds it back is `holding_back`'s."""
    reads = wanted.effect == "reads"
    if not trusted and not reads:
        return UNTRUSTED
    if (denied := tightening(rules.deny, wanted.target)) is not None:
        return Deny(f"The rule “{denied.text}” in permissions.deny forbids it. Do without it, or tell the user.")
    if mode == "plan" and not reads:
        return PLANNING
    if wanted.outside:
        return AskFirst("it leaves the workspace", lasting=False)
    if wanted.protected and not reads:
        return AskFirst("it touches a protected path", lasting=False)
    if (asked := tightening(rules.ask, wanted.target)) is not None:
        return AskFirst(f"the rule “{asked.text}” in permissions.ask wants it", lasting=False)
    if reads or mode == "auto" or (mode == "edits" and wanted.effect == "writes_files"):
        return Admit()
    if any(_covers(grant, wanted) for grant in grants) or loosening(rules.allow, wanted.target) is not None:
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
