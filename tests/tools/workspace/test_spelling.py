"""Where a path leads on a file system that folds: an entry's own spelling, the workspace under another (row W12)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.record import Scope
from steadyhand.ports.disk import Disk
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.workspace.paths import ResolvedPath, locate
from steadyhand.tools.workspace.places import is_same_place, overlapping_now
from steadyhand.tools.workspace.spelling import own_path
from tests.support.folding_disk import folding_disk
from tests.support.systems import linux_only, mounted_at
from tests.support.tool_calls import ToolWorkspace

pytestmark = linux_only


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    made = ToolWorkspace.under(tmp_path)
    made.write("Src/App.ts", "a\n")
    return made


@pytest.fixture
def disk(workspace: ToolWorkspace) -> Disk:
    return folding_disk(str(workspace.base))


def found(tool_context: ToolContext, path: str) -> ResolvedPath:
    located = locate(tool_context, path)
    assert isinstance(located, ResolvedPath), located
    return located


def in_other_letters(path: Path, below: Path) -> str:
    """The path with the names behind `below` in the other case."""
    return f"{below}/{str(path.relative_to(below)).swapcase()}"


def test_workspace_in_other_letters_is_inside(workspace: ToolWorkspace, disk: Disk) -> None:
    """W12, case 133: the workspace and what is in it have one path each, however they are spelled."""
    asked = in_other_letters(workspace.root / "Src" / "App.ts", workspace.base)
    assert asked != str(workspace.root / "Src" / "App.ts")
    located = found(workspace.tool_context(disk), asked)
    assert located.is_inside
    assert located.resolved == str(workspace.root / "Src" / "App.ts")
    new = found(workspace.tool_context(disk), in_other_letters(workspace.root / "Src" / "New.ts", workspace.base))
    assert (new.is_inside, new.kind) == (True, None)
    assert new.resolved == str(workspace.root / "Src" / "nEW.TS")


def test_folder_that_differs_in_case_is_outside_where_names_are_told_apart(workspace: ToolWorkspace) -> None:
    """W12: membership is not folded. `WS` beside `ws` is another folder."""
    twin = workspace.root.with_name("WS")
    twin.mkdir()
    (twin / "a").write_text("a\n")
    assert not found(workspace.tool_context(), str(twin / "a")).is_inside
    assert not is_same_place(system_disk(), str(twin), str(workspace.root))


@pytest.fixture
def mounted(workspace: ToolWorkspace) -> Iterator[Path]:
    yield from mounted_at(workspace.root, workspace.base / "mounted")


def test_workspace_mounted_at_a_second_path_is_inside(workspace: ToolWorkspace, mounted: Path) -> None:
    """W12: what is not found by its name is found by device and inode."""
    located = found(workspace.tool_context(), str(mounted / "Src" / "App.ts"))
    assert located.is_inside
    assert located.resolved == str(workspace.root / "Src" / "App.ts")


def test_state_directory_in_other_letters_is_no_target(workspace: ToolWorkspace, disk: Disk) -> None:
    """W12, G2: what must not be touched is compared folded, on every system."""
    for one in (disk, system_disk()):
        asked = f"{workspace.base}/STATE/sessions/x"
        assert found(workspace.tool_context(one), asked).is_in_state_directory


def test_two_names_of_one_file_keep_their_own_names(workspace: ToolWorkspace) -> None:
    """W12: two entries that differ in case and are one file by a hard link are both found as they are spelled."""
    os.link(workspace.root / "Src" / "App.ts", workspace.root / "Src" / "aPP.TS")
    for name in ("App.ts", "aPP.TS"):
        assert found(workspace.tool_context(), f"Src/{name}").name == name


def test_own_path_spells_each_name_as_its_folder_does(workspace: ToolWorkspace, disk: Disk) -> None:
    """W12: a session's folder has one path, so a grant for it holds whatever the editor calls it."""
    asked = in_other_letters(workspace.root / "Src", workspace.base)
    assert own_path(disk, asked) == str(workspace.root / "Src")
    assert own_path(disk, asked + "/gone/x") == str(workspace.root / "Src" / "gone" / "x")
    assert own_path(system_disk(), asked) == asked


@pytest.mark.parametrize("folds", [True, False], ids=["folds", "tells apart"])
def test_scopes_in_other_letters_overlap(workspace: ToolWorkspace, disk: Disk, folds: bool) -> None:
    """W12, B1, case 133: `Src/x.txt` and `src/X.txt` overlap on every system, existing or not [I6]."""
    first = Scope((str(workspace.root / "Src" / "x.txt"),))
    second = Scope((str(workspace.root / "src" / "X.txt"),))
    used = disk if folds else system_disk()
    assert overlapping_now(used, first, {"other": second}) == {"other"}
    assert overlapping_now(used, first, {"other": Scope((str(workspace.root / "Src" / "y.txt"),))}) == frozenset()
