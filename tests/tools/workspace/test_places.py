"""Where paths lead now: through links, through a second name, through a mount (case 164)."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Scope
from steadyhand.domain.records.scope import EVERYTHING, NOTHING
from steadyhand.ports.disk import Folder
from steadyhand.tools.workspace.places import find_place, overlapping_now
from tests.support.faults import WatchedDisk
from tests.support.systems import linux_only, mounted_at

pytestmark = linux_only

DISK = system_disk()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "place"
    (place / "real" / "src").mkdir(parents=True)
    (place / "real" / "src" / "a.txt").write_text("a\n")
    return place


def overlap(first: Path, second: Path) -> bool:
    """Whether the scopes of these paths overlap now, in both directions."""
    found = {
        bool(overlapping_now(DISK, Scope((str(one),)), {"other": Scope((str(other),))}))
        for one, other in ((first, second), (second, first))
    }
    assert len(found) == 1, "overlap has no direction"
    return found.pop()


def test_place_of_a_path_names_what_exists_and_what_does_not(folder: Path) -> None:
    """Names that do not exist yet follow; nothing is known of them."""
    file = folder / "real" / "src" / "a.txt"
    found = find_place(DISK, str(file))
    assert "/" + "/".join(found.names) == str(file)
    assert found.identities[-1] == (file.stat().st_dev, file.stat().st_ino)
    missing = find_place(DISK, str(folder / "real" / "new" / "b.txt"))
    assert missing.identities[-2:] == (None, None)
    assert missing.identities[-3] is not None


def test_scopes_overlap_through_a_link_that_was_made_later(folder: Path) -> None:
    """Case 164: a recorded path leads through a folder that is a link now."""
    os.rename(folder / "real", folder / "moved")
    os.symlink(folder / "moved", folder / "real")
    assert overlap(folder / "real" / "src" / "a.txt", folder / "moved" / "src" / "a.txt")
    assert overlap(folder / "real" / "new.txt", folder / "moved" / "new.txt")
    assert not overlap(folder / "real" / "src" / "a.txt", folder / "moved" / "src" / "b.txt")


def test_scopes_overlap_by_a_second_name_of_the_file(folder: Path) -> None:
    """Case 164: a hard link is the same file, until one of the names is replaced."""
    file, second = folder / "real" / "src" / "a.txt", folder / "second.txt"
    os.link(file, second)
    assert overlap(file, second)
    second.unlink()
    second.write_text("a\n")
    assert not overlap(file, second)


@pytest.fixture
def mounted(folder: Path) -> Iterator[Path]:
    """`real/src` at a second path, without a link."""
    yield from mounted_at(folder / "real" / "src", folder / "mounted")


def test_scopes_overlap_through_a_bind_mount(folder: Path, mounted: Path) -> None:
    """Case 164: one folder at two paths, neither of them a link."""
    assert overlap(mounted / "a.txt", folder / "real" / "src" / "a.txt")
    assert overlap(mounted / "new.txt", folder / "real" / "src" / "new.txt")
    assert overlap(mounted / "new.txt", folder / "real" / "src")
    assert not overlap(mounted / "a.txt", folder / "real" / "a.txt")
    assert not overlap(mounted / "a.txt", folder / "real"), "what lies above a mount is not found from inside it"


def test_scopes_of_everything_and_nothing_need_no_places(folder: Path) -> None:
    """B2: everything overlaps all, nothing overlaps none."""
    others = {"file": Scope((str(folder / "a"),)), "all": EVERYTHING, "none": NOTHING}
    assert overlapping_now(DISK, EVERYTHING, others) == {"file", "all"}
    assert overlapping_now(DISK, NOTHING, others) == frozenset()
    assert overlapping_now(DISK, Scope((str(folder / "b"),)), others) == {"all"}


def test_place_below_a_file_or_an_unreadable_path_is_not_known(folder: Path) -> None:
    """A path that leads nowhere has no identity, and nothing is raised."""
    below = find_place(DISK, str(folder / "real" / "src" / "a.txt" / "b"))
    assert below.names[-2:] == ("a.txt", "b")
    assert below.identities[-1] is None
    assert find_place(DISK, "/").names == ()


class NoMoreFiles(WatchedDisk):
    """A disk on which no folder can be opened, because too many files are open."""

    def open_folder(self, path: str) -> Folder:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_scopes_overlap_where_the_disk_does_not_tell(folder: Path) -> None:
    """Case 164: an error that says nothing about the path must not let an effect pass."""
    first, second = Scope((str(folder / "real"),)), Scope((str(folder / "other"),))
    assert overlapping_now(DISK, first, {"other": second}) == frozenset()
    assert overlapping_now(NoMoreFiles(DISK), first, {"other": second}) == {"other"}
