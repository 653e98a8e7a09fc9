"""Moves and deletions of files and links, with something happening at each of their operations.

A `FileAction` is one call with the file tree before and after it. Every test walks all operations of its body: a save,
a cancel, a fault or a crash comes before the first one, then before the second one, and so on until the body ends
undisturbed. `settled` says what must hold for the tree and for what recovery makes of it, `judged` what becomes of
somebody else's save.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import attrs
import pytest

from steadyhand.adapters.disk import renames
from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import Check, Evidence, PathFinding
from steadyhand.domain.recovery.postcondition import check_all_paths, intended_changes
from steadyhand.ports.disk import Disk, Folder
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.contract import Tool, ToolOutcome
from steadyhand.tools.registry import intended_content
from steadyhand.tools.writes.postcondition_check import check_paths, make_durable, remove_temporary
from tests.support.faults import BetweenDisk, CountingDisk, FaultDisk, LateFault, WatchedDisk
from tests.support.replacements import SAVES, THEIRS, Crash, carry_out_call, crash_from, numbered
from tests.support.tool_calls import ToolWorkspace, arguments, gathered, planned

OLD, OTHER = b"the content\nthat is moved\n", b"what was there\n"
FROM, TO = "d/f.txt", "e/g.txt"
Tree = dict[str, bytes]
"""Path → bytes; of a link `-> ` and its target."""


class OtherFileSystem(WatchedDisk):
    """No name can be moved into another folder, as between two file systems."""

    def rename_to(self, folder: Folder, name: str, other: Folder, new: str, exclusive: bool) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@attrs.frozen
class FileAction:
    tool: Tool
    fields: dict[str, object]
    before: Tree
    after: Tree
    disk: Callable[[], Disk] = system_disk
    copies: bool = False  # the two paths are changed one after the other

    def lay(self, workspace: ToolWorkspace) -> None:
        for name, content in self.before.items():
            if content.startswith(b"-> "):
                (workspace.root / name).parent.mkdir(parents=True, exist_ok=True)
                (workspace.root / name).symlink_to(content[3:].decode())
            else:
                workspace.write(name, content)


ONWARD: dict[str, object] = {"from": FROM, "to": TO}
ACTIONS = {
    "delete": FileAction(DeleteFile(), {"path": FROM}, {FROM: OLD}, {}),
    "delete a link": FileAction(DeleteFile(), {"path": FROM}, {FROM: b"-> ../e/g.txt", TO: OTHER}, {TO: OTHER}),
    "move": FileAction(MoveFile(), ONWARD, {FROM: OLD}, {TO: OLD}),
    "move a link": FileAction(MoveFile(), ONWARD, {FROM: b"-> nowhere"}, {TO: b"-> nowhere"}),
    "move over": FileAction(MoveFile(), {**ONWARD, "overwrite": True}, {FROM: OLD, TO: OTHER}, {TO: OLD}, copies=True),
    "move across": FileAction(
        MoveFile(), ONWARD, {FROM: OLD}, {TO: OLD}, lambda: OtherFileSystem(system_disk()), copies=True
    ),
}
every_action = pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)


def between(action: FileAction, before: Callable[[int, str], None]) -> Disk:
    return cast(Disk, BetweenDisk(action.disk(), before))


def carry_out(
    action: FileAction,
    workspace: ToolWorkspace,
    disk: Disk | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[ToolOutcome | OSError | None, tuple[Evidence, ...]]:
    """Run the call over a disk; its evidence was gathered undisturbed. None: it crashed."""
    return carry_out_call(
        action.tool, action.fields, workspace, workspace.tool_context(disk or action.disk()), cancelled
    )


def workspaces(tmp_path: Path, action: FileAction) -> Iterator[tuple[int, ToolWorkspace]]:
    """One new workspace after the other, numbered from 1; the caller stops when the body does not reach its number."""
    return numbered(tmp_path, action.lay)


def tree(workspace: ToolWorkspace) -> Tree:
    """Every file and link of the workspace, including temporary ones."""
    found: Tree = {}
    for path in sorted(workspace.root.rglob("*")):
        name = path.relative_to(workspace.root).as_posix()
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}".encode()
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def recovered(
    action: FileAction, workspace: ToolWorkspace, evidence: tuple[Evidence, ...]
) -> tuple[tuple[PathFinding, ...], list[str]]:
    """What recovery finds on a healthy disk: temporary files first, then the check, then durability."""
    tool_context = workspace.tool_context()
    kept: list[str] = []
    for one in evidence:
        intended = intended_content(tool_context, action.tool.name, arguments(**action.fields).canonical, one)
        assert intended is not None
        kept += remove_temporary(tool_context, one, intended)
    found = check_paths(tool_context, evidence)
    assert make_durable(tool_context, evidence)
    return found, kept


def settled(
    action: FileAction, workspace: ToolWorkspace, outcome: ToolOutcome | OSError | None, evidence: tuple[Evidence, ...]
) -> Check:
    """Each path is old or new, the check says which, nothing is left behind, and what the reply claims is true."""
    findings, kept = recovered(action, workspace, evidence)
    found = check_all_paths(one.check for one in findings)
    stands = tree(workspace)
    both = {**action.before, **action.after}
    assert kept == [], stands
    if stands == action.after:
        assert found == "satisfied"
    elif stands == action.before:
        assert found == "unchanged"
    else:
        assert action.copies
        assert stands == both
        assert found == "conflict"
        assert [(one.path, one.check) for one in findings] == [(FROM, "unchanged"), (TO, "satisfied")]
        assert [one.reason for one in findings] == ["it is there as before", "it has the intended content"]
    if isinstance(outcome, ToolOutcome):
        assert (outcome.outcome == "returned") == (stands == action.after), outcome
        assert outcome.outcome not in ("failed", "stopped") or stands == action.before
    return found


@every_action
def test_undisturbed_call_returns_what_it_read_back(tmp_path: Path, action: FileAction) -> None:
    """W4, W5, case 34: the tree is as intended, the check of each path is satisfied, nothing is left beside it."""
    _, workspace = next(workspaces(tmp_path, action))
    outcome, evidence = carry_out(action, workspace)
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.check, outcome.kept_files) == ("returned", "satisfied", ())
    (change,) = outcome.files
    moved = action.tool.name == "move_file"
    assert (change.path, change.change) == ((TO, "moved") if moved else (FROM, "deleted"))
    assert change.from_ == (FROM if moved else None)
    assert change.after == (evidence[0].before if moved else None)
    assert settled(action, workspace, outcome, evidence) == "satisfied"


@every_action
def test_content_before_is_kept_for_every_path(tmp_path: Path, action: FileAction) -> None:
    """W1, W8: there is evidence for each path, and its content before under its digest; for a link its target."""
    _, workspace = next(workspaces(tmp_path, action))
    evidence = gathered(planned(action.tool, workspace.tool_context(), **action.fields))
    assert [one.resolved for one in evidence] == [str(workspace.root / name) for name in (FROM, TO)][: len(evidence)]
    assert len(evidence) == (2 if action.tool.name == "move_file" else 1)
    for one, name in zip(evidence, (FROM, TO), strict=False):
        before = action.before.get(name)
        content = None if before is None else before.removeprefix(b"-> ")
        assert (one.existed, one.checkpoint) == (content is not None, None if content is None else sha256(content))
        assert one.checkpoint == one.before
        assert one.kind == ("link" if action.before[FROM].startswith(b"-> ") else "file")
        if content is not None:
            assert (workspace.session / "checkpoints" / sha256(content)).read_bytes() == content
    if len(evidence) == 2:
        assert (evidence[0].intended, evidence[1].intended) == (None, evidence[0].before)
    assert tree(workspace) == action.before


@every_action
def test_cancel_at_any_operation_does_nothing_or_comes_too_late(tmp_path: Path, action: FileAction) -> None:
    """W9, case 37: before the change a cancel leaves everything as it was; after it the change is done."""
    seen: set[str] = set()
    for number, workspace in workspaces(tmp_path, action):
        reached: list[int] = []

        def note(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)

        def cancelled(reached: list[int] = reached) -> bool:
            return bool(reached)

        outcome, evidence = carry_out(action, workspace, between(action, note), cancelled)
        assert isinstance(outcome, ToolOutcome)
        seen.add(outcome.outcome)
        settled(action, workspace, outcome, evidence)
        if not reached:
            break
    assert seen == {"stopped", "returned"}


def reachable(action: FileAction) -> set[Check]:
    """An action of two steps can be half done."""
    return {"unchanged", "satisfied", "conflict"} if action.copies else {"unchanged", "satisfied"}


@every_action
@pytest.mark.parametrize("for_good", [False, True])
def test_fault_at_any_operation_leaves_old_or_new(tmp_path: Path, action: FileAction, for_good: bool) -> None:
    """W3, W6, W9, cases 32 and 61: after any fault the check tells the truth about each path."""
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, action):
        disk = FaultDisk(action.disk(), number, errno.EIO, for_good)
        outcome, evidence = carry_out(action, workspace, disk)
        if not disk.failed:
            break
        seen.add(settled(action, workspace, outcome, evidence))
    assert seen == reachable(action)


@every_action
def test_operation_done_but_reported_as_failed_is_decided_by_the_check(tmp_path: Path, action: FileAction) -> None:
    """W6, case 32: the check decides about an operation that was done and reported as failed."""
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, action):
        disk = LateFault(action.disk(), number)
        outcome, evidence = carry_out(action, workspace, disk)
        seen.add(settled(action, workspace, outcome, evidence))
        if disk.count < number:
            break
    assert seen >= {"unchanged", "satisfied"} - ({"unchanged"} if not action.copies else set())
    assert seen <= reachable(action)


@every_action
def test_crash_at_any_operation_is_classified_by_the_check(tmp_path: Path, action: FileAction) -> None:
    """W2, W3, W9, B3: whatever operation was the last, recovery finds each path old or new and removes the rest; a move
    that was half done is a conflict, and its partial state is named."""
    seen: set[Check] = set()
    for number, workspace in workspaces(tmp_path, action):
        crashed: list[int] = []
        outcome, evidence = carry_out(action, workspace, between(action, crash_from(number, crashed)))
        seen.add(settled(action, workspace, outcome, evidence))
        if not crashed:
            break
    assert seen == reachable(action)


def judged(
    action: FileAction, workspace: ToolWorkspace, outcome: ToolOutcome | OSError | None, saved_at: str, late: bool
) -> None:
    """Somebody else's bytes are somewhere, and beside a path only if the reply says so. Our bytes are reported truly,
    and lost only where they were to go. `late`: the save came when everything was read back and only folders were being
    closed."""
    stands = tree(workspace)
    assert isinstance(outcome, ToolOutcome), outcome
    hidden = {name: content for name, content in stands.items() if name.endswith(".steadyhand")}
    assert set(hidden) <= set(outcome.kept_files)
    assert all(content == THEIRS for content in hidden.values()), "something of ours is left behind"
    assert THEIRS in stands.values(), "their save is lost"
    match outcome.outcome:
        case "returned":
            assert late
        case "failed":
            assert outcome.reason == "changed"
            # A save to the new name right after the rename looks like a save to the old name right before it.
            kept_at = saved_at if stands.get(saved_at) == THEIRS else FROM
            assert stands[kept_at] == THEIRS
            assert kept_at == saved_at or f"the saved content is at {FROM}" in outcome.text
            rest = {name: content for name, content in stands.items() if name != kept_at and name not in hidden}
            assert rest == {name: content for name, content in action.before.items() if name != kept_at}
        case "unknown":
            assert outcome.check == "conflict"
        case _:
            pytest.fail(f"a verdict out of place: {outcome}")


SAVED = [(name, where) for name in ACTIONS for where in (FROM, TO) if where == FROM or name.startswith("move")]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize(("name", "where"), [(name, where) for name, where in SAVED if "link" not in name])
def test_save_at_any_operation_is_never_lost(
    tmp_path: Path, name: str, save: Callable[[Path], None], where: str
) -> None:
    """W9, case 71: a save to either path before any one operation is there afterwards, and no report says otherwise."""
    action = ACTIONS[name]
    seen: set[str] = set()
    for number, workspace in workspaces(tmp_path, action):
        reached: list[str] = []

        def slip(
            count: int,
            name: str,
            number: int = number,
            workspace: ToolWorkspace = workspace,
            reached: list[str] = reached,
        ) -> None:
            if count == number:
                reached.append(name)
                save(workspace.root / where)
            elif count > number:
                reached.append(name)

        outcome, _ = carry_out(action, workspace, between(action, slip))
        if not reached:
            break
        # Both paths are read back, the new one first; a save after the last read of a path makes no report untrue.
        looked_for_late = 1 if where == TO else 0
        late = reached.count("look") <= looked_for_late and not {"rename_new", "rename_to", "exchange"} & set(reached)
        judged(action, workspace, outcome, where, late)
        assert isinstance(outcome, ToolOutcome)
        seen.add(outcome.outcome)
    assert seen == {"failed", "unknown", "returned"}


def _slipping(verb: str, workspace: ToolWorkspace, where: str, saves: list[bytes]) -> Callable[[int, str], None]:
    def slip(count: int, name: str) -> None:
        if name == verb and saves:
            (workspace.root / "save").write_bytes(saves.pop(0))
            (workspace.root / "save").replace(workspace.root / where)

    return slip


@pytest.mark.parametrize(("name", "verb"), [("delete", "rename_new"), ("move", "rename_to")])
def test_save_at_the_rename_gets_its_name_back(tmp_path: Path, name: str, verb: str) -> None:
    """W9: a save comes exactly at the rename; it is found elsewhere and gets its name back."""
    action = ACTIONS[name]
    _, workspace = next(workspaces(tmp_path, action))
    outcome, evidence = carry_out(action, workspace, between(action, _slipping(verb, workspace, FROM, [THEIRS])))
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason, outcome.kept_files) == ("failed", "changed", ())
    assert tree(workspace) == {FROM: THEIRS}
    findings, kept = recovered(action, workspace, evidence)
    assert (check_all_paths(one.check for one in findings), kept) == ("conflict", [])


@pytest.mark.parametrize(("name", "verb"), [("delete", "rename_new"), ("move", "rename_to")])
def test_two_saves_around_the_rename_are_both_kept(tmp_path: Path, name: str, verb: str) -> None:
    """W9: the later save has the name, the earlier one is kept where the reply says."""
    action = ACTIONS[name]
    _, workspace = next(workspaces(tmp_path, action))
    outcome, evidence = carry_out(
        action, workspace, between(action, _slipping(verb, workspace, FROM, [b"first", b"second"]))
    )
    assert isinstance(outcome, ToolOutcome)
    assert outcome.outcome in ("failed", "unknown")
    (kept,) = outcome.kept_files
    assert tree(workspace) == {FROM: b"second", kept: b"first"}
    assert kept in outcome.text
    assert check_all_paths(one.check for one in recovered(action, workspace, evidence)[0]) == "conflict"
    assert tree(workspace)[kept] == b"first"


def test_save_after_a_move_over_leaves_both_and_says_so(tmp_path: Path) -> None:
    """W3, W9: the new path has the content; what was saved under the old path stays there, and the reply names both."""
    action = ACTIONS["move over"]
    _, workspace = next(workspaces(tmp_path, action))
    outcome, evidence = carry_out(
        action, workspace, between(action, _slipping("rename_new", workspace, FROM, [THEIRS]))
    )
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.check) == ("unknown", "conflict")
    assert tree(workspace) == {FROM: THEIRS, TO: OLD}
    assert FROM in outcome.text
    assert TO in outcome.text
    findings, _ = recovered(action, workspace, evidence)
    assert [one.check for one in findings] == ["conflict", "satisfied"]


def test_save_followed_by_a_crash_keeps_the_saved_bytes(tmp_path: Path) -> None:
    """W9: a kill between the displacement and its end leaves a save beside the path; recovery keeps and names it."""
    seen_kept = 0
    action = ACTIONS["delete"]
    for number, workspace in workspaces(tmp_path, action):
        crashed: list[int] = []
        slip, crash = _slipping("rename_new", workspace, FROM, saves := [THEIRS]), crash_from(number, crashed)

        def before(
            count: int,
            name: str,
            saves: list[bytes] = saves,
            slip: Callable[[int, str], None] = slip,
            crash: Callable[[int, str], None] = crash,
        ) -> None:
            slip(count, name)
            if not saves and name != "rename_new":
                crash(count, name)

        _, evidence = carry_out(action, workspace, between(action, before))
        _, kept = recovered(action, workspace, evidence)
        assert list(tree(workspace).values()) == [THEIRS]
        assert [name for name in tree(workspace) if name != FROM] == kept
        seen_kept += bool(kept)
        if not crashed:
            break
    assert seen_kept, "no crash fell between the displacement and its end"


@every_action
def test_folder_swapped_for_a_link_changes_nothing_outside(tmp_path: Path, action: FileAction) -> None:
    """E3, case 104: at any operation the folder is swapped for a link to the outside; nothing is created or removed
    there."""
    for number, workspace in workspaces(tmp_path, action):
        reached: list[int] = []
        for name in ("f.txt", "g.txt"):
            (workspace.outside / name).write_bytes(OLD)
        (workspace.root / "e").mkdir(exist_ok=True)

        def swap(
            count: int,
            name: str,
            number: int = number,
            workspace: ToolWorkspace = workspace,
            reached: list[int] = reached,
        ) -> None:
            if count == number:
                reached.append(count)
                for folder in ("d", "e"):
                    (workspace.root / folder).rename(workspace.root / f"moved-{folder}")
                    (workspace.root / folder).symlink_to(workspace.outside)

        outcome, _ = carry_out(action, workspace, between(action, swap))
        assert sorted(path.name for path in workspace.outside.iterdir()) == ["f.txt", "g.txt"]
        assert all(path.read_bytes() == OLD for path in workspace.outside.iterdir())
        if not reached:
            assert isinstance(outcome, ToolOutcome)
            assert outcome.outcome == "returned"
            break


@every_action
def test_unsaved_changes_after_the_start_stop_the_call(tmp_path: Path, action: FileAction) -> None:
    """V2: the user types into the file after the start: nothing is moved or deleted."""
    _, workspace = next(workspaces(tmp_path, action))

    def typed(count: int, name: str) -> None:
        workspace.documents[str(workspace.root / FROM)] = OpenDocument("typing", 2, True)

    outcome, evidence = carry_out(action, workspace, between(action, typed))
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason) == ("failed", "unsaved")
    assert settled(action, workspace, outcome, evidence) == "unchanged"


@pytest.mark.parametrize(
    ("name", "verbs"),
    [
        ("delete", ["rename_new", "unlink", "sync_folder"]),
        ("move", ["make_folder", "sync_folder", "sync_folder", "rename_to", "sync_folder", "sync_folder"]),
        (
            "move over",
            [
                *(
                    "sync_folder",
                    "sync_folder",
                    "create",
                    "write",
                    "give_attributes",
                    "sync",
                    "exchange",
                    "unlink",
                    "sync_folder",
                ),
                *("rename_new", "unlink", "sync_folder"),
            ],
        ),
    ],
)
def test_new_name_is_durable_before_the_old_one_is_removed(tmp_path: Path, name: str, verbs: list[str]) -> None:
    """W9, J4: the new name and its content are durable before the old name goes; the folders are synced before the
    reply."""
    action = ACTIONS[name]
    _, workspace = next(workspaces(tmp_path, action))
    disk = CountingDisk(action.disk())
    outcome, _ = carry_out(action, workspace, disk)
    assert isinstance(outcome, ToolOutcome)
    assert [operation.verb for operation in disk.operations] == verbs


def test_recovery_keeps_content_that_no_checkpoint_has(tmp_path: Path) -> None:
    """W8, W9: above the limit of a checkpoint the displaced file may be the only copy that is left."""
    action = ACTIONS["delete"]
    _, workspace = next(workspaces(tmp_path, action))
    _, (evidence,) = carry_out(action, workspace, between(action, _crashing_at("unlink")))
    assert evidence.temporary is not None
    (left,) = workspace.beside()
    large = attrs.evolve(evidence, checkpoint=None)
    assert remove_temporary(workspace.tool_context(), large) == (f"d/{left}",)
    assert remove_temporary(workspace.tool_context(), evidence) == ()
    assert tree(workspace) == {}


def _crashing_at(verb: str) -> Callable[[int, str], None]:
    reached: list[str] = []

    def before(count: int, name: str) -> None:
        if name == verb:
            reached.append(name)
        if reached and name != "close":
            raise Crash

    return before


def test_move_between_equal_contents_is_decided_by_the_old_path(tmp_path: Path) -> None:
    """W2, W3: if both paths hold the same before, the new path proves nothing, and counts as the old path does."""
    action = attrs.evolve(ACTIONS["move over"], before={FROM: OLD, TO: OLD})
    _, workspace = next(workspaces(tmp_path, action))
    evidence = gathered(planned(action.tool, workspace.tool_context(), **action.fields))
    findings, _ = recovered(action, workspace, evidence)
    assert [one.check for one in findings] == ["unchanged", "unchanged"]
    outcome, evidence = carry_out(action, workspace)
    assert settled(action, workspace, outcome, evidence) == "satisfied"


@every_action
def test_satisfied_check_after_an_error_reports_the_evidence(tmp_path: Path, action: FileAction) -> None:
    """W6, G6: after an error whose change is there, the reported changes are those of the evidence."""
    _, workspace = next(workspaces(tmp_path, action))
    evidence = gathered(planned(action.tool, workspace.tool_context(), **action.fields))
    outcome, _ = carry_out(action, workspace)
    assert isinstance(outcome, ToolOutcome)
    assert intended_changes(evidence) == outcome.files


@every_action
def test_move_and_delete_work_without_the_renames_of_linux(
    tmp_path: Path, action: FileAction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W9: by a hard link and its removal if there is no exclusive rename, by a plain rename if names cannot be
    exchanged; a crash there too leaves each path old or new."""
    monkeypatch.setattr(renames, "_renameat2", lambda: None)
    for number, workspace in workspaces(tmp_path, action):
        crashed: list[int] = []
        outcome, evidence = carry_out(action, workspace, between(action, crash_from(number, crashed)))
        settled(action, workspace, outcome, evidence)
        if not crashed:
            assert isinstance(outcome, ToolOutcome)
            assert outcome.outcome == "returned"
            break
