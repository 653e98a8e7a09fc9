"""Tasks whose failure is logged and ends nothing else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

SUBJECT_CHARS_MAX = 500

log = logging.getLogger(__name__)


def start_logged(tasks: TaskGroup, run: Callable[[], Awaitable[object]], subject: str) -> None:
    """Run something as a task of the group; an exception is written to stderr under `subject`."""
    tasks.start_soon(_run_logged, run, subject, name=subject)


async def _run_logged(run: Callable[[], Awaitable[object]], subject: str) -> None:
    try:
        await run()
    except Exception as error:
        log.error("%s failed unexpectedly", subject[:SUBJECT_CHARS_MAX], exc_info=error)
