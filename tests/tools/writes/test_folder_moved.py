"""The parent folder is moved away in the middle of a write, a deletion or a move: our own temporary file does not stay
there untold (case 170).

The folder is moved once, before each call of the disk's port in turn, until the body ends undisturbed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.ports.disk import Disk
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Tool, ToolOutcome
from tests.support.faults import between
from tests.support.tool_calls import ToolWorkspace, gathered, planned, running

OLD, NEW = "old line\n", "new line\n"
CALLS_MAX = 300
TEMPORARY = ".steadyhand"


@attrs.frozen
class Change:
    """A tool, its fields, and the content of `d/f.txt` before."""

    tool: Tool
    fields: dict[str, object]
    before: str | None = OLD


CHANGES = {
    "a file is replaced": Change(WriteFile(), {"path": "d/f.txt", "content": NEW}),
    "a file is created": Change(WriteFile(), {"path": "d/f.txt", "content": NEW}, before=None),
    "a file is deleted": Change(DeleteFile(), {"path": "d/f.txt"}),
    "a file is moved over another": Change(MoveFile(), {"from": "d/f.txt", "to": "d/g.txt", "overwrite": True}),
}


@attrs.define
class Moving:
    """Moves the folder `d` to `e` before the call with this number. With `fails`, that disk removes nothing then."""

    root: Path
    at: int
    fails: bool = False
    moved: bool = False

    def before(self, number: int, name: str) -> None:
        if number == self.at:
            (self.root / "d").rename(self.root / "e")
            self.moved = True
        if self.moved and self.fails and name == "unlink":
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def _outcome(workspace: ToolWorkspace, change: Change, disk: Disk) -> tuple[ToolOutcome | OSError, str]:
    """Run the change over the disk. Return how it ended, and every word that was said."""
    call = planned(change.tool, workspace.tool_context(), **change.fields)
    evidence = gathered(call)
    object.__setattr__(call, "_tool_context", workspace.tool_context(disk))

    async def body() -> ToolOutcome | OSError:
        try:
            return await call.run(running(evidence, lambda: False))
        except OSError as error:
            return error

    ended = anyio.run(body)
    words = str(ended) if isinstance(ended, OSError) else f"{ended.text} {ended.kept_files}"
    return ended, words


def _each(
    tmp_path: Path, change: Change, fails: bool
) -> Iterator[tuple[ToolWorkspace, Moving, ToolOutcome | OSError, str]]:
    for at in range(1, CALLS_MAX):
        workspace = ToolWorkspace.under(tmp_path / str(at))
        (workspace.root / "d").mkdir()
        if change.before is not None:
            workspace.write("d/f.txt", change.before)
        if "overwrite" in change.fields:
            workspace.write("d/g.txt", "goal\n")
        moving = Moving(workspace.root, at, fails)
        ended, words = _outcome(workspace, change, between(moving.before))
        if not moving.moved:
            return
        yield workspace, moving, ended, words
    pytest.fail("the calls never end")


def _left(workspace: ToolWorkspace) -> list[str]:
    return [name for name in workspace.files() if name.endswith(TEMPORARY)]


@pytest.mark.parametrize("name", CHANGES)
def test_folder_moved_away_at_any_call_keeps_no_temporary_file(tmp_path: Path, name: str) -> None:
    """Case 170: it is found through the open folder and removed, wherever the folder is by then; a success is true."""
    tried = 0
    for workspace, moving, ended, words in _each(tmp_path, CHANGES[name], fails=False):
        tried += 1
        assert _left(workspace) == [], f"call {moving.at}: {words}"
        if isinstance(ended, ToolOutcome) and ended.outcome == "returned":
            goal = "g.txt" if "overwrite" in CHANGES[name].fields else "f.txt"
            found = workspace.files()
            there = found.get(f"d/{goal}", found.get(f"e/{goal}"))
            assert there == {"a file is deleted": None, "a file is moved over another": OLD}.get(name, NEW)
    assert tried > 10


@pytest.mark.parametrize("name", CHANGES)
def test_temporary_file_that_cannot_be_removed_in_a_moved_folder_is_named(tmp_path: Path, name: str) -> None:
    """Case 170: recovery looks at the path and would not find it, so the words say where it is left."""
    named = 0
    for workspace, moving, _, words in _each(tmp_path, CHANGES[name], fails=True):
        for left in _left(workspace):
            named += 1
            assert left in words, f"call {moving.at}: {words}"
    assert named or name == "a file is created"
