"""What a session used: billed tokens summed over requests, context tokens of the last one (row U1)."""

from __future__ import annotations

from steadyhand.core.ledger import Ledger
from steadyhand.core.views import Billed, UsageView


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
