"""`search_text` with ripgrep says exactly what it says without: over generated trees, and where ripgrep cannot tell."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steadyhand.adapters.ripgrep import Ripgrep
from steadyhand.ports import OpenDocument, TextFilter
from steadyhand.tools import ruling_out, search_text, walk
from steadyhand.tools.ruling_out import asked_bytes_min, asked_file_bytes_min
from steadyhand.tools.search_text import PlannedTextSearch, SearchText, searched_file_bytes_max
from steadyhand.tools.tool import Done
from tests.support.ground import Yard, planned
from tests.support.systems import posix_only
from tests.support.tools import require_tool

SEARCH = SearchText()
Fields = dict[str, object]

names = st.sampled_from(
    ["a", "b.py", ".hidden", "é", "two words", "-n", "x;y", "node_modules", ".gitignore", "n\udcff"]
)
pieces = st.sampled_from(
    [
        *(b"needle", b"needl", b"e", b"NEEDLE", b"a.b", b"axb", "é".encode(), b"\xe9", b"\xff\xfe", b"\xef\xbb\xbf"),
        *(b"\0", b"\n", b"\r\n", b"\r", b" ", b"\x1b[31m", "needle".encode("utf-16"), b"x" * 400),
    ]
)
contents = st.lists(pieces, max_size=6).map(b"".join)
ignoring = st.sampled_from([b"", b"*.py\n", b"node_modules/\n", b"!b.py\n", b"a\n"])
patterns = st.sampled_from(["needle", "e", "a.b", "é", "\\", "-n", "x", "\x1b[31m", "needle\x85", "$"])


@attrs.frozen
class Tree:
    files: dict[tuple[str, ...], bytes]
    ignored: bytes
    links: dict[str, str]
    unsaved: bool


trees = st.builds(
    Tree,
    st.dictionaries(st.lists(names, min_size=1, max_size=3).map(tuple), contents, max_size=8),
    ignoring,
    st.dictionaries(st.sampled_from(["in", "out", "round"]), st.sampled_from(["a", "../out", "."]), max_size=2),
    st.booleans(),
)


def lay(tree: Tree, folder: Path) -> Yard:
    yard = Yard.under(folder)
    (yard.outside / "secret").write_bytes(b"needle")
    yard.write(".gitignore", tree.ignored)
    for path, content in tree.files.items():
        try:
            yard.write(os.path.join(*path), content)
        except (NotADirectoryError, IsADirectoryError, FileExistsError):
            continue  # a name is a file and a folder
        if tree.unsaved and len(yard.documents) < 2:
            text = OpenDocument("needle in the editor", 1, unsaved=True)
            yard.documents[str(yard.root / os.path.join(*path))] = text
    for name, target in tree.links.items():
        (yard.root / name).symlink_to(target)
    return yard


def found(yard: Yard, text_filter: TextFilter | None, fields: Fields) -> Done:
    ground = attrs.evolve(yard.ground(), text_filter=text_filter)
    call = planned(SEARCH, ground, **fields)
    assert isinstance(call, PlannedTextSearch)
    return call._run()


def here() -> Ripgrep:
    folder = str(Path(require_tool("rg")).parent)
    return Ripgrep(lambda: {"PATH": folder})


@pytest.fixture
def everything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small files and small batches too, so that a small tree has several."""
    monkeypatch.setattr(ruling_out, "asked_file_bytes_min", 0)
    monkeypatch.setattr(ruling_out, "asked_bytes_min", 0)
    monkeypatch.setattr(ruling_out, "batch_files_max", 3)


@attrs.define
class Heard:
    """A filter that passes on, and remembers what it was asked and what it answered."""

    inner: TextFilter
    asked: list[Sequence[str]] = attrs.field(factory=list)
    ruled_out: int = 0
    told: bool = True

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        answer = self.inner.may_hold(text, paths, time_s)
        self.asked.append(paths)
        self.told = self.told and answer is not None
        self.ruled_out += 0 if answer is None else len(frozenset(paths) - answer)
        return answer


@posix_only
@pytest.mark.usefixtures("everything_is_asked")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trees, patterns, st.sampled_from([None, "*.py", "a"]), st.sampled_from([None, 1, 3]))
def test_with_and_without_it_says_the_same(tree: Tree, pattern: str, glob: str | None, limit: int | None) -> None:
    """G1, case 104: order, ignore files, bounds, binaries, hidden files, line ends, encodings, bytes that are no
    UTF-8, links and unsaved texts: the whole reply is the same, and it never gave up."""
    fields: Fields = {"pattern": pattern}
    fields |= {"glob": glob} if glob else {}
    fields |= {"limit": limit} if limit else {}
    with tempfile.TemporaryDirectory() as folder:
        yard = lay(tree, Path(folder))
        heard = Heard(here())
        assert found(yard, heard, fields) == found(yard, None, fields)
        assert heard.told


@posix_only
@pytest.mark.usefixtures("everything_is_asked")
def test_most_files_are_not_read_and_what_is_counted_is_the_same(tmp_path: Path) -> None:
    """G1: it rules out what holds neither the text nor a NUL, so binary files are counted without being listed."""
    yard = Yard.under(tmp_path)
    for number in range(20):
        yard.write(f"f{number:02}", b"nothing here\n" * number)
    yard.write("f05", b"a needle\n")
    yard.write("f06", b"\0needle\n")
    heard = Heard(here())
    done = found(yard, heard, {"pattern": "needle"})
    assert done.text == "f05:1: a needle\n[1 binary file left out]"
    assert heard.ruled_out == 18
    assert len(heard.asked) == 7


class Wrong:
    """Rules out everything."""

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        return frozenset()


class Silent:
    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        return None


@pytest.mark.usefixtures("everything_is_asked")
def test_a_filter_that_is_wrong_would_be_seen_and_a_silent_one_costs_nothing(tmp_path: Path) -> None:
    """G1: the comparison of this file can fail; a filter that cannot tell changes no reply."""
    yard = Yard.under(tmp_path)
    yard.write("a", b"needle\n")
    fields: Fields = {"pattern": "needle"}
    assert found(yard, Wrong(), fields) != found(yard, None, fields)
    assert found(yard, Silent(), fields) == found(yard, None, fields)


def test_what_it_cannot_tell_it_does_not_tell(tmp_path: Path) -> None:
    """G1: a file that is gone, no time, an older or another program, none at all: no answer, so all is read here."""
    rg = here()
    present, gone = tmp_path / "a", tmp_path / "gone"
    present.write_bytes(b"needle")
    assert rg.may_hold(b"needle", [str(present)], 5.0) == {str(present)}
    assert rg.may_hold(b"other", [str(present)], 5.0) == frozenset()
    assert rg.may_hold(b"needle", [str(present), str(gone)], 5.0) is None
    assert rg.may_hold(b"needle", [str(present)], 0.0) is None
    assert Ripgrep(lambda: {"PATH": "bin:"}).may_hold(b"needle", [str(present)], 5.0) is None
    other = tmp_path / "bin"
    other.mkdir()
    (other / "rg").write_text("#!/bin/sh\necho who are you >&2\n")
    (other / "rg").chmod(0o755)
    assert Ripgrep(lambda: {"PATH": str(other)}).may_hold(b"needle", [str(present)], 5.0) is None


class Counting:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def may_hold(self, text: bytes, paths: Sequence[str], time_s: float) -> frozenset[str] | None:
        self.asked.append(len(paths))
        return frozenset(paths)


def test_small_files_and_what_is_never_searched_are_not_asked_about(tmp_path: Path) -> None:
    """I13: bounds of a batch; below them files are read at once."""
    yard = Yard.under(tmp_path)
    for number in range(3):
        yard.write(f"small{number}", b"x" * (asked_file_bytes_min - 1))
    counting = Counting()
    found(yard, counting, {"pattern": "needle"})
    assert counting.asked == []
    yard.write("large", b"x" * (searched_file_bytes_max + 1))
    yard.write("fits", b"x" * asked_bytes_min)
    done = found(yard, counting, {"pattern": "needle"})
    assert counting.asked == [1]
    assert "1 file above" in done.text


@pytest.mark.usefixtures("everything_is_asked")
def test_bounds_of_time_and_bytes_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13, G1: a search that runs out of time or bytes says so, as without; names of one child are bounded."""
    yard = Yard.under(tmp_path)
    for number in range(6):
        yard.write(f"f{number}", b"x" * 100)
    monkeypatch.setattr(search_text, "searched_bytes_max", 250)
    fields: Fields = {"pattern": "needle"}
    assert found(yard, here(), fields) == found(yard, None, fields)
    assert "ended after 250 bytes" in found(yard, here(), fields).text
    counting = Counting()
    monkeypatch.setattr(ruling_out, "batch_name_bytes_max", 1)
    found(yard, counting, fields)
    assert set(counting.asked) == {1}
    monkeypatch.setattr(walk, "walk_s_max", -1.0)
    assert "ended after -1 seconds" in found(yard, here(), fields).text
