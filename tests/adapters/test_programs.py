"""Programs that the server starts for itself come from outside every workspace (row O4; case 143)."""

import os
from pathlib import Path

import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.programs import trusted_program
from steadyhand.adapters.ripgrep import Ripgrep
from tests.support.systems import posix_only

pytestmark = posix_only


def make_program(folder: Path, name: str = "tool") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\necho ran >> ran\n")
    program.chmod(0o755)
    return program


def test_trusted_program_is_the_first_outside_the_workspace(tmp_path: Path) -> None:
    """O4: a folder of PATH inside the workspace, as that of an active virtual environment, is passed over."""
    workspace = tmp_path / "workspace"
    make_program(workspace / "venv" / "bin")
    outside = make_program(tmp_path / "bin")
    search_path = f"{workspace}/venv/bin:{tmp_path}/missing:{tmp_path}/bin"
    assert trusted_program("tool", search_path, [str(workspace)]) == os.path.realpath(outside)
    assert trusted_program("tool", f"{workspace}/venv/bin", [str(workspace)]) is None
    assert trusted_program("tool", f"{workspace}/venv/bin", []) is not None


@pytest.mark.parametrize("asked", ["relative", "", ".", "bin"])
def test_trusted_program_ignores_relative_folders(asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O4: a relative or empty entry of PATH means the current folder, which a workspace may be."""
    make_program(tmp_path / "bin")
    make_program(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert trusted_program("tool", asked, []) is None


def test_trusted_program_refuses_every_link_through_the_workspace(tmp_path: Path) -> None:
    """O4: a link in the workspace to a program outside, a link outside to a program inside, and a chain of links that
    passes through the workspace: the workspace would choose what runs."""
    workspace, outside = tmp_path / "workspace", tmp_path / "outside"
    make_program(outside)
    make_program(workspace, "inner")
    (workspace / "tool").symlink_to(outside / "tool")
    assert trusted_program("tool", str(workspace), [str(workspace)]) is None
    (outside / "inward").symlink_to(workspace / "inner")
    assert trusted_program("inward", str(outside), [str(workspace)]) is None
    (outside / "round").symlink_to("../workspace/tool")
    assert trusted_program("round", str(outside), [str(workspace)]) is None
    (tmp_path / "folder").symlink_to(workspace)
    assert trusted_program("tool", str(tmp_path / "folder"), [str(workspace)]) is None
    assert trusted_program("tool", str(outside), [str(workspace)]) == os.path.realpath(outside / "tool")


def test_trusted_program_knows_a_workspace_that_is_named_by_a_link(tmp_path: Path) -> None:
    """O4: the workspace folders are compared with their links resolved."""
    make_program(tmp_path / "real")
    (tmp_path / "named").symlink_to("real")
    assert trusted_program("tool", str(tmp_path / "real"), [str(tmp_path / "named")]) is None


@pytest.mark.parametrize("kind", ["folder", "not executable", "loop", "missing"])
def test_trusted_program_passes_over_what_is_no_program(kind: str, tmp_path: Path) -> None:
    """O4: only an executable file counts, and a loop of links ends the search there, not the server."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    found = make_program(second)
    match kind:
        case "folder":
            (first / "tool").mkdir()
        case "not executable":
            make_program(first).chmod(0o644)
        case "loop":
            (first / "tool").symlink_to("tool")
        case _:
            pass
    assert trusted_program("tool", f"{first}:{second}", []) == os.path.realpath(found)


def test_ripgrep_of_the_workspace_is_never_started(tmp_path: Path) -> None:
    """O4: the model could have put it there (case 143)."""
    workspace = tmp_path / "workspace"
    make_program(workspace / "bin", "rg")
    file = workspace / "a"
    file.write_text("needle")
    rg = Ripgrep(lambda: {"PATH": f"{workspace}/bin"})
    assert rg.program() is not None
    assert rg.may_hold(b"needle", [str(file)], 5.0, [str(workspace)]) is None
    assert not list(tmp_path.rglob("ran"))


def test_processes_find_programs_outside_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """O4: the port looks programs up in the PATH of the server."""
    make_program(tmp_path / "bin", "git")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    processes = SystemProcesses()
    assert processes.program("git", ["/elsewhere"]) == os.path.realpath(tmp_path / "bin" / "git")
    assert processes.program("git", [str(tmp_path)]) is None
