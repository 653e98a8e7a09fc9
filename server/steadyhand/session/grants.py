"""The standing grants of the state directory: read anew for each question, changed under a lock, replaced in one step.

Two processes that change them at once lose nothing: each holds `permissions.lock` from its reading to its rename. What
was remembered is durable before the call it was given for may start. A file that is damaged, unreadable or of a newer
version is said once and counts as none; a damaged one is kept beside the next that is written, a newer one is never
touched. Deliberately absent: a cache, so that what is taken back anywhere counts everywhere at once.
"""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from steadyhand.core.grants import Standing, Unusable, grants_bytes_max, grants_max, read_grants, written
from steadyhand.core.refusal import Refused
from steadyhand.core.told import MessageTold
from steadyhand.journal.log import write_all
from steadyhand.ports import Disk, Editor, Folder, Ids

GRANTS = "permissions.json"
LOCK = "permissions.lock"
lock_wait_s_max = 5.0
lock_poll_s = 0.02
file_mode = 0o600


class Grants:
    """Those of one state directory, as this process reaches them. `in_thread` runs blocking work, never abandoned."""

    def __init__(
        self, disk: Disk, ids: Ids, editor: Editor, state_directory: str, in_thread: Callable[..., Awaitable[Any]]
    ) -> None:
        self._disk = disk
        self._ids = ids
        self._editor = editor
        self._state_directory = state_directory
        self._in_thread = in_thread
        self._changing = anyio.Lock()
        self._said: str | None = None

    async def known(self) -> tuple[Standing, ...]:
        """All there are; none where they cannot be read, which is said once."""
        found: tuple[Standing, ...] | Unusable
        try:
            found = await self._in_thread(self._read)
        except OSError as error:
            return self._none(f"cannot be read ({error.strerror}), so none of them counts. Make the file readable.")
        if isinstance(found, Unusable):
            why = "were written by a newer version" if found.newer else "are damaged"
            return self._none(f"{why}, so none of them counts and calls are asked about again.")
        self._said = None
        return found

    async def remember(self, grant: Standing) -> str | None:
        """Keep one, durably; a sentence where that is not certain."""

        def added(known: tuple[Standing, ...]) -> tuple[Standing, ...]:
            if any(one.same_as(grant) for one in known):
                return known
            if len(known) >= grants_max:
                raise OSError(errno.ENOSPC, f"{grants_max} are remembered already; forget some")
            return (*known, grant)

        try:
            await self._change(added)
        except OSError as error:
            why = error.strerror or type(error).__name__
            return f"It is allowed this once, and not remembered for certain ({why}). /permissions shows what is."
        return None

    async def forget(self, grant_ids: Sequence[str]) -> None:
        """Take back those there are of these. Refused where that cannot be written."""
        try:
            await self._change(lambda known: tuple(one for one in known if one.grant_id not in grant_ids))
        except OSError as error:
            text = f"The permissions could not be changed ({error.strerror}); they stand as they were."
            raise Refused("journalBroken", text) from error

    def _none(self, why: str) -> tuple[Standing, ...]:
        text = f"The remembered permissions ({GRANTS} in the state directory) {why}"
        if text != self._said:
            self._said = text
            self._editor.tell(MessageTold("warning", text))
        return ()

    async def _change(self, change: Callable[[tuple[Standing, ...]], tuple[Standing, ...]]) -> None:
        async with self._changing, self._locked() as folder:
            await self._in_thread(self._replace, folder, change)

    @asynccontextmanager
    async def _locked(self) -> AsyncIterator[Folder]:
        """The state directory's folder, with the lock over its grants. OSError where it cannot be had in time."""
        disk, lock = self._disk, None
        await self._in_thread(disk.make_root, self._state_directory)
        folder = disk.open_folder(self._state_directory)
        try:
            with anyio.move_on_after(lock_wait_s_max):
                # Polled, since a lock of the system tells nobody that it is free.
                while (lock := await self._in_thread(disk.lock, folder, LOCK)) is None:  # noqa: ASYNC110
                    await anyio.sleep(lock_poll_s)
            if lock is None:
                raise OSError(errno.EAGAIN, "another process is changing them; try again")
            try:
                yield folder
            finally:
                lock.release()
        finally:
            disk.close(folder)

    # Blocking, in a thread.

    def _read(self) -> tuple[Standing, ...] | Unusable:
        try:
            folder = self._disk.open_folder(self._state_directory)
        except FileNotFoundError:
            return ()
        try:
            return self._read_in(folder)
        finally:
            self._disk.close(folder)

    def _read_in(self, folder: Folder) -> tuple[Standing, ...] | Unusable:
        try:
            content = self._disk.read(folder, GRANTS, grants_bytes_max + 1)
        except FileNotFoundError:
            return ()
        return read_grants(content)

    def _replace(self, folder: Folder, change: Callable[[tuple[Standing, ...]], tuple[Standing, ...]]) -> None:
        known = self._read_in(folder)
        if isinstance(known, Unusable) and known.newer:
            raise OSError(errno.EPERM, "a newer version of Steadyhand keeps them; update to change them")
        wanted = change(() if isinstance(known, Unusable) else known)
        if wanted == known:
            return
        content = written(wanted)
        if len(content) > grants_bytes_max:
            raise OSError(errno.EFBIG, f"they would be larger than {grants_bytes_max} bytes; forget some")
        if isinstance(known, Unusable):
            self._disk.rename_new(folder, GRANTS, f"permissions.damaged-{self._ids.new()}.json")
        self._put(folder, content)

    def _put(self, folder: Folder, content: bytes) -> None:
        disk = self._disk
        for left in disk.names(folder):  # of a process that was killed here; the lock says that it is gone
            if left.startswith(f".{GRANTS}."):
                disk.unlink(folder, left)
        temporary = f".{GRANTS}.{self._ids.new()}"
        file = disk.create(folder, temporary, file_mode)
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
