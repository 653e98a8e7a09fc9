"""Every tool with every kind of file: docs/files.md says what happens, and here it happens (rows W9, W11, E3)."""

from __future__ import annotations

import os
import resource
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.support.kinds import COLUMNS, KINDS, answer_of, sparse
from tests.support.markdown import table_after
from tests.support.systems import NOBODY, posix_only
from tests.support.tool_calls import ToolWorkspace

pytestmark = [posix_only, pytest.mark.timeout(240)]

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
TABLE = {row["what is there"]: row for row in table_after(PAGE.read_text(), "Kinds of files")}
HUGE_BYTES = 256 * 1024 * 1024
GROWTH_BYTES_MAX = 160 * 1024 * 1024
"""Twice the largest content that a tool holds (`FILE_BYTES_MAX`), and some more."""


def answered(folder: Path, name: str, column: str) -> str:
    """What the call of one tool is answered for a file of this kind, in a workspace of its own."""
    kind = KINDS[name]
    with ExitStack() as stack:
        workspace = ToolWorkspace.under(folder)
        path = kind.make(workspace, stack)
        work = partial(answer_of, column, workspace.tool_context(), path)
        if kind.is_ordinary and os.geteuid() == 0:
            answered(folder / "plain", "a text file", column)  # loads what an ordinary user may not load here
            give_away(folder)
            found = in_a_fork_of(NOBODY, work)
        else:
            found = work()
        assert workspace.beside() == [], "nothing is left beside it"
        return found


def give_away(folder: Path) -> None:
    """Give everything in the folder to an ordinary user, and let him come there."""
    for above in folder.parents:
        if above.stat().st_uid == 0 and above not in (Path("/"), Path("/tmp")):
            above.chmod(above.stat().st_mode | 0o055)
    for base, _, files in os.walk(folder):
        for path in (base, *(os.path.join(base, name) for name in files)):
            os.lchown(path, NOBODY, NOBODY)


def in_a_fork_of(user: int, work: Callable[[], object]) -> str:
    """The result of `work` as text, from a process of this user; no event loop runs there yet."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if user != os.geteuid():
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            os.write(writing, str(work()).encode())
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        found = told.read().decode()
    os.waitpid(pid, 0)
    return found


@pytest.mark.parametrize("name", KINDS)
def test_each_tool_answers_for_the_kind_as_the_page_says(tmp_path: Path, name: str) -> None:
    """W9, W11, E3, case 46: no cell blocks, raises or leaves something behind, and none is other than written."""
    row = TABLE[name]
    found = {column: answered(tmp_path / column, name, column) for column in COLUMNS}
    assert found == {column: row[column].replace("`", "") for column in COLUMNS}


def test_page_has_a_row_for_each_kind() -> None:
    """A kind is one line in `KINDS` and one line of the page."""
    assert list(TABLE) == list(KINDS)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB")
@pytest.mark.parametrize("column", COLUMNS)
def test_large_file_costs_each_tool_little_memory(tmp_path: Path, column: str) -> None:
    """I13, case 64: a sparse file of 256 MiB is read in pieces, or refused, by every tool."""
    workspace = ToolWorkspace.under(tmp_path)
    sparse(workspace.root / "it", HUGE_BYTES)

    def measured() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer_of(column, workspace.tool_context(), "it")
        return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024

    assert int(in_a_fork_of(os.geteuid(), measured)) < GROWTH_BYTES_MAX
