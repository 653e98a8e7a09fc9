"""A reply of many lines with a size limit; remarks in brackets at its end say what is missing."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from steadyhand.tools.contract import REPLY_BYTES_MAX, ToolOutcome
from steadyhand_values import define

REMARKS_BYTES_MAX = 2000
"""Reserved in the reply for the remarks after the lines."""


@define
class ReplyLines:
    """Accepts lines until the reply is full."""

    lines: list[str] = attrs.field(factory=list)
    is_full: bool = False
    _bytes: int = 0

    def add(self, line: str) -> bool:
        """Add the line if it fits, and return whether it was added. After the first refusal no line is added."""
        size = len(line.encode("utf-8", "replace")) + 1
        self.is_full = self.is_full or self._bytes + size > REPLY_BYTES_MAX - REMARKS_BYTES_MAX
        if not self.is_full:
            self.lines.append(line)
            self._bytes += size
        return not self.is_full

    def to_outcome(self, empty: str, remarks: Iterable[str], whole: bool) -> ToolOutcome:
        """Return the reply. `empty` is the remark for no lines; `whole`: nothing that was asked for is missing."""
        marks = [f"[{remark}]" for remark in remarks]
        text = "\n".join([*(self.lines or [f"[{empty}]"]), *marks])
        encoded = text.encode("utf-8", "replace")[:REPLY_BYTES_MAX]
        return ToolOutcome("returned", encoded.decode("utf-8", "ignore"), is_truncated=not whole)
