"""Command lines without what looks like a credential (row E2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.redaction import redacted_command


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("python -m http.server 8000", "python -m http.server 8000"),
        ("env DB_PASS=abc make  all", "env DB_PASS=*** make all"),
        ("curl --token abc --data x", "curl --token *** --data x"),
        ("tool --password=abc run", "tool *** run"),
        ("git clone https://me:secret@host/x y", "git clone *** y"),
        ("curl -H Authorization: Bearer abcdefghijklmnopqrstu end", "curl -H Authorization: *** end"),
        ("run sk-abcdefghijklmnopqrstuvwxyz0123", "run ***"),
        ("make MAX_OUTPUT_TOKENS=8000", "make MAX_OUTPUT_TOKENS=8000"),
        ("", ""),
    ],
)
def test_what_is_taken_out_of_a_line(line: str, shown: str) -> None:
    """E2: names and known forms of credentials; the rest of the line stays."""
    assert redacted_command(line) == shown


@given(st.text(max_size=200))
def test_any_line_is_shown_once_and_for_all(line: str) -> None:
    """E2: what was redacted once stays as it is, and no line is a fault."""
    once = redacted_command(line)
    assert redacted_command(once) == once
