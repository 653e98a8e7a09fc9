"""Takes stdin and stdout away from everything but the protocol [I14].

`claim_stdio` must run before any other import that matters. It moves both descriptors to new numbers, which children do
not inherit, and points descriptor 1 at stderr and descriptor 0 at the null device. From then on a stray `print`, a
library's warning or a child cannot write into the protocol and cannot read a part of it. This module imports only the
operating system.
"""

from __future__ import annotations

import fcntl
import os

_FIRST_FREE = 3  # descriptors below are the three standard ones


class Stdio:
    """The protocol's own descriptors; not inheritable. The server reads from `source` and writes to `sink`.

    `received`: bytes that were read and are not dispatched yet; `ended`: nothing follows them. `is_greeted`: the first
    message is an `initialize` that is answered already."""

    __slots__ = ("ended", "is_greeted", "received", "sink", "source")

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.received = b""
        self.ended = False
        self.is_greeted = False

    def set_ended(self, ended: bool) -> None:
        """Note whether the input has ended."""
        self.ended = ended


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
