"""A request that is refused, as the one exception the edge translates.

A refusal is nobody's defect: it names its kind (wire.md, "Errors"), one sentence for a person, and what the caller
needs to go on. Raising it must have had no effect on disk or in the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

RefusalKind = Literal[
    "invalidParams",
    "cancelled",
    "unknownSession",
    "staleEpoch",
    "turnRunning",
    "staleSnapshot",
    "inspectFirst",
    "alreadyResolved",
    "retryDisabled",
    "retryUnsafe",
    "notOwner",
    "journalBroken",
    "recoveryRequired",
    "notOffered",
]


class Refused(Exception):
    """`kind` is the word of wire.md, `message` one sentence, `more` what stands beside `kind` in the error's data."""

    def __init__(self, kind: RefusalKind, message: str, more: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.more: Mapping[str, object] = more or {}


def invalid(path: str, message: str, sentence: str | None = None) -> Refused:
    """Params that fit their shape and not the moment. `sentence`: the same for a person, who knows of no paths."""
    return Refused("invalidParams", sentence or f"{path}: {message}", {"errors": [{"path": path, "message": message}]})
