"""A move over another file: a copy, then the removal of the old name; each is compared right before (rows W3, W9)."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import ToolOutcome
from steadyhand.tools.writes.postcondition_check import is_own_leftover
from tests.support.faults import CountingDisk
from tests.support.scripted_disk import ScriptedDisk
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, gathered, planned, run_call

pytestmark = linux_only

Step = Callable[[], object]
MOVE = {"from": "a.txt", "to": "b.txt", "overwrite": True}


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    workspace = ToolWorkspace.under(tmp_path)
    workspace.write("a.txt", "one\n")
    workspace.write("b.txt", "two\n")
    return workspace


def move(
    workspace: ToolWorkspace,
    verbs: tuple[str, ...] = (),
    *steps: Callable[[], object],
    change: Callable[[], object] | None = None,
) -> tuple[ToolOutcome, list[str]]:
    """The outcome, and the operations of the body. `change` comes between *started* and the body."""
    disk = CountingDisk(ScriptedDisk(verbs, *steps))
    call = planned(MoveFile(), workspace.tool_context(disk), **MOVE)
    evidence = gathered(call)
    if change is not None:
        change()
    before = len(disk.log)
    return run_call(call, evidence), disk.log[before:]


def test_move_over_a_file_copies_then_removes(workspace: ToolWorkspace) -> None:
    """W3: the new path first; in between both have the content."""
    done, log = move(workspace)
    assert (done.outcome, done.check) == ("returned", "satisfied")
    assert workspace.files() == {"b.txt": "one\n"}
    verbs = [line.split()[0] for line in log]
    assert verbs.index("exchange") < verbs.index("rename_new")


def test_move_of_a_file_that_changed_before_writes_nothing(workspace: ToolWorkspace) -> None:
    """W9: it is compared before anything is made beside the new path."""
    done, log = move(workspace, change=lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.text == "a.txt was changed by somebody else in the meantime. Nothing was moved."
    assert [line for line in log if line.startswith(("create", "exchange"))] == []
    assert workspace.files() == {"a.txt": "saved\n", "b.txt": "two\n"}


def test_move_of_a_file_that_changes_while_it_is_copied_replaces_nothing(workspace: ToolWorkspace) -> None:
    """W9: the old path is compared once more right before the new one is replaced."""
    done, _ = move(workspace, ("create",), lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.text.startswith("a.txt was changed by somebody else in the meantime.")
    assert workspace.files() == {"a.txt": "saved\n", "b.txt": "two\n"}


def test_move_keeps_the_earlier_of_two_saves_at_the_new_path(workspace: ToolWorkspace) -> None:
    """W9: nothing was moved, and the earlier save is named where it is."""
    done, _ = move(
        workspace,
        ("exchange",),
        lambda: workspace.write("b.txt", "first\n"),
        lambda: workspace.write("b.txt", "second\n"),
    )
    assert (done.outcome, done.reason) == ("failed", "changed")
    assert done.kept_files == tuple(workspace.beside())
    assert workspace.files() == {"a.txt": "one\n", "b.txt": "second\n", done.kept_files[0]: "first\n"}


def test_move_that_cannot_remove_the_old_path_is_a_conflict(workspace: ToolWorkspace) -> None:
    """W3, [I3]: somebody saved there after the copy; both paths have something, and the text says which."""
    done, _ = move(workspace, ("rename_new",), lambda: workspace.write("a.txt", "saved\n"))
    assert (done.outcome, done.check, done.kept_files) == ("unknown", "conflict", ())
    assert done.text == (
        "b.txt has the content, but a.txt could not be removed: a.txt was changed by somebody else in the meantime."
    )
    assert workspace.files() == {"a.txt": "saved\n", "b.txt": "one\n"}


@pytest.mark.parametrize("how", ["another save", "a fault"])
def test_move_names_a_save_that_it_could_not_put_back(workspace: ToolWorkspace, how: str) -> None:
    """W9: the displaced save is beside the old path."""

    def fail() -> None:
        raise OSError(errno.EIO, "Input/output error")

    again = fail if how == "a fault" else lambda: workspace.write("a.txt", "second\n")
    done, _ = move(workspace, ("rename_new",), lambda: workspace.write("a.txt", "first\n"), again)
    assert (done.outcome, done.check) == ("unknown", "conflict")
    assert done.kept_files == tuple(workspace.beside())
    assert workspace.content(done.kept_files[0]) == "first\n"
    assert done.text.startswith("b.txt has the content, but a.txt could not be removed: Somebody else saved a.txt")


def test_leftover_that_cannot_be_looked_at_is_not_ours(workspace: ToolWorkspace) -> None:
    """W9: what cannot be told counts as somebody's; so does an effect that names no temporary file."""
    (evidence,) = gathered(planned(WriteFile(), workspace.tool_context(), path="d/c.txt", content="new\n"))
    context = workspace.tool_context()
    assert not is_own_leftover(context, evidence, b"new\n"), "its folder does not exist"
    (workspace.root / "d").mkdir()
    assert not is_own_leftover(context, evidence, b"new\n"), "nothing is there"
    workspace.write(f"d/{evidence.temporary}", "new\n")
    assert is_own_leftover(context, evidence, b"new\n")
    assert not is_own_leftover(context, attrs.evolve(evidence, temporary=None), b"new\n")
    assert not is_own_leftover(context, attrs.evolve(evidence, resolved="/"), b"new\n")
