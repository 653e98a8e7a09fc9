"""Random ids."""

from __future__ import annotations

import secrets

ID_BYTES = 16  # 32 hex digits


class RandomIds:
    """`ports.Ids`: unguessable ids that never repeat."""

    def new(self) -> str:
        return secrets.token_hex(ID_BYTES)
