"""Before anybody permits it, nothing of a file outside or of a secret is looked at or told (cases 125 and 137)."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import Mode
from steadyhand.domain.settings import Settings
from steadyhand.domain.views.questions import Choice
from steadyhand.tools.registry import SUBJECTS
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, says
from tests.support.session_state import replies, states

pytestmark = pytest.mark.anyio

WHAT_IS_THERE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a file": lambda path: path.write_text("old\n"),
    "another text": lambda path: path.write_text("x" * 100_000),
    "bytes": lambda path: path.write_bytes(b"\0\xff"),
    "a folder": lambda path: path.mkdir(),
    "a folder with a file": lambda path: (path / "below").mkdir(parents=True),
    "a pipe": lambda path: os.mkfifo(path),
    "a circle of links": lambda path: path.symlink_to(path.name),
    "a read-only file": lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o400)),
}
CALLS: dict[str, dict[str, object]] = {
    "read_file": {"path": "{}"},
    "read_file below": {"path": "{}/below/it"},
    "edit_file": {"path": "{}", "edits": [{"old": "old", "new": "new"}]},
    "write_file": {"path": "{}", "content": "new\n"},
    "delete_file": {"path": "{}"},
    "move_file": {"from": "{}", "to": "a"},
    "move_file to": {"from": "here", "to": "{}"},
    "list_files": {"path": "{}"},
    "list_files below": {"path": "{}/below/"},
    "find_files": {"pattern": "*", "path": "{}"},
    "search_text": {"pattern": "old", "path": "{}"},
    "run_command": {"command": "make", "cwd": "{}"},
    "diagnostics": {"path": "{}"},
}


def _call(name: str, path: str) -> CallProposed:
    def filled(value: object) -> object:
        return value.replace("{}", path) if isinstance(value, str) else value

    return call(name.split()[0], **{key: filled(value) for key, value in CALLS[name].items()})


async def _told(
    folder: Path, name: str, path: str, make: Callable[[Path], object], mode: Mode
) -> tuple[list[object], list[str]]:
    """The questions and the reply of a call that the user rejects."""
    editor = ScriptedEditor(Choice("reject"))
    async with scripted_server(
        folder, asks(_call(name, path)), says("ok"), editor=editor, processes=FakeProcesses(otherwise=Script())
    ) as stage:
        (stage.root / "here").write_text("here\n")
        make(Path(path) if path.startswith("/") else stage.root / path)
        session = await stage.session(mode)
        await stage.say(session)
        assert states(session) == ["refused"]
        return [(one.title, one.text, one.diff) for one in editor.questions], replies(session)


@pytest.mark.parametrize("mode", ["ask", "auto"])
@pytest.mark.parametrize("name", CALLS)
async def test_rejected_call_outside_is_told_the_same_whatever_is_there(tmp_path: Path, name: str, mode: Mode) -> None:
    """Case 125: question and reply are the same for a file, a wrong guess at its text, a folder, and nothing."""
    target = tmp_path / "elsewhere" / "thing"
    found = []
    for number, make in enumerate(WHAT_IS_THERE.values()):
        if target.parent.exists():
            target.parent.rename(tmp_path / f"before{number}")
        target.parent.mkdir()
        found.append(await _told(tmp_path / str(number), name, str(target), make, mode))
    assert found == [found[0]] * len(found)
    questions, (reply,) = found[0]
    assert len(questions) == 1
    assert "The user said no" in reply


@pytest.mark.parametrize("name", ["edit_file", "write_file", "delete_file"])
async def test_rejected_change_of_a_secret_is_told_the_same_whatever_is_in_it(tmp_path: Path, name: str) -> None:
    """Cases 125, 137: a wrong guess at what is in a secret file is not answered before somebody allows the call."""
    found = []
    for number, text in enumerate(("old\n", "other\n", "")):
        make = partial(Path.write_text, data=text)
        found.append(await _told(tmp_path / str(number), name, "deploy.pem", make, "auto"))
    assert found == [found[0]] * 3


@pytest.mark.parametrize("name", ["read_file", "edit_file", "list_files", "move_file", "run_command", "search_text"])
async def test_permitted_call_outside_then_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    """Case 125: after the permission the usual sentence comes."""
    editor = ScriptedEditor(Choice("once"))
    target = tmp_path / "elsewhere"
    async with scripted_server(tmp_path, asks(_call(name, str(target))), says("ok"), editor=editor) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        (reply,) = replies(session)
        assert "does not exist" in reply or "there is no folder" in reply


async def test_permitted_edit_outside_changes_the_file(tmp_path: Path) -> None:
    """Case 125: the diff shows the pieces that the call names, and the edit is made after the permission."""
    target = tmp_path / "elsewhere"
    target.write_text("one\nold\nthree\n")
    editor = ScriptedEditor(Choice("once"))
    async with scripted_server(tmp_path, asks(_call("edit_file", str(target))), says("ok"), editor=editor) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        (question,) = editor.questions
        assert question.diff is not None
        assert "-old" in question.diff
        assert "+new" in question.diff
        assert "one" not in question.diff
        assert target.read_text() == "one\nnew\nthree\n"


@pytest.mark.parametrize("mode", ["plan", "ask", "edits", "auto"])
@pytest.mark.parametrize("path", [".env", ".env.local", "sub/id_rsa", "server.pem", ".npmrc", "credentials.json"])
async def test_read_of_a_secret_name_asks_in_every_mode(tmp_path: Path, mode: Mode, path: str) -> None:
    """Case 137: also of a link to it."""
    editor = ScriptedEditor(Choice("reject"), Choice("reject"))
    async with scripted_server(
        tmp_path, asks(call("read_file", path=path), call("read_file", path="link")), says("ok"), editor=editor
    ) as stage:
        file = stage.root / path
        file.parent.mkdir(exist_ok=True)
        file.write_text("TOKEN=1\n")
        (stage.root / "link").symlink_to(path)
        session = await stage.session(mode)
        await stage.say(session)
        assert states(session) == ["refused", "refused"]
        assert ["may hold a secret" in one.text for one in editor.questions] == [True, True]
        assert [option.id for option in editor.questions[0].options] == ["once", "reject"]


def _allow(*texts: str) -> Settings:
    found = [parse_rule(text, SUBJECTS) for text in texts]
    return Settings(rules=PermissionRules(allow=tuple(one for one in found if isinstance(one, PermissionRule))))


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ("read_file(.env)", False),
        ("*(.env)", False),
        ("read_file(.env*)", False),
        ("read_file", True),
        ("read_file(*)", True),
        ("read_file(**)", True),
        ("read_file(.env.local)", True),
        ("write_file(.env)", True),
    ],
)
async def test_allow_rule_takes_a_secret_off_the_list_if_it_names_it(tmp_path: Path, rule: str, asked: bool) -> None:
    """Case 137: by name only, never by a wildcard."""
    editor = ScriptedEditor(Choice("reject"))
    read = asks(call("read_file", path=".env"))
    async with scripted_server(tmp_path, read, says("ok"), editor=editor, settings=_allow(rule)) as stage:
        (stage.root / ".env").write_text("TOKEN=1\n")
        session = await stage.session("auto")
        await stage.say(session)
        assert bool(editor.questions) is asked


@pytest.mark.parametrize("allowed", [False, True])
async def test_search_and_list_leave_out_what_is_in_secrets(tmp_path: Path, allowed: bool) -> None:
    """Case 137: a search from above does not read them, a list names them, both say what they left out."""
    calls = asks(call("search_text", pattern="TOKEN"), call("list_files", depth=3), call("find_files", pattern="*"))
    settings = _allow("search_text(.env)", "read_file(**/.ssh/**)") if allowed else Settings()
    async with scripted_server(tmp_path, calls, says("ok"), settings=settings) as stage:
        (stage.root / ".ssh").mkdir()
        for name in (".env", ".env.example", ".ssh/config", "a.txt"):
            (stage.root / name).write_text(f"TOKEN {name}\n")
        session = await stage.session("auto")
        await stage.say(session)
        search, listed, found = replies(session)
        assert "a.txt:1" in search
        assert ".env.example:1" in search
        assert (".env:1" in search, ".ssh/config" in search) == (allowed, allowed)
        assert ".env\n" in listed
        assert ".env" in found
        assert (".ssh/config" in listed, ".ssh/config" in found) == (allowed, allowed)
        assert ("1 file with a secret's name left out" in search) is not allowed
        assert ("1 folder with a secret's name" in listed) is not allowed
