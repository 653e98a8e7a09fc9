"""The closed list of encodings: their names, and what every one of them promises (row W10)."""

from __future__ import annotations

import codecs

import pytest

from steadyhand.domain.text.encodings import (
    ENCODINGS,
    STATEFUL,
    UTF_8,
    TextEncoding,
    encoding_named,
    encoding_recorded,
    recorded_name,
)

WORDS = {
    *("UTF-8", "UTF-16 LE", "UTF-16 BE", "UTF-32 LE", "UTF-32 BE", "macintosh", "KOI8-R", "KOI8-U"),
    *(f"ISO-8859-{part}" for part in range(1, 17) if part != 12),
    *(f"windows-125{last}" for last in range(9)),
    *("GBK", "GB18030", "Big5", "Shift-JIS", "EUC-JP", "EUC-KR"),
}


def test_list_is_closed() -> None:
    """W10: these and no others."""
    assert {encoding.word for encoding in ENCODINGS} == WORDS
    assert not any(encoding.is_stateful for encoding in ENCODINGS)


@pytest.mark.parametrize("encoding", [*ENCODINGS, *STATEFUL], ids=lambda encoding: encoding.word)
def test_recorded_name_is_python_s_canonical_one(encoding: TextEncoding) -> None:
    """W10: evidence records a name by which Python alone can decode."""
    assert codecs.lookup(encoding.name).name == encoding.name
    assert encoding_recorded(encoding.name) is encoding
    assert codecs.lookup(recorded_name(UTF_8, True)).name == recorded_name(UTF_8, True)
    assert encoding_recorded("utf-8-bom") is UTF_8  # of journals that were written before W10


@pytest.mark.parametrize("encoding", [one for one in ENCODINGS if one.unit_bytes == 1], ids=lambda one: one.word)
def test_ascii_is_the_same_in_every_encoding_of_one_byte_units(encoding: TextEncoding) -> None:
    """W10: so the question does not arise for a file that is all ASCII, and a search may look for ASCII bytes."""
    text = "".join(map(chr, range(128)))
    assert bytes(range(128)).decode(encoding.name) == text
    for first in range(0x80, 0x100):
        for sequence in [bytes([first]), *(bytes([first, second]) for second in range(0x30, 0x100))]:
            try:
                char = sequence.decode(encoding.name)
            except UnicodeDecodeError:
                continue
            assert len(sequence) == 2 or not char.isascii(), sequence


@pytest.mark.parametrize(
    ("name", "word"),
    [
        *(("windows1252", "windows-1252"), ("iso88591", "ISO-8859-1"), ("iso885915", "ISO-8859-15")),  # VS Code
        *(("utf8", "UTF-8"), ("utf16le", "UTF-16 LE"), ("shiftjis", "Shift-JIS"), ("eucjp", "EUC-JP")),
        *(("euckr", "EUC-KR"), ("koi8r", "KOI8-R"), ("macroman", "macintosh"), ("gb2312", "GBK"), ("cp950", "Big5")),
        *(("latin1", "ISO-8859-1"), ("utf-16be", "UTF-16 BE"), ("utf-8-bom", "UTF-8")),  # EditorConfig
        *(("Shift_JIS", "Shift-JIS"), ("CP1251", "windows-1251"), ("ISO_8859-5", "ISO-8859-5"), ("Big5", "Big5")),
    ],
)
def test_name_of_an_editor_is_known(name: str, word: str) -> None:
    """W10: names of editors and of configurations."""
    found = encoding_named(name)
    assert found is not None
    assert found[0].word == word


@pytest.mark.parametrize("name", [None, "", "cp437", "utf7", "iso2022jp", "hz", "iso-8859-12", "unset", "x" * 1000])
def test_name_outside_the_list_counts_as_not_set(name: str | None) -> None:
    """W10: no other name, no stateful encoding, no text of any length."""
    assert encoding_named(name) is None


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda encoding: encoding.word)
def test_every_word_names_its_encoding(encoding: TextEncoding) -> None:
    """W10: the word that people and the model see can be written into a configuration."""
    found = encoding_named(encoding.word)
    assert found is not None
    assert found[0] is encoding
