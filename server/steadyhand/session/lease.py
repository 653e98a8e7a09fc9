"""The lease while a resolution is carried out: no turn starts, what is sent meanwhile queues (row A3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from steadyhand.session.owner import Owner


@asynccontextmanager
async def resolving(owner: Owner) -> AsyncIterator[None]:
    """When the last one is done, the next queued prompt begins."""
    owner.resolving += 1
    try:
        yield
    finally:
        owner.resolving -= 1
        with anyio.CancelScope(shield=True):
            await owner.when_free()
