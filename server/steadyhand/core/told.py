"""What the editor is told without being asked."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

from steadyhand.core.views import QueuedView, SessionView, Snapshot, TurnEvent


@attrs.frozen
class SessionTold:
    session: SessionView


@attrs.frozen
class QueueTold:
    session_id: str
    queue: tuple[QueuedView, ...]


@attrs.frozen
class RecoveryTold:
    snapshot: Snapshot


@attrs.frozen
class MessageTold:
    """One sentence shown to the person."""

    level: Literal["error", "warning", "info", "log"]
    text: str


Told: TypeAlias = "TurnEvent | SessionTold | QueueTold | RecoveryTold | MessageTold"
