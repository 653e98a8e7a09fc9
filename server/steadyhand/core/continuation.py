"""Whether the rest of an answer that was cut by its length is asked for (row P2): all conditions, one row each.

At most one more request, so every one of them has to hold. What is not known does not hold.
"""

from __future__ import annotations

import attrs

from steadyhand.core.model import FinishReason

room_tokens_min = 1024
"""Left of the window; less is not worth a request."""


@attrs.frozen
class Standing:
    """What is known when an answer has ended."""

    wanted: bool  # the setting
    able: bool  # the provider goes on with an assistant message
    finish: FinishReason | None
    text: bool  # there is some, for nothing cannot be gone on with
    calls: bool
    usage_known: bool
    context: int  # tokens of the request and its answer
    window: int | None  # tokens; None: not known
    budget_left: bool  # of cost, and of requests in the turn
    same_epoch: bool
    same_turn: bool
    stopping: bool  # the turn was cancelled, or its session is closing
    kept: bool  # what came stands in the journal


def may_continue(standing: Standing) -> bool:
    """Whether one more request is made."""
    return all(conditions(standing).values())


def conditions(standing: Standing) -> dict[str, bool]:
    """Each condition by its name, and whether it holds."""
    window = standing.window
    return {
        "wanted": standing.wanted,
        "able": standing.able,
        "cut by length": standing.finish == "length",
        "text": standing.text,
        "no calls": not standing.calls,
        "usage known": standing.usage_known,
        "room": window is not None and window - standing.context >= room_tokens_min,
        "budget": standing.budget_left,
        "same epoch": standing.same_epoch,
        "same turn": standing.same_turn,
        "not stopping": not standing.stopping,
        "kept": standing.kept,
    }
