"""Where an effect is in the files: each of its paths, and the first line that differs from the intended text."""

from __future__ import annotations

from collections.abc import Iterable

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.recovery.postcondition import Aim
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.sentences import aim_of
from steadyhand.session.inspection.versions import first_difference, versions_of
from steadyhand.session.session import Session
from steadyhand_values import frozen


@frozen
class EffectPlace:
    """One path of an effect."""

    path: str  # absolute
    shown_path: str  # relative to the workspace with `/`, absolute if outside
    line: int  # counted from 0
    line_text: str  # what the file has there now; empty for a file that cannot be read


@frozen
class EffectPlaces:
    """All paths of one effect, and what it was meant to leave there."""

    aim: Aim
    places: tuple[EffectPlace, ...]


async def find_places(session: Session, attempt_ids: Iterable[str]) -> dict[str, EffectPlaces]:
    """Read the files of these attempts in a thread; attempt id → places, in the ledger's order.

    Attempts that the ledger does not know are left out: the session may be deleted meanwhile.
    """
    wanted = frozenset(attempt_ids)
    attempts = [attempt for attempt_id, attempt in session.ledger.attempts.items() if attempt_id in wanted]
    found: dict[str, EffectPlaces] = {}
    for attempt in attempts:
        places = await session.context.in_thread(_places_of, session, attempt)
        found[attempt.attempt_id] = EffectPlaces(aim_of(attempt), places)
    return found


def _places_of(session: Session, attempt: Attempt) -> tuple[EffectPlace, ...]:
    root = session.tool_context.root
    if attempt.started is None or not attempt.started.evidence:
        return tuple(EffectPlace(path, display_path(path, root), 0, "") for path in attempt.scope.paths)
    places: list[EffectPlace] = []
    for evidence in attempt.started.evidence:
        line, text = first_difference(versions_of(session.tool_context, session.ledger, attempt, evidence))
        places.append(EffectPlace(evidence.resolved, display_path(evidence.resolved, root), line, text))
    return tuple(places)
