"""Decide whether a call may start (rows G2, C5, E3). `session/calls/holdback.py` decides what holds it back.

The decision is made before *started*, from facts alone. The strictest rule wins: an untrusted workspace, a deny rule,
the mode `plan`, whatever asks in every mode, an ask rule. A command that names a file with a secret's name asks in the
mode `auto` too, unless a grant or a rule covers it. Only after these can the mode, a grant or an allow rule let
the call pass. A command that would leave the sandbox asks in every mode; only a grant beyond the session that was given
for just that covers it. A write in place asks in every mode, and nothing covers it. Reads and inspections are never
held back [I6]. A standing grant never covers protected paths, paths outside the workspace, a call that an ask rule
names, or a held-back call.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import attrs

from steadyhand.domain.permissions.rules import (
    NO_RULES,
    PermissionRules,
    Target,
    find_tightening_rule,
    first_lifting_rule,
    first_loosening_rule,
)
from steadyhand.domain.records.record import EffectClass, Mode, Permission, Scope
from steadyhand_values import frozen


@frozen
class CallFacts:
    """The facts about one call that admission reads."""

    tool: str
    effect: EffectClass
    scope: Scope
    outside: bool  # true: a path leaves the workspace
    protected: bool  # true: a path asks in every mode; of a read, its name is a secret's
    command: tuple[str, str] | None = None  # (command, cwd)
    root: str | None = None  # absolute path of the session's folder; rules compare paths relative to it
    unconfined: bool = False  # true: a command that asks to run outside the sandbox (row O3)
    others: tuple[str, ...] = ()  # absolute paths of the workspace's other folders; rules count from each (row S11)
    folder: str | None = attrs.field(default=attrs.Factory(lambda facts: facts.root, takes_self=True))
    """The one folder of the workspace that the call is in: a grant would hold there. None: it is in none or several."""
    names_secret: bool = False  # true: a command that names a file with a secret's name (case 137)
    in_place: bool = False  # true: the bytes of a file are written over (row W11)

    @property
    def target(self) -> Target:
        """The call in the form that permission rules match."""
        command = self.command[0] if self.command is not None else None
        return Target(self.tool, self.scope, self.root, command, self.others)


@frozen
class Admit:
    """The call may start now."""


@frozen
class AskFirst:
    """The user decides. `why` is a clause for the question; `lasting`: a grant for the session may be offered."""

    why: str
    lasting: bool


@frozen
class Deny:
    """Policy refuses the call, whoever asks. `text` is one or more sentences for the model."""

    text: str


Admission: TypeAlias = "Admit | AskFirst | Deny"


UNTRUSTED = Deny(
    "This workspace is not trusted, so the agent can only read in it. Describe the change instead, or ask the user to"
    " trust the workspace in the editor."
)
PLANNING = Deny("The session is in plan mode, which allows no changes. Describe the change instead.")


def decide_admission(
    wanted: CallFacts, mode: Mode, grants: Iterable[Permission], rules: PermissionRules = NO_RULES, trusted: bool = True
) -> Admission:
    """Decide by trust, rules, mode and grants."""
    reads = wanted.effect == "reads"
    if not trusted and not reads:
        return UNTRUSTED
    denied = find_tightening_rule(rules.deny, wanted.target)
    if denied is not None and denied.is_certain:
        return Deny(f"The rule “{denied.rule.text}” in permissions.deny forbids it. Do without it, or tell the user.")
    if mode == "plan" and not reads:
        return PLANNING
    if wanted.in_place:
        return AskFirst("it writes over the bytes of a file, which a crash can leave half done", lasting=False)
    if wanted.outside:
        return AskFirst("it leaves the workspace", lasting=False)
    if wanted.protected and first_lifting_rule(rules.allow, wanted.target, reads) is None:
        why = "its name says that it may hold a secret" if reads else "it touches a protected path"
        return AskFirst(why, lasting=False)
    if denied is not None:
        why = f"it does not show all that it runs, and the rule “{denied.rule.text}” in permissions.deny may forbid it"
        return AskFirst(why, lasting=False)
    if (asked := find_tightening_rule(rules.ask, wanted.target)) is not None:
        return AskFirst(f"the rule “{asked.rule.text}” in permissions.ask requires it", lasting=False)
    if wanted.unconfined:
        return AskFirst("it would run outside the sandbox", lasting=True)
    passes = reads or mode == "auto" or (mode == "edits" and wanted.effect == "writes_files")
    if passes and not wanted.names_secret:
        return Admit()
    if any(_covers(grant, wanted) for grant in grants) or first_loosening_rule(rules.allow, wanted.target) is not None:
        return Admit()
    if wanted.names_secret:
        return AskFirst("it names a file that may hold a secret", lasting=True)
    return AskFirst("this mode asks before each change", lasting=_may_last(wanted))


def _may_last(wanted: CallFacts) -> bool:
    """Return whether a grant for the session could ever cover such a call. If not, none is offered."""
    return wanted.command is not None or wanted.effect == "writes_files"


def _covers(grant: Permission, wanted: CallFacts) -> bool:
    if grant.answer != "session" or grant.tool != wanted.tool:
        return False
    if wanted.command is not None:
        return (grant.command, grant.cwd) == wanted.command
    return wanted.effect == "writes_files"
