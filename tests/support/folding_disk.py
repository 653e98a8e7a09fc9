"""A disk on which spellings that differ in case or Unicode form are one name, as on macOS, Windows and network shares.

It keeps the spelling with which an entry was created, and finds it under every other one. Tests on Linux, whose file
systems rarely fold, use it over the system's disk.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any, cast

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.ports.disk import Disk, Folder

Fold = Callable[[str], str]

NAMES_AT: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("enter", "make_folder", "look", "read", "open_read", "create", "open_append", "attributes"), (1,)),
    **dict.fromkeys(("make_link", "unlink", "remove_folder", "writable", "lock"), (1,)),
    **dict.fromkeys(("rename", "rename_new", "exchange"), (1, 2)),
}
"""Method of `Disk` → which of its arguments are names in the folder that is its first argument."""


def fold_case(name: str) -> str:
    """As FAT and NTFS compare names."""
    return name.casefold()


def fold_form(name: str) -> str:
    """As a file system that tells letter case apart and normalises: HFS+ and APFS have such a variant."""
    return unicodedata.normalize("NFD", name)


def fold_both(name: str) -> str:
    """As APFS compares names."""
    return fold_form(fold_form(name).casefold())


class FoldingDisk:
    """`ports.Disk` over the system's disk. The folders above `kept` do not fold."""

    def __init__(self, kept: str, fold: Fold = fold_both) -> None:
        self._inner = system_disk()
        self._kept = kept
        self._fold = fold

    def open_folder(self, path: str) -> Folder:
        return self._inner.open_folder(self._spelled(path))

    def look_path(self, path: str) -> object:
        return self._inner.look_path(self._spelled(path))

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        found, goal = self._entry(folder, name), self._entry(other, new)
        self._inner.rename_to(folder, found, other, goal, exclusive)

    def __getattr__(self, method: str) -> Callable[..., Any]:
        call: Callable[..., Any] = getattr(self._inner, method)
        places = NAMES_AT.get(method)
        if places is None:
            return call

        def passed_on(folder: Folder, *rest: Any) -> Any:
            given = [self._entry(folder, one) if at in places else one for at, one in enumerate(rest, start=1)]
            return call(folder, *given)

        return passed_on

    def _entry(self, folder: Folder, name: str) -> str:
        """The name that an entry was created with, if there is one under this spelling."""
        names = self._inner.names(folder)
        if name in names:
            return name
        return next((one for one in names if self._fold(one) == self._fold(name)), name)

    def _spelled(self, path: str) -> str:
        """The path with each name below `kept` as its entry was created."""
        folded = [self._fold(part) for part in self._kept.split("/")]
        parts = path.split("/")
        if [self._fold(part) for part in parts[: len(folded)]] != folded:
            return path
        found = self._kept
        for at, name in enumerate(parts[len(folded) :], start=len(folded)):
            try:
                folder = self._inner.open_folder(found)
            except OSError:
                return "/".join((found, *parts[at:]))
            try:
                found = f"{found}/{self._entry(folder, name)}"
            finally:
                self._inner.close(folder)
        return found


def folding_disk(kept: str, fold: Fold = fold_both) -> Disk:
    """A `FoldingDisk` as the port."""
    return cast(Disk, FoldingDisk(kept, fold))
