"""Disks that count, die, wait or fail at one chosen operation, over any other disk.

A durable operation is one whose effect can outlive the process. Only durable operations are numbered, from 1, in the
order in which they begin. Each has a readable name, `write s1/journal.jsonl #3 "started"`: the verb, the path below the
opened root, and for a write its number in that file and the kinds of the records in it. Reading has no number.

`CountingDisk` lists the operations. `KillingDisk` ends its own process with SIGKILL before, after or halfway through
the n-th one, `DyingDisk` at the first one that matches. `FaultDisk` and `MatchingFault` let operations fail as a real
disk does. `GatedDisk` holds an operation until the test lets it go on. `BetweenDisk` calls back before every operation,
also before those that only read.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast

import anyio.to_thread
import attrs

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import Attributes, Disk, EntryStat, File, Folder, Lock, ReplaceLimits

T = TypeVar("T")

held_s_max = 60.0

Verb = Literal[
    "make_folder",
    "make_root",
    "create",
    "write",
    "truncate",
    "sync",
    "sync_folder",
    "rename",
    "rename_new",
    "rename_to",
    "exchange",
    "make_link",
    "unlink",
    "remove_folder",
    "give_attributes",
    "set_mode",
]
When = Literal["before", "after", "half"]

record_kind = re.compile(rb'"kind":\s*"(\w+)"')


@attrs.frozen
class Operation:
    """One durable operation, about to happen."""

    number: int  # from 1
    verb: Verb
    target: str  # path below the opened root; "old -> new" for renames
    turn: int = 0  # of a write: its number in this file, from 1
    piece: bytes = b""  # of a write: the bytes to write

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the records in a write, in order."""
        return tuple(kind.decode() for kind in record_kind.findall(self.piece))

    def __str__(self) -> str:
        words = [self.verb, self.target]
        if self.verb == "write":
            words.append(f"#{self.turn}")
            words += [f'"{kind}"' for kind in self.kinds] or [f"({len(self.piece)} bytes)"]
        return " ".join(word for word in words if word)


class WatchedDisk:
    """`ports.Disk` that passes everything on, and durable operations through `around`."""

    def __init__(self, inner: Disk) -> None:
        self.inner = inner
        self.count = 0
        self._folders: dict[int, str] = {}
        self._files: dict[int, str] = {}
        self._turns: dict[str, int] = {}

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        """Carry out one durable operation. `half` writes half of the bytes; None for all but writes."""
        return act()

    def _durable(self, verb: Verb, target: str, act: Callable[[], T]) -> T:
        self.count += 1
        return self.around(Operation(self.count, verb, target), act, None)

    def _path(self, folder: Folder, name: str) -> str:
        return "/".join(part for part in (self._folders.get(folder, "?"), name) if part)

    def _pair(self, folder: Folder, old: str, new: str) -> str:
        return f"{self._path(folder, old)} -> {new}"

    def open_folder(self, path: str) -> Folder:
        folder = self.inner.open_folder(path)
        self._folders[folder] = ""
        return folder

    def enter(self, folder: Folder, name: str) -> Folder:
        entered = self.inner.enter(folder, name)
        self._folders[entered] = self._path(folder, name)
        return entered

    def make_folder(self, folder: Folder, name: str, mode: int = 0o700) -> None:
        target = self._path(folder, name)
        self._durable("make_folder", target, lambda: self.inner.make_folder(folder, name, mode))

    def make_root(self, path: str) -> None:
        self._durable("make_root", "", lambda: self.inner.make_root(path))

    def names(self, folder: Folder) -> list[str]:
        return self.inner.names(folder)

    def look(self, folder: Folder, name: str) -> EntryStat | None:
        return self.inner.look(folder, name)

    def look_path(self, path: str) -> EntryStat | None:
        return self.inner.look_path(path)

    def look_open(self, handle: Folder | File) -> EntryStat:
        return self.inner.look_open(handle)

    def read(self, folder: Folder, name: str, limit: int) -> bytes:
        return self.inner.read(folder, name, limit)

    def open_read(self, folder: Folder, name: str) -> File:
        return self._named(self.inner.open_read(folder, name), self._path(folder, name))

    def _named(self, file: File, target: str) -> File:
        self._files[file] = target
        return file

    def read_piece(self, file: File, size: int) -> bytes:
        return self.inner.read_piece(file, size)

    def move_to(self, file: File, position: int) -> None:
        self.inner.move_to(file, position)

    def create(self, folder: Folder, name: str, mode: int) -> File:
        target = self._path(folder, name)
        return self._named(self._durable("create", target, lambda: self.inner.create(folder, name, mode)), target)

    def open_append(self, folder: Folder, name: str) -> File:
        return self._named(self.inner.open_append(folder, name), self._path(folder, name))

    def open_update(self, folder: Folder, name: str) -> File:
        return self._named(self.inner.open_update(folder, name), self._path(folder, name))

    def write(self, file: File, piece: bytes) -> int:
        target = self._files.get(file, "?")
        self.count += 1
        self._turns[target] = self._turns.get(target, 0) + 1
        operation = Operation(self.count, "write", target, self._turns[target], piece)
        return self.around(
            operation,
            lambda: self.inner.write(file, piece),
            lambda: self.inner.write(file, piece[: len(piece) // 2]),
        )

    def truncate(self, file: File, size: int) -> None:
        self._durable("truncate", self._files.get(file, "?"), lambda: self.inner.truncate(file, size))

    def sync(self, file: File) -> None:
        self._durable("sync", self._files.get(file, "?"), lambda: self.inner.sync(file))

    def reread(self, file: File) -> None:
        self.inner.reread(file)

    def sync_folder(self, folder: Folder) -> None:
        self._durable("sync_folder", self._path(folder, ""), lambda: self.inner.sync_folder(folder))

    def close(self, handle: Folder | File) -> None:
        self.inner.close(handle)
        self._folders.pop(handle, None)
        self._files.pop(handle, None)

    def attributes(self, folder: Folder, name: str) -> Attributes:
        return self.inner.attributes(folder, name)

    def give_attributes(self, file: File, attributes: Attributes) -> list[str]:
        target = self._files.get(file, "?")
        return self._durable("give_attributes", target, lambda: self.inner.give_attributes(file, attributes))

    def rename(self, folder: Folder, old: str, new: str) -> None:
        target = self._pair(folder, old, new)
        self._durable("rename", target, lambda: self.inner.rename(folder, old, new))

    def rename_new(self, folder: Folder, old: str, new: str) -> None:
        target = self._pair(folder, old, new)
        self._durable("rename_new", target, lambda: self.inner.rename_new(folder, old, new))

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        target = f"{self._path(folder, name)} -> {self._path(other, new)}"
        self._durable("rename_to", target, lambda: self.inner.rename_to(folder, name, other, new, exclusive))

    def exchange(self, folder: Folder, first: str, second: str) -> bool:
        target = self._pair(folder, first, second)
        return self._durable("exchange", target, lambda: self.inner.exchange(folder, first, second))

    def make_link(self, folder: Folder, name: str, target: str) -> None:
        self._durable("make_link", self._path(folder, name), lambda: self.inner.make_link(folder, name, target))

    def unlink(self, folder: Folder, name: str) -> None:
        self._durable("unlink", self._path(folder, name), lambda: self.inner.unlink(folder, name))

    def remove_folder(self, folder: Folder, name: str) -> None:
        path = self._path(folder, name)
        self._durable("remove_folder", path, lambda: self.inner.remove_folder(folder, name))

    def set_mode(self, handle: Folder | File, mode: int) -> None:
        path = self._folders.get(handle) or self._files.get(handle, "")
        self._durable("set_mode", path, lambda: self.inner.set_mode(handle, mode))

    def user(self) -> int | None:
        return self.inner.user()

    def writable(self, folder: Folder, name: str) -> bool:
        return self.inner.writable(folder, name)

    def replace_limits(self, folder: Folder, name: str) -> ReplaceLimits:
        return self.inner.replace_limits(folder, name)

    def lock(self, folder: Folder, name: str) -> Lock | None:
        return self.inner.lock(folder, name)

    def real_path(self, folder: Folder) -> str:
        return self.inner.real_path(folder)


class CountingDisk(WatchedDisk):
    """Lists every durable operation in `operations`; `log` has the names."""

    def __init__(self, inner: Disk) -> None:
        super().__init__(inner)
        self.operations: list[Operation] = []

    @property
    def log(self) -> list[str]:
        return [str(operation) for operation in self.operations]

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        self.operations.append(operation)
        return act()


class KillingDisk(WatchedDisk):
    """Ends this process by SIGKILL at the n-th durable operation. "half" is "before" for all but writes."""

    def __init__(self, inner: Disk, at: int, when: When) -> None:
        super().__init__(inner)
        self.at = at
        self.when = when

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if operation.number != self.at:
            return act()
        if self.when == "after":
            act()
        elif self.when == "half" and half is not None:
            half()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process outlived its SIGKILL")


class MatchingFault(WatchedDisk):
    """Lets operations fail for which `matches` returns true: the first `times` of them, all if None.

    `error` is the errno of the OSError that is raised instead of acting, or "short": a write then takes half of its
    bytes and returns their count, other operations succeed. After a short write every later write fails with `then`, if
    it is given, as on a disk that just became full. `failed` lists the operations that failed.
    """

    def __init__(
        self,
        inner: Disk,
        matches: Callable[[Operation], bool],
        error: int | Literal["short"],
        times: int | None = 1,
        then: int | None = None,
    ) -> None:
        super().__init__(inner)
        self.matches = matches
        self.error = error
        self.times = times
        self.then = then
        self.failed: list[Operation] = []

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if self.then is not None and self.failed and operation.verb == "write":
            self._fail(operation, self.then)
        if (self.times is not None and len(self.failed) >= self.times) or not self.matches(operation):
            return act()
        if self.error != "short":
            self._fail(operation, self.error)
        if half is None:
            return act()
        self.failed.append(operation)
        return half()

    def _fail(self, operation: Operation, number: int) -> None:
        self.failed.append(operation)
        raise OSError(number, os.strerror(number), str(operation))


class FaultDisk(MatchingFault):
    """Fails at the n-th durable operation, once, or from then on (`for_good`)."""

    def __init__(
        self,
        inner: Disk,
        at: int,
        error: int | Literal["short"],
        for_good: bool = False,
        then: int | None = None,
    ) -> None:
        super().__init__(
            inner,
            lambda operation: operation.number >= at if for_good else operation.number == at,
            error,
            times=None,
            then=then,
        )


class LateFault(WatchedDisk):
    """The n-th durable operation is done, and then reported as failed."""

    def __init__(self, inner: Disk, at: int) -> None:
        super().__init__(inner)
        self.at = at

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        done = act()
        if operation.number == self.at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(operation))
        return done


def carries(kind: str) -> Callable[[Operation], bool]:
    """For `MatchingFault`: a write with a record of this kind."""
    return lambda operation: operation.verb == "write" and kind in operation.kinds


disk_errors = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EACCES, errno.EDQUOT)


Matches = Callable[[Operation], bool]


class DyingDisk(WatchedDisk):
    """Ends this process right before (or `after`) the first operation that matches."""

    def __init__(self, matches: Matches, after: bool = False, inner: Disk | None = None) -> None:
        super().__init__(inner or system_disk())
        self._matches = matches
        self._after = after

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if not self._matches(operation):
            return act()
        if self._after:
            act()
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("the process outlived its SIGKILL")


def on(verb: str, name: str) -> Matches:
    """An operation with this verb and this name in its target."""
    return lambda operation: operation.verb == verb and name in operation.target


class GatedDisk(WatchedDisk):
    """Holds the first operation that `matches`, in its thread, until `go`; others pass.

    `fails`: the operation then raises this, before it acts or (`after`) when it has acted.
    """

    def __init__(
        self, matches: Callable[[Operation], bool], fails: OSError | None = None, after: bool = False, held: bool = True
    ) -> None:
        super().__init__(system_disk())
        self.matches = matches
        self.fails = fails
        self.after = after
        self.reached = threading.Event()
        self.go = threading.Event()
        if not held:
            self.go.set()

    def around(self, operation: Operation, act: Callable[[], T], half: Callable[[], T] | None) -> T:
        if self.reached.is_set() or not self.matches(operation):
            return act()
        self.reached.set()
        assert self.go.wait(held_s_max), f"nobody let {operation} go on"
        if self.fails is None:
            return act()
        if self.after:
            act()
        raise self.fails

    async def wait_reached(self) -> None:
        assert await anyio.to_thread.run_sync(self.reached.wait, held_s_max), "the operation never came"


def beside(verb: str, end: str) -> Callable[[Operation], bool]:
    """An operation with this verb on a target that ends so."""
    return lambda operation: operation.verb == verb and operation.target.endswith(end)


class BetweenDisk:
    """Every method of `ports.Disk` that can fail; `before(number, name)` is called first, numbered from 1."""

    def __init__(self, inner: Disk, before: Callable[[int, str], None]) -> None:
        self._inner = inner
        self._before = before
        self.count = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._inner, name)
        if name == "user":
            return method

        def passed_on(*arguments: Any) -> Any:
            self.count += 1
            self._before(self.count, name)
            return method(*arguments)

        return passed_on


def failing(verb: Verb, number: int = errno.EIO) -> Disk:
    """The system's disk, on which the first operation of this kind fails."""
    return MatchingFault(system_disk(), lambda operation: operation.verb == verb, number)


def between(before: Callable[[int, str], None]) -> Disk:
    """A `BetweenDisk` over the system's disk."""
    return cast(Disk, BetweenDisk(system_disk(), before))
