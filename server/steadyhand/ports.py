"""What the house needs from the world, as promises.

Everything outside the process is reached through these Protocols; `__main__` alone names who keeps them.
Adapters raise `OSError` with its errno for trouble with the disk or a child; callers turn that into a recorded
result or a refusal. Nothing here is async but what waits for a model, a person or a child.

Disk is the one narrow port for all product I/O of journal, checkpoints, outputs and file tools. Names are single
path components; folders are handles, opened once and walked without following links, so that a link put in the
way later leads nowhere.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Literal, NewType, Protocol, runtime_checkable

import attrs

from steadyhand.core.model import Answered, Finding, ModelRequest, StreamPart
from steadyhand.core.questions import Answer, HeldBackQuestion, PermissionQuestion, UserQuestion
from steadyhand.core.settings import Settings
from steadyhand.core.told import Told

Folder = NewType("Folder", int)
"""An open folder; valid until `close`."""
File = NewType("File", int)
"""An open file; valid until `close`."""

Kind = Literal["file", "folder", "link", "other"]


@attrs.frozen
class Look:
    """What one name in a folder is at this moment, links not followed."""

    kind: Kind
    size: int  # bytes
    mode: int  # permission bits only, e.g. 0o644
    uid: int
    gid: int
    links: int  # hard links to it
    modified_ns: int
    identity: tuple[int, int]  # device, inode
    target: str | None = None  # of a link, as stored


@attrs.frozen
class Attributes:
    """What a replacement keeps of a file beside its bytes."""

    mode: int
    uid: int
    gid: int
    extended: Mapping[str, bytes]  # extended attributes, ACLs (`system.posix_acl_*`) among them


class Lock(Protocol):
    """An operating-system lock that dies with the process and is not inherited by children [I15]."""

    def release(self) -> None: ...


class Disk(Protocol):
    """All product I/O. Every method may raise OSError; none retries.

    Durability: bytes written are durable when `sync` on their file returned, names when `sync_folder` on their
    folder returned. After a failed `write` or `sync` nothing may be concluded about that file. `write` may be
    short. `rename` and `exchange` are atomic for readers.
    """

    def open_folder(self, path: str) -> Folder:
        """Open the folder at an absolute path; links in it are followed. For roots only."""
        ...

    def enter(self, folder: Folder, name: str) -> Folder:
        """Open a folder inside `folder`; a link raises OSError(ELOOP or ENOTDIR)."""
        ...

    def make_folder(self, folder: Folder, name: str, mode: int = 0o700) -> None:
        """Create a folder; of `mode` the umask takes away its bits. FileExistsError if the name is taken."""
        ...

    def make_root(self, path: str) -> None:
        """Create the folder at an absolute path and its missing parents, 0700; durable when it returns."""
        ...

    def names(self, folder: Folder) -> list[str]:
        """All names in the folder, sorted by code point."""
        ...

    def look(self, folder: Folder, name: str) -> Look | None:
        """What the name is, or None where there is nothing."""
        ...

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        """The regular file's bytes, at most `limit`; ELOOP for a link, EISDIR or EINVAL for what is no file."""
        ...

    def open_read(self, folder: Folder, name: str) -> File:
        """A regular file for reading in pieces; as `read`."""
        ...

    def read_piece(self, file: File, size: int) -> bytes:
        """The next bytes, empty at the end."""
        ...

    def move_to(self, file: File, position: int) -> None:
        """Where the next piece of a file open for reading begins, bytes from its start."""
        ...

    def create(self, folder: Folder, name: str, mode: int) -> File:
        """A new empty file for writing; FileExistsError if the name is taken."""
        ...

    def open_append(self, folder: Folder, name: str) -> File:
        """An existing regular file, for appending."""
        ...

    def write(self, file: File, piece: bytes) -> int:
        """Write at the end (append) or at the position; the count written, which may be short."""
        ...

    def truncate(self, file: File, size: int) -> None: ...

    def sync(self, file: File) -> None:
        """Make the file's bytes and size durable, as far as the system reaches."""
        ...

    def sync_folder(self, folder: Folder) -> None: ...

    def close(self, handle: Folder | File) -> None: ...

    def attributes(self, folder: Folder, name: str) -> Attributes: ...

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        """Give a file these attributes; returns the names of those that could not be given."""
        ...

    def rename(self, folder: Folder, old: str, new: str) -> None:
        """Replace `new` by `old` in one step."""
        ...

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        """As `rename`, but FileExistsError if `new` exists, in the same step where the system can."""
        ...

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        """Move `name` into the folder `other` as `new` in one step, a link as itself.

        `exclusive`: FileExistsError if `new` exists, in the same step where the system can; else it is replaced.
        OSError(EXDEV) where the two lie on different file systems: then nothing has happened."""
        ...

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        """Swap two names in one step; False where the system cannot (nothing has happened then)."""
        ...

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        """A symbolic link with this target, as stored, in one step; FileExistsError if the name is taken."""
        ...

    def unlink(self, folder: Folder, name: str) -> None: ...

    def remove_folder(self, folder: Folder, name: str) -> None:
        """Remove an empty folder; OSError(ENOTEMPTY) if something is in it."""
        ...

    def writable(self, folder: Folder, name: str) -> bool:
        """Whether this user may write the existing file by its own mode (0444 is not writable, even for root)."""
        ...

    def lock(self, folder: Folder, name: str) -> Lock | None:
        """The exclusive lock on that file, taken at once; None if another process holds it.

        OSError(ENOLCK) where locks do not hold."""
        ...

    def real_path(self, folder: Folder) -> str:
        """The absolute path of an open folder, for messages and for naming it in a record."""
        ...


class TextFilter(Protocol):
    """A program that may be on this machine and rules files out faster than they are read here. Never needed."""

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        """Of these absolute paths all whose bytes hold `text` or a NUL, and perhaps more; blocks, bounded by `time_s`.

        What is left out was read whole and must hold neither. None: nothing can be told, whatever the reason."""
        ...


@attrs.frozen
class Finished:
    """How a child ended."""

    exit_code: int | None  # None: ended by a signal
    signal: int | None
    timed_out: bool
    left: tuple[str, ...]  # what was left of its group and has been ended, one "pid command" each
    group_empty: bool  # False: something of the group could not be ended


@attrs.frozen
class Survivor:
    """A process that carries an attempt's mark."""

    pid: int
    started: str  # opaque, together with the pid it names one process
    command: str  # ≤ 200 characters


class Job(Protocol):
    """A command in the background. Whoever started it runs `follow`, once, in a task of its own."""

    @property
    def pid(self) -> int: ...

    @property
    def started(self) -> str:
        """Opaque, together with the pid it names one process; empty where it cannot be told."""
        ...

    async def follow(self) -> Finished:
        """Pass its output on until it has ended, end what it left, say how it went. A cancel ends it, as with `run`."""
        ...

    async def end(self) -> None:
        """End it and what it started; returns when `follow` is over, bounded."""
        ...


class Processes(Protocol):
    """Children. Each runs in a session and process group of its own and is ended with its owner."""

    async def run(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float,
        output: Callable[[bytes], None],
        *,
        ended: Callable[[Finished], None] | None = None,
    ) -> Finished:
        """Run a shell command to its end; its output (both streams, as they come) goes to `output`.

        Returns when the process itself has ended and a short grace for its output is over. A cancel ends the whole
        group, waits for it (bounded) and is then raised on. `ended` is told how it ended, exactly once and before this
        returns or raises, if it was spawned at all; FileNotFoundError and the like when it was not."""
        ...

    def start(
        self,
        command: str,
        cwd: str,
        environment: Mapping[str, str],
        timeout_s: float | None,
        output: Callable[[bytes], None],
    ) -> Job:
        """Start a shell command and return at once; None: no limit. FileNotFoundError and the like if it cannot be."""
        ...

    async def end_all(self) -> None:
        """End every child of this process and wait, bounded."""
        ...

    def survivors(self, mark: str) -> Sequence[Survivor] | None:
        """Processes whose environment holds `STEADYHAND_ATTEMPT_ID=<mark>`; None: it cannot be told here."""
        ...

    async def end(self, survivor: Survivor) -> bool:
        """End this one process and no other, bounded; whether it is gone."""
        ...

    def alive(self, pid: int) -> bool: ...

    def here(self) -> tuple[int, str, str | None]:
        """This process: pid, host name, boot id (None where there is none)."""
        ...

    def environment(self) -> Mapping[str, str]:
        """The environment this process was given."""
        ...


class Clock(Protocol):
    def now(self) -> str:
        """RFC 3339, UTC, milliseconds: 2026-01-02T03:04:05.678Z."""
        ...

    def monotonic_s(self) -> float: ...


class Ids(Protocol):
    def new(self) -> str:
        """32 random lower-case hex digits."""
        ...


class Model(Protocol):
    """One provider. Streams one answer; raises `ModelTrouble` (core.model) with one clear sentence."""

    def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Parts in order; the last one is `Finish`. A stream that ends without it was cut."""
        ...


@runtime_checkable
class Continuing(Protocol):
    """A model that may go on with an assistant message (`ModelRequest.continues`, row P2)."""

    @property
    def can_continue(self) -> bool:
        """Whether it can, as it is set up now."""
        ...


Models = Callable[[str, str], Model]
"""(provider, name) → the model; raises `ModelTrouble` when there is none."""


@attrs.frozen
class OfferedModel:
    """A model a provider offers; `window` in tokens, None where it does not say."""

    provider: str
    name: str
    window: int | None = None


@runtime_checkable
class Providers(Protocol):
    """What there is beside asking: what providers offer, and what is the matter with one."""

    def connect(self, settings: Callable[[], Settings], secret: Callable[[str], Awaitable[str | None]] | None) -> None:
        """Where the settings of each moment come from, and the editor's secret store, if it has one."""
        ...

    async def offered(self, provider: str) -> Sequence[OfferedModel]:
        """Raises `ModelTrouble` with one sentence where the provider does not answer."""
        ...

    async def learn_window(self, provider: str, name: str) -> int | None:
        """Tokens; None where nobody tells. Where it is not known it is asked for, once if it is answered, bounded;
        what is learnt counts from the next request on. Never raises but for a cancel."""
        ...

    async def diagnose(self, provider: str, name: str) -> Sequence[Finding]:
        """What is found of each thing looked at, in order; small real requests are made, and billed. It stops where the
        next thing cannot work. Never raises but for a cancel."""
        ...

    async def close(self) -> None:
        """Let connections go."""
        ...


@attrs.frozen
class OpenDocument:
    """A document open in the editor, as the server's mirror has it."""

    text: str
    version: int
    unsaved: bool | None  # changed since it was saved; None: never seen saved, and its file was not asked


class Editor(Protocol):
    """The person at the other end. `tell` never blocks; questions wait, and are withdrawn by cancelling."""

    def tell(self, told: Told) -> None: ...

    async def drain(self) -> None:
        """Wait until what was told has gone out far enough; bounds the memory of a stream."""
        ...

    def attached(self) -> bool:
        """Whether there is anybody to ask."""
        ...

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        """None: not answered (error, null, timeout)."""
        ...

    async def ask_held_back(self, question: HeldBackQuestion) -> Answer | None: ...

    async def ask_user(self, question: UserQuestion) -> str | None:
        """None: dismissed."""
        ...

    def document(self, path: str) -> OpenDocument | None:
        """The open document of an absolute path, as the editor spells it."""
        ...

    def unsaved_paths(self) -> Sequence[str]:
        """The absolute paths, as the editor spells them, of open documents that may hold what is not on disk."""
        ...

    def saves(self) -> bool:
        """Whether open documents can be saved on request."""
        ...

    async def save(self, path: str, version: int) -> bool:
        """Save the open document, if it still has this version. True: it stands on disk, and `document` knows.

        False: it does not, or nobody answered; then it may yet be saved later."""
        ...


__all__ = [
    "Answered",
    "Attributes",
    "Clock",
    "Disk",
    "Editor",
    "File",
    "Finished",
    "Folder",
    "Ids",
    "Job",
    "Lock",
    "Look",
    "Model",
    "Models",
    "OpenDocument",
    "Processes",
    "Survivor",
    "TextFilter",
]
