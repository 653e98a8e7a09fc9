"""Names that differ in case or Unicode form alone: what the file tools find, suggest, refuse and say (row W12)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steadyhand.ports.editor import OpenDocument
from steadyhand.tools.builtin.delete_file import DeleteFile
from steadyhand.tools.builtin.edit_file import EditFile
from steadyhand.tools.builtin.list_files import ListFiles
from steadyhand.tools.builtin.move_file import MoveFile
from steadyhand.tools.builtin.read_file import ReadFile
from steadyhand.tools.builtin.write_file import WriteFile
from steadyhand.tools.contract import Tool
from steadyhand.tools.workspace.similar_names import SUGGESTED_MAX
from tests.support.folding_disk import Fold, fold_both, fold_case, fold_form, folding_disk
from tests.support.systems import linux_only
from tests.support.tool_calls import ToolWorkspace, carried_out, planned, refusal, running

pytestmark = [pytest.mark.anyio, linux_only]

READ, WRITE, EDIT, MOVE, DELETE, LIST = ReadFile(), WriteFile(), EditFile(), MoveFile(), DeleteFile(), ListFiles()
COMPOSED, DECOMPOSED = "caf\u00e9.txt", "cafe\u0301.txt"
Fields = dict[str, object]


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


def edit(path: str) -> Fields:
    return {"path": path, "edits": [{"old": "a", "new": "b"}]}


def use_of(tool: Tool, path: str) -> Fields:
    """Arguments with which the tool needs the file at `path`."""
    if tool is MOVE:
        return {"from": path, "to": "elsewhere"}
    return edit(path) if tool is EDIT else {"path": path}


async def why_not(workspace: ToolWorkspace, tool: Tool, path: str) -> tuple[str | None, str]:
    """The reason and the text with which a tool answers for a path that is missing."""
    if tool is READ:
        outcome = await planned(tool, workspace.tool_context(), path=path).run(running())
        assert outcome.outcome == "failed"
        return outcome.reason, outcome.text
    found = refusal(tool, workspace.tool_context(), **use_of(tool, path))
    return found.reason, found.text


@pytest.mark.parametrize("tool", [READ, EDIT, MOVE, DELETE, LIST], ids=lambda tool: tool.name)
async def test_missing_name_is_answered_with_the_one_that_may_be_meant(workspace: ToolWorkspace, tool: Tool) -> None:
    """W12: `not_found` names what differs in case or form alone, and nothing for any other name."""
    workspace.write("App.ts", "a\n")
    workspace.write(f"docs/{COMPOSED}", "a\n")
    reason, text = await why_not(workspace, tool, "app.ts")
    assert reason == "not_found"
    assert text.endswith("app.ts does not exist. Did you mean App.ts?")
    assert (await why_not(workspace, tool, f"Docs/{DECOMPOSED}"))[1].endswith(f" Did you mean docs/{COMPOSED}?")
    assert (await why_not(workspace, tool, "apps.ts"))[1].endswith("apps.ts does not exist.")


async def test_missing_name_has_at_most_five_suggestions(workspace: ToolWorkspace) -> None:
    """W12, [I13]: the entries are named in their order, and no more than the bound."""
    for name in ("abc", "ABC", "Abc", "aBc", "abC", "ABc", "AbC"):
        workspace.write(name, "a\n")
    _, text = await why_not(workspace, READ, "aBC")
    assert text == "aBC does not exist. Did you mean ABC, ABc, AbC, Abc or aBc?"
    assert text.count(",") + 2 == SUGGESTED_MAX


async def test_new_name_in_another_unicode_form_is_refused_by_that_name(workspace: ToolWorkspace) -> None:
    """W12: nobody could tell the two files apart, so neither a write nor a move makes the second one."""
    workspace.write(COMPOSED, "a\n")
    workspace.write("other", "a\n")
    workspace.write(f"{DECOMPOSED}.d/x", "a\n")
    for tool, fields, meant in (
        (WRITE, {"path": DECOMPOSED, "content": "b"}, COMPOSED),
        (MOVE, {"from": "other", "to": DECOMPOSED}, COMPOSED),
        (WRITE, {"path": f"{COMPOSED}.d/y", "content": "b"}, f"{DECOMPOSED}.d"),
    ):
        found = refusal(tool, workspace.tool_context(), **fields)
        assert found.reason == "not_found"
        assert found.text.endswith(f"Did you mean {meant}?")
    assert sorted(os.listdir(workspace.root)) == sorted([COMPOSED, f"{DECOMPOSED}.d", "other"])


async def test_move_can_change_the_unicode_form_of_a_name(workspace: ToolWorkspace) -> None:
    """W12: the entry that is moved away does not count, because afterwards there is one."""
    workspace.write(DECOMPOSED, "a\n")
    assert (
        await carried_out(MOVE, workspace.tool_context(), **{"from": DECOMPOSED, "to": COMPOSED})
    ).outcome == "returned"
    assert os.listdir(workspace.root) == [COMPOSED]


async def test_second_name_in_other_letters_is_created_and_said(workspace: ToolWorkspace) -> None:
    """W12: where both names can exist, the reply of a write and of a move says that there are two now."""
    workspace.write("App.ts", "a\n")
    workspace.write("other", "a\n")
    workspace.write("src/a", "a\n")
    tool_context = workspace.tool_context()
    written = await carried_out(WRITE, tool_context, path="app.ts", content="b\n")
    assert written.text.endswith(" There are now two files: App.ts and app.ts.")
    moved = await carried_out(MOVE, tool_context, **{"from": "other", "to": "APP.ts"})
    assert moved.text.endswith(" There are now 3 files: APP.ts, App.ts and app.ts.")
    made = await carried_out(WRITE, tool_context, path="Src/a", content="b\n")
    assert made.text.endswith(" There are now two folders: Src and src.")
    again = await carried_out(WRITE, tool_context, path="app.ts", content="c\n")
    assert "There are now" not in again.text
    assert workspace.content("App.ts") == "a\n"
    assert workspace.content("src/a") == "a\n"


async def test_move_to_other_letters_of_its_own_name_leaves_one_file(workspace: ToolWorkspace) -> None:
    """W12: the old name is gone afterwards, so there are not two."""
    workspace.write("App.ts", "a\n")
    moved = await carried_out(MOVE, workspace.tool_context(), **{"from": "App.ts", "to": "app.ts"})
    assert moved.outcome == "returned"
    assert "There are now" not in moved.text
    assert os.listdir(workspace.root) == ["app.ts"]


FOLDS: list[tuple[Fold, str, str]] = [
    (fold_case, "Src/App.ts", "src/APP.TS"),
    (fold_form, COMPOSED, DECOMPOSED),
    (fold_both, COMPOSED, DECOMPOSED.upper()),
]


@pytest.mark.parametrize(("fold", "own", "other"), FOLDS, ids=["case", "form", "both"])
async def test_file_system_that_folds_has_one_file_with_its_own_name(
    workspace: ToolWorkspace, fold: Fold, own: str, other: str
) -> None:
    """W12, cases 62, 133: every tool acts on the entry under its own spelling; no second file appears or is said."""
    path = workspace.write(own, "a\n")
    tool_context = workspace.tool_context(folding_disk(str(workspace.base), fold))
    assert (await planned(READ, tool_context, path=other).run(running())).text.startswith("a")
    edited = await carried_out(EDIT, tool_context, **edit(other))
    assert edited.text.startswith(f"{own} was modified in 1 place: ")
    assert "There are now" not in edited.text
    written = planned(WRITE, tool_context, path=other, content="c\n")
    assert written.scope.paths == (str(path),)
    assert written.title == f"write_file: {own}"
    assert (await carried_out(WRITE, tool_context, path=other, content="c\n")).outcome == "returned"
    assert workspace.files() == {own: "c\n"}
    found = refusal(MOVE, tool_context, **{"from": own, "to": other})
    assert found.reason == "bad_arguments"
    assert "a command (mv) can change the spelling" in found.text
    assert (await carried_out(DELETE, tool_context, path=other)).outcome == "returned"
    assert workspace.files() == {}


async def test_open_document_in_other_letters_is_the_same_document(workspace: ToolWorkspace) -> None:
    """W12: the editor may have the file open under a spelling of its own; unsaved text in it still counts."""
    workspace.write("Src/App.ts", "a\n")
    workspace.documents[str(workspace.root / "SRC" / "app.ts")] = OpenDocument("typed\n", 3, True)
    tool_context = workspace.tool_context(folding_disk(str(workspace.base)))
    assert (await planned(READ, tool_context, path="src/App.ts").run(running())).text.startswith("typed")
    assert refusal(WRITE, tool_context, path="src/App.ts", content="c").reason == "unsaved"
