"""`summary.json` is a cache: believed only for this very journal and only if whole, else it is folded (row A8)."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.adapters.disk import system_disk
from steadyhand.core.record import ModelName
from steadyhand.ports import Folder
from steadyhand.session.summary import SUMMARY, Summary, read_summary, summary_bytes_max, tail_bytes_max, write_summary
from tests.support.disks import CountingDisk, FaultDisk
from tests.support.fakes import FakeIds

KNOWN = Summary(
    title="Ein Titel", title_source="user", created="2026-01-02T03:04:05.678Z", updated="2026-01-02T03:04:06.678Z",
    mode="ask", model=ModelName("practice", "practice"), open_calls=1, uncertain=2, adrift=1, workspace="file:///home/me/project",
)  # fmt: skip
LINE = b'{"sum":"0123abcd","prev":"00000000","v":1,"seq":1,"at":"t","kind":"title"}\n'
OTHER = LINE.replace(b"0123abcd", b"0123abce")


@attrs.frozen
class Shelf:
    """A session's folder with a journal of these lines."""

    path: Path
    folder: Folder

    def journal(self, content: bytes) -> None:
        (self.path / "journal.jsonl").write_bytes(content)

    def write(self, summary: Summary = KNOWN) -> None:
        write_summary(system_disk(), FakeIds(), self.folder, summary)

    def read(self) -> Summary | None:
        return read_summary(system_disk(), self.folder)

    def put(self, **members: object) -> None:
        """The summary as written, with other members; None takes one out."""
        found = json.loads((self.path / SUMMARY).read_bytes())
        found.update(members)
        kept = {name: value for name, value in found.items() if value is not ...}
        (self.path / SUMMARY).write_text(json.dumps(kept))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    disk = system_disk()
    folder = disk.open_folder(str(tmp_path))
    made = Shelf(tmp_path, folder)
    made.journal(LINE * 3)
    yield made
    disk.close(folder)


def test_what_is_written_is_read(shelf: Shelf) -> None:
    """A8: the same values again, and nothing else is left in the folder."""
    shelf.write()
    assert shelf.read() == KNOWN
    shelf.write(attrs.evolve(KNOWN, workspace=None, uncertain=0, open_calls=0, title="Ünïcödé \ud800 😀"))
    again = shelf.read()
    assert again is not None
    assert not again.unsettled
    assert again.workspace is None
    assert sorted(path.name for path in shelf.path.iterdir()) == ["journal.jsonl", SUMMARY]


@pytest.mark.parametrize(
    "content",
    [LINE * 2, LINE * 4, LINE * 2 + OTHER, b"", LINE * 3 + b"{", (LINE * 3)[:-1], b"\0" * len(LINE * 3)],
    ids=["shorter", "longer", "another end", "empty", "torn", "without its line end", "zeros"],
)
def test_of_another_journal(shelf: Shelf, content: bytes) -> None:
    """A8: bound to the journal's length and its last `sum`; one of another is nothing."""
    shelf.write()
    shelf.journal(content)
    assert shelf.read() is None


def test_the_last_line_is_longer_than_what_is_read_of_it(shelf: Shelf) -> None:
    """I13: its beginning is not seen, so nothing can be bound to it, and nothing is written."""
    long = LINE[:-2] + b" " * tail_bytes_max + b"}\n"
    shelf.journal(LINE + long)
    shelf.write()
    assert shelf.read() is None
    assert not (shelf.path / SUMMARY).exists()
    shelf.journal(long[-tail_bytes_max:])
    shelf.write()
    assert shelf.read() is None


def test_a_journal_that_is_gone(shelf: Shelf) -> None:
    """A8: a summary without its journal is of nothing."""
    shelf.write()
    (shelf.path / "journal.jsonl").unlink()
    assert shelf.read() is None


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"7", b'"x"', b"{}", b"\xff\xfe", b"[" * 5000, b'{"v":' * 3000, b"\0" * 100, b" " * 20_000],
    ids=range(11),
)
def test_garbage(shelf: Shelf, content: bytes) -> None:
    """A8: whatever stands there, it is passed over and raises nothing."""
    shelf.write()
    (shelf.path / SUMMARY).write_bytes(content)
    assert shelf.read() is None


WRONG: list[dict[str, object]] = [
    {"v": 2}, {"v": "1"}, {"bytes": "x"}, {"sum": 7}, {"title": None}, {"title": 1}, {"title_source": "someone"},
    {"created": 5}, {"updated": None}, {"mode": "yolo"}, {"mode": []}, {"model": "practice"}, {"model": {}},
    {"model": {"provider": 1, "name": "x"}}, {"model": {"provider": "a", "name": "b", "more": 1}}, {"open_calls": "0"},
    {"open_calls": -1}, {"open_calls": True}, {"uncertain": None}, {"uncertain": 0.0}, {"workspace": 7},
    {"more": "fields"}, {"uncertain": ...}, {"adrift": ...}, {"adrift": -1}, {"title": ...}, {"v": ...}, {"sum": ...},
]  # fmt: skip


@pytest.mark.parametrize("members", WRONG, ids=str)
def test_members_of_a_wrong_type(shelf: Shelf, members: dict[str, object]) -> None:
    """A8: a summary is believed whole or not at all; a wrong count would hide a doubt."""
    shelf.write()
    shelf.put(**members)
    assert shelf.read() is None


def test_one_that_is_too_large(shelf: Shelf) -> None:
    """I13: only so much is read of it."""
    shelf.write(attrs.evolve(KNOWN, title="x" * summary_bytes_max))
    assert shelf.read() is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(member=st.sampled_from([field.name for field in attrs.fields(Summary)]), value=json_values)
def test_any_member_may_be_anything(shelf: Shelf, member: str, value: object) -> None:
    """A8: what is read is whole and of the right types, or nothing."""
    shelf.write()
    shelf.put(**{member: value})
    found = shelf.read()
    if found is not None:
        assert isinstance(found.unsettled, bool)
        assert isinstance(found.updated + found.title, str)


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_one_that_cannot_be_written(shelf: Shelf, number: int, error: int) -> None:
    """J7, A8: nobody's loss: nothing is raised, and the older one stays whole or is none."""
    counting = CountingDisk(system_disk())
    write_summary(counting, FakeIds(), counting.open_folder(str(shelf.path)), KNOWN)
    assert counting.count == 3, "create, write, rename; not synced"
    other = attrs.evolve(KNOWN, uncertain=7)
    disk = FaultDisk(system_disk(), number, error)
    write_summary(disk, FakeIds(2), disk.open_folder(str(shelf.path)), other)
    assert shelf.read() == (KNOWN if number <= 3 else other)
