"""The encodings that files are read and written in: a closed list, and the names under which others know them (W10).

The list is that of docs/requirements.md. Where people use one name for a table and its extension, it is the extension,
as editors read it: Shift-JIS is Python's `cp932`, EUC-KR is `cp949`, Big5 is `cp950`. A name is compared without case,
blanks, `-`, `_`, `.` and `/`, so VS Code's iso88591 and IANA's iso-8859-1 are the same. Any other name counts as
not set.

Every encoding here has a code unit of one, two or four bytes and no state: the bytes of a text are those of its
characters, one after the other. Only `STATEFUL` has some that are not so; they are recognised by their escape sequences
and are only read.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyhand_values import frozen, pattern


@frozen
class TextEncoding:
    """One encoding."""

    name: str  # Python's canonical name, as evidence records it
    word: str  # as people and the model see it
    unit_bytes: int = 1
    mark: bytes = b""  # its byte order mark; empty: it has none
    is_single_byte: bool = True  # each byte is a character
    is_stateful: bool = False


UTF_8 = TextEncoding("utf-8", "UTF-8", 1, b"\xef\xbb\xbf", is_single_byte=False)
UTF_8_MARKED = "utf-8-sig"
"""The recorded name of UTF-8 with its mark; all other recorded names are those of the list."""
_OLDER_NAMES = {"utf-8-bom": UTF_8, UTF_8_MARKED: UTF_8}  # `utf-8-bom`: recorded before W10 was built

UTF_32_LE = TextEncoding("utf-32-le", "UTF-32 LE", 4, b"\xff\xfe\x00\x00", is_single_byte=False)
UTF_32_BE = TextEncoding("utf-32-be", "UTF-32 BE", 4, b"\x00\x00\xfe\xff", is_single_byte=False)
UTF_16_LE = TextEncoding("utf-16-le", "UTF-16 LE", 2, b"\xff\xfe", is_single_byte=False)
UTF_16_BE = TextEncoding("utf-16-be", "UTF-16 BE", 2, b"\xfe\xff", is_single_byte=False)
WIDE = (UTF_32_LE, UTF_32_BE, UTF_16_LE, UTF_16_BE)
"""Tested in this order: FF FE begins UTF-32 and UTF-16."""
MARKED = (*WIDE, UTF_8)

_ISO_PARTS = (*range(1, 12), *range(13, 17))  # there is no part 12
_EAST_ASIAN = {
    "gbk": "GBK",
    "gb18030": "GB18030",
    "cp950": "Big5",
    "cp932": "Shift-JIS",
    "euc_jp": "EUC-JP",
    "cp949": "EUC-KR",
}
ENCODINGS: tuple[TextEncoding, ...] = (
    UTF_8,
    *WIDE,
    *(TextEncoding(f"iso8859-{part}", f"ISO-8859-{part}") for part in _ISO_PARTS),
    *(TextEncoding(f"cp125{last}", f"windows-125{last}") for last in range(9)),
    TextEncoding("koi8-r", "KOI8-R"),
    TextEncoding("koi8-u", "KOI8-U"),
    *(TextEncoding(name, word, is_single_byte=False) for name, word in _EAST_ASIAN.items()),
    TextEncoding("mac-roman", "macintosh"),
)
"""The closed list."""

STATEFUL: tuple[TextEncoding, ...] = tuple(
    TextEncoding(name, word, is_single_byte=False, is_stateful=True)
    for name, word in (("iso2022_jp_2", "ISO-2022-JP"), ("iso2022_kr", "ISO-2022-KR"))
)
"""Encodings of seven bits that switch their meaning; read only."""
ESCAPE = pattern(rb"\x1b(?:\$[@AB]|\$\([CD]|\$\)C|\([IJ])")
"""What begins a text of `STATEFUL` that is not ASCII."""

_OTHER_NAMES = {
    "utf16": "utf-16-le",
    "utf32": "utf-32-le",
    "latin1": "iso8859-1",
    "l1": "iso8859-1",
    "ansi": "cp1252",
    "gb2312": "gbk",
    "cp936": "gbk",
    "ms936": "gbk",
    "windows936": "gbk",
    "big5": "cp950",
    "shiftjis": "cp932",
    "sjis": "cp932",
    "windows31j": "cp932",
    "euckr": "cp949",
    "uhc": "cp949",
    "macroman": "mac-roman",
}
_BY_RECORDED: Mapping[str, TextEncoding] = {one.name: one for one in (*ENCODINGS, *STATEFUL)} | _OLDER_NAMES


def encoding_named(name: str | None) -> tuple[TextEncoding, bool] | None:
    """Return the encoding that an editor or a configuration calls so, and whether the name asks for a mark.

    None: the name counts as not set. The mark matters for a new file only."""
    if name is None or len(name) > NAME_CHARS_MAX:
        return None
    key = _folded(name)
    if key in ("utf8bom", "utf8sig", "utf8withbom"):
        return UTF_8, True
    found = _by_folded_name().get(key)
    return None if found is None else (found, found.unit_bytes > 1)


NAME_CHARS_MAX = 40
"""A longer name is none."""


def encoding_recorded(name: str | None) -> TextEncoding | None:
    """Return the encoding with this recorded name; None: it is none that this version knows."""
    return None if name is None else _BY_RECORDED.get(name)


def recorded_name(encoding: TextEncoding, is_marked: bool) -> str:
    """Return Python's canonical name, as evidence records it."""
    return UTF_8_MARKED if encoding is UTF_8 and is_marked else encoding.name


def _folded(name: str) -> str:
    return "".join(char for char in name.lower() if char not in " -_./")


_folded_names: dict[str, TextEncoding] = {}


def _by_folded_name() -> Mapping[str, TextEncoding]:
    """Return the list by every name; made at the first use."""
    if not _folded_names:
        by_name = {one.name: one for one in ENCODINGS}
        made = {_folded(name): one for name, one in by_name.items()}
        made |= {_folded(one.word): one for one in ENCODINGS}
        made |= {other: by_name[name] for other, name in _OTHER_NAMES.items()}
        _folded_names.update(made)
    return _folded_names
