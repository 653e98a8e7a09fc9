"""Resolutions with every action, for callers outside a turn: restore and retry included."""

from __future__ import annotations

from steadyhand.session.calls.redo import REDO
from steadyhand.session.recovery import resolve as resolving
from steadyhand.session.recovery.resolve import ResolutionRequest, ResolutionResult
from steadyhand.session.session import Session


async def resolve(session: Session, wanted: ResolutionRequest) -> ResolutionResult:
    """Carry the resolution out or raise Refused."""
    return await resolving.resolve(session, wanted, REDO)
