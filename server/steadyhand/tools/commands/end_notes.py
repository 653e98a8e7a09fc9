"""What a reply says after the output of a command: where the rest is, how it ended, what it left running."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steadyhand.ports.processes import Finished
from steadyhand.tools.contract import OutputExcerpt
from steadyhand.tools.workspace.paths import one_line

LEFT_NAMED_MAX = 20
"""Left processes that the reply names."""
PROCESS_CHARS_MAX = 120
"""Of the name of one of them."""


def notes_of(end: Finished, shown: OutputExcerpt, of_sandbox: Sequence[str] = ()) -> Iterator[str]:
    """Yield the notes after an output: where the rest of it is, how the command ended, what its sandbox may have to do
    with that."""
    if shown.note:
        yield shown.note
    if end.exit_code is not None:
        yield f"exit code {end.exit_code}"
    elif end.signal is not None:
        yield f"ended by signal {end.signal}"
    yield from of_sandbox
    if end.left:
        names = ", ".join(one_line(one, PROCESS_CHARS_MAX) for one in end.left[:LEFT_NAMED_MAX])
        more = f" and {len(end.left) - LEFT_NAMED_MAX} more" if len(end.left) > LEFT_NAMED_MAX else ""
        yield f"left running, and ended now: {names}{more}"
