"""The sandbox: limits that the kernel enforces on a child (rows O1, O2).

The caller says in a `Confinement` what a child may do; `Processes.run` and `Processes.start` carry it out or raise
`SandboxFailed`. Nothing falls back to a weaker sandbox: the kind is part of the confinement, and the caller takes it
from `Sandbox.probe` before it records anything.

All paths are absolute. The adapter resolves links; a path that does not exist is left out, except for `folders`,
`temporary` and the working folder, without which there is no sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from steadyhand_values import frozen

SandboxKind = Literal["bubblewrap", "landlock", "none"]
Network = Literal["deny", "allow"]

PROTECTED_MOUNTS_MAX = 60
"""Mounts for protected paths, the folders between a root and such a path included. The start of a child takes more than
linear time in them: about 0.05 s for 60, a second for 400 (bubblewrap 0.8)."""


class SandboxFailed(OSError):
    """The sandbox of a child could not be set up, and nothing of its command ran. `str` says why, in one line."""


@frozen
class Confinement:
    """What one child may do. Reading is allowed where the user can read, less what is hidden; a reading command reads
    only `folders`, the system's programs, and `readable`.
    """

    kind: Literal["bubblewrap", "landlock"]  # as `SandboxStatus.kind`, or `SandboxStatus.reading` for a reading command
    folders: tuple[str, ...]  # the session's folders, the first one first; writable, unless the command only reads
    temporary: str | None = None  # its own empty folder on disk: its `/tmp`, `/var/tmp` and TMPDIR; None: none
    write: tuple[str, ...] = ()  # other writable folders (`sandbox.write`)
    protected: tuple[str, ...] = ()
    """Read-only files and folders below a root, nearest first. A folder named `.git` stays writable, and the adapter
    protects in it what chooses programs. The first ones up to `PROTECTED_MOUNTS_MAX` mounts are protected."""
    hidden: tuple[str, ...] = ()  # besides the adapter's own list: the state directory
    visible: tuple[str, ...] = ()  # read-only and not hidden, although it is inside a hidden folder
    network: Network = "deny"
    is_reading: bool = False  # no write anywhere, no socket, and `temporary`, `write` and `protected` do not count
    readable: tuple[str, ...] = ()  # for a reading command: what else it may read, e.g. the folder of its program


@frozen
class SandboxStatus:
    """What this system can confine, as the last probe found it."""

    kind: SandboxKind  # for commands, hooks and servers
    reading: SandboxKind  # for reading commands
    is_sealable: bool  # bubblewrap holds together with the system call filter and Landlock
    landlock_abi: int  # 0: there is no Landlock
    why: str | None = None  # why `kind` is not bubblewrap, or why it is not sealable; one sentence
    user: int | None = None  # the numeric id of who runs commands; None: not known
    limits: tuple[str, ...] = ()  # what a command can still do, for `doctor`; each one sentence


class Sandbox(Protocol):
    """How this system confines children."""

    def probe(self, folders: Sequence[str] = ()) -> SandboxStatus:
        """Confine a real child with the real arguments, and return what works.

        The answer is kept until a confined child could not be set up; then the next call tries again. `folders` are the
        workspace folders: no program inside them is used. Blocks up to 20 s; must be called in a thread.
        """
        ...

    def status(self) -> SandboxStatus | None:
        """Return the answer of the last probe; None: there was none yet."""
        ...
