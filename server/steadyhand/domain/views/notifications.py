"""Notifications to the editor."""

from __future__ import annotations

from typing import Literal, TypeAlias

from steadyhand.domain.views.types import QueuedView, SessionView, Snapshot, TurnEvent
from steadyhand_values import frozen


@frozen
class SessionNotification:
    """A session changed."""

    session: SessionView


@frozen
class QueueNotification:
    """A queue changed."""

    session_id: str
    queue: tuple[QueuedView, ...]


@frozen
class RecoveryNotification:
    """A recovery snapshot changed."""

    snapshot: Snapshot


@frozen
class MessageNotification:
    """A message for the user, of one or more sentences."""

    level: Literal["error", "warning", "info", "log"]
    text: str


EditorNotification: TypeAlias = (
    "TurnEvent | SessionNotification | QueueNotification | RecoveryNotification | MessageNotification"
)
