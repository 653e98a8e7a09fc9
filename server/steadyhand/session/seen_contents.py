"""Contents of files that the model was shown or wrote, kept in memory to say later what has changed (row V3)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from steadyhand.domain.records.identity import sha256

SEEN_BYTES_MAX = 32 * 1024 * 1024
"""Of one session; those that were seen longest ago go first."""


class SeenContents:
    """Digest → content, within `SEEN_BYTES_MAX`. Nothing else depends on what is here; a restart begins empty."""

    def __init__(self) -> None:
        self._contents: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def keep(self, contents: Iterable[bytes]) -> None:
        """Keep these contents; one that is larger than the bound is not kept."""
        for content in contents:
            digest = sha256(content)
            if digest in self._contents:
                self._contents.move_to_end(digest)
            elif len(content) <= SEEN_BYTES_MAX:
                self._contents[digest] = content
                self._bytes += len(content)
        while self._bytes > SEEN_BYTES_MAX:
            _, oldest = self._contents.popitem(last=False)
            self._bytes -= len(oldest)

    def get(self, digest: str) -> bytes | None:
        """Return the content, if it is still kept."""
        return self._contents.get(digest)
