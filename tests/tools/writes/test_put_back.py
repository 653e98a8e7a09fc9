"""A change that meets a concurrent save: the save gets its name back, or it is named where it is kept (row W9).

`between` lets somebody act before one operation of the body; a fault then stops the way back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.domain.records.record import Evidence
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Tool, ToolOutcome
from steadyhand.tools.writes.postcondition_check import is_own_leftover, remove_temporary
from tests.support.scripted_disk import ScriptedDisk
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, run_call

pytestmark = linux_only

MEBIBYTE = 1 << 20


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def fail() -> None:
    raise OSError(errno.EIO, "Input/output error")


def nothing() -> None:
    pass


def carry_out(workspace: ToolWorkspace, tool: Tool, disk: ScriptedDisk, **fields: object) -> ToolOutcome:
    call = planned(tool, workspace.tool_context(disk), **fields)
    evidence = gathered(call)
    return run_call(call, evidence)


def temporary(workspace: ToolWorkspace) -> str:
    (name,) = workspace.beside()
    return name


# A deletion.


def delete(workspace: ToolWorkspace, *steps: Callable[[], object]) -> ToolOutcome:
    workspace.write("a.txt", "old\n")
    return carry_out(workspace, DeleteFile(), ScriptedDisk(("rename_new",), *steps), path="a.txt")


def test_delete_gives_a_concurrent_save_its_name_back(workspace: ToolWorkspace) -> None:
    """W9: what was displaced is not the content before, so it is put back and nothing was deleted."""
    done = delete(workspace, lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", ())
    assert done.text == "a.txt was changed by somebody else in the meantime. Nothing was deleted."
    assert workspace.files() == {"a.txt": "saved\n"}


def test_delete_keeps_the_earlier_of_two_concurrent_saves(workspace: ToolWorkspace) -> None:
    """W9: the later save has the name; the earlier one is named where it is."""
    done = delete(workspace, lambda: workspace.write("a.txt", "first\n"), lambda: workspace.write("a.txt", "second\n"))
    name = temporary(workspace)
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", (name,))
    assert done.text == (
        f"Somebody else saved a.txt at the same moment, and again; the earlier save is kept as {name}."
        " Nothing was deleted."
    )
    assert workspace.files() == {"a.txt": "second\n", name: "first\n"}


def test_delete_that_cannot_put_a_save_back_names_it(workspace: ToolWorkspace) -> None:
    """W9, [I3]: what is at the path then is not known, so the outcome is unknown."""
    done = delete(workspace, lambda: workspace.write("a.txt", "saved\n"), fail)
    name = temporary(workspace)
    assert (done.outcome, done.check, done.kept_files) == ("unknown", "conflict", (name,))
    assert done.text == (
        "Somebody else saved a.txt at the same moment; it may not have been put back (Input/output error)."
        f" {name} may hold that save."
    )
    assert workspace.files() == {name: "saved\n"}


# A move.


def move(workspace: ToolWorkspace, *steps: Callable[[], object]) -> ToolOutcome:
    workspace.write("a.txt", "old\n")
    disk = ScriptedDisk(("rename_to",), *steps)
    return carry_out(workspace, MoveFile(), disk, **{"from": "a.txt", "to": "b.txt"})


def test_move_gives_a_concurrent_save_its_old_name_back(workspace: ToolWorkspace) -> None:
    """W9: somebody saved at the old path right before the move."""
    done = move(workspace, lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.text.startswith("Somebody else saved a.txt or b.txt at the same moment; the saved content is at a.txt.")
    assert workspace.files() == {"a.txt": "saved\n"}


@pytest.mark.parametrize("how", ["another save", "a fault"])
def test_move_that_cannot_move_a_save_back_names_it(workspace: ToolWorkspace, how: str) -> None:
    """W9: the old path has another save meanwhile, which is never replaced; or the disk fails."""
    again = (lambda: workspace.write("a.txt", "second\n")) if how == "another save" else fail
    done = move(workspace, lambda: workspace.write("a.txt", "saved\n"), again)
    assert (done.outcome, done.check, done.kept_files) == ("unknown", "conflict", ("b.txt",))
    why = os.strerror(errno.EEXIST) if how == "another save" else "Input/output error"
    assert done.text == (
        f"Somebody else saved a.txt or b.txt at the same moment; it may not have been moved back ({why})."
        " b.txt may hold that save."
    )
    expected = {"b.txt": "saved\n"}
    assert workspace.files() == ({"a.txt": "second\n", **expected} if how == "another save" else expected)


# A write.


def write(workspace: ToolWorkspace, *steps: Callable[[], object]) -> ToolOutcome:
    workspace.write("a.txt", "old\n")
    return carry_out(workspace, WriteFile(), ScriptedDisk(("exchange",), *steps), path="a.txt", content="new\n")


def test_write_gives_a_concurrent_save_its_name_back(workspace: ToolWorkspace) -> None:
    """W9: what the exchange displaced is not the content before; it is exchanged back."""
    done = write(workspace, lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", ())
    assert done.text == "a.txt was changed by somebody else in the meantime. Nothing was replaced."
    assert workspace.files() == {"a.txt": "saved\n"}


def test_write_keeps_the_earlier_of_two_concurrent_saves(workspace: ToolWorkspace) -> None:
    """W9: the later save came over our content and gets the name; the earlier one is named where it is."""
    done = write(workspace, lambda: workspace.write("a.txt", "first\n"), lambda: workspace.write("a.txt", "second\n"))
    name = temporary(workspace)
    assert (done.outcome, done.reason, done.kept_files) == ("failed", "changed", (name,))
    assert done.text == (
        f"Somebody else saved a.txt at the same moment, and again; the earlier save is kept as {name}."
        f" Nothing was replaced. Kept beside it: {name}."
    )
    assert workspace.files() == {"a.txt": "second\n", name: "first\n"}


def test_write_that_cannot_put_a_save_back_names_it(workspace: ToolWorkspace) -> None:
    """W9, [I3]: the path has our content and the save is beside it, so the outcome is unknown."""
    done = write(workspace, lambda: workspace.write("a.txt", "saved\n"), fail)
    name = temporary(workspace)
    assert (done.outcome, done.reason, done.check, done.kept_files) == ("unknown", "conflict", "conflict", (name,))
    assert done.text == (
        "Somebody else saved a.txt at the same moment; it may not have been put back (Input/output error)."
        f" {name} may hold that save."
    )
    assert workspace.files() == {"a.txt": "new\n", name: "saved\n"}


def test_write_over_a_file_that_is_gone_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W9: it was removed right before the exchange; our temporary file is removed too."""
    done = write(workspace, (workspace.root / "a.txt").unlink)
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert workspace.files() == {}


# A file that already has the intended content.


def write_same(workspace: ToolWorkspace, change: Callable[[], object]) -> ToolOutcome:
    workspace.write("a.txt", "same\n")
    call = planned(WriteFile(), workspace.tool_context(), path="a.txt", content="same\n")
    evidence = gathered(call)
    change()
    return run_call(call, evidence)


def test_write_of_the_same_content_writes_nothing(workspace: ToolWorkspace) -> None:
    """W5: it returned, as its check says; the file keeps its times."""
    done = write_same(workspace, nothing)
    assert (done.outcome, done.check, done.files) == ("returned", "satisfied", ())
    assert done.text == "a.txt already has exactly this content (5 bytes); nothing was written."


@pytest.mark.parametrize("content", ["else\n", "same\nmore", None])
def test_write_of_the_same_content_to_a_changed_file_fails(workspace: ToolWorkspace, content: str | None) -> None:
    """W5, V1: it was changed since *started*; nothing is written over it."""
    path = workspace.root / "a.txt"
    done = write_same(workspace, path.unlink if content is None else lambda: path.write_text(content))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.text == "a.txt was changed by somebody else in the meantime."
    assert workspace.content("a.txt") == content


# What a kill leaves under the temporary name.

BIG = "".join(f"{number:07x}\n" for number in range(7 * MEBIBYTE // 16)).encode()  # 3.5 MiB, no part of it twice


def started(workspace: ToolWorkspace, before: bytes | None, intended: bytes, kept: bool = True) -> Evidence:
    """The evidence of a write with these contents."""
    if before is not None:
        workspace.write("a.txt", before)
    call = planned(WriteFile(), workspace.tool_context(), path="a.txt", content=intended.decode())
    (evidence,) = gathered(call)
    if not kept:
        object.__setattr__(evidence, "checkpoint", None)
    return evidence


@pytest.mark.parametrize(
    ("left", "now", "kept", "removed"),
    [
        (b"new\n", b"old\n", True, True),  # the intended content
        (b"", b"old\n", True, True),  # nothing of it is written yet
        (b"ne", b"old\n", True, True),  # a beginning
        (b"nx", b"old\n", True, False),  # no beginning
        (b"new\nx", b"old\n", True, False),  # longer
        (b"ne", b"new\n", True, False),  # the names were exchanged, so it is a save
        (b"", b"new\n", True, False),
        (b"old\n", b"new\n", True, True),  # what was displaced
        (b"old\n", b"new\n", False, True),  # not stored, and the path has the intended content
        (b"old\n", b"old\n", True, True),  # stored
        (b"old\n", b"else\n", False, False),  # the only copy of the content before
        (b"old\n", None, False, False),
        (b"ne", None, True, True),
    ],
)
def test_leftover_is_removed_only_if_nobody_s_content_is_in_it_alone(
    workspace: ToolWorkspace, left: bytes, now: bytes | None, kept: bool, removed: bool
) -> None:
    """W9: the table of `postcondition_check`, for a file that existed."""
    evidence = started(workspace, b"old\n", b"new\n", kept)
    path = workspace.root / "a.txt"
    path.unlink() if now is None else path.write_bytes(now)
    name = str(evidence.temporary)
    workspace.write(name, left)
    context = workspace.tool_context()
    assert is_own_leftover(context, evidence, b"new\n") is removed
    assert remove_temporary(context, evidence, b"new\n") == (() if removed else (name,))
    assert (workspace.root / name).exists() is not removed
    assert not is_own_leftover(context, evidence, b"new\n") or not removed


def test_beginning_of_a_large_content_is_recognised_across_pieces(workspace: ToolWorkspace) -> None:
    """W9: it is compared piece by piece, each at its own place."""
    evidence = started(workspace, None, BIG)
    context, name = workspace.tool_context(), str(evidence.temporary)
    for size in (MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE + 5, len(BIG) - 1):
        workspace.write(name, BIG[:size])
        assert is_own_leftover(context, evidence, BIG)
    workspace.write(name, BIG[:-2] + b"x")
    assert not is_own_leftover(context, evidence, BIG)
    workspace.write(name, BIG[:MEBIBYTE] + BIG[1 : MEBIBYTE // 2])
    assert not is_own_leftover(context, evidence, BIG)
    workspace.write(name, BIG[:MEBIBYTE])
    assert not is_own_leftover(context, evidence, None), "the intended content is not known"
    assert not is_own_leftover(context, evidence, BIG + b"x"), "it is not the recorded one"


def test_leftover_that_is_no_file_is_kept(workspace: ToolWorkspace) -> None:
    """W9: a link or a folder under our name is somebody's."""
    evidence = started(workspace, b"old\n", b"new\n")
    name = str(evidence.temporary)
    (workspace.root / name).symlink_to("a.txt")
    assert remove_temporary(workspace.tool_context(), evidence, b"new\n") == (name,)
    (workspace.root / name).unlink()
    (workspace.root / name).mkdir()
    assert remove_temporary(workspace.tool_context(), evidence, b"new\n") == (name,)
    (workspace.root / name).rmdir()
    assert remove_temporary(workspace.tool_context(), evidence, b"new\n") == ()


@pytest.mark.parametrize("now", ["a folder", "a link", "nothing"])
def test_displaced_content_beside_something_else_is_kept_if_it_is_the_only_copy(
    workspace: ToolWorkspace, now: str
) -> None:
    """W9: the path has no regular file with the intended content, so the content before is nowhere else."""
    evidence = started(workspace, b"old\n", b"new\n", kept=False)
    path, name = workspace.root / "a.txt", str(evidence.temporary)
    path.rename(workspace.root / name)
    if now == "a folder":
        path.mkdir()
    elif now == "a link":
        path.symlink_to(name)
    assert remove_temporary(workspace.tool_context(), evidence, b"new\n") == (name,)
    assert (workspace.root / name).read_bytes() == b"old\n"
