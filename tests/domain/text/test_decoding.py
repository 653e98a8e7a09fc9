"""The rules that say the encoding of a file, in their order (row W10)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.decoding import (
    FileText,
    Naming,
    NewText,
    NotText,
    Recognized,
    decode,
    decode_as,
    is_text_of,
    new_text,
    recognize,
    utf_8_pieces,
)
from steadyhand.domain.text.encodings import ENCODINGS, UTF_8, TextEncoding, encoding_recorded


def naming(editor: str | None = None, *configured: str | None, candidates: Sequence[str] = ()) -> Naming:
    return Naming(lambda: editor, lambda: configured, lambda sample: candidates)


def word_of(raw: bytes, names: Naming) -> str:
    found = decode(raw, names)
    return found.encoding.word if isinstance(found, FileText) else found.reason


CAFE = "café"


@pytest.mark.parametrize(
    ("raw", "names", "word"),
    [
        ("\ufeffé".encode(), naming("windows1252", "latin1"), "UTF-8"),  # 1 before 2
        ("\ufeffé".encode("utf-16-be"), naming("utf8"), "UTF-16 BE"),
        ("\ufeffé".encode("utf-32-le"), naming("utf16le"), "UTF-32 LE"),
        (CAFE.encode(), naming("windows1252", "koi8-r"), "windows-1252"),  # 2 before 3
        (b"cafe", naming("windows1252"), "windows-1252"),  # 2 before 6
        (CAFE.encode(), naming(None, "latin1", "koi8-r"), "UTF-8"),  # 3 before 4
        (b"caf\xe9", naming(None, "latin1", "koi8-r"), "ISO-8859-1"),  # 4 before 5
        (b"cafe", naming(None, "latin1"), "ISO-8859-1"),  # 4 before 6
        (b"caf\xe9", naming(None, None, "koi8-r"), "KOI8-R"),  # 5
        (b"cafe", naming(None, None, None, candidates=("cp1251",)), "UTF-8"),  # 6 before 7
        (b"", naming(), "UTF-8"),
        (b"caf\xe9", naming(candidates=("cp1252", "cp1250")), "windows-1252"),  # 7
        (b"c\0a\0f\0", naming(None, "utf-16le"), "UTF-16 LE"),
        (b"c\0a\0f\0", naming(candidates=("cp1252", "utf-16-le")), "UTF-16 LE"),
    ],
)
def test_first_rule_that_applies_says_the_encoding(raw: bytes, names: Naming, word: str) -> None:
    """W10: the seven rules, in this order."""
    assert word_of(raw, names) == word


@pytest.mark.parametrize(
    ("raw", "names", "word"),
    [
        (b"caf\xe9", naming("utf8", "latin1"), "ISO-8859-1"),  # the editor shows replacements: its name is no help
        (b"caf\x81", naming("windows1252", "koi8r"), "KOI8-R"),  # 0x81 is no character of windows-1252
        (b"caf\xe9", naming("cp437", "iso2022jp", "koi8r"), "KOI8-R"),  # names outside the list
        (b"plain", naming("utf16le", "utf-32be"), "UTF-8"),  # ASCII is in no wide encoding
        (b"\xe3\x81\x82", naming("shiftjis"), "UTF-8"),
    ],
)
def test_name_that_the_bytes_contradict_does_not_apply(raw: bytes, names: Naming, word: str) -> None:
    """W10: a file is never decoded with replacements, whoever names its encoding."""
    assert word_of(raw, names) == word


def test_names_are_asked_only_when_they_matter() -> None:
    """W10: a mark, a UTF-8 character and the editor's answer spare the questions behind them."""

    def forbidden(*_: object) -> str:
        raise AssertionError("asked without need")

    decode("\ufeffé".encode(), Naming(forbidden, forbidden, forbidden))
    decode(b"caf\xe9", Naming(lambda: "latin1", forbidden, forbidden))
    decode("é".encode(), Naming(lambda: None, forbidden, forbidden))
    decode(b"ascii", Naming(lambda: None, tuple, forbidden))


def test_detection_of_one_encoding_may_write_and_of_several_only_read() -> None:
    """W10, rule 7: written only where exactly one candidate of the list gives the same bytes back."""
    one = decode(b"caf\xe9", naming(candidates=("cp1250", "shift_jisx0213")))
    assert isinstance(one, FileText)
    assert (one.encoding.word, one.doubt) == ("windows-1250", None)
    several = decode(b"caf\xe9", naming(candidates=("cp1252", "iso8859-1", "cp932")))
    assert isinstance(several, FileText)
    assert several.encoding.word == "windows-1252"
    assert several.doubt is not None
    assert "ISO-8859-1" in several.doubt
    assert "Shift-JIS" not in several.doubt  # the bytes are not valid in it
    assert "steadyhand.files.encoding" in several.doubt


def test_detection_gets_a_bounded_sample_of_the_lines_that_tell_something() -> None:
    """I13: the lines that are not ASCII, 64 KiB at most."""
    samples: list[bytes] = []

    def candidates(sample: bytes) -> Sequence[str]:
        samples.append(sample)
        return ("cp1252",)

    raw = b"plain\n" * 100_000 + b"caf\xe9\n" * 100_000
    found = decode(raw, Naming(candidates=candidates))
    assert isinstance(found, FileText)
    assert found.raw == raw
    assert len(samples) == 1
    assert samples[0].startswith(b"caf\xe9\ncaf\xe9")
    assert len(samples[0]) == 64 * 1024


@pytest.mark.parametrize(
    ("codec", "word"), [("iso2022_jp", "ISO-2022-JP"), ("iso2022_jp_2", "ISO-2022-JP"), ("iso2022_kr", "ISO-2022-KR")]
)
def test_stateful_encoding_is_only_read(codec: str, word: str) -> None:
    """W10, case 47: its bytes are ASCII, but a text that is inserted as UTF-8 would be a second encoding."""
    text = "한국어\nplain\n" if codec == "iso2022_kr" else "日本語\nplain\n"
    found = decode(text.encode(codec))
    assert isinstance(found, FileText)
    assert (found.text, found.encoding.word) == (text, word)
    assert found.doubt is not None
    assert "stateful" in found.doubt
    plain = decode(b"a terminal's \x1b[31mred\x1b(B\n")
    assert isinstance(plain, FileText)
    assert (plain.encoding, plain.doubt) == (UTF_8, None)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.word)
def test_decode_as_needs_the_recorded_name_alone(encoding: TextEncoding) -> None:
    """W10: recovery decodes by the recorded name, whatever editor, configuration and library say then."""
    text = "".join(char for char in "plain\r\n\xa0\xe9\u0416\u65e5\n" if _holds(char, encoding))
    for mark in {b"", encoding.mark}:
        raw = mark + text.encode(encoding.name)
        found = decode_as(raw, encoding.name)
        assert isinstance(found, FileText)
        assert (found.content, found.mark, found.encoding) == (text, mark, encoding)
        assert decode_as(raw, found.recorded_encoding) == found


def _holds(text: str, encoding: TextEncoding) -> bool:
    try:
        return text.encode(encoding.name).decode(encoding.name) == text
    except UnicodeError:
        return False


def test_decode_as_with_a_name_of_no_encoding_looks_at_the_bytes() -> None:
    """Old journals: a record without a name, or with one that is not known, is decoded as before W10."""
    for recorded in (None, "unknown", "ebcdic"):
        found = decode_as(CAFE.encode(), recorded)
        assert isinstance(found, FileText)
        assert found.encoding is UTF_8
    assert isinstance(decode_as(b"caf\xe9", "utf-8"), NotText)


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (None, b""),
        ("utf-8", b""),
        ("utf-8-sig", b"\xef\xbb\xbf"),
        ("utf-8-bom", b"\xef\xbb\xbf"),
        ("utf-16-le", b"\xff\xfe"),
        ("cp1252", b""),
    ],
)
def test_new_file_has_the_mark_that_its_recorded_name_says(recorded: str | None, expected: bytes) -> None:
    """W10: a new wide file gets a mark, because without it nobody could read it; UTF-8 only where a name asks."""
    assert new_text(recorded).mark == expected
    assert recorded in (None, "utf-8-bom") or new_text(recorded).recorded_encoding == recorded


def test_text_of_the_editor_is_compared_in_any_encoding() -> None:
    """V1, W10: an unsaved change is not missed because the file is not UTF-8."""
    raw = "größe\r\nx\r\n".encode("cp1252")
    assert is_text_of(raw, "größe\nx\n") is True
    assert is_text_of(raw, "größe\nchanged\n") is False
    assert is_text_of(raw, "gr\ufffd\ufffde\nx\n") is None  # the editor could not read it either
    assert is_text_of("名=1\n".encode("cp932"), "名=1\n") is True
    assert is_text_of("a\n".encode("utf-16-le"), "a\n") is True
    assert is_text_of(b"a\0b", "a") is None


@given(st.text(max_size=40), st.sampled_from(ENCODINGS), st.integers(1, 7))
def test_text_in_pieces_is_the_text(text: str, encoding: TextEncoding, size: int) -> None:
    """W10: a large file is decoded piece by piece, wherever a piece ends."""
    content = "".join(char for char in text if _holds(char, encoding))
    raw = encoding.mark + content.encode(encoding.name)
    pieces = [raw[at : at + size] for at in range(0, len(raw), size)]
    assert b"".join(utf_8_pieces(pieces, Recognized(encoding, encoding.mark))).decode() == content


@given(st.binary(max_size=60))
def test_decode_never_fails_and_never_invents(raw: bytes) -> None:
    """W10: any bytes are text that gives them back, or are none."""
    every = [encoding.name for encoding in ENCODINGS]
    for names in (naming(), naming(candidates=every), naming("gb18030", "latin1")):
        found = decode(raw, names)
        if isinstance(found, FileText):
            assert "\0" not in found.content
            assert raw[len(found.mark) :].decode(found.encoding.name) == found.content


def test_beginning_may_end_inside_a_character() -> None:
    """W10: the encoding of a large file is that of its first piece, wherever this piece ends."""
    for codec in ("utf-8", "utf-16-le", "cp932"):
        encoding = encoding_recorded(codec)
        assert encoding is not None
        raw = ("語" * 10).encode(codec)[:-1]
        found = recognize(raw, naming(codec), is_whole=False)
        assert isinstance(found, Recognized)
        assert found.encoding is encoding
        assert not isinstance(recognize(raw, naming(codec)), Recognized)


def test_new_text_without_a_name_is_utf_8() -> None:
    """W9: nothing else is assumed."""
    assert NewText() == NewText(UTF_8, b"")
