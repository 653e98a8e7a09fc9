"""Random ids."""

from __future__ import annotations

import secrets

id_bytes = 16


class RandomIds:
    """`ports.Ids`: unguessable, and never the same twice."""

    def new(self) -> str:
        return secrets.token_hex(id_bytes)
