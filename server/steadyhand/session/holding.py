"""What holds a call back: unresolved effects whose scope overlaps, in every session of the same workspace (B1, B4).

A held-back call is a question, not a wall: while somebody can be asked, the turn is parked and each uncertain effect
is one question, oldest first; the call is admitted when none is left. Without anybody to ask it is refused with
`recovery_required`, naming the attempt and every way out.
"""

from __future__ import annotations

from steadyhand.core.admission import Wanted, holding_back
from steadyhand.core.ledger import Attempt, Call
from steadyhand.core.words import recovery_required
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.tools.tool import Refusal


def unresolved(owner: Owner, wanted: Wanted) -> list[tuple[Owner, Attempt]]:
    """All that holds the call back, of this session first, then of others of the workspace."""
    return [
        (neighbour, attempt)
        for neighbour in owner.neighbours()
        for attempt in holding_back(wanted, neighbour.ledger.uncertain())
    ]


async def clear_way(owner: Owner, turn: RunningTurn, call: Call, wanted: Wanted) -> bool | Refusal:
    """False: nothing held it back. True: it was held back and the way is clear now. Refusal: it stays held back."""
    found = unresolved(owner, wanted)
    if not found:
        return False
    other, attempt = found[0]
    title = None if other is owner else other.name()
    return Refusal("recovery_required", recovery_required(attempt.title, attempt.attempt_id, title))
