"""What stands below the roots of a command, and what changed between two lists (row O1, case 124)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steadyhand.domain.permissions.protected_paths import PROTECTED_KINDS
from steadyhand.domain.records.record import SeenChange
from steadyhand.tools.prepared_command import RootsListing
from steadyhand.tools.workspace.roots_listing import (
    DURING_FILES_MAX,
    LISTED_ENTRIES_MAX,
    changes_between,
    list_roots,
    protected_since,
)
from tests.support.systems import posix_only
from tests.support.tool_calls import ToolWorkspace

pytestmark = posix_only


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def listed(workspace: ToolWorkspace) -> RootsListing:
    return list_roots(workspace.tool_context(), [str(workspace.root)])


def relative(workspace: ToolWorkspace, paths: object) -> list[str]:
    return sorted(path[len(str(workspace.root)) + 1 :] for path in paths)  # type: ignore[attr-defined]  # strings


def test_listing_has_files_and_links_and_goes_through_no_link(workspace: ToolWorkspace) -> None:
    """O1: folders are not listed, links are not followed, what is in `.git` is git's own."""
    for name in ("a", "d/b", "node_modules/x/c", ".git/index", ".git/objects/ab/cd"):
        workspace.write(name, b"")
    (workspace.outside / "o").write_bytes(b"")
    (workspace.root / "link").symlink_to(workspace.outside)
    found = listed(workspace)
    assert relative(workspace, found.files) == ["a", "d/b", "link", "node_modules/x/c"]
    assert found.is_complete


def test_state_directory_is_never_listed(tmp_path: Path) -> None:
    """O1: a state directory below a root is no part of it."""
    workspace = ToolWorkspace.under(tmp_path, tmp_path / "ws" / "state")
    workspace.write("a", b"")
    workspace.write("state/journal", b"")
    assert relative(workspace, listed(workspace).files) == ["a"]


def test_protected_names_are_found_nearest_first(workspace: ToolWorkspace) -> None:
    """O1, G2: the names themselves, nearest first; below a protected folder everything is protected; of a `.git` folder
    only what chooses programs, its submodules and worktrees included.
    """
    for name in (
        *("deep/er/.env", ".vscode/settings.json", ".vscode/deep/x", "app/.git/config", "app/.git/hooks/pre-commit"),
        *("app/.git/info/attributes", "app/.git/HEAD", "app/.git/modules/a/b/HEAD", "app/.git/modules/a/b/config"),
        *("app/.git/worktrees/w/HEAD", "app/.git/worktrees/w/commondir", "plain", "gradle/wrapper/x", "wrapper/y"),
    ):
        workspace.write(name, b"")
    found = listed(workspace)
    assert [path[len(str(workspace.root)) + 1 :] for path in found.tops] == [
        ".vscode",
        "gradle/wrapper",
        "deep/er/.env",
    ] or [path[len(str(workspace.root)) + 1 :] for path in found.tops] == [
        ".vscode",
        "app/.git",
        "gradle/wrapper",
        "deep/er/.env",
    ]
    assert relative(workspace, found.repositories) == ["app/.git"]
    assert relative(workspace, found.protected) == [
        *(".vscode", ".vscode/deep", ".vscode/deep/x", ".vscode/settings.json"),
        *("app/.git/config", "app/.git/hooks", "app/.git/hooks/pre-commit", "app/.git/info/attributes"),
        *("app/.git/modules/a/b/config", "app/.git/worktrees/w/commondir"),
        *("deep/er/.env", "gradle/wrapper", "gradle/wrapper/x"),
    ]


def test_no_entry_of_the_table_is_longer_than_the_listing_looks_at() -> None:
    """O1: the listing compares a name with its folder's, so no protected entry may have three names."""
    entries = [entry.strip("/") for text in PROTECTED_KINDS.values() for entry in text.split()]
    assert max(entry.count("/") for entry in entries) == 1


def test_every_kind_of_change_is_seen(workspace: ToolWorkspace) -> None:
    """O1, case 124: created, modified and deleted, with a mode, a link target, and a time that is set back."""
    for name in ("same", "content", "mode", "gone", "back", "kind"):
        workspace.write(name, b"old")
    (workspace.root / "link").symlink_to("same")
    before = listed(workspace)
    (workspace.root / "content").write_bytes(b"new")
    (workspace.root / "mode").chmod(0o755)
    (workspace.root / "gone").unlink()
    seen = os.stat(workspace.root / "back")
    (workspace.root / "back").write_bytes(b"new")
    os.utime(workspace.root / "back", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    (workspace.root / "link").unlink()
    (workspace.root / "link").symlink_to("content")
    workspace.write("d/new", b"")
    during = changes_between(workspace.tool_context(), before, listed(workspace))
    assert during.exact
    assert [(one.path, one.change) for one in during.files] == [
        ("back", "modified"),
        ("content", "modified"),
        ("d/new", "created"),
        ("gone", "deleted"),
        ("link", "modified"),
        ("mode", "modified"),
    ]


def test_list_beyond_its_bound_gives_a_hint_by_modification_time(workspace: ToolWorkspace) -> None:
    """O1: above 20,000 entries `exact` is false, and the files are those with a newer modification time [I13]."""
    folder = workspace.root / "many"
    folder.mkdir()
    for number in range(LISTED_ENTRIES_MAX):
        (folder / str(number)).touch()
    os.utime(workspace.root, ns=(0, 0))
    before = listed(workspace)
    assert not before.is_complete
    workspace.write("a-new", b"")
    during = changes_between(workspace.tool_context(), before, listed(workspace))
    assert not during.exact
    assert SeenChange(path="a-new", change="modified") in during.files
    assert len(during.files) <= DURING_FILES_MAX == 200


def test_new_protected_folder_is_named_alone(workspace: ToolWorkspace) -> None:
    """O1: of a new folder only the folder is named; in a known one the new entries; changed ones apart."""
    workspace.write(".git/config", b"old")
    workspace.write(".vscode/settings.json", b"")
    before = listed(workspace)
    workspace.write(".git/config", b"changed")
    workspace.write(".git/hooks/pre-commit", b"")
    workspace.write("sub/.git/config", b"")
    workspace.write("sub/.git/hooks/x", b"")
    workspace.write(".vscode/tasks.json", b"")
    workspace.write(".envrc", b"")
    new, changed = protected_since(before, listed(workspace))
    assert relative(workspace, new) == [
        *(".envrc", ".git/hooks", ".git/hooks/pre-commit", ".vscode/tasks.json", "sub/.git"),
    ]
    assert relative(workspace, changed) == [".git/config"]
