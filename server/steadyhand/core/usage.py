"""What a session used: billed tokens summed over requests, context tokens of the last one (row U1)."""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.core.ledger import Ledger
from steadyhand.core.model import AssistantMessage, OutMessage
from steadyhand.core.views import Billed, UsageView


def known_input(ledger: Ledger, messages: Sequence[OutMessage]) -> tuple[int | None, int | None]:
    """What the last request is known to have read, in tokens, and how many of the messages that counts: those before
    the last answer. (None, None) where the model of now did not say."""
    last = ledger.usage[-1] if ledger.usage else None
    if last is None or not last.complete or last.model != ledger.model:
        return None, None
    answers = [place for place, message in enumerate(messages) if isinstance(message, AssistantMessage)]
    return last.input, answers[-1] if answers else 0


def usage_view(ledger: Ledger) -> UsageView:
    """Incomplete when some request gave none."""
    every = ledger.usage
    last = every[-1] if every else None
    billed = Billed(
        sum(used.input for used in every),
        sum(used.output for used in every),
        sum(used.cache_hit for used in every),
        sum(used.cache_miss for used in every),
    )
    return UsageView(
        billed, last.context if last else 0, all(used.complete for used in every), last.window if last else None
    )
