"""Messages from the server to the model (row G15): recorded with their final text, and shown to the user.

Whoever has something to tell calls `tell_model`, or `record_and_tell` where it belongs to other records. In a turn the
message goes out with the next request, behind the replies; outside a turn it goes out before the next prompt. The
transcript decides the place from the record, so a restart sends the same bytes. It is durable before it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.records.record import Assistant, Record, Told, ToldFrom
from steadyhand.domain.views.types import ModelTold
from steadyhand.session.session import Session

TOLD_BYTES_MAX = 64 * 1024
"""Of one message; its end is cut off above that."""


async def tell_model(session: Session, from_: ToldFrom, text: str) -> None:
    """Tell the model something. After the journal broke it is shown, and told in this turn alone (row J6)."""
    async with session.telling:
        told = make_told(session, from_, text)
        await session.log.append_or_show([told], barrier=True)
        show_told(session, told)


async def record_and_tell(session: Session, records: Sequence[Record], from_: ToldFrom, text: str) -> None:
    """Record these and, behind them in the same append, the message about them.

    Raise Refused, `journalBroken`, if they cannot be kept; nothing is told then."""
    async with session.telling:
        told = make_told(session, from_, text)
        await session.log.record_or_refuse([*records, told])
        show_told(session, told)


def make_told(session: Session, from_: ToldFrom, text: str) -> Told:
    """Return the record of a message, for a caller that appends it among others and then calls `show_told`."""
    assert text.strip(), "a message has a text"
    turn = session.turn
    return Told(
        message_id=session.context.ids.new(),
        text=_bounded(text),
        from_=from_,
        turn_id=turn.turn_id if turn is not None else None,
        after=turn.asked if turn is not None and not _has_answer(session, turn.asked) else None,
    )


def _has_answer(session: Session, message_id: str | None) -> bool:
    """Return whether the answer is recorded, so that what is recorded now stands behind it."""
    return any(
        isinstance(said.record, Assistant) and said.record.message_id == message_id
        for said in reversed(session.ledger.said)
    )


def show_told(session: Session, told: Told) -> None:
    """Send the event of a message that is recorded. Outside a turn it belongs to the latest one.

    A session without a turn shows it when opened."""
    turn_id = told.turn_id or next(reversed(session.ledger.turns), None)
    if turn_id is not None:
        session.feed.notify(turn_id, ModelTold(told.from_, told.text))


def _bounded(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    if len(raw) <= TOLD_BYTES_MAX:
        return text
    mark = f"\n[The rest is left out: it has {len(raw)} bytes.]"
    return raw[: TOLD_BYTES_MAX - len(mark)].decode("utf-8", "ignore") + mark
