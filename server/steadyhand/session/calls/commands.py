"""What a command of the model needs around its call besides the steps of every call (row O1).

Its identity does not contain its scope, and the chat says once that commands are not confined.
"""

from __future__ import annotations

from steadyhand.domain.ledger.state import Intention
from steadyhand.domain.records.identity import (
    Arguments,
    Digest,
    SessionId,
    command_intention,
    idempotency_key,
    without_member,
)
from steadyhand.domain.records.record import SandboxUse
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.tools.builtin.run_command import PlannedCommand, RunCommand
from steadyhand.tools.contract import Planned
from steadyhand.tools.prepared_command import PreparedCommand


def compared_arguments(tool: str, arguments: Arguments) -> Arguments:
    """Return the arguments without what is in no digest: why a command should leave the sandbox (row O3)."""
    return without_member(arguments, "why") if tool == RunCommand.name else arguments


def intention_of(tool: str, planned: Planned, arguments: Arguments) -> Intention:
    """Return what the call intends, as rows N2 and B6 compare it."""
    command = None
    if tool == RunCommand.name and planned.command is not None:
        command = command_intention(*planned.command, background=arguments.value.get("background") is True)
    return Intention(tool, arguments.digest, planned.scope, command)


def key_of(session: Session, intended: Intention, arguments: Arguments, occurrence: int) -> Digest:
    """Return the idempotency key; of a command neither its scope nor its other arguments count (row O1)."""
    canonical, scope = arguments.canonical, intended.scope.plain()
    if intended.command is not None:
        canonical, scope = intended.command, None
    return idempotency_key(SessionId(session.session_id), intended.tool, canonical, scope, occurrence)


def sandbox_of_reading(planned: Planned) -> SandboxUse | None:
    """Return how a command that only reads is confined; other calls say it when they start."""
    confinement = planned.reading_confinement if isinstance(planned, PlannedCommand) else None
    return None if confinement is None else SandboxUse(kind=confinement.kind)


def warn_of_sandbox(session: Session, turn: ActiveTurn, command: PreparedCommand) -> None:
    """Say once per process that commands run without a sandbox, and why."""
    if command.warning is not None and not session.context.has_warned_of_sandbox:
        session.context.has_warned_of_sandbox = True
        session.feed.notify(turn.turn_id, Warned("sandbox", command.warning))
