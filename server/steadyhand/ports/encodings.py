"""Who outside the server knows something about the encoding of a file: the editor, the settings, a library."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steadyhand.domain.settings import EncodingRule
from steadyhand_values import frozen

DetectEncodings = Callable[[bytes], Sequence[str]]
"""A sample of a file → Python's names of the encodings that it is likely in, the likeliest first. Blocks."""


def no_detection(sample: bytes) -> Sequence[str]:
    """Detect nothing."""
    return ()


def _not_reported(path: str) -> str | None:
    return None


def _no_rules() -> Sequence[EncodingRule]:
    return ()


@frozen
class EncodingSources:
    """All three; each blocks, and is called in a thread of the event loop."""

    reported: Callable[[str], str | None] = _not_reported
    """Absolute path as the editor spells it → what the editor calls the encoding of the open document.

    None: it is not open, the editor does not say, or not in time."""
    rules: Callable[[], Sequence[EncodingRule]] = _no_rules
    """The setting `files.encoding`."""
    candidates: DetectEncodings = no_detection


NO_SOURCES = EncodingSources()
