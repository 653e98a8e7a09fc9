"""A window with several folders: what is inside, what each folder has of its own, and what changes when (row S11)."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import Folders, Told
from steadyhand.domain.settings import SandboxSettings, Settings
from steadyhand.domain.views.types import Warned
from steadyhand.session.context import OpenFolder
from steadyhand.session.session import Session
from steadyhand.session.turns import folders as turn_folders
from steadyhand.tools.builtin.list_files import ListFiles
from steadyhand.tools.registry import SUBJECTS
from tests.support.editor import Park, ScriptedEditor
from tests.support.faults import DyingDisk, carries
from tests.support.forks import run_in_fork
from tests.support.in_process_server import InProcessServer, practice_server
from tests.support.session_state import change_states, on_disk, outcomes, replies, states
from tests.support.systems import linux_only, require_sandbox
from tests.support.tool_calls import planned, running
from tests.support.workspace import Workspace

pytestmark = [pytest.mark.anyio, linux_only]


class Window:
    """The workspace and a second folder beside it; `folders` is what the client has open."""

    def __init__(self, folder: Path) -> None:
        self.place = Workspace.under(folder / "place")
        self.own, self.second = self.place.root, self.place.base / "second"
        for one in (self.own, self.second):
            one.mkdir(exist_ok=True)
            (one / "a.txt").write_text(f"{one.name}\n")
        self.folders = [self.folder(self.own), self.folder(self.second)]

    @staticmethod
    def folder(path: Path, name: str | None = None) -> OpenFolder:
        return OpenFolder(path.as_uri(), name or path.name)

    @asynccontextmanager
    async def server(self, **more: Any) -> AsyncIterator[InProcessServer]:
        async with practice_server(self.place, open_folders=lambda: self.folders, **more) as server:
            yield server


@pytest.fixture
def window(tmp_path: Path) -> Window:
    return Window(tmp_path)


def recorded(session: Session) -> list[tuple[str, ...]]:
    return [record.folders for record in on_disk(session) if isinstance(record, Folders)]


def warnings(server: InProcessServer) -> list[str]:
    return [one.event.text for one in server.numbered() if isinstance(one.event, Warned)]


def told(session: Session) -> list[str]:
    return [record.text for record in on_disk(session) if isinstance(record, Told)]


async def test_second_folder_is_inside_by_absolute_path_and_by_name(window: Window) -> None:
    """Case 131, S11: in `auto` nothing of it asks. A relative path is one of the session's folder."""
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, f"show {window.second}/a.txt")
        await server.say(session, "show @second/a.txt")
        await server.say(session, "write @second/new/b.txt with b")
        await server.say(session, "write a.txt with mine")
        await server.say(session, "run cat a.txt")
        await server.say(session, f"move {window.second}/a.txt to moved.txt")
        assert change_states(session) == ["returned"] * 4
        assert server.editor.questions == []
        assert replies(session)[0].startswith("second")
        assert replies(session)[1].startswith("second")
        assert (window.second / "new" / "b.txt").read_text() == "b"
        assert (window.own / "a.txt").read_text() == "mine"
        assert (window.own / "moved.txt").read_text() == "second\n"


async def test_session_folder_has_a_name_where_it_is_not_alone(window: Window) -> None:
    """S11: the user need not know which folder of the window is the session's. Alone it has no name."""
    name = window.own.name
    other = window.place.base / "deep" / name
    other.mkdir(parents=True)
    (window.own / "a.txt").write_text("own\n")
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, f"show @{name}/a.txt")
        window.folders.append(window.folder(other))
        await server.say(session, f"show @{name}/a.txt")
        del window.folders[1:]
        await server.say(session, f"show @{name}/a.txt")
    assert replies(session)[0].startswith("own")
    assert f"@{name} is not unique: {window.own}/a.txt and {other}/a.txt." in replies(session)[1]
    assert f"@{name}/a.txt does not exist" in replies(session)[2]


async def test_folder_outside_the_window_still_asks(window: Window) -> None:
    """S11, E3: inside means inside one of the folders, and nothing else."""
    third = window.place.base / "third"
    third.mkdir()
    (third / "a.txt").write_text("third\n")
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, f"show {third}/a.txt")
        await server.say(session, f"show {window.second}-not/a.txt")
        assert len(server.editor.questions) == 2


async def test_name_that_is_not_unique_is_refused_naming_both(window: Window) -> None:
    """S11: two folders of a name, or an entry of the session's folder that is called so. Nothing is guessed."""
    other = window.place.base / "deep" / "second"
    other.mkdir(parents=True)
    window.folders.append(window.folder(other))
    (window.own / "@types").mkdir()
    (window.own / "@types" / "a.txt").write_text("types\n")
    types = window.place.base / "types"
    types.mkdir()
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "delete @second/x")
        await server.say(session, "show @types/a.txt")
        window.folders.append(window.folder(types))
        await server.say(session, "show @types/a.txt")
        await server.say(session, "show ./@types/a.txt")
        await server.say(session, "show @none/a.txt")
    assert outcomes(session)[0] == ("refused", "bad_arguments")
    assert f"@second is not unique: {window.second}/x and {other}/x." in replies(session)[0]
    assert replies(session)[1].startswith("types")
    assert f"{types}/a.txt and {window.own}/@types/a.txt" in replies(session)[2]
    assert replies(session)[3].startswith("types")
    assert "@none/a.txt does not exist" in replies(session)[4]


async def test_folders_are_those_of_the_moment_when_the_turn_begins(window: Window) -> None:
    """S11: what is opened or closed while a turn runs counts from the next one on. A change is recorded and told."""
    park = Park()
    both = tuple(folder.uri for folder in window.folders)
    async with window.server(mode="ask", editor=ScriptedEditor(park)) as server:
        session = await server.session()
        await server.say(session, "show a.txt")
        accepted = await server.send(session, "write a.txt with new\nshow @second/a.txt")
        await park.wait_open()
        removed = window.folders.pop()
        park.answer_with("once")
        await server.ended(session, accepted.turn_id)
        assert states(session)[-1] == "returned"
        assert recorded(session) == [both]
        await server.say(session, f"show {window.second}/a.txt")
        assert len(server.editor.questions) == 2
        assert recorded(session) == [both, ()]
        window.folders.append(removed)
        await server.say(session, "show a.txt")
        await server.say(session, "show a.txt")
        assert recorded(session) == [both, (), both]
        assert [text.split("\n")[0][:30] for text in told(session)] == [
            "The workspace has these folder",
            "The window has no other folder",
            "The workspace has these folder",
        ]
        assert f"@second is {window.second}" in told(session)[0]


async def test_window_with_the_one_folder_records_nothing(window: Window) -> None:
    """S11, X1: a journal of a window with one folder is what it was."""
    window.folders = [window.folder(window.own)]
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        assert recorded(session) == []
        assert told(session) == []


async def test_more_folders_than_the_bound_are_outside(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """I13, S11: the first ones of the client count. The user is told once which do not, the model how many."""
    monkeypatch.setattr(turn_folders, "FOLDERS_MAX", 2)
    for name in ("third", "fourth"):
        (window.place.base / name).mkdir()
        window.folders.append(window.folder(window.place.base / name))
    third = window.place.base / "third"
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        await server.say(session, f"show {third}/a.txt")
        assert len(server.editor.questions) == 1
        text = "This window has 4 folders; the first 2 count, the others are outside: third, fourth."
        assert warnings(server) == [text]
        (one,) = told(session)
        assert one.endswith("The window has 2 more folders, which are outside.")


async def test_own_folder_counts_behind_the_bound(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    """S11: it is inside wherever the client lists it, so nobody is told that it is outside."""
    monkeypatch.setattr(turn_folders, "FOLDERS_MAX", 1)
    window.folders.reverse()
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        assert warnings(server) == []


async def test_nothing_is_told_of_other_folders_while_the_own_is_gone(window: Window) -> None:
    """S10, S11: that no other folder is inside is no change of the window; put back, all is as it was."""
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        before = (recorded(session), told(session))
        moved = window.own.rename(window.place.base / "moved")
        await server.say(session, "show a.txt")
        moved.rename(window.own)
        await server.say(session, "show @second/a.txt")
        assert (recorded(session), told(session)) == before
        assert replies(session)[-1].startswith("second")


async def test_agents_file_of_each_folder_is_told(window: Window) -> None:
    """S11, G5, G15: the session's own is in the system text; the others are stored messages, told once."""
    (window.own / "AGENTS.md").write_text("own words\n")
    (window.second / "AGENTS.md").write_text("words of the second\n")
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        await server.say(session, "show a.txt")
        assert "own words" in (session.ledger.instructions or "")
        (one,) = [text for text in told(session) if "AGENTS.md" in text]
        assert one.startswith(f"The folder {window.second} of the workspace")
        assert one.endswith("words of the second\n")


def rule(text: str) -> PermissionRule:
    found = parse_rule(text, SUBJECTS)
    assert isinstance(found, PermissionRule)
    return found


async def test_rules_count_from_each_folder(window: Window) -> None:
    """S11, G2: a relative pattern is one of each folder, in rules that tighten and in rules that allow."""
    rules = PermissionRules(allow=(rule("write_file(free/**)"),), deny=(rule("write_file(shut/**)"),))
    async with window.server(settings=Settings(mode="ask", rules=rules)) as server:
        session = await server.session()
        for folder in ("", "@second/"):
            await server.say(session, f"write {folder}free/x with x")
            await server.say(session, f"write {folder}shut/x with x")
        assert change_states(session) == ["returned", "refused"] * 2
        assert server.editor.questions == []


@pytest.mark.parametrize("answer", ["session", "workspace"])
async def test_grant_holds_in_the_folder_in_which_it_was_given(window: Window, answer: str) -> None:
    """S11: also after a restart, and also when the folder is the only one that is open."""
    async with window.server(mode="ask", editor=ScriptedEditor(answer, "once", "once")) as server:
        session = await server.session()
        await server.say(session, "write @second/x with x")
        await server.say(session, "write @second/y with y")
        assert len(server.editor.questions) == 1
        await server.say(session, "write x with x")
        assert len(server.editor.questions) == 2
        await server.say(session, "move @second/x to z")
        assert [option.id for option in server.editor.questions[-1].options] == ["once", "reject"]
        session_id = session.session_id
    async with window.server(run=2, mode="ask") as server:
        session = await server.opened(session_id)
        await server.say(session, "write @second/y with z")
        assert server.editor.questions == []
        window.folders = window.folders[:1]
        await server.say(session, "write x with y")
        assert len(server.editor.questions) == 1


async def test_trust_is_of_each_folder(window: Window) -> None:
    """S11, G2: in a folder that is not trusted the agent reads. A command may write in all, so it needs all."""
    (window.second / "AGENTS.md").write_text("words of a stranger\n")
    settings = Settings(mode="auto", trusted_folders=(window.own.as_uri(),))
    async with window.server(settings=settings) as server:
        session = await server.session()
        await server.say(session, "show @second/a.txt")
        await server.say(session, "write a.txt with mine")
        await server.say(session, "write @second/a.txt with mine")
        await server.say(session, "run touch x")
        assert change_states(session) == ["returned", "refused", "refused"]
        assert not [text for text in told(session) if "stranger" in text]
        window.folders = window.folders[:1]
        await server.say(session, "run touch x")
        assert states(session)[-1] == "returned"


async def test_effect_in_the_second_folder_is_checked_after_a_crash(window: Window) -> None:
    """S11, W2, B3: the folders of the turn are recorded, so its files can be checked before any client is there."""

    async def first_run() -> None:
        async with window.server(disk=DyingDisk(carries("result"), False)) as server:
            session = await server.session("auto")
            await server.say(session, "write @second/a.txt with new")

    run_in_fork(first_run)
    window.folders = []
    async with window.server(run=2) as server:
        (view,) = await server.registry.list_sessions()
        session = await server.opened(view.session_id)
        *_, attempt = session.ledger.attempts.values()
        assert attempt.settlement is not None
        assert attempt.settlement.settled == "checked_present"


async def test_confined_command_writes_in_each_folder(window: Window) -> None:
    """S11, O1: the roots of a command are the folders of the turn; what changed in each of them is named."""
    require_sandbox()
    async with window.server(sandbox=SandboxSettings()) as server:
        session = await server.session("auto")
        await server.say(session, f"run echo x > {window.second}/made.txt && echo y > made.txt")
        assert states(session) == ["returned"]
        assert (window.second / "made.txt").read_text() == "x\n"
        assert replies(session)[0].endswith("/second/made.txt, created made.txt]")
        window.folders = window.folders[:1]
        await server.say(session, f"run echo z > {window.second}/made.txt")
        assert (window.second / "made.txt").read_text() == "x\n"


EXCHANGE = "run mv pkg p2 && mkdir pkg && ln -s {out} pkg/lib"


def nested(window: Window) -> Path:
    """Open a folder inside the session's own one; return a folder outside the window, with one file."""
    inner, out = window.own / "pkg" / "lib", window.place.base / "out"
    inner.mkdir(parents=True)
    out.mkdir()
    (out / "a.txt").write_text("out\n")
    window.folders = [window.folder(window.own), window.folder(inner)]
    return out


async def test_folder_that_a_command_exchanged_is_left_out(window: Window) -> None:
    """S11, E3: a link in its place does not move the workspace; the user is warned once, until it is put back."""
    out = nested(window)
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, f"{EXCHANGE.format(out=out)}\nwrite @lib/b.txt with b")
        await server.say(session, f"write {out}/a.txt with evil")
        await server.say(session, "show a.txt")
        assert sorted(path.name for path in out.iterdir()) == ["a.txt"]
        assert [asked.title.partition(":")[0] for asked in server.editor.questions] == ["read_file", "write_file"]
        assert len([text for text in server.editor.messages if "is not the one that was opened" in text]) == 1
        assert [folder.path for folder in session.tool_context.others] == []
        shutil.rmtree(window.own / "pkg")
        (window.own / "p2").rename(window.own / "pkg")
        await server.say(session, "show @lib/none")
        assert [folder.name for folder in session.tool_context.others] == ["lib"]


async def test_exchanged_folder_counts_again_once_it_is_opened_anew(window: Window) -> None:
    """S11: another folder at the same path is left out too; the client's report decides."""
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show @second/a.txt")
        window.second.rename(window.place.base / "before")
        window.second.mkdir()
        await server.say(session, "show a.txt")
        assert not session.tool_context.others
        server.registry.context.folders.learn([window.second.as_uri()])
        await server.say(session, "show a.txt")
        assert [folder.name for folder in session.tool_context.others] == ["second"]


async def test_confined_command_cannot_exchange_the_parent_of_a_folder(window: Window) -> None:
    """S11, O1: the folder between two folders of the turn is a mount point, so it keeps its name."""
    out = nested(window)
    require_sandbox()
    async with window.server(sandbox=SandboxSettings("required", "deny")) as server:
        session = await server.session("auto")
        await server.say(session, EXCHANGE.format(out=out))
        await server.say(session, f"run echo evil > {out}/a.txt")
        assert (out / "a.txt").read_text() == "out\n"
        assert (window.own / "pkg" / "lib").is_dir()
        assert not (window.own / "p2").exists()


async def test_walk_in_the_second_folder_follows_its_own_ignore_file(window: Window) -> None:
    """S11, G1: a list begins where it is asked to, with the rules of that folder, and asks nobody."""
    (window.second / ".gitignore").write_text("*.log\n")
    (window.second / "x.log").write_text("second\n")
    async with window.server() as server:
        session = await server.session("auto")
        await server.say(session, "show a.txt")
        listed = planned(ListFiles(), session.tool_context, path="@second")
        assert listed.outside == ()
        text = (await listed.run(running())).text
    assert "a.txt" in text
    assert "x.log" not in text
