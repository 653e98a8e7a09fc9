"""Command lines without the parts that look like a credential (row E2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.adapters.processes.redaction import redact_command


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
def test_redacted_command_hides_credentials_and_keeps_the_rest(line: str, shown: str) -> None:
    """E2: names and known forms of credentials are replaced. The rest of the line stays."""
    assert redact_command(line) == shown


@given(st.text(max_size=200))
def test_redacted_command_is_idempotent_for_any_line(line: str) -> None:
    """E2: a redacted line stays as it is, and no line raises."""
    once = redact_command(line)
    assert redact_command(once) == once
