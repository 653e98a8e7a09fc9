"""The replacement of a file, with a save, a deletion or a move by others at each of its operations (rows W5, W9).

`assert_save_kept` states what must hold.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steadyhand.tools.contract import ToolOutcome
from tests.support.faults import between
from tests.support.replacements import (
    NAME,
    NEW,
    OLD,
    SAVES,
    THEIRS,
    carry_out,
    content_now,
    crash_from,
    recover,
    save_by_rename,
    workspaces,
)
from tests.support.tool_calls import ToolWorkspace


def assert_save_kept(workspace: ToolWorkspace, outcome: ToolOutcome | OSError | None, late: bool = False) -> None:
    """The bytes of the other save exist somewhere, the result says where, and what it says about our write is true.
    `late`: the save came when all was read back and only folders were being closed.
    """
    target = content_now(workspace)
    assert isinstance(outcome, ToolOutcome), outcome
    places = {name: (workspace.root / "d" / name).read_bytes() for name in workspace.beside()}
    assert set(outcome.kept_files) == {f"d/{name}" for name in places}
    assert THEIRS in (target, *places.values()), "the other save is lost"
    assert all(content == THEIRS for content in places.values())
    match outcome.outcome:
        case "returned":
            assert late
        case "failed":
            assert outcome.reason == "changed"
            assert target == THEIRS
        case "unknown":
            assert outcome.check == "conflict"
        case _:
            pytest.fail(f"an impossible outcome: {outcome}")


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("existed", [True, False])
def test_replace_never_loses_a_save_at_any_operation(
    tmp_path: Path, existed: bool, save: Callable[[Path], None]
) -> None:
    """W9, case 71: a save that comes before any operation exists afterwards, and no result says otherwise."""
    seen: set[str] = set()
    for number, workspace in workspaces(tmp_path, existed):
        reached: list[str] = []

        def save_now(
            count: int,
            name: str,
            number: int = number,
            workspace: ToolWorkspace = workspace,
            reached: list[str] = reached,
        ) -> None:
            if count == number and (workspace.root / "d").is_dir():
                reached.append(name)
                save(workspace.root / NAME)

        outcome, _ = carry_out(workspace, between(save_now))
        if not reached and number > 30:
            break
        if reached:
            assert_save_kept(workspace, outcome, late=reached == ["close"])
            assert isinstance(outcome, ToolOutcome)
            seen.add(outcome.outcome)
    assert seen == {"failed", "unknown", "returned"}


def test_replace_never_undoes_or_hides_a_deletion_at_any_operation(tmp_path: Path) -> None:
    """W2, W9: a file deleted before the replacement stays deleted. After a deletion no result says that the content is
    there.
    """
    for number, workspace in workspaces(tmp_path, True):
        reached: list[int] = []

        def delete(
            count: int,
            name: str,
            number: int = number,
            workspace: ToolWorkspace = workspace,
            reached: list[int] = reached,
        ) -> None:
            if count == number:
                reached.append(count)
                (workspace.root / NAME).unlink()

        outcome, _ = carry_out(workspace, between(delete))
        if not reached:
            break
        assert workspace.beside() == []
        if isinstance(outcome, ToolOutcome) and outcome.outcome == "returned":
            continue  # deleted after the read back
        assert content_now(workspace) is None


def test_replace_exchanges_back_a_save_made_during_the_exchange(tmp_path: Path) -> None:
    """W9: a save comes at the exchange itself. It is found displaced and gets its name back."""
    _, workspace = next(workspaces(tmp_path, True))
    saved_at: list[str] = []

    def save_now(count: int, name: str) -> None:
        if name == "exchange" and not saved_at:
            saved_at.append(name)
            save_by_rename(workspace.root / NAME)

    outcome, evidence = carry_out(workspace, between(save_now))
    assert saved_at
    assert_save_kept(workspace, outcome)
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason, outcome.kept_files) == ("failed", "changed", ())
    assert recover(workspace, evidence) == ("conflict", ())


def test_replace_keeps_two_saves_around_the_exchange(tmp_path: Path) -> None:
    """W9: the later save has the name, and the earlier one is kept beside it and named."""
    _, workspace = next(workspaces(tmp_path, True))
    saves = [b"first save", b"second save"]

    def save_now(count: int, name: str) -> None:
        if name == "exchange" and saves:
            (workspace.root / "d/save").write_bytes(saves.pop(0))
            (workspace.root / "d/save").replace(workspace.root / NAME)

    outcome, evidence = carry_out(workspace, between(save_now))
    assert isinstance(outcome, ToolOutcome)
    assert content_now(workspace) == b"second save"
    (kept,) = outcome.kept_files
    assert (workspace.root / kept).read_bytes() == b"first save"
    assert (outcome.outcome, outcome.reason) == ("failed", "changed")
    assert kept in outcome.text
    assert recover(workspace, evidence) == ("conflict", (kept,))


def test_replace_keeps_and_names_a_save_that_cannot_be_put_back(tmp_path: Path) -> None:
    """W9: when the exchange back fails, the outcome is a conflict, and the bytes of the save are where the
    result says.
    """
    _, workspace = next(workspaces(tmp_path, True))
    exchanges: list[str] = []

    def save_now(count: int, name: str) -> None:
        if name == "exchange":
            exchanges.append(name)
            if len(exchanges) == 1:
                save_by_rename(workspace.root / NAME)
            else:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    outcome, evidence = carry_out(workspace, between(save_now))
    assert_save_kept(workspace, outcome)
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert recover(workspace, evidence)[1] == outcome.kept_files != ()


def test_replace_killed_after_a_save_leaves_its_bytes(tmp_path: Path) -> None:
    """W9: a kill between the exchange and its end leaves a displaced save. Recovery keeps and names it."""
    kept_count = 0
    for number, workspace in workspaces(tmp_path, True):
        saved_at: list[int] = []
        crashed: list[int] = []
        crash = crash_from(number, crashed)

        def before(
            count: int,
            name: str,
            workspace: ToolWorkspace = workspace,
            saved_at: list[int] = saved_at,
            crash: Callable[[int, str], None] = crash,
        ) -> None:
            if name == "exchange" and not saved_at:
                saved_at.append(count)
                save_by_rename(workspace.root / NAME)
            if saved_at:
                crash(count, name)

        _, evidence = carry_out(workspace, between(before))
        _, kept = recover(workspace, evidence)
        places = [(workspace.root / name).read_bytes() for name in kept]
        assert workspace.beside() == [Path(name).name for name in kept]
        assert THEIRS in (content_now(workspace), *places)
        assert all(place == THEIRS for place in places)
        kept_count += bool(kept)
        if not crashed:
            break
    assert kept_count, "no crash fell between the exchange and its end"


def test_replace_never_moves_a_save_made_before_the_last_comparison(tmp_path: Path) -> None:
    """W9: a file that the last comparison finds changed is not exchanged at all, so nothing is lost without the
    exchange either.
    """
    _, workspace = next(workspaces(tmp_path, True))
    names: list[str] = []

    def save_now(count: int, name: str) -> None:
        names.append(name)
        if name == "sync":
            save_by_rename(workspace.root / NAME)

    outcome, _ = carry_out(workspace, between(save_now))
    assert_save_kept(workspace, outcome)
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason) == ("failed", "changed")
    assert not {"exchange", "rename"} & set(names)


def test_replace_puts_back_a_save_into_the_displaced_file(tmp_path: Path) -> None:
    """W9: an editor that has the old file open and writes once more after the comparison keeps its bytes."""
    _, workspace = next(workspaces(tmp_path, True))
    names: list[str] = []

    def save_now(count: int, name: str) -> None:
        names.append(name)
        if "exchange" in names and name == "close" and names.count("exchange") == 1:
            (temporary,) = workspace.beside()
            (workspace.root / "d" / temporary).write_bytes(THEIRS)

    outcome, _ = carry_out(workspace, between(save_now))
    assert_save_kept(workspace, outcome)
    assert content_now(workspace) == THEIRS


@pytest.mark.parametrize("as_link", [True, False])
def test_replace_in_a_folder_moved_at_any_operation_never_claims_its_path(tmp_path: Path, as_link: bool) -> None:
    """W5, E3: another folder is at the path. A change of the moved folder is never reported as one of the path."""
    verdicts: set[str] = set()
    for number, workspace in workspaces(tmp_path, True):
        names: list[str] = []

        def swap(
            count: int, name: str, number: int = number, workspace: ToolWorkspace = workspace, names: list[str] = names
        ) -> None:
            names.append(name)
            if count == number:
                (workspace.root / "d").rename(workspace.root / "moved")
                if as_link:
                    (workspace.root / "d").symlink_to("moved")
                else:
                    workspace.write(NAME, OLD)

        outcome, _ = carry_out(workspace, between(swap))
        if isinstance(outcome, ToolOutcome) and outcome.outcome != "unknown":
            verdicts.add(outcome.outcome)
            # Moved after the path was entered for the read back: then the result was true when it was read.
            late = "enter" not in names[number - 1 :]
            assert content_now(workspace) == (NEW if outcome.outcome == "returned" else OLD) or late
        if len(names) < number:
            break
    assert verdicts == {"failed", "returned"}


def test_replace_in_a_folder_moved_at_the_exchange_is_a_conflict(tmp_path: Path) -> None:
    """W5: the moved file has the content, but the file at the path does not, and the path was requested."""
    _, workspace = next(workspaces(tmp_path, True))

    def swap(count: int, name: str) -> None:
        if name == "exchange":
            (workspace.root / "d").rename(workspace.root / "moved")
            workspace.write(NAME, OLD)

    outcome, _ = carry_out(workspace, between(swap))
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert content_now(workspace) == OLD


def test_replace_in_a_folder_swapped_for_a_link_writes_nothing_outside(tmp_path: Path) -> None:
    """E3, case 104: the folder is swapped for a link to the outside at any operation. Nothing is created there."""
    for number, workspace in workspaces(tmp_path, True):
        reached: list[int] = []
        (workspace.outside / "f.txt").write_bytes(OLD)

        def swap(
            count: int,
            name: str,
            number: int = number,
            workspace: ToolWorkspace = workspace,
            reached: list[int] = reached,
        ) -> None:
            if count == number:
                reached.append(count)
                (workspace.root / "d").rename(workspace.root / "moved")
                (workspace.root / "d").symlink_to(workspace.outside)

        carry_out(workspace, between(swap))
        assert [path.name for path in workspace.outside.iterdir()] == ["f.txt"]
        assert (workspace.outside / "f.txt").read_bytes() == OLD
        if not reached:
            break
