"""`summary.json` is a cache: it is used only for exactly this journal and only if it is whole. Otherwise the journal
is folded (row A8).
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import ModelName
from steadyhand.ports.disk import Folder
from steadyhand.session.storage.summary import (
    SUMMARY,
    SUMMARY_BYTES_MAX,
    TAIL_BYTES_MAX,
    Summary,
    read_summary,
    write_summary,
)
from tests.support.fakes import FakeIds
from tests.support.faults import CountingDisk, FaultDisk

SUMMARY_VALUES = Summary(
    title="Ein Titel", title_source="user", created="2026-01-02T03:04:05.678Z", updated="2026-01-02T03:04:06.678Z",
    mode="ask", model=ModelName("practice", "practice"), open_calls=1, uncertain=2, adrift=1, workspace="file:///home/me/project",
)  # fmt: skip
LINE = b'{"sum":"0123abcd","prev":"00000000","v":1,"seq":1,"at":"t","kind":"title"}\n'
OTHER = LINE.replace(b"0123abcd", b"0123abce")


@attrs.frozen
class SessionFolder:
    """A session's folder with a journal of these lines."""

    path: Path
    folder: Folder

    def journal(self, content: bytes) -> None:
        (self.path / "journal.jsonl").write_bytes(content)

    def write(self, summary: Summary = SUMMARY_VALUES) -> None:
        write_summary(system_disk(), FakeIds(), self.folder, summary, self.end)

    @property
    def end(self) -> tuple[int, str]:
        """The size of the journal and the `sum` of its last line, as their writer knows them."""
        content = (self.path / "journal.jsonl").read_bytes()
        return len(content), content.rstrip(b"\n").rpartition(b"\n")[2][8:16].decode("latin-1")

    def read(self) -> Summary | None:
        return read_summary(system_disk(), self.folder)

    def put(self, **members: object) -> None:
        """Change members of the written summary; an ellipsis removes one."""
        found = json.loads((self.path / SUMMARY).read_bytes())
        found.update(members)
        kept = {name: value for name, value in found.items() if value is not ...}
        (self.path / SUMMARY).write_text(json.dumps(kept))


@pytest.fixture
def session_folder(tmp_path: Path) -> Iterator[SessionFolder]:
    disk = system_disk()
    folder = disk.open_folder(str(tmp_path))
    session = SessionFolder(tmp_path, folder)
    session.journal(LINE * 3)
    yield session
    disk.close(folder)


def test_summary_roundtrip_keeps_every_value(session_folder: SessionFolder) -> None:
    """A8: the same values again, and nothing else is left in the folder."""
    session_folder.write()
    assert session_folder.read() == SUMMARY_VALUES
    session_folder.write(
        attrs.evolve(SUMMARY_VALUES, workspace=None, uncertain=0, open_calls=0, title="Ünïcödé \ud800 😀")
    )
    again = session_folder.read()
    assert again is not None
    assert not again.is_unsettled
    assert again.workspace is None
    assert sorted(path.name for path in session_folder.path.iterdir()) == ["journal.jsonl", SUMMARY]


@pytest.mark.parametrize(
    "content",
    [LINE * 2, LINE * 4, LINE * 2 + OTHER, b"", LINE * 3 + b"{", (LINE * 3)[:-1], b"\0" * len(LINE * 3)],
    ids=["shorter", "longer", "another end", "empty", "torn", "without its line end", "zeros"],
)
def test_summary_of_another_journal_is_ignored(session_folder: SessionFolder, content: bytes) -> None:
    """A8: a summary is bound to the journal's length and its last `sum`. A summary of another journal counts
    as none.
    """
    session_folder.write()
    session_folder.journal(content)
    assert session_folder.read() is None


def test_summary_of_a_journal_with_a_too_long_last_line_is_ignored(session_folder: SessionFolder) -> None:
    """I13: the beginning of the line is not read, so a summary cannot be compared with it, and none counts."""
    long = LINE[:-2] + b" " * TAIL_BYTES_MAX + b"}\n"
    session_folder.journal(LINE + long)
    session_folder.write()
    assert session_folder.read() is None
    session_folder.journal(long[-TAIL_BYTES_MAX:])
    session_folder.write()
    assert session_folder.read() is None


def test_summary_written_after_others_appended_is_ignored(session_folder: SessionFolder) -> None:
    """A8, case 161: a summary belongs to the journal that it was made from, not to the one that is there by now."""
    session_folder.journal(LINE)
    end = session_folder.end
    session_folder.journal(LINE + OTHER)
    write_summary(system_disk(), FakeIds(), session_folder.folder, SUMMARY_VALUES, end)
    assert session_folder.read() is None


def test_summary_without_its_journal_is_ignored(session_folder: SessionFolder) -> None:
    """A8: a summary without its journal counts as none."""
    session_folder.write()
    (session_folder.path / "journal.jsonl").unlink()
    assert session_folder.read() is None


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"[]", b"7", b'"x"', b"{}", b"\xff\xfe", b"[" * 5000, b'{"v":' * 3000, b"\0" * 100, b" " * 20_000],
    ids=range(11),
)
def test_summary_with_arbitrary_content_is_ignored(session_folder: SessionFolder, content: bytes) -> None:
    """A8: whatever the file contains, it is ignored and raises nothing."""
    session_folder.write()
    (session_folder.path / SUMMARY).write_bytes(content)
    assert session_folder.read() is None


WRONG: list[dict[str, object]] = [
    {"v": 2}, {"v": "1"}, {"bytes": "x"}, {"sum": 7}, {"title": None}, {"title": 1}, {"title_source": "someone"},
    {"created": 5}, {"updated": None}, {"mode": "yolo"}, {"mode": []}, {"model": "practice"}, {"model": {}},
    {"model": {"provider": 1, "name": "x"}}, {"model": {"provider": "a", "name": "b", "more": 1}}, {"open_calls": "0"},
    {"open_calls": -1}, {"open_calls": True}, {"uncertain": None}, {"uncertain": 0.0}, {"workspace": 7},
    {"more": "fields"}, {"uncertain": ...}, {"adrift": ...}, {"adrift": -1}, {"title": ...}, {"v": ...}, {"sum": ...},
]  # fmt: skip


@pytest.mark.parametrize("members", WRONG, ids=str)
def test_summary_with_a_wrong_member_is_ignored_whole(
    session_folder: SessionFolder, members: dict[str, object]
) -> None:
    """A8: a summary is used whole or not at all. A wrong count would hide an uncertain effect."""
    session_folder.write()
    session_folder.put(**members)
    assert session_folder.read() is None


def test_summary_over_the_size_limit_is_ignored(session_folder: SessionFolder) -> None:
    """I13: a limited number of bytes is read."""
    session_folder.write(attrs.evolve(SUMMARY_VALUES, title="x" * SUMMARY_BYTES_MAX))
    assert session_folder.read() is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=200)
@given(member=st.sampled_from([field.name for field in attrs.fields(Summary)]), value=json_values)
def test_summary_with_any_member_value_is_whole_or_ignored(
    session_folder: SessionFolder, member: str, value: object
) -> None:
    """A8: the result is whole and of the right types, or nothing."""
    session_folder.write()
    session_folder.put(**{member: value})
    found = session_folder.read()
    if found is not None:
        assert isinstance(found.is_unsettled, bool)
        assert isinstance(found.updated + found.title, str)


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_summary_write_that_fails_keeps_the_old_one_and_raises_nothing(
    session_folder: SessionFolder, number: int, error: int
) -> None:
    """J7, A8: nothing is raised, and the older summary stays whole or there is none."""
    counting = CountingDisk(system_disk())
    write_summary(
        counting, FakeIds(), counting.open_folder(str(session_folder.path)), SUMMARY_VALUES, session_folder.end
    )
    assert counting.count == 3, "create, write, rename; not synced"
    other = attrs.evolve(SUMMARY_VALUES, uncertain=7)
    disk = FaultDisk(system_disk(), number, error)
    write_summary(disk, FakeIds(2), disk.open_folder(str(session_folder.path)), other, session_folder.end)
    assert session_folder.read() == (SUMMARY_VALUES if number <= 3 else other)
