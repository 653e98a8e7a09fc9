"""Detection by the library: what it finds in real texts, and what follows for writing (row W10, rule 7)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steadyhand.adapters.encoding_detection import likely_encodings
from steadyhand.domain.text.decoding import FileText, Naming, NotText, decode


@pytest.mark.parametrize(
    ("text", "codec", "word"),
    [
        ("Être où l\u2019on dîne à la crêperie, ça va très bien, merci à l\u2019élève.\n", "cp1252", None),
        ("これは日本語のテキストです。文字コードを判定します。\n", "cp932", "Shift-JIS"),
        ("これは日本語のテキストです。文字コードを判定します。\n", "euc_jp", "EUC-JP"),
        ("Привет, мир. Это обычный русский текст для проверки.\n", "cp1251", "windows-1251"),
        ("Привет, мир. Это обычный русский текст для проверки.\n", "koi8-r", "KOI8-R"),
        ("中文文本用来测试编码检测功能是否正常工作。\n", "gbk", None),
        ("繁體中文測試文字編碼偵測功能。\n", "cp950", "Big5"),
        ("hello wide text\n", "utf-16-le", "UTF-16 LE"),
    ],
)
def test_detection_reads_real_texts(text: str, codec: str, word: str | None) -> None:
    """W10: the text is shown as it is, or in an encoding that shows these bytes too."""
    found = decode(text.encode(codec), Naming(candidates=likely_encodings))
    assert isinstance(found, FileText)
    assert word is None or (found.encoding.word, found.text) == (word, text)
    assert text.encode(codec).decode(found.encoding.name) == found.content


def test_detection_of_several_encodings_does_not_write() -> None:
    """W10: Latin text of few bytes may be in many encodings, so it is only read."""
    found = decode(b"# Copyright \xa9 2020 Jos\xe9\nx = 1\n", Naming(candidates=likely_encodings))
    assert isinstance(found, FileText)
    assert found.doubt is not None


@pytest.mark.parametrize(
    "raw", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\0", bytes(range(128, 256)) * 8, b"\x7fELF\x02\x01\x01\0" * 9]
)
def test_detection_finds_no_text_to_write_in_binary_files(raw: bytes) -> None:
    """Case 49: what is no text is not written."""
    found = decode(raw, Naming(candidates=likely_encodings))
    assert isinstance(found, NotText) or found.doubt is not None


def test_library_is_imported_at_the_first_use_only() -> None:
    """J7: the start of the server does not pay for it."""
    program = (
        "import sys; import steadyhand.adapters.encoding_detection, steadyhand.tools.registry, steadyhand.lsp.app;"
        "print('charset_normalizer' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "False\n"


def test_failing_library_is_no_detection(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Case 49: a file that nobody can decode is no text; the trace goes to the log."""
    import charset_normalizer

    def broken(*_: object, **__: object) -> object:
        raise RuntimeError("broken")

    monkeypatch.setattr(charset_normalizer, "from_bytes", broken)
    assert likely_encodings(b"caf\xe9") == ()
    assert "could not be detected" in caplog.text
