"""Characters that nobody sees are shown (row O7, case 146)."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.text.hidden_characters import ZWJ, ZWNJ, show_hidden, show_hidden_in_value

RANGES = [
    *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0x61C, 0x61C), (0x200B, 0x200B), (0x200E, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x2069), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F), (0xD800, 0xDFFF)),
]
HIDDEN = [chr(code) for first, last in RANGES for code in range(first, last + 1)]
JOINERS = [ZWNJ, ZWJ]
TABLE = json.loads(Path(__file__).with_name("hidden_characters.json").read_text(encoding="utf-8"))
"""The tests of the extension read the same table."""


@pytest.mark.parametrize("text", TABLE["stays"])
def test_visible_text_stays_as_it_is(text: str) -> None:
    """O7: letters, emoji, flags, and joiners where a script needs them."""
    assert show_hidden(text) == text


@pytest.mark.parametrize(("text", "shown"), TABLE["shown"])
def test_hidden_character_is_shown_by_its_code(text: str, shown: str) -> None:
    """O7: in the form `\\u202e`, also a joiner without anything to join."""
    assert show_hidden(text) == shown


def test_value_shows_line_ends_and_tabs_too() -> None:
    """O7: a value is on one line, so it cannot look like more of the question."""
    assert show_hidden_in_value("a\nb\tc\r\n") == "a\\nb\\tc\\u000d\\n"


@pytest.mark.parametrize("show", [show_hidden, show_hidden_in_value])
@given(
    text=st.text(st.one_of(st.characters(), st.sampled_from(HIDDEN + JOINERS + ["👍", "م", "\n", "\t"])), max_size=30)
)
def test_no_hidden_character_is_left_and_nothing_else_changes(show: object, text: str) -> None:
    """O7, case 146: whatever the text, no character of the list is left outside an emoji or a word that needs it, a
    second pass changes nothing, and what can be seen stays.
    """
    assert callable(show)
    shown = show(text)
    assert show(shown) == shown
    left = [char for char in shown if char in HIDDEN and not 0xE0000 <= ord(char) <= 0xE007F]
    assert left == []
    for at, char in enumerate(shown):
        if char in JOINERS:
            assert shown[at - 1 : at]
            assert unicodedata.category(shown[at - 1])[0] in "LMS"
    seen = [char for char in text if char not in HIDDEN + JOINERS and char not in "\n\t"]
    position = 0
    for char in seen:
        position = shown.index(char, position) + 1


UNASSIGNED_BUT_HIDDEN = "\u2065" + "".join(map(chr, range(0xE0000, 0xE0080)))


@given(
    st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"], exclude_characters=UNASSIGNED_BUT_HIDDEN))
)
def test_text_without_controls_and_formats_stays_as_it_is(text: str) -> None:
    """O7: only hidden characters change."""
    assert show_hidden_in_value(text) == text
