"""The law of hunks: to keep or undo any of them changes no byte outside them and spares what somebody else changed, in
every encoding and with every line end (rows V4, W10)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.changes import hunks
from steadyhand.domain.changes.hunks import FileHunks, Line, LineHunk, file_hunks, lines_of
from steadyhand.domain.text.encodings import ENCODINGS, UTF_8, UTF_16_LE, TextEncoding
from tests.domain.text.test_edit_bytes import sequences

ENDS = ("\n", "\r\n", "\r")


@attrs.frozen
class Versions:
    """A file as lines with unique beginnings: `b…` were there first, `o…` are ours, `p…` are a person's."""

    encoding: TextEncoding
    base: list[bytes]
    last: list[bytes]
    now: list[bytes]

    def words(self, lines: Sequence[bytes]) -> list[str]:
        """The unique beginning of each line."""
        return [line.decode(self.encoding.name).removeprefix("\ufeff").partition(":")[0] for line in lines]


@st.composite
def versions(draw: st.DrawFn) -> Versions:
    encoding = draw(st.sampled_from(ENCODINGS))
    units = [raw for _, raw in sequences(encoding)]
    mark = draw(st.sampled_from(sorted({b"", encoding.mark})))

    def line(word: str) -> bytes:
        body = b"".join(draw(st.lists(st.sampled_from(units), max_size=3)))
        return f"{word}:".encode(encoding.name) + body + draw(st.sampled_from(ENDS)).encode(encoding.name)

    def edited(lines: list[bytes], tag: str) -> list[bytes]:
        found: list[bytes] = []
        for at, one in enumerate([*lines, b""]):
            for new in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
                found.append(line(f"{tag}{at}.{new}"))
            if one and draw(st.sampled_from((True, True, True, False))):
                found.append(one)
        return found

    base = [line(f"b{at}") for at in range(draw(st.integers(0, 12)))]
    last = edited(base, "o")
    some = (base, last, edited(last, "p"))
    return Versions(encoding, *(finished(lines, mark, draw(st.booleans()), encoding) for lines in some))


def finished(lines: list[bytes], mark: bytes, has_end: bool, encoding: TextEncoding) -> list[bytes]:
    """The lines of a whole file: a mark before the first one, and perhaps no line end after the last one."""
    found = list(lines)
    if found and not has_end:
        found[-1] = found[-1].decode(encoding.name).rstrip("\r\n").encode(encoding.name)
    if found:
        found[0] = mark + found[0]
    return found


def hunks_of(drawn: Versions) -> FileHunks | None:
    return file_hunks(drawn.base, drawn.last, drawn.now)


@given(versions())
def test_lines_of_any_content_are_its_bytes(drawn: Versions) -> None:
    """V4, W10: a content is divided after each line end, whatever the encoding is, and the lines are its bytes."""
    for lines in (drawn.base, drawn.last, drawn.now):
        assert list(lines_of(b"".join(lines), drawn.encoding) or ()) == lines


@given(versions(), st.data())
def test_undo_of_any_hunks_keeps_every_byte_outside_and_spares_the_persons_lines(
    drawn: Versions, data: st.DataObject
) -> None:
    """V4, W10: in the file that a person changed since, the chosen hunks have the lines of the base again. Everything
    else stays: each line that the person wrote is there, and none that the person removed comes back.
    """
    found = hunks_of(drawn)
    if found is None:
        assert drawn.base == drawn.last
        return
    placed = [at for at, place in enumerate(found.places) if place is not None]
    chosen = data.draw(st.sets(st.sampled_from(placed))) if placed else set()
    result = found.now_without(chosen)
    assert result == b"".join(replaced(found, sorted(chosen)))
    lines = list(lines_of(result, drawn.encoding) or ())
    words, now = drawn.words(lines), drawn.words(drawn.now)
    assert [word for word in words if word[0] == "p"] == [word for word in now if word[0] == "p"]
    removed = set(drawn.words(drawn.last)) - set(now)
    assert not removed & set(words)
    for at, hunk in enumerate(found.hunks):
        ours = set(drawn.words(drawn.last[slice(*hunk.after)]))
        before = set(drawn.words(drawn.base[slice(*hunk.before)])) - ours
        if at in chosen:
            assert before <= set(words)
            assert not (ours - set(drawn.words(drawn.base))) & set(words)
        else:
            assert ours & set(now) <= set(words)


def replaced(found: FileHunks, chosen: Sequence[int]) -> list[bytes]:
    """The file with the base's lines at the places of these hunks, made from the places alone, the last one first."""
    lines = list(found.now)
    for at in reversed(chosen):
        place, hunk = found.places[at], found.hunks[at]
        assert place is not None
        assert lines[slice(*place)] == list(found.last[slice(*hunk.after)])
        lines[slice(*place)] = found.base[slice(*hunk.before)]
    return lines


@given(versions())
def test_hunk_beside_which_somebody_changed_something_is_gone(drawn: Versions) -> None:
    """V4: a hunk with a place has its own lines there, between the two lines that it was between."""
    found = hunks_of(drawn)
    for hunk, place in zip(found.hunks, found.places, strict=True) if found is not None else ():
        if place is not None:
            beside = [*drawn.last[max(0, hunk.after[0] - 1) : hunk.after[1] + 1]]
            assert beside == [*drawn.now[max(0, place[0] - 1) : place[1] + 1]]
            assert (place[0] == 0) == (hunk.after[0] == 0)
            assert (place[1] == len(drawn.now)) == (hunk.after[1] == len(drawn.last))


FEW = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\n"]), max_size=12)


@given(FEW, FEW, st.data())
def test_decisions_in_any_order_lead_to_one_content(base: list[bytes], last: list[bytes], data: st.DataObject) -> None:
    """V4: lines may repeat. Each decision moves the base or the file by its hunks alone; after the last one both are
    equal. To undo everything gives the base, and to keep everything the last content.
    """
    for _ in range(40):
        found = file_hunks(base, last, None)
        if found is None:
            break
        every = range(len(found.hunks))
        assert found.now_without(every) == found.last_without(every) == b"".join(base)
        assert found.content_with(every) == b"".join(last)
        chosen = data.draw(st.sets(st.sampled_from(every), min_size=1))
        if data.draw(st.booleans()):
            outside = unchanged(base, [hunk.before for at, hunk in enumerate(found.hunks) if at in chosen])
            base = list(lines_of(found.content_with(chosen), UTF_8) or ())
            assert is_within(outside, base)
        else:
            outside = unchanged(last, [hunk.after for at, hunk in enumerate(found.hunks) if at in chosen])
            assert found.now_without(chosen) == found.last_without(chosen)
            last = list(lines_of(found.now_without(chosen), UTF_8) or ())
            assert is_within(outside, last)
    assert base == last


def unchanged(lines: Sequence[bytes], ranges: Sequence[Line]) -> list[bytes]:
    return [line for at, line in enumerate(lines) if not any(start <= at < stop for start, stop in ranges)]


def is_within(some: Sequence[bytes], lines: Sequence[bytes]) -> bool:
    """Whether these lines are among the others, in their order."""
    rest = iter(lines)
    return all(line in rest for line in some)


def test_change_beyond_a_bound_is_one_hunk() -> None:
    """V4, I13: up to 500 hunks and 64 KiB of lines are divided; a change with more is one hunk."""
    base = [line for at in range(hunks.HUNKS_MAX + 1) for line in (b"%d\n" % at, b"x%d\n" % at)]
    changed = [line if line[:1] == b"x" else b"y" + line for line in base]
    assert file_hunks(base, changed, None) is None
    found = file_hunks(base, [*changed[:-2], *base[-2:]], None)
    assert found is not None
    assert len(found.hunks) == hunks.HUNKS_MAX
    half = b"a" * (hunks.HUNK_BYTES_MAX // 2)
    assert file_hunks([half], [half[1:] + b"b"], None) is not None
    assert file_hunks([half], [half + b"b"], None) is None


def test_hunks_have_the_lines_of_base_and_file() -> None:
    """V4: a changed line, removed lines and added lines, where a person added a line above them."""
    base, last = b"1\n2\n3\n4\n5\n6\n7\n", b"1\nTWO\n3\n6\n7\n8\n"
    lines = [lines_of(text, UTF_8) or () for text in (base, last, b"mine\n" + last)]
    found = file_hunks(*lines)
    assert found is not None
    assert found.hunks == (LineHunk((1, 2), (1, 2)), LineHunk((3, 5), (3, 3)), LineHunk((7, 7), (5, 6)))
    assert found.places == ((2, 3), (4, 4), (6, 7))
    assert found.now_without({0, 2}) == b"mine\n1\n2\n3\n6\n7\n"


def test_text_that_cannot_be_divided_has_no_lines() -> None:
    """V4: half a character, a NUL: such a file is one hunk."""
    assert lines_of(b"a\xff\n", UTF_8) is None
    assert lines_of(b"a\x00\n", UTF_8) is None
    assert lines_of(b"a\x00\n", UTF_16_LE) is None
