"""The standing grants of the state directory: read anew for each question, changed under a lock, replaced in one step.

Two processes that change them at once lose nothing: each holds `permissions.lock` from its reading to its rename. What
was remembered is durable before the call it was given for may start. A file that is damaged, unreadable, of a newer
version or controlled by another user is said once and counts as none; it is kept beside the next that is written, but a
newer one is never touched. Deliberately absent: a cache, so that what is taken back anywhere counts everywhere at once.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from steadyhand.domain.errors import Refused
from steadyhand.domain.permissions.grants import (
    GRANTS_BYTES_MAX,
    GRANTS_MAX,
    InvalidGrants,
    StandingGrant,
    decode_grants,
    encode_grants,
)
from steadyhand.domain.views.notifications import MessageNotification
from steadyhand.ports.disk import Disk, File, Folder, write_all
from steadyhand.ports.editor import Editor
from steadyhand.ports.system import Ids
from steadyhand.session.private_state import PrivateState, UnsafeState

GRANTS = "permissions.json"
LOCK = "permissions.lock"
LOCK_WAIT_S_MAX = 5.0
LOCK_POLL_S = 0.02
FILE_MODE = 0o600


class _UnsafeGrants(Exception):
    """Another user controls the file, or could have written it (row O5)."""


class Grants:
    """The grants of one state directory. `in_thread` runs blocking work and never abandons it."""

    def __init__(
        self,
        disk: Disk,
        ids: Ids,
        editor: Editor,
        private_state: PrivateState,
        state_directory: str,
        in_thread: Callable[..., Awaitable[Any]],
    ) -> None:
        self._disk = disk
        self._ids = ids
        self._editor = editor
        self._private_state = private_state
        self._path = f"{state_directory.rstrip('/')}/{GRANTS}"
        self._in_thread = in_thread
        self._changing = anyio.Lock()
        self._said: str | None = None

    async def load_all(self) -> tuple[StandingGrant, ...]:
        """Return all grants, or none where they cannot be read; the user is warned once."""
        found: tuple[StandingGrant, ...] | InvalidGrants
        try:
            found = await self._in_thread(self._read)
        except (_UnsafeGrants, UnsafeState) as unsafe:
            return self._none(f"do not apply. {unsafe}")
        except OSError as error:
            return self._none(f"cannot be read ({error.strerror}), so none of them applies. Make the file readable.")
        if isinstance(found, InvalidGrants):
            why = "were written by a newer version" if found.newer else "are damaged"
            return self._none(f"{why}, so none of them applies and Steadyhand asks again.")
        self._said = None
        return found

    async def remember(self, grant: StandingGrant) -> str | None:
        """Store one durably; return a sentence where that is not certain."""

        def added(known: tuple[StandingGrant, ...]) -> tuple[StandingGrant, ...]:
            if any(one.allows_same_as(grant) for one in known):
                return known
            if len(known) >= GRANTS_MAX:
                raise OSError(errno.ENOSPC, f"{GRANTS_MAX} are already remembered; forget some")
            return (*known, grant)

        try:
            await self._change(added)
        except (OSError, UnsafeState) as error:
            why = (error.strerror if isinstance(error, OSError) else error.message) or type(error).__name__
            return (
                f"It is allowed this once, but the permission may not be stored ({why})."
                " /permissions lists the stored ones."
            )
        return None

    async def forget(self, grant_ids: Sequence[str]) -> None:
        """Remove these grants. Raise Refused where that cannot be written."""
        try:
            await self._change(lambda known: tuple(one for one in known if one.grant_id not in grant_ids))
        except OSError as error:
            text = f"The permissions could not be changed ({error.strerror}); they are as before."
            raise Refused("journalBroken", text) from error

    def _none(self, why: str) -> tuple[StandingGrant, ...]:
        text = f"The remembered permissions ({GRANTS} in the state directory) {why}"
        if text != self._said:
            self._said = text
            self._editor.tell(MessageNotification("warning", text))
        return ()

    async def _change(self, change: Callable[[tuple[StandingGrant, ...]], tuple[StandingGrant, ...]]) -> None:
        async with self._changing, self._locked() as folder:
            await self._in_thread(self._replace, folder, change)

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[Folder]:
        """Hold the lock over the grants and yield the state directory. OSError where it cannot be had in time."""
        disk, lock = self._disk, None
        folder = await self._in_thread(self._private_state.make_root)
        try:
            with anyio.move_on_after(LOCK_WAIT_S_MAX):
                # Polled: a file lock does not announce that it is free.
                while (lock := await self._in_thread(disk.lock, folder, LOCK)) is None:  # noqa: ASYNC110
                    await anyio.sleep(LOCK_POLL_S)
            if lock is None:
                raise OSError(errno.EAGAIN, "another process is changing them; try again")
            try:
                yield folder
            finally:
                lock.release()
        finally:
            disk.close(folder)

    # Blocking, in a thread.

    def _read(self) -> tuple[StandingGrant, ...] | InvalidGrants:
        try:
            folder = self._private_state.open()
        except FileNotFoundError:
            return ()
        try:
            return self._read_in(folder)
        finally:
            self._disk.close(folder)

    def _read_in(self, folder: Folder) -> tuple[StandingGrant, ...] | InvalidGrants:
        disk = self._disk
        seen = disk.look(folder, GRANTS)
        if seen is None:
            return ()
        if seen.kind == "link":
            raise _UnsafeGrants(f"{self._path} is a link. Remove it.")
        file = disk.open_read(folder, GRANTS)
        try:
            trouble = self._private_state.file_trouble(file, self._path)
            if trouble is not None:
                raise _UnsafeGrants(trouble)
            return decode_grants(_read_all(disk, file, GRANTS_BYTES_MAX + 1))
        finally:
            disk.close(file)

    def _replace(
        self, folder: Folder, change: Callable[[tuple[StandingGrant, ...]], tuple[StandingGrant, ...]]
    ) -> None:
        known: tuple[StandingGrant, ...] | InvalidGrants
        try:
            known = self._read_in(folder)
        except _UnsafeGrants:
            known = InvalidGrants(newer=False)
        if isinstance(known, InvalidGrants) and known.newer:
            raise OSError(errno.EPERM, "a newer version of Steadyhand keeps them; update to change them")
        wanted = change(() if isinstance(known, InvalidGrants) else known)
        if wanted == known:
            return
        content = encode_grants(wanted)
        if len(content) > GRANTS_BYTES_MAX:
            raise OSError(errno.EFBIG, f"they would be larger than {GRANTS_BYTES_MAX} bytes; forget some")
        if isinstance(known, InvalidGrants):
            self._disk.rename_new(folder, GRANTS, f"permissions.damaged-{self._ids.new()}.json")
        self._put(folder, content)

    def _put(self, folder: Folder, content: bytes) -> None:
        disk = self._disk
        for left in disk.names(folder):  # a crash left it: the lock proves that no process writes it
            if left.startswith(f".{GRANTS}."):
                disk.unlink(folder, left)
        temporary = f".{GRANTS}.{self._ids.new()}"
        file = disk.create(folder, temporary, FILE_MODE)
        try:
            try:
                write_all(disk, file, content)
                disk.sync(file)
            finally:
                disk.close(file)
            disk.rename(folder, temporary, GRANTS)
        except OSError:
            with suppress(OSError):
                disk.unlink(folder, temporary)
            raise
        disk.sync_folder(folder)


def _read_all(disk: Disk, file: File, limit: int) -> bytes:
    """Return at most `limit` bytes of an open file."""
    pieces: list[bytes] = []
    left = limit
    while left > 0 and (piece := disk.read_piece(file, left)):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
