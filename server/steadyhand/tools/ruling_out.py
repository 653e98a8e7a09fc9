"""The files of a walk for a search of text, in its order, where a `ports.TextFilter` rules out those not worth reading.

What is found is the same with and without one: every file that the walk meets is yielded, in the walk's order, with its
folder open; a file that is ruled out holds neither the text nor a NUL, so reading it would find nothing and count
nothing. The filter is told names alone and answers with names alone: what is shown is read here, through open folders.
A filter that cannot tell rules nothing out.

Files are gathered in batches that grow, so that a search with many matches ends early all the same; small files are
sooner read than asked about. While a file is looked at the walk's counts are those of its place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress

import attrs

from steadyhand.core.globs import Glob
from steadyhand.ports import Folder, TextFilter
from steadyhand.tools.place import entered
from steadyhand.tools.walk import Counts, Entry, Walk

asked_file_bytes_min = 16 * 1024
"""A smaller file is read sooner than asked about (`make bench`)."""
asked_bytes_min = 4 * 1024 * 1024
"""Of a batch; below it a child costs more than reading."""
first_batch_bytes = 8 * 1024 * 1024
batch_bytes_max = 64 * 1024 * 1024
batch_files_max = 2000
batch_name_bytes_max = 100 * 1024
"""Of all paths that one child is given."""


@attrs.frozen
class Met:
    """A file to be searched. `folder` is open while it is looked at."""

    name: str
    folder: Folder
    path: str  # absolute
    shown: str  # from where the search begins
    ruled_out: int | None = None  # its bytes, where it need not be read


@attrs.frozen
class _Gathered:
    entry: Entry
    path: str
    counts: Counts


def met_files(walk: Walk, wanted: Glob | None) -> Generator[Met, None, None]:
    """Every file of the walk that fits, without a filter."""
    with closing(walk.entries()) as entries:
        for entry in entries:
            if _fits(entry, wanted):
                yield Met(entry.name, entry.folder, _path(walk, entry), entry.shown)


def filtered_files(
    walk: Walk, wanted: Glob | None, text: bytes, text_filter: TextFilter, file_bytes_max: int
) -> Generator[Met, None, None]:
    """The same files. `file_bytes_max`: larger ones are never searched, so they are not asked about."""
    target = first_batch_bytes
    with closing(walk.entries()) as entries:
        while batch := _gathered(walk, entries, wanted, target, file_bytes_max):
            at_end = walk.counts
            ruled_out = _ruled_out(walk, batch, text, text_filter, file_bytes_max)
            with closing(_opened(walk, batch, ruled_out)) as opened:
                for counts, met in opened:
                    walk.counts = counts
                    if walk.left_s <= 0:
                        walk.timely()
                        return
                    if met is None:
                        at_end = attrs.evolve(at_end, unreadable=at_end.unreadable + 1)
                    else:
                        yield met
            walk.counts = at_end
            target = min(target * 2, batch_bytes_max)


def _gathered(
    walk: Walk, entries: Iterator[Entry], wanted: Glob | None, target: int, file_bytes_max: int
) -> list[_Gathered]:
    """The next files, until those worth asking about hold `target` bytes."""
    batch: list[_Gathered] = []
    size = names = 0
    for entry in entries:
        if not _fits(entry, wanted):
            continue
        path = _path(walk, entry)
        batch.append(_Gathered(entry, path, walk.counts))
        if asked_file_bytes_min <= entry.look.size <= file_bytes_max:
            size, names = size + entry.look.size, names + len(path.encode("utf-8", "surrogateescape")) + 1
        if size >= target or names >= batch_name_bytes_max or len(batch) >= batch_files_max:
            break
    return batch


def _ruled_out(
    walk: Walk, batch: list[_Gathered], text: bytes, text_filter: TextFilter, file_bytes_max: int
) -> frozenset[str]:
    sizes = {
        one.path: one.entry.look.size
        for one in batch
        if asked_file_bytes_min <= one.entry.look.size <= file_bytes_max
    }  # fmt: skip
    if not sizes or sum(sizes.values()) < asked_bytes_min:
        return frozenset()
    kept = text_filter.may_hold(text, list(sizes), walk.left_s)
    return frozenset() if kept is None else frozenset(sizes) - kept


def _opened(
    walk: Walk, batch: list[_Gathered], ruled_out: frozenset[str]
) -> Generator[tuple[Counts, Met | None], None, None]:
    """Each file with its folder open again, no link followed; None: its folder is not there any more."""
    with ExitStack() as opened:
        last: tuple[str, ...] | None = None
        folder: Folder | None = None
        for one in batch:
            parents = one.entry.path[:-1]
            if parents != last:
                opened.close()
                last, folder = parents, None
                with suppress(OSError):
                    folder = opened.enter_context(entered(walk.ground, (*walk.start.parts, *parents)))
            if folder is None:
                yield one.counts, None
                continue
            entry, size = one.entry, one.entry.look.size if one.path in ruled_out else None
            yield one.counts, Met(entry.name, folder, one.path, entry.shown, size)


def _fits(entry: Entry, wanted: Glob | None) -> bool:
    return entry.look.kind == "file" and (wanted is None or wanted.matches(entry.path))


def _path(walk: Walk, entry: Entry) -> str:
    return "/".join((walk.start.resolved.rstrip("/"), *entry.path))
