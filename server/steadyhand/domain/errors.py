"""A refused request, as the one exception that the `lsp` package translates to an error answer.

A refusal is no defect. It names its kind (docs/protocol.md, "Errors"), one sentence for the user, and what the caller
needs to continue. Whoever raises it must not have changed the disk or the journal.
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
    """A request is refused.

    `kind` is the word of docs/protocol.md, "Errors"; `message` is one sentence; `more` holds the members that stand
    beside `kind` in the error's data.
    """

    def __init__(self, kind: RefusalKind, message: str, more: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.more: Mapping[str, object] = more or {}


def invalid_params(path: str, message: str, sentence: str | None = None) -> Refused:
    """Return the refusal of params that fit their shape but not the present state.

    `path` says where, from `$` on; `message` is for programs. `sentence` is for people and names no path.
    """
    return Refused("invalidParams", sentence or f"{path}: {message}", {"errors": [{"path": path, "message": message}]})
