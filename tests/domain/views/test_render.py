"""What views show of titles and file names (row O7)."""

from __future__ import annotations

from steadyhand.domain.records.record import FileChange
from steadyhand.domain.views import render


def test_title_and_file_names_of_a_card_show_hidden_characters() -> None:
    """O7, case 146: a name cannot hide its end or turn it around."""
    assert render.short_title("a\u202eb\x1b\nc") == "a\\u202eb\\u001b c"
    change = FileChange(path="x\u202ecod.exe", change="moved", from_="y\u200b")
    shown = render._file(change)
    assert (shown.path, shown.from_) == ("x\\u202ecod.exe", "y\\u200b")


def test_title_stays_within_its_bound_when_characters_are_escaped() -> None:
    """O7: the escapes count."""
    assert len(render.short_title("\u202e" * 200)) <= render.TITLE_LENGTH_MAX
