"""The log of this process on stderr, without credentials (rows E2, E4; case 106).

Known values and known forms are hidden in each line, in the text of an exception too. Nothing below a warning is
written. It does not know what is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from steadyhand.domain.permissions.child_environment import looks_like_credential
from steadyhand.domain.permissions.redaction import redact


class RedactingFormatter(logging.Formatter):
    """Formats a record as Python does by default, then hides what looks like a credential."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._secrets = [value for name, value in environment.items() if looks_like_credential(name, value)]

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._secrets)


def write_redacted_log(environment: Mapping[str, str]) -> None:
    """Let every warning and error of this process go to stderr through the formatter."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(RedactingFormatter(environment))
    logging.getLogger().addHandler(handler)
