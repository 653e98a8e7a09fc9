"""A reply of many lines, cut at its bound, with remarks in brackets at its end that say what is not shown."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from steadyhand.tools.tool import Done, reply_bytes_max

remarks_bytes_max = 2000
"""Room in the reply for what is said after the lines."""


@attrs.define
class Lines:
    """Takes lines until there is no more room."""

    lines: list[str] = attrs.field(factory=list)
    full: bool = False
    _bytes: int = 0

    def add(self, line: str) -> bool:
        """Whether it was taken; once one was not, none is."""
        size = len(line.encode("utf-8", "replace")) + 1
        self.full = self.full or self._bytes + size > reply_bytes_max - remarks_bytes_max
        if not self.full:
            self.lines.append(line)
            self._bytes += size
        return not self.full

    def done(self, empty: str, remarks: Iterable[str], whole: bool) -> Done:
        """The reply. `empty` stands where there are no lines; `whole`: nothing that was asked for is missing."""
        marks = [f"[{remark}]" for remark in remarks]
        text = "\n".join([*(self.lines or [f"[{empty}]"]), *marks])
        encoded = text.encode("utf-8", "replace")[:reply_bytes_max]
        return Done("returned", encoded.decode("utf-8", "ignore"), truncated=not whole)
