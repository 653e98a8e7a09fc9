"""A corpus of small realistic text files, made here: every encoding of the list, every kind of line end, and content
that goes wrong in other programs (row W10).

Each file holds `MARK` once, in a line of its own, and says how an edit of that line changes its bytes.
"""

# ruff: noqa: RUF001 (the corpus is made of characters that look like others)

from __future__ import annotations

from collections.abc import Iterator

import attrs

from steadyhand.domain.text.encodings import ENCODINGS, UTF_8, TextEncoding

MARK = "value = 1"
NEW = "value = 2"

_LATIN = "# Café à la crème, déjà vu; naïve façade\nname = 'Zoë'\n"
_SCRIPTS = {
    "iso8859-2": "# Zażółć gęślą jaźń, příliš žluťoučký kůň\nname = 'Łódź'\n",
    "iso8859-3": "# Ĝis revido, ĉiuj ŝanĝoj ĵus\nname = 'Ħal'\n",
    "iso8859-4": "# Ķēniņš, šķūnis, ūdens\nname = 'Āžņi'\n",
    "iso8859-5": "# Привет, мир: новые значения\nname = 'Жанна'\n",
    "iso8859-6": "# مرحبا بالعالم\nname = 'سلام'\n",
    "iso8859-7": "# Καλημέρα κόσμε\nname = 'Αθήνα'\n",
    "iso8859-8": "# שלום עולם\nname = 'ירושלים'\n",
    "iso8859-9": "# Türkçe: ığdır, şöyle, çağ\nname = 'İzmir'\n",
    "iso8859-10": "# Kæri vinur, ŋuohtti, Įstaigos\nname = 'Sámi'\n",
    "iso8859-11": "# สวัสดีชาวโลก\nname = 'ไทย'\n",
    "iso8859-13": "# Ąžuolas, ķēde, žąsis\nname = 'Šiauliai'\n",
    "iso8859-14": "# Ŵyth, ŷd, Ḃaile\nname = 'Ẅ'\n",
    "iso8859-15": "# 100 €, œuvre, Žižek\nname = 'Œ'\n",
    "iso8859-16": "# Ștefan, țară, împărat\nname = 'București'\n",
    "cp1250": "# Zażółć gęślą jaźń, „cudzysłów”\nname = 'Łódź'\n",
    "cp1251": "# Привет, мир: «новые» значения №1\nname = 'Жанна'\n",
    "cp1252": "# “Größe”: 100 €, l’œuvre\nname = 'Zoë'\n",
    "cp1253": "# Καλημέρα κόσμε, 100 €\nname = 'Αθήνα'\n",
    "cp1254": "# Türkçe: ığdır, şöyle, 100 €\nname = 'İzmir'\n",
    "cp1255": "# שלום עולם, ₪ 100\nname = 'ירושלים'\n",
    "cp1256": "# مرحبا بالعالم، پارسی\nname = 'سلام'\n",
    "cp1257": "# Ąžuolas, ķēde, 100 €\nname = 'Šiauliai'\n",
    "cp1258": "# Tiê\u0301ng Viê\u0323t: 100 ₫, Đà Nă\u0303ng\nname = 'Huê\u0301'\n",
    "koi8-r": "# Привет, мир ─ новые значения\nname = 'Жанна'\n",
    "koi8-u": "# Привіт, світе: їжак, ґанок\nname = 'Євген'\n",
    "gbk": "# 中文注释：测试编码\nname = '北京'\n",
    "gb18030": "# 中文注释：测试编码 ẞ 𠀀\nname = '北京'\n",
    "cp950": "# 繁體中文：功、許、蓋\nname = '臺北'\n",  # 功 and 許 end with the byte of a backslash
    "cp932": "# 日本語の注釈：表、ソ、能、①\nname = '東京'\n",  # 表 and ソ end with the byte of a backslash
    "euc_jp": "# 日本語の注釈：半角ｶﾅ、丂\nname = '東京'\n",
    "cp949": "# 한국어 주석: 똠방각하, 펲시\nname = '서울'\n",
    "mac-roman": "# Café ≠ Ωmega, “naïve” ﬁn\nname = 'Zoë'\n",
}
_UNICODE = "# Größe 名前 Привет e\u0301 👩\u200d💻 \u2028 x\nname = '𝄞'\n"


@attrs.frozen
class CorpusFile:
    """One file. `charset`: what `.editorconfig` must say of it; None: nothing."""

    name: str
    raw: bytes
    encoding: TextEncoding
    text: str  # its content, with its own line ends, without a mark
    charset: str | None = None

    def edited(self) -> bytes:
        """Its bytes with `NEW` in place of `MARK`."""
        return self.raw.replace(MARK.encode(self.encoding.name), NEW.encode(self.encoding.name))


def corpus() -> Iterator[CorpusFile]:
    """Every file; the names differ."""
    for encoding in ENCODINGS:
        yield from _of_encoding(encoding)
    yield from _of_content()


def _of_encoding(encoding: TextEncoding) -> Iterator[CorpusFile]:
    is_unicode = encoding.unit_bytes > 1 or encoding is UTF_8
    wanted = _UNICODE if is_unicode else _SCRIPTS.get(encoding.name, _LATIN)
    sample = "".join(char for char in wanted if char.encode(encoding.name, "ignore"))
    base = f"{sample}\tif (x) {{ }}  \n{MARK}\n{sample}"
    ends = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}
    texts = {kind: base.replace("\n", end) for kind, end in ends.items()}
    texts["open"] = base.removesuffix("\n")
    texts["mixed"] = base.replace("\n", "\r\n", 2) + "\rlast"
    for kind, text in texts.items():
        name = f"{encoding.name}.{kind}.txt"
        yield CorpusFile(name, text.encode(encoding.name), encoding, text, None if encoding is UTF_8 else encoding.word)
    if encoding.mark:
        name = f"{encoding.name}.mark.txt"
        yield CorpusFile(name, encoding.mark + base.encode(encoding.name), encoding, base)


def _of_content() -> Iterator[CorpusFile]:
    """UTF-8 files with content that goes wrong elsewhere."""
    contents = {
        "alone": MARK,
        "line": f"{MARK}\n",
        "blank lines": f"\n\n\n{MARK}\n\n\n",
        "tabs": f"\tif x:\n\t\t{MARK}\n  \t y\n",
        "trailing": f"x \n{MARK} \t\ny\xa0\n",
        "controls": f"\x01\x02\x1b[31mred\x1b[0m\x7f\n{MARK}\n\x0c\x0b\x1c\x85\n",
        "separators": f"a\u2028b\u2029c\n{MARK}\n",
        "combining": f"e\u0301 \xe9 a\u030a \u212b \u1e9b\u0323\n{MARK}\n",
        "bidi": f"\u202eabc\u202c \u2066x\u2069\n{MARK}\n",
        "joiners": f"👨\u200d👩\u200d👧 न\u200dम \u200b\n{MARK}\n",
        "astral": f"𝄞𠀀😀\n{MARK}\n",
        "private": f"\ue000\uf8ff\U0010fffd\ufffd\n{MARK}\n",
        "inner mark": f"a\ufeffb\n{MARK}\n",
        "quotes": f"'\"`\u2018\u2019\u201c\u201d\n{MARK}\n",
        "escapes": f"\\n \\u0041 %s {{}} $1 \\1\n{MARK}\n",
        "conflict": f"<<<<<<< ours\na\n=======\n{MARK}\n>>>>>>> theirs\n",
        "reply marks": f"[no line end at the end of the file]\n[the file is empty]\n{MARK}\n[truncated\n",
        "heading": f"[windows-1252]\n{MARK}\n",
        "long line": f"{'x' * 9_000}\n{MARK}\n",
        "json": f'{{"a": "\\u00e9", "b": [1, 2]}}\n{MARK}\n',
        "makefile": f"all:\n\techo $(X)\n{MARK}\n",
        "crlf open": f"a\r\nb\r\n{MARK}",
        "cr cr lf": f"a\r\r\n{MARK}\r\r\nb",
        "lf cr": f"a\n\r{MARK}\n\rb\n",
    }
    for name, text in contents.items():
        yield CorpusFile(f"content {name}.txt", text.encode(), UTF_8, text)
