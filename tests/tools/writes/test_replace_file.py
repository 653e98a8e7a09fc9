"""The replacement of a file: undisturbed, cancelled, with typed text, and in what order its operations come.

`test_replace_faults.py` and `test_replace_concurrent.py` have its faults and what others do to the file meanwhile.
"""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from steadyhand.adapters.disk.posix import system_disk
from steadyhand.domain.records.identity import sha256
from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import ToolOutcome
from steadyhand.tools.registry import intended_content
from tests.support.faults import CountingDisk, between
from tests.support.replacements import FIELDS, NAME, NEW, assert_old_or_new, carry_out, content_now, workspaces
from tests.support.tool_calls import arguments, gathered, planned, running


@pytest.mark.parametrize("existed", [True, False])
def test_replace_undisturbed_returns_what_it_read_back(tmp_path: Path, existed: bool) -> None:
    """W5, W9, case 34: observed size and digest, nothing left beside the file, no check needed afterwards."""
    _, workspace = next(workspaces(tmp_path, existed))
    outcome, evidence = carry_out(workspace)
    assert isinstance(outcome, ToolOutcome)
    (change,) = outcome.files
    assert (outcome.outcome, outcome.check) == ("returned", "satisfied")
    assert (change.path, change.change, change.bytes, change.after) == (
        NAME,
        "modified" if existed else "created",
        len(NEW),
        sha256(NEW),
    )
    assert sha256(NEW) in outcome.text
    assert assert_old_or_new(workspace, outcome, evidence) == "satisfied"


@pytest.mark.parametrize("existed", [True, False])
def test_replace_cancelled_at_any_operation_is_stopped_or_done(tmp_path: Path, existed: bool) -> None:
    """W9, case 37: until the replacement a cancel leaves the file unchanged. After it the change is done."""
    seen: set[str] = set()
    for number, workspace in workspaces(tmp_path, existed):
        reached: list[int] = []

        def note(count: int, name: str, number: int = number, reached: list[int] = reached) -> None:
            if count == number:
                reached.append(count)

        def cancelled(reached: list[int] = reached) -> bool:
            return bool(reached)

        outcome, evidence = carry_out(workspace, between(note), cancelled)
        assert isinstance(outcome, ToolOutcome)
        seen.add(outcome.outcome)
        assert_old_or_new(workspace, outcome, evidence)
        if not reached:
            break
    assert seen == {"stopped", "returned"}


def test_replace_syncs_the_new_content_before_the_exchange(tmp_path: Path) -> None:
    """W9, J4: content and attributes, their sync, the exchange, the removal, the sync of the folder, in this order."""
    for existed, verbs in (
        (True, ["sync_folder", "create", "write", "give_attributes", "sync", "exchange", "unlink", "sync_folder"]),
        (False, ["make_folder", "sync_folder", "sync_folder", "create", "write", "sync", "rename_new", "sync_folder"]),
    ):
        _, workspace = next(workspaces(tmp_path / str(existed), existed))
        disk = CountingDisk(system_disk())
        outcome, _ = carry_out(workspace, disk)
        assert isinstance(outcome, ToolOutcome)
        assert [operation.verb for operation in disk.operations] == verbs


def test_replace_with_unsaved_changes_after_the_start_replaces_nothing(tmp_path: Path) -> None:
    """V2, W9: unsaved changes that appear after the start prevent the replacement."""
    _, workspace = next(workspaces(tmp_path, True))

    def type_now(count: int, name: str) -> None:
        workspace.documents[str(workspace.root / NAME)] = OpenDocument("typing", 2, True)

    outcome, evidence = carry_out(workspace, between(type_now))
    assert isinstance(outcome, ToolOutcome)
    assert (outcome.outcome, outcome.reason) == ("failed", "unsaved")
    assert assert_old_or_new(workspace, outcome, evidence) == "unchanged"


def test_intended_content_is_recomputed_from_arguments_and_checkpoint(tmp_path: Path) -> None:
    """W9: the intended bytes are recomputed, and used only if their digest matches."""
    _, workspace = next(workspaces(tmp_path, True))
    context = workspace.tool_context()
    fields = {"path": NAME, "edits": [{"old": "old", "new": "new"}]}
    (evidence,) = gathered(planned(EditFile(), context, **fields))
    text = arguments(**fields).canonical
    assert intended_content(context, "edit_file", text, evidence) == NEW
    other = arguments(path=NAME, edits=[{"old": "old", "new": "other"}]).canonical
    assert intended_content(context, "edit_file", other, evidence) is None
    assert intended_content(context, "edit_file", "{", evidence) is None
    assert intended_content(context, "run_command", text, evidence) is None
    (workspace.session / "checkpoints" / str(evidence.checkpoint)).write_bytes(b"damaged")
    assert intended_content(context, "edit_file", text, evidence) is None


@pytest.mark.anyio
async def test_replace_cancelled_from_outside_waits_for_its_result(tmp_path: Path) -> None:
    """I2, case 37: the thread of the body is not abandoned. Its result is returned although the scope was cancelled."""
    _, workspace = next(workspaces(tmp_path, True))
    reached, go_on = threading.Event(), threading.Event()

    def hold(count: int, name: str) -> None:
        if name == "exchange":
            reached.set()
            assert go_on.wait(10)

    call = planned(WriteFile(), workspace.tool_context(), **FIELDS)
    evidence = gathered(call)
    object.__setattr__(call, "_tool_context", workspace.tool_context(between(hold)))
    results: list[ToolOutcome] = []
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def body() -> None:
                results.append(await call.run(running(evidence)))

            tasks.start_soon(body)
            await anyio.to_thread.run_sync(reached.wait, 10)
            scope.cancel()
            go_on.set()
    assert results[0].outcome == "returned"
    assert content_now(workspace) == NEW
