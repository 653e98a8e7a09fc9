"""Streamed text goes out in few notifications, and none of it is lost or out of order (row D3). Work is counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.model.messages import Finish, ReasoningPart, TextPart
from steadyhand.domain.records.record import Assistant
from steadyhand.domain.views.types import TextDelta, TurnEnded, Warned
from steadyhand.session.service import prompt_queue
from steadyhand.session.shown_text import NOTIFICATIONS_PER_S_MAX, SHOWN_INTERVAL_S, ShownText
from tests.support.fakes import FakeClock
from tests.support.in_process_server import scripted_server
from tests.support.model import some_usage
from tests.support.session_state import on_disk
from tests.support.waiting import Gate

pytestmark = pytest.mark.anyio
Sent = list[tuple[str, TextDelta]]
Piece = tuple[str, TextDelta]


def text(delta: str, message: str = "m") -> TextDelta:
    return TextDelta(message, delta)


def shown(clock: FakeClock, spawned: list[Callable[[], Awaitable[None]]] | None = None) -> tuple[ShownText, Sent]:
    sent: Sent = []
    tasks = [] if spawned is None else spawned
    return ShownText(lambda turn, piece: sent.append((turn, piece)), clock, lambda task, _: tasks.append(task)), sent


def joined(pieces: list[Piece]) -> list[Piece]:
    """The same pieces, neighbours of one message and kind joined."""
    found: list[Piece] = []
    for turn, piece in pieces:
        last = found[-1] if found else None
        if last is not None and (last[0], last[1].message_id, last[1].kind) == (turn, piece.message_id, piece.kind):
            found[-1] = turn, TextDelta(piece.message_id, last[1].delta + piece.delta, piece.kind)
        else:
            found.append((turn, piece))
    return found


def test_two_thousand_pieces_are_few_notifications_and_the_same_text() -> None:
    """2,000 pieces in two seconds: the first goes at once, then at most 60 a second; together they are the text."""
    clock = FakeClock()
    owner, sent = shown(clock)
    pieces = [f"w{number} " for number in range(2000)]
    for number, piece in enumerate(pieces):
        owner.add("t", text(piece))
        if number == 0:
            assert sent == [("t", text("w0 "))]
        clock.advance(0.001)
    owner.flush()
    assert len(sent) <= 2 * NOTIFICATIONS_PER_S_MAX + 2
    assert "".join(piece.delta for _, piece in sent) == "".join(pieces)


def test_piece_after_a_pause_goes_at_once() -> None:
    """A slow stream is not slower than before: each piece that comes later than the interval goes at once."""
    clock = FakeClock()
    owner, sent = shown(clock)
    for number in range(5):
        assert owner.add("t", text(str(number)))
        clock.advance(SHOWN_INTERVAL_S * 2)
    assert [piece.delta for _, piece in sent] == ["0", "1", "2", "3", "4"]


async def test_held_piece_goes_within_the_interval_when_nothing_follows() -> None:
    """A task sends what is held; there is one task, however many pieces are held, and it ends by itself."""
    spawned: list[Callable[[], Awaitable[None]]] = []
    owner, sent = shown(FakeClock(), spawned)
    for piece in "abcd":
        owner.add("t", text(piece))
    assert [piece.delta for _, piece in sent] == ["a"]
    assert len(spawned) == 1
    with anyio.fail_after(60):
        await spawned[0]()
    assert [piece.delta for _, piece in sent] == ["a", "bcd"]
    assert not owner.flush()


some_pieces = st.tuples(
    st.sampled_from(["t", "u"]),
    st.builds(TextDelta, st.sampled_from(["m", "n"]), st.text(max_size=3), st.sampled_from(["text", "reasoning"])),
)


@given(st.lists(st.tuples(some_pieces, st.integers(0, 20), st.booleans()), max_size=40))
def test_nothing_is_lost_repeated_or_out_of_order(steps: list[tuple[Piece, int, bool]]) -> None:
    """Whatever comes, in whatever rhythm, and whatever else is sent in between: the joined pieces are the same."""
    clock = FakeClock()
    owner, sent = shown(clock)
    for (turn, piece), passed_ms, other in steps:
        owner.add(turn, piece)
        clock.advance(passed_ms / 1000)
        if other:  # as another notification does
            owner.flush()
    owner.flush()
    assert joined(sent) == joined([one for one, _, _ in steps])


async def test_streamed_answer_is_few_events_in_order_and_whole_in_the_journal(tmp_path: Path) -> None:
    """A turn with 2,000 deltas: far fewer events, without gaps; reasoning stands before text; the text that was sent is
    that of the journal, and the end comes last."""
    parts = [ReasoningPart(f"r{number} ") for number in range(1000)]
    words = [TextPart(f"w{number} ") for number in range(1000)]
    async with scripted_server(tmp_path, [*parts, *words, some_usage, Finish("stop")]) as stage:
        session = await stage.session()
        await stage.say(session)
        told = stage.numbered()
        assert [one.number for one in told] == list(range(1, len(told) + 1))
        assert isinstance(told[-1].event, TurnEnded)
        deltas = [one.event for one in told if isinstance(one.event, TextDelta)]
        assert len(deltas) < 1000, "a notification for each piece"
        kinds = [delta.kind for delta in deltas]
        assert kinds == sorted(kinds), "reasoning comes first"
        (answer,) = (record for record in on_disk(session) if isinstance(record, Assistant))
        assert "".join(delta.delta for delta in deltas if delta.kind == "text") == answer.text
        assert "".join(delta.delta for delta in deltas if delta.kind == "reasoning") == answer.reasoning


async def test_cancelled_stream_shows_and_records_everything_that_came(tmp_path: Path) -> None:
    """What is held when the turn is cancelled is shown before its end, and recorded with it (rows J1, G8)."""
    gate = Gate()
    words = [TextPart(f"w{number} ") for number in range(50)]
    async with scripted_server(tmp_path, [*words, gate]) as stage:
        session = await stage.session()
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        await prompt_queue.cancel(session, accepted.turn_id)
        await stage.ended(session, accepted.turn_id)
        deltas = [event.delta for event in stage.events(accepted.turn_id) if isinstance(event, TextDelta)]
        whole = "".join(word.delta for word in words)
        assert "".join(deltas) == whole
        assert [record.text for record in on_disk(session) if isinstance(record, Assistant)] == [whole]


async def test_other_events_and_a_reconnecting_client_see_the_held_text_first(tmp_path: Path) -> None:
    """Row D3: an event of the turn, and the answer to `turn/events`, come behind the text that is held."""
    gate = Gate()
    words = [TextPart(word) for word in ("a", "b", "c")]
    async with scripted_server(tmp_path, [*words, gate, TextPart("d"), Finish("stop")]) as stage:
        session = await stage.session()
        assert session.epoch is not None
        accepted = await stage.send(session, "go")
        await gate.wait_reached()
        page = session.feed.events_after(session.epoch, 0)
        assert "".join(one.event.delta for one in page.events if isinstance(one.event, TextDelta)) == "abc"
        session.feed.stream(accepted.turn_id, TextDelta("m", "x"))
        session.feed.notify(accepted.turn_id, Warned("bound", "A warning."))
        events = stage.events(accepted.turn_id)
        assert events[-2:] == [TextDelta("m", "x"), Warned("bound", "A warning.")]
        gate.go.set()
        await stage.ended(session, accepted.turn_id)
