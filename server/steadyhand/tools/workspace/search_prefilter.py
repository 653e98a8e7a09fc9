"""The files of a walk for a text search, in its order; a `ports.TextFilter` excludes those that need not be read.

The result is the same with and without a filter: every file of the walk is yielded, in the walk's order, with its
folder open. An excluded file holds neither the text nor a NUL, so reading it would find and count nothing. The filter
gets names and answers with names: everything that is shown is read here, through open folders. A filter that gives no
answer excludes nothing.

Files are collected in batches that grow, so a search with many matches ends early. Small files are read faster than
they are filtered. While a file is processed, the walk's counts are those at its place.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, suppress

import attrs

from steadyhand.domain.permissions.secret_names import looks_secret
from steadyhand.domain.text.globs import Glob
from steadyhand.ports.disk import Folder
from steadyhand.ports.system import TextFilter
from steadyhand.tools.workspace.paths import open_folder
from steadyhand.tools.workspace.walk import Counts, DirectoryWalk, Entry
from steadyhand_values import frozen

ASKED_FILE_BYTES_MIN = 16 * 1024
"""A smaller file is read faster than it is filtered (`make bench`)."""
ASKED_BYTES_MIN = 4 * 1024 * 1024
"""Of a batch; for less, starting a process costs more than reading."""
FIRST_BATCH_BYTES = 8 * 1024 * 1024
BATCH_BYTES_MAX = 64 * 1024 * 1024
BATCH_FILES_MAX = 2000
BATCH_NAME_BYTES_MAX = 100 * 1024
"""Of all paths that one process gets as arguments."""


@frozen
class PrefilterResult:
    """A file to be searched. `folder` is open until the next one is asked for."""

    name: str
    folder: Folder
    path: str  # absolute
    display_name: str  # relative to the start of the search
    is_secret: bool = False  # its name is a secret's and no rule allows it: it is not read (case 137)
    skipped_bytes: int | None = None  # its size in bytes if it need not be read; None: read it


@frozen
class _PrefilterOutput:
    """A file of a batch, with the walk's counts at its place."""

    entry: Entry
    path: str
    counts: Counts
    is_secret: bool


def matching_files(walk: DirectoryWalk, wanted: Glob | None) -> Generator[PrefilterResult, None, None]:
    """Yield every file of the walk that matches, without a filter."""
    with closing(walk.entries()) as entries:
        for entry in entries:
            if _is_wanted(entry, wanted):
                path = _absolute_path(walk, entry)
                secret = _is_secret(walk, entry, path)
                yield PrefilterResult(entry.name, entry.folder, path, entry.display_name, secret)


def prefiltered_files(
    walk: DirectoryWalk, wanted: Glob | None, text: bytes, text_filter: TextFilter, file_bytes_max: int
) -> Generator[PrefilterResult, None, None]:
    """Yield the same files. Files above `file_bytes_max` are never searched, so they are not filtered."""
    target = FIRST_BATCH_BYTES
    with closing(walk.entries()) as entries:
        while batch := _next_batch(walk, entries, wanted, target, file_bytes_max):
            at_end = walk.counts
            ruled_out = _paths_to_skip(walk, batch, text, text_filter, file_bytes_max)
            with closing(_open_batch(walk, batch, ruled_out)) as opened:
                for counts, met in opened:
                    walk.counts = counts
                    if walk.remaining_s <= 0:
                        walk.check_time()
                        return
                    if met is None:
                        at_end = attrs.evolve(at_end, unreadable=at_end.unreadable + 1)
                    else:
                        yield met
            walk.counts = at_end
            target = min(target * 2, BATCH_BYTES_MAX)


def _next_batch(
    walk: DirectoryWalk, entries: Iterator[Entry], wanted: Glob | None, target: int, file_bytes_max: int
) -> list[_PrefilterOutput]:
    """Return the next files, until those worth filtering hold `target` bytes."""
    batch: list[_PrefilterOutput] = []
    size = names = 0
    for entry in entries:
        if not _is_wanted(entry, wanted):
            continue
        path = _absolute_path(walk, entry)
        batch.append(_PrefilterOutput(entry, path, walk.counts, _is_secret(walk, entry, path)))
        if ASKED_FILE_BYTES_MIN <= entry.stat.size <= file_bytes_max and not batch[-1].is_secret:
            size, names = size + entry.stat.size, names + len(path.encode("utf-8", "surrogateescape")) + 1
        if size >= target or names >= BATCH_NAME_BYTES_MAX or len(batch) >= BATCH_FILES_MAX:
            break
    return batch


def _paths_to_skip(
    walk: DirectoryWalk, batch: list[_PrefilterOutput], text: bytes, text_filter: TextFilter, file_bytes_max: int
) -> frozenset[str]:
    sizes = {
        one.path: one.entry.stat.size
        for one in batch
        if ASKED_FILE_BYTES_MIN <= one.entry.stat.size <= file_bytes_max and not one.is_secret
    }
    if not sizes or sum(sizes.values()) < ASKED_BYTES_MIN:
        return frozenset()
    kept = text_filter.may_hold(text, list(sizes), walk.remaining_s, walk.tool_context.workspace_folders())
    return frozenset() if kept is None else frozenset(sizes) - kept


def _open_batch(
    walk: DirectoryWalk, batch: list[_PrefilterOutput], ruled_out: frozenset[str]
) -> Generator[tuple[Counts, PrefilterResult | None], None, None]:
    """Yield each file with its folder open again; no link is followed. None: its folder does not exist any more."""
    with ExitStack() as opened:
        last: tuple[str, ...] | None = None
        folder: Folder | None = None
        for one in batch:
            parents = one.entry.path[:-1]
            if parents != last:
                opened.close()
                last, folder = parents, None
                with suppress(OSError):
                    folder = opened.enter_context(open_folder(walk.tool_context, (*walk.start.parts, *parents)))
            if folder is None:
                yield one.counts, None
                continue
            entry, size = one.entry, one.entry.stat.size if one.path in ruled_out else None
            yield one.counts, PrefilterResult(entry.name, folder, one.path, entry.display_name, one.is_secret, size)


def _is_wanted(entry: Entry, wanted: Glob | None) -> bool:
    return entry.stat.kind == "file" and (wanted is None or wanted.matches(entry.path))


def _is_secret(walk: DirectoryWalk, entry: Entry, path: str) -> bool:
    return looks_secret(entry.path) and not walk.tool_context.allows_secret(path)


def _absolute_path(walk: DirectoryWalk, entry: Entry) -> str:
    return "/".join((walk.start.resolved.rstrip("/"), *entry.path))
