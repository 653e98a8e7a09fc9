"""Redact command lines before they are shown or recorded (row E2).

This is for the command lines of processes that recovery finds; nobody wrote those lines for us to keep.
`domain.permissions.redaction` says what is hidden. What a tool writes and what the model sent is never redacted.
"""

from __future__ import annotations

from steadyhand.domain.permissions.redaction import redact


def redact_command(line: str) -> str:
    """Return the line without credentials, and with single blanks between its words."""
    return " ".join(redact(line, is_command=True).split())
