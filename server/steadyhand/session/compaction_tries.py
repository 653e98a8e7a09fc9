"""When the conversation was last compacted in vain, so that it is not tried before each request (row K4)."""

from __future__ import annotations


class CompactionTries:
    """Lives as long as the session is open here. Only its own methods change it."""

    def __init__(self) -> None:
        self._tokens: int | None = None

    @property
    def tokens(self) -> int | None:
        """The size of the conversation at the last automatic try that came to nothing; None: there is none."""
        return self._tokens

    def note(self, tokens: int) -> None:
        """An automatic compaction came to nothing."""
        self._tokens = tokens

    def forget(self) -> None:
        """The conversation was compacted."""
        self._tokens = None
