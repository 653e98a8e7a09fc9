"""Decide whether to ask for the rest of an answer that was cut by its length (row P2), one condition a line.

All conditions must hold, and at most one more request is made. A condition that is not known does not hold.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import FinishReason
from steadyhand_values import frozen

ROOM_TOKENS_MIN = 1024
"""Tokens that must be left in the window; fewer are not worth a request."""


@frozen
class ContinuationFacts:
    """The facts that are known when an answer has ended."""

    wanted: bool  # the setting `continuation`
    able: bool  # the provider can continue an assistant message
    finish: FinishReason | None
    text: bool  # the answer has text; an empty one cannot be continued
    calls: bool  # the answer proposes calls
    usage_known: bool  # the provider reported the token counts
    context: int  # tokens of the request and its answer
    window: int | None  # tokens; None: unknown
    budget_left: bool  # neither the cost cap nor the bound on requests is reached
    same_epoch: bool  # the session's epoch is still the one of the request
    same_turn: bool  # the session's turn is still the one of the request
    stopping: bool  # the turn is cancelled, or its session is closing
    kept: bool  # the answer so far is in the journal


def should_continue(standing: ContinuationFacts) -> bool:
    """Return whether one more request is made."""
    return all(conditions(standing).values())


def conditions(standing: ContinuationFacts) -> dict[str, bool]:
    """Return each condition by name, and whether it holds."""
    window = standing.window
    return {
        "wanted": standing.wanted,
        "able": standing.able,
        "cut by length": standing.finish == "length",
        "text": standing.text,
        "no calls": not standing.calls,
        "usage known": standing.usage_known,
        "room": window is not None and window - standing.context >= ROOM_TOKENS_MIN,
        "budget": standing.budget_left,
        "same epoch": standing.same_epoch,
        "same turn": standing.same_turn,
        "not stopping": not standing.stopping,
        "kept": standing.kept,
    }
