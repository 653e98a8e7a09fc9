"""Takes stdin and stdout away from everything but the protocol [I14].

`claim_stdio` must run before anything else is imported that matters: it moves both descriptors to numbers of
their own, which children do not inherit, points descriptor 1 at stderr and descriptor 0 at the null device.
From then on a stray `print`, a library's warning or a child can neither write into the protocol nor eat a
part of it. This room imports nothing but the operating system.
"""

from __future__ import annotations

import fcntl
import os
from typing import NamedTuple

_FIRST_FREE = 3  # descriptors below are the three standard ones


class Stdio(NamedTuple):
    """The protocol's own descriptors; not inheritable."""

    source: int  # what the editor writes comes in here
    sink: int  # what the editor reads goes out here


def claim_stdio() -> Stdio:
    """Move the protocol off descriptors 0 and 1. A descriptor that is closed becomes the null device."""
    for descriptor in (0, 1, 2):
        _make_open(descriptor)
    stdio = Stdio(_own_copy(0), _own_copy(1))
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return stdio


def _own_copy(descriptor: int) -> int:
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)


def _make_open(descriptor: int) -> None:
    """Open the null device where a launcher left a standard descriptor closed."""
    try:
        os.fstat(descriptor)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != descriptor:
            os.dup2(opened, descriptor)
            os.close(opened)
