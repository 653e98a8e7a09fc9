"""Event streams by themselves: laws over any events, line ends and splits, and the plain facts of the format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.adapters.models.sse import EventFeed, Garbled, ServerSentEvent

ENDS = ["\n", "\r\n", "\r"]
lines = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
events = st.lists(st.tuples(st.lists(lines, min_size=1, max_size=3), st.sampled_from(["", "ping", "é"])), max_size=5)


def feed_all(stream: bytes, cuts: list[int]) -> list[ServerSentEvent]:
    feed = EventFeed()
    found: list[ServerSentEvent] = []
    at = 0
    for cut in [*sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]:
        found += feed.feed(stream[at:cut])
        at = cut
    return found + feed.finish()


@given(told=events, end=st.sampled_from(ENDS), cuts=st.lists(st.integers(0, 10_000), max_size=8), bom=st.booleans())
def test_events_in_any_pieces_are_read_the_same(
    told: list[tuple[list[str], str]], end: str, cuts: list[int], bom: bool
) -> None:
    """Whatever an event contains, however its lines end and its bytes are split, the same events come out (P3)."""
    text = "\ufeff" if bom else ""
    for data, name in told:
        text += f"event: {name}{end}" if name else ""
        text += "".join(f"data: {line}{end}" for line in data) + f": a comment{end}" + end
    expected = [ServerSentEvent("\n".join(data), name) for data, name in told]
    assert feed_all(text.encode(), cuts) == expected
    assert feed_all(text.encode(), list(range(len(text.encode())))) == expected


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
        (b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"]),
        (b"data:a\ndata: b\ndata:  c\n\n", ["a\nb\n c"]),
        (b"data: a\r\n\r\ndata: b\r\r\ndata: c\n\r\n", ["a", "b", "c"]),
        (b"data\n\n", [""]),
        (b"event: x\n\n", []),
        (b":data: a\n\n", []),
        (b"datum: a\n\nid: 1\nretry: 5\n\n", []),
        (b" data: a\n\n", []),
        (b"data: a", ["a"]),
        (b"data: a\n", ["a"]),
        (b"data: \xf0\x9f", []),
        (b"data: a\n\ndata: \xf0\x9f", ["a"]),
        (b"\n\n\n\r\r\n", []),
    ],
)
def test_format_details_are_read_as_specified(stream: bytes, found: list[str]) -> None:
    """Byte order mark, blanks, lines without a colon, other fields, and an end without its line ends (P3)."""
    for cuts in ([], list(range(len(stream)))):
        assert [event.data for event in feed_all(stream, cuts)] == found


def test_event_name_applies_to_its_own_event_only() -> None:
    """The name of an event is not that of the next one, and the last name counts (P3)."""
    feed = EventFeed()
    assert feed.feed(b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n") == [ServerSentEvent("1", "b"), ServerSentEvent("2")]
    assert (feed.event_count, feed.comment_count) == (2, 0)
    assert feed.feed(b": life\n") == []
    assert feed.comment_count == 1


@pytest.mark.parametrize("stream", [b"data: \xff\n", b"data: \xed\xa0\xbd\n", b"event: \xff\n", b"data: \xc3\xc3\n"])
def test_invalid_utf_8_is_refused(stream: bytes) -> None:
    """A line that is no UTF-8 is refused, and not repaired (T6)."""
    with pytest.raises(Garbled):
        EventFeed().feed(stream)
