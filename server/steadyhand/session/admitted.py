"""A planned call with its identity, and what every step before its start shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import attrs

from steadyhand.core.admission import Wanted
from steadyhand.core.folded import Call
from steadyhand.core.identity import Digest
from steadyhand.core.record import Record
from steadyhand.session.owner import Owner
from steadyhand.tools.tool import Done, Planned, Refusal

T = TypeVar("T")


def _nothing(_: Done) -> Sequence[Record]:
    return ()


@attrs.frozen
class Admitted:
    """A planned call with its identity, on its way to the start."""

    call: Call
    planned: Planned
    wanted: Wanted
    attempt_id: str
    key: Digest
    confirmed_before: tuple[str, ...] = ()  # attempts of this very call that the user confirmed (row B6)
    settles: Callable[[Done], Sequence[Record]] = _nothing  # what its end settles, in the append of its result


def wanted_of(owner: Owner, tool: str, planned: Planned) -> Wanted:
    """The facts of a planned call that admission reads."""
    return Wanted(
        tool, planned.effect, planned.scope, bool(planned.outside), bool(planned.protected), planned.command,
        owner.ground.root,
    )  # fmt: skip


async def before_start(owner: Owner, work: Callable[..., T | Refusal], *arguments: object) -> T | Refusal:
    """Blocking work before the start; trouble with the disk there refuses this one call."""
    try:
        return await owner.world.in_thread(work, *arguments)
    except OSError as error:
        return Refusal("io_error", f"It could not be prepared: {error_words(error)}.")


def error_words(error: Exception) -> str:
    """An error in words, without paths: those of the call are named elsewhere."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__
