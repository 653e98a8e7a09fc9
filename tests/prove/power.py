"""Every state that a power loss may leave, computed from the log of a `SimDisk`.

Power may fail after each operation of the log. Then the disk has, independently of each other:

    names    any subset of the directory operations whose folder was not synced after them (above `subsets_max`
             operations: every prefix, each one lost, each one alone)
    bytes    for each file, of its writes since its last sync: any prefix; the next write torn, at each byte of a
             journal and at sectors elsewhere, with the missing part absent or zero; the size grown without data; one
             write lost and the next one there; any one sector of all of it zero

A sync that failed wrote nothing (`gate` "lost") or everything ("kept"), and later syncs do not write it. If the product
of all choices is above `product_max`, each choice of a file is combined with both extremes of everything else, and the
folders' subsets with the extremes of the files. States with equal content and equal promises count as one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal

import attrs

from tests.support.sim_disk import ROOT, Entry, SimDisk, Tree

sector_bytes = 512
subsets_max = 7
"""Up to this number of directory operations, all their subsets are taken."""
product_max = 600
JOURNAL = "journal.jsonl"

Torn = Literal["byte", "sector", "whole"]
Gate = Literal["lost", "kept"]


@attrs.frozen
class State:
    """One state after a power loss. `marks`: the number of marks of the log before it."""

    prefix: int
    marks: int
    tree: Tree
    key: int


@attrs.frozen
class _Names:
    """One choice of names: what can be reached, and by which paths, as a key."""

    folders: dict[int, dict[str, int]]
    files: tuple[int, ...]
    key: int

    @staticmethod
    def of(folders: dict[int, dict[str, int]]) -> _Names:
        reached: dict[int, dict[str, int]] = {}
        files: list[int] = []
        paths: list[object] = []
        pending = [("", ROOT)]
        while pending:
            path, inode = pending.pop()
            reached[inode] = folders[inode]
            for name, child in sorted(folders[inode].items()):
                if child in folders:
                    pending.append((f"{path}/{name}", child))
                    paths.append((path, name))
                else:
                    files.append(child)
                    paths.append((path, name, None))
        return _Names(reached, tuple(files), hash(tuple(paths)))


@attrs.define
class _Pending:
    """What is certainly durable, and what may be."""

    folders: dict[int, dict[str, int]]
    files: dict[int, bytes]
    names: list[Entry] = attrs.field(factory=list)
    writes: dict[int, list[Entry]] = attrs.field(factory=dict)
    grown: dict[int, int] = attrs.field(factory=dict)  # size that a failed sync may have left without its data
    choices: dict[int, list[bytes]] = attrs.field(factory=dict)
    folder_choices: list[_Names] | None = None

    def take(self, entry: Entry, gate: Gate) -> None:
        """Add one operation."""
        match entry:
            case ("write" | "truncate", int(inode), *_):
                self.writes.setdefault(inode, []).append(entry)
                self.choices.pop(inode, None)
            case ("sync", int(inode)):
                if any(entry[0] == "truncate" for entry in self.writes.get(inode, ())):
                    self.grown.pop(inode, None)  # the size is durable too, whatever a failed sync left before
                self._written(inode)
            case ("failed_sync", int(inode)):
                if gate == "kept":
                    self._written(inode)
                else:
                    size = _applied(self.files.get(inode, b""), self.writes.get(inode, ()))
                    self.grown[inode] = max(self.grown.get(inode, 0), len(size))
                self.writes.pop(inode, None)
                self.choices.pop(inode, None)
            case ("sync_folder", int(folder)):
                here = [each for each in self.names if _touches(each, folder)]
                if here:
                    self.names = [each for each in self.names if not _touches(each, folder)]
                    _named(self.folders, here)
                    self.folder_choices = None
            case ("link" | "rename" | "rename_to" | "exchange" | "unlink", *_):
                self.names.append(entry)
                self.folder_choices = None
            case _:
                pass

    def _written(self, inode: int) -> None:
        if inode in self.writes:
            self.files[inode] = _applied(self.files.get(inode, b""), self.writes.pop(inode))
        self.choices.pop(inode, None)


def states(
    disk: SimDisk,
    after: int = 0,
    torn: Torn = "byte",
    gate: Gate = "lost",
    product: int = product_max,
    part: int = 0,
    parts: int = 1,
) -> Iterator[State]:
    """Every distinct state for each prefix of the log of at least `after` operations; one share of `parts`."""
    seen: set[int] = set()
    pending = _Pending({inode: dict(each) for inode, each in disk.first.folders.items()}, dict(disk.first.files))
    for made in disk.log:
        if made[0] == "link" and made[4]:
            pending.folders[int(str(made[3]))] = {}
    fine = _journals(disk) if torn == "byte" else set()
    marks = 0
    for prefix in range(len(disk.log) + 1):
        if prefix >= after:
            for tree, key in _at(pending, marks, fine, torn, seen, product):
                if key % parts == part:
                    yield State(prefix, marks, tree(), key)
        if prefix < len(disk.log):
            entry = disk.log[prefix]
            marks += entry[0] == "mark"
            pending.take(entry, gate)


def _at(
    pending: _Pending, marks: int, fine: set[int], torn: Torn, seen: set[int], product: int
) -> Iterator[tuple[Callable[[], Tree], int]]:
    if pending.folder_choices is None:
        pending.folder_choices = _name_choices(pending.folders, pending.names)
    waiting = [
        inode for inode in {*pending.writes, *pending.grown} if pending.writes.get(inode) or inode in pending.grown
    ]
    for inode in waiting:
        if inode not in pending.choices:
            pending.choices[inode] = _byte_choices(
                pending.files.get(inode, b""),
                pending.writes.get(inode, []),
                pending.grown.get(inode),
                "byte" if inode in fine else "whole" if torn == "whole" else "sector",
            )
    for names, *contents in _combined(pending.folder_choices, [pending.choices[i] for i in waiting], product):
        files = {**pending.files, **dict(zip(waiting, contents, strict=True))}
        key = hash((marks, names.key, tuple([files.get(inode, b"") for inode in names.files])))
        if key not in seen:
            seen.add(key)
            yield partial(_tree, names, files), key


def _tree(names: _Names, files: dict[int, bytes]) -> Tree:
    folders = {inode: dict(each) for inode, each in names.folders.items()}
    return Tree(folders, {inode: files.get(inode, b"") for inode in names.files})


def _combined(folders: list[Any], files: list[list[bytes]], product: int) -> Iterable[tuple[Any, ...]]:
    total = len(folders)
    for each in files:
        total *= len(each)
    if total <= product:
        return itertools.product(folders, *files)
    return _extremes([folders, *files])


def _extremes(axes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Each value of each axis, with all others at their first, and with all others at their last."""
    for place, axis in enumerate(axes):
        for end in (0, -1):
            rest = [other[end] for other in axes]
            for value in axis:
                yield (*rest[:place], value, *rest[place + 1 :])


def _name_choices(durable: dict[int, dict[str, int]], pending: list[Entry]) -> list[_Names]:
    """The first choice: nothing is durable. The last: everything is."""
    count = len(pending)
    subsets: Iterable[tuple[bool, ...]]
    if count <= subsets_max:
        subsets = itertools.product((False, True), repeat=count)
    else:
        beginnings = [tuple(place < end for place in range(count)) for end in range(count)]
        lost = [tuple(place != gone for place in range(count)) for gone in range(count)]
        alone = [tuple(place == there for place in range(count)) for there in range(count)]
        subsets = dict.fromkeys([*beginnings, *alone, *lost, (True,) * count])
    found: dict[int, _Names] = {}
    for subset in subsets:
        folders = {inode: dict(each) for inode, each in durable.items()}
        _named(folders, [entry for entry, there in zip(pending, subset, strict=True) if there])
        names = _Names.of(folders)
        key = hash((names.key, names.files))
        found.pop(key, None)
        found[key] = names
    return list(found.values())


def _touches(entry: Entry, folder: int) -> bool:
    """Whether a sync of this folder makes the operation durable; either folder of a move does, because a move is one
    step."""
    return entry[1] == folder or (entry[0] == "rename_to" and entry[3] == folder)


def _named(folders: dict[int, dict[str, int]], entries: Iterable[Entry]) -> None:
    for entry in entries:
        match entry:
            case ("link", int(folder), str(name), int(inode), bool()):
                folders[folder][name] = inode
            case ("rename", int(folder), str(old), str(new), int(inode)):
                folders[folder].pop(old, None)
                folders[folder][new] = inode
            case ("exchange", int(folder), str(first), str(second), int(one), int(other)):
                folders[folder][first], folders[folder][second] = other, one
            case ("rename_to", int(folder), str(old), int(target), str(new), int(inode)):
                folders[folder].pop(old, None)
                folders[target][new] = inode
            case ("unlink", int(folder), str(name)):
                folders[folder].pop(name, None)
            case _:
                pass


def _applied(content: bytes, writes: Iterable[Entry]) -> bytes:
    for entry in writes:
        match entry:
            case ("write", int(), int(at), bytes(piece)):
                content = content[:at].ljust(at, b"\0") + piece + content[at + len(piece) :]
            case ("truncate", int(), int(size)):
                content = content[:size].ljust(size, b"\0")
            case _:
                pass
    return content


def _byte_choices(durable: bytes, writes: list[Entry], grown: int | None, torn: Torn) -> list[bytes]:
    """What a file may contain. The first choice: nothing is durable. The last: everything is."""
    found = dict.fromkeys([durable])
    if grown is not None:
        found[durable.ljust(grown, b"\0")] = None
    now = durable
    for place, entry in enumerate(writes):
        if entry[0] == "write":
            _torn_write(now, entry, torn, found)
        if place + 1 < len(writes):
            found[_applied(now, [writes[place + 1]])] = None
        now = _applied(now, [entry])
        found[now] = None
    written = [int(str(entry[2])) for entry in writes if entry[0] == "write"]
    if written and torn != "whole":
        for start in range(min(written) // sector_bytes * sector_bytes, len(now), sector_bytes):
            begin, end = max(start, min(written)), min(start + sector_bytes, len(now))
            found[now[:begin] + bytes(end - begin) + now[end:]] = None
    found.pop(now)
    return [*found, now]


def _torn_write(now: bytes, entry: Entry, torn: Torn, found: dict[bytes, None]) -> None:
    _, _, at, piece = entry
    assert isinstance(at, int)
    assert isinstance(piece, bytes)
    size = len(piece)
    if torn == "byte":
        cuts: Iterable[int] = range(1, size)
    else:
        sectors = range((at // sector_bytes + 1) * sector_bytes - at, size, sector_bytes)
        cuts = sorted({1, size // 2, size - 1, *sectors}) if torn == "sector" else ()
    for cut in cuts:
        if 0 < cut < size:
            found[_applied(now, [("write", 0, at, piece[:cut])])] = None
            found[_applied(now, [("write", 0, at, piece[:cut] + bytes(size - cut))])] = None
    found[_applied(now, [("write", 0, at, bytes(size))])] = None


def _journals(disk: SimDisk) -> set[int]:
    made = {int(str(entry[3])) for entry in disk.log if entry[0] == "link" and entry[2] == JOURNAL}
    return made | {each[JOURNAL] for each in disk.first.folders.values() if JOURNAL in each}
