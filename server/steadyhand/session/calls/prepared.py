"""A planned call with its identity, and what every step before its start shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from steadyhand.domain.ledger.state import Intention, ToolCall
from steadyhand.domain.permissions.policy import CallFacts
from steadyhand.domain.records.identity import Digest
from steadyhand.domain.records.record import Record, Scope
from steadyhand.session.session import Session
from steadyhand.tools.builtin.run_command import PlannedCommand
from steadyhand.tools.contract import Planned, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.writes.planned_write import PlannedFileEffect
from steadyhand_values import frozen

T = TypeVar("T")


def _settle_nothing(_: ToolOutcome) -> Sequence[Record]:
    return ()


@frozen
class PreparedCall:
    """A planned call with its identity, on its way to the start."""

    call: ToolCall
    planned: Planned
    facts: CallFacts
    attempt_id: str
    key: Digest
    confirmed_before: tuple[str, ...] = ()  # attempts of this very call that the user confirmed (row B6)
    is_judged: bool = False  # whether the model proposed it as it is, so that its knowledge counts (row V3)
    settles: Callable[[ToolOutcome], Sequence[Record]] = (
        _settle_nothing  # what its end settles, in the append of its result
    )


def count_known_happened(session: Session, wanted: Intention) -> int:
    """Count the earlier attempts of this intention that are known to have happened, in a fork's origin too (N2, S3)."""
    return session.ledger.count_known_happened(wanted) + session.origins.count_known(wanted)


def confirmed_before(session: Session, wanted: Intention) -> tuple[str, ...]:
    """Return the attempts of this exact call that the user confirmed and no allowed repeat followed (rows B6, S3)."""
    there = (one for one in session.origins.confirmed(wanted) if one not in session.ledger.repeated)
    return (*session.ledger.confirmed_before(wanted), *there)


def facts_of(session: Session, tool: str, planned: Planned) -> CallFacts:
    """Return the facts of a planned call that the policy reads."""
    return CallFacts(
        tool,
        planned.effect,
        planned.scope,
        bool(planned.outside),
        bool(planned.protected),
        planned.command,
        session.tool_context.root,
        isinstance(planned, PlannedCommand) and planned.unconfined,
        session.tool_context.folders[1:],
        _folder_of(session.tool_context, planned),
        isinstance(planned, PlannedCommand) and planned.names_secret and not planned.is_reading,
        isinstance(planned, PlannedFileEffect) and planned.in_place is not None,
    )


def scope_if_wider(session: Session, prepared: PreparedCall) -> Scope | None:
    """Return the scope of a start that touches more than its intent says; None: the intent's."""
    scope = prepared.facts.scope
    return None if scope == session.ledger.attempts[prepared.attempt_id].scope else scope


def _folder_of(tool_context: ToolContext, planned: Planned) -> str | None:
    """Return the one folder of the workspace that the call is in (row S11)."""
    if planned.command is not None:
        return tool_context.folder_of(planned.command[1])
    if planned.scope.everything or not planned.scope.paths:
        return tool_context.root
    folders = {tool_context.folder_of(path) for path in planned.scope.paths}
    return folders.pop() if len(folders) == 1 else None


async def prepare_in_thread(session: Session, work: Callable[..., T | Refusal], *arguments: object) -> T | Refusal:
    """Run blocking work before the start; an OSError there refuses this one call."""
    try:
        return await session.context.in_thread(work, *arguments)
    except OSError as error:
        return Refusal("io_error", f"It could not be prepared: {error_text(error)}.")


def error_text(error: Exception) -> str:
    """Return an error in words, without paths: the paths of the call are named elsewhere."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
