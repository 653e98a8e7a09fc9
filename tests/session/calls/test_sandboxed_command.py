"""Commands of the model in a sandbox: what confines them, and what journal, model and user are told (row O1).

The processes are fakes, so that every system can be played; tests/e2e/test_sandbox.py has the real sandbox.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.domain.records.record import Intent, Result, Started
from steadyhand.domain.settings import SandboxMode, SandboxSettings
from steadyhand.domain.views.types import CallView, TurnEnded, Warned
from steadyhand.ports.sandbox import SandboxFailed, SandboxStatus
from steadyhand.tools.builtin.run_command import OWN_NETWORK
from steadyhand.tools.commands.confinement import SANDBOX_FAILED
from tests.support.editor import ScriptedEditor
from tests.support.fakes import FakeProcesses, Run, Script
from tests.support.in_process_server import InProcessServer, scripted_server
from tests.support.model import Play, asks, run, says
from tests.support.session_state import calls_of, on_disk, replies, states
from tests.support.waiting import until

pytestmark = pytest.mark.anyio

BUBBLEWRAP = SandboxStatus("bubblewrap", "landlock", is_sealable=True, landlock_abi=7)
LANDLOCK = SandboxStatus("landlock", "landlock", is_sealable=False, landlock_abi=7, why="There is no bubblewrap.")
NOTHING = SandboxStatus("none", "none", is_sealable=False, landlock_abi=0, why="This kernel has no user namespaces.")
AUTO = SandboxSettings()


def processes(found: SandboxStatus = BUBBLEWRAP, **does: object) -> FakeProcesses:
    """Processes in a system that can confine this, where every command does what the script says."""
    script = Script(**does)  # type: ignore[arg-type]  # the test's own values
    made = FakeProcesses(otherwise=script, environment={"PATH": "/usr/bin:/bin", "HOME": "/home/ada"})
    made.sandbox.found = found
    return made


def server(
    folder: Path,
    fake: FakeProcesses,
    *answers: Play,
    sandbox: SandboxSettings = AUTO,
    editor: ScriptedEditor | None = None,
    state: Path | None = None,
    number: int = 1,
) -> AbstractAsyncContextManager[InProcessServer]:
    return scripted_server(folder, *answers, processes=fake, sandbox=sandbox, editor=editor, state=state, run=number)


def warnings(stage: InProcessServer, code: str) -> list[str]:
    events = [told.event for told in stage.numbered()]
    return [event.text for event in events if isinstance(event, Warned) and event.code == code]


def last(stage: InProcessServer, call_id: str) -> CallView:
    return stage.last_view(call_id)


async def test_confined_command_can_write_to_the_workspace_and_its_own_temporary_folder(tmp_path: Path) -> None:
    """O1: roots, own folder, hidden state directory, protected names nearest first, and the network of the setting."""
    seen: list[list[str]] = []

    def look(run: Run) -> None:
        assert run.confinement is not None
        assert run.confinement.temporary is not None
        seen.append(os.listdir(run.confinement.temporary))

    fake = processes(effect=look)
    cache = tmp_path / "cache"
    cache.mkdir()
    settings = SandboxSettings(write=(str(cache), str(tmp_path / "missing"), str(tmp_path / "ws")))
    async with server(tmp_path, fake, asks(run("make")), sandbox=settings) as stage:
        stage.workspace.write("app/.env", "SECRET=1")
        stage.workspace.write(".git/config", "[core]")
        stage.workspace.write(".vscode/settings.json", "{}")
        session = await stage.session("auto")
        await stage.say(session)
        (made,) = fake.runs
        confinement = made.confinement
        assert confinement is not None
        assert (confinement.kind, confinement.network, confinement.is_reading) == ("bubblewrap", "deny", False)
        assert confinement.folders == (str(stage.root),)
        assert confinement.write == (str(cache),)
        assert confinement.hidden == (str(stage.state),)
        names = [path[len(str(stage.root)) + 1 :] for path in confinement.protected]
        assert sorted(names[:2]) == [".git", ".vscode"]
        assert names[2:] == ["app/.env"]
        assert seen == [[]], "its own folder is there and empty"
        assert not list((Path(session.path) / "tmp").iterdir()), "it is removed at the end"
        (started,) = [record for record in on_disk(session) if isinstance(record, Started)]
        assert started.sandbox is not None
        assert (started.sandbox.kind, started.sandbox.sealed) == ("bubblewrap", False)
        view = last(stage, calls_of(session)[0].call_id)
        assert view.sandbox is not None
        assert (view.sandbox.kind, view.sandbox.sealed) == ("bubblewrap", False)
        assert warnings(stage, "sandbox") == []


async def test_folder_through_which_the_home_folder_is_written_is_left_out(tmp_path: Path) -> None:
    """O1: a link of `sandbox.write` to the home folder or above the state directory gives no root."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    (tmp_path / "up").symlink_to(tmp_path)
    fake = processes()
    fake.given["HOME"] = str(home)
    settings = SandboxSettings(write=(str(tmp_path / "link"), str(tmp_path / "up"), "/"))
    async with server(tmp_path, fake, asks(run("make")), sandbox=settings) as stage:
        await stage.say(await stage.session("auto"))
        assert fake.runs[0].confinement is not None
        assert fake.runs[0].confinement.write == ()


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_command_in_auto_without_a_sandbox_runs_and_the_chat_says_so_once(
    tmp_path: Path, background: bool
) -> None:
    """O1, `auto`: it runs unconfined where nothing works; one warning with code `sandbox` per process says why."""
    fake = processes(NOTHING)
    async with server(
        tmp_path, fake, asks(run("a", background=background)), asks(run("b", background=background))
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert [one.confinement for one in fake.runs] == [None, None]
        (text,) = warnings(stage, "sandbox")
        assert "This kernel has no user namespaces." in text
        assert states(session) == ["returned", "returned"]
        assert last(stage, calls_of(session)[0].call_id).sandbox is None


@pytest.mark.parametrize("found", [BUBBLEWRAP, LANDLOCK], ids=lambda found: found.kind)
async def test_command_is_confined_by_what_works(tmp_path: Path, found: SandboxStatus) -> None:
    """O1: where only Landlock works it confines; no warning is due then."""
    fake = processes(found)
    async with server(tmp_path, fake, asks(run("a")), sandbox=SandboxSettings("required", "allow")) as stage:
        await stage.say(await stage.session("auto"))
        assert fake.runs[0].confinement is not None
        assert (fake.runs[0].confinement.kind, fake.runs[0].confinement.network) == (found.kind, "allow")
        assert warnings(stage, "sandbox") == []


@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_command_in_required_without_a_sandbox_is_refused(tmp_path: Path, background: bool) -> None:
    """O1, `required`: refused with reason `sandbox` before the start, and why; nothing runs [I1]."""
    fake = processes(NOTHING)
    async with server(
        tmp_path, fake, asks(run("a", background=background)), sandbox=SandboxSettings("required")
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert fake.runs == []
        assert states(session) == ["refused"]
        (result,) = [record for record in on_disk(session) if isinstance(record, Result)]
        assert (result.outcome, result.reason) == ("refused", "sandbox")
        assert "This kernel has no user namespaces." in replies(session)[0]
        assert not [record for record in on_disk(session) if isinstance(record, Started)]


async def test_command_with_the_sandbox_off_probes_nothing(tmp_path: Path) -> None:
    """O1, `off`: nothing is probed, confined or said."""
    fake = processes(NOTHING)
    async with server(tmp_path, fake, asks(run("a")), sandbox=SandboxSettings("off")) as stage:
        await stage.say(await stage.session("auto"))
        assert fake.sandbox.probed == []
        assert fake.runs[0].confinement is None
        assert warnings(stage, "sandbox") == []


async def test_probe_names_the_session_folder(tmp_path: Path) -> None:
    """O4: no program inside a workspace folder confines anything, so the probe gets the folders."""
    fake = processes()
    async with server(tmp_path, fake, asks(run("a"))) as stage:
        await stage.say(await stage.session("auto"))
        assert fake.sandbox.probed == [(str(stage.root),)]


@pytest.mark.parametrize("mode", ["auto", "required"])
@pytest.mark.parametrize("background", [False, True], ids=["foreground", "background"])
async def test_sandbox_that_fails_after_the_start_fails_the_call(
    tmp_path: Path, mode: SandboxMode, background: bool
) -> None:
    """O1: nothing falls back after the intent. The call is `failed`, reason `sandbox`, with the fixed sentence."""
    fake = processes(not_started=SandboxFailed("no more mounts"))
    async with server(tmp_path, fake, asks(run("a", background=background)), sandbox=SandboxSettings(mode)) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert states(session) == ["failed"]
        (result,) = [record for record in on_disk(session) if isinstance(record, Result)]
        assert (result.outcome, result.reason, result.during) == ("failed", "sandbox", None)
        assert SANDBOX_FAILED == "The sandbox could not be set up; nothing ran."
        assert replies(session)[0].startswith(SANDBOX_FAILED)
        assert len(fake.runs) == 1, "it was not tried without"
        assert not list((Path(session.path) / "tmp").iterdir())
        assert session.ledger.jobs == {}


async def test_background_command_says_that_only_it_reaches_its_network(tmp_path: Path) -> None:
    """O1: the reply has the fixed line with `deny` under bubblewrap, and its folder goes when the job has ended."""
    fake = processes(hangs=True)
    async with server(tmp_path, fake, asks(run("serve", background=True))) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert replies(session)[0].endswith(f"\n[{OWN_NETWORK}]")
        assert OWN_NETWORK == "Only this command reaches its own network."
        folder = Path(session.path) / "tmp"
        assert len(list(folder.iterdir())) == 1
        (job,) = session.jobs.running.values()
        await job.job.end()
        await until(job.over.is_set)
        assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("found", "network"), [(BUBBLEWRAP, "allow"), (LANDLOCK, "deny")], ids=["allowed", "landlock alone"]
)
async def test_background_command_without_a_network_of_its_own_says_nothing(
    tmp_path: Path, found: SandboxStatus, network: str
) -> None:
    """O1: the line is only there where it is true."""
    fake = processes(found, hangs=True)
    settings = attrs.evolve(AUTO, network=network)  # type: ignore[arg-type]  # parametrized
    async with server(tmp_path, fake, asks(run("serve", background=True)), sandbox=settings) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert OWN_NETWORK not in replies(session)[0]


async def test_temporary_folder_of_a_killed_server_is_removed_at_the_next_opening(tmp_path: Path) -> None:
    """O1: what a kill leaves is removed when the session is opened again, whatever is in it."""
    fake = processes(hangs=True, started=anyio.Event())
    async with server(tmp_path, fake, asks(run("a"))) as stage:
        session = await stage.session("auto")
        await stage.send(session, "go on")
        await until(lambda: bool(fake.runs))
        state = stage.crashed(tmp_path / "after")
    left = state / "sessions" / session.session_id / "tmp"
    (own,) = left.iterdir()
    (own / "deep" / "er").mkdir(parents=True)
    (own / "deep" / "file").write_text("x")
    (own / "link").symlink_to(tmp_path)
    async with server(tmp_path, processes(), state=state, number=2) as stage:
        await stage.opened(session.session_id)
        assert not left.exists()
        assert stage.root.exists(), "no link was followed"


# The identity of a command.


async def test_command_is_the_same_intention_whatever_its_limit_and_spelling_of_the_folder(tmp_path: Path) -> None:
    """N2, O1: command, resolved folder and `background` are compared; scope, limit and `why` are not."""
    plays = [
        asks(run("make")),
        asks(run("make", timeoutMs=5000, cwd="sub/..")),
        asks(run("make", cwd="sub")),
        asks(run("make", background=True)),
        asks(run("make ")),
    ]
    async with server(tmp_path, processes(), *plays) as stage:
        (stage.root / "sub").mkdir()
        session = await stage.session("auto")
        for _ in plays:
            await stage.say(session)
        intents = [record for record in on_disk(session) if isinstance(record, Intent)]
        assert [intent.occurrence for intent in intents] == [0, 1, 0, 0, 0]
        assert len({intent.key for intent in intents}) == 5
        assert intents[0].intention == intents[1].intention
        assert len({intent.intention for intent in intents}) == 4


# What changed while it ran.


async def test_files_that_changed_while_a_command_ran_are_named(tmp_path: Path) -> None:
    """O1, case 124: the reply, the call and the end of the turn name them, as seen while it ran and not as ours."""

    def act(run: Run) -> None:
        root = Path(run.cwd)
        (root / "src" / "a.py").unlink()
        (root / "b.txt").write_text("changed")
        (root / "new").mkdir()
        (root / "new" / "c.txt").write_text("c")
        (root / ".git" / "index").write_text("of git itself")

    async with server(tmp_path, processes(effect=act), asks(run("rm -rf src"))) as stage:
        for name in ("src/a.py", "b.txt", "same.txt", ".git/index"):
            stage.workspace.write(name, "before")
        session = await stage.session("auto")
        ended = await stage.say(session)
        assert isinstance(ended, TurnEnded)
        (made,) = calls_of(session)
        assert replies(session)[0].endswith(
            "\n[Changed while it ran: modified b.txt, created new/c.txt, deleted src/a.py]"
        )
        found = last(stage, made.call_id).changed_during
        assert found is not None
        assert (found.more, found.exact) == (0, True)
        assert [(one.path, one.change) for one in found.files] == [
            ("b.txt", "modified"),
            ("new/c.txt", "created"),
            ("src/a.py", "deleted"),
        ]
        assert ended.changed == ()
        assert ended.during is not None
        assert [(one.path, one.call_id) for one in ended.during] == [
            (path, made.call_id) for path in ("b.txt", "new/c.txt", "src/a.py")
        ]


async def test_more_than_twenty_changed_files_are_counted_in_the_reply(tmp_path: Path) -> None:
    """O1: the reply names 20 and counts the others; the call has up to 200, and `more` counts the rest."""

    def act(run: Run) -> None:
        for number in range(230):
            (Path(run.cwd) / f"f{number:03}").write_text("")

    async with server(tmp_path, processes(effect=act), asks(run("make"))) as stage:
        session = await stage.session("auto")
        ended = await stage.say(session)
        assert replies(session)[0].endswith("created f018, created f019 and 210 more]")
        found = last(stage, calls_of(session)[0].call_id).changed_during
        assert found is not None
        assert (len(found.files), found.more, found.exact) == (200, 30, True)
        assert ended.during is not None
        assert len(ended.during) == 200


async def test_command_that_changes_nothing_says_nothing(tmp_path: Path) -> None:
    """O1: no line in the reply and no list at the end of the turn."""
    async with server(tmp_path, processes(), asks(run("true"))) as stage:
        session = await stage.session("auto")
        ended = await stage.say(session)
        assert "Changed while it ran" not in replies(session)[0]
        assert ended.during is None


# Protected names afterwards.


def makes(*names: str) -> Callable[[Run], None]:
    """An effect that writes these files."""

    def act(run: Run) -> None:
        for name in names:
            path = Path(run.cwd) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"made {name}")

    return act


async def test_new_protected_name_is_reported_and_kept_when_the_user_says_so(tmp_path: Path) -> None:
    """O1: reply, warning and end of the turn name new and changed ones; the question is `Keep` or `Remove`."""
    editor = ScriptedEditor(user=lambda _: "Keep")
    fake = processes(LANDLOCK, effect=makes("app/.env", ".git/hooks/pre-commit", ".git/config", "plain.txt"))
    async with server(tmp_path, fake, asks(run("make")), editor=editor) as stage:
        stage.workspace.write(".git/config", "[core]")
        session = await stage.session("auto")
        ended = await stage.say(session)
        named = {".git/hooks", ".git/hooks/pre-commit", ".git/config", "app/.env"}
        assert ended.protected is not None
        assert set(ended.protected) == named
        (text,) = warnings(stage, "protected")
        assert all(name in text for name in named)
        assert "[New or changed protected names: " in replies(session)[0]
        (question,) = editor.user_questions
        assert question.options == ("Keep", "Remove")
        assert "app/.env" in question.question
        assert stage.content("app/.env") == "made app/.env"


async def test_removed_protected_name_is_a_checked_deletion(tmp_path: Path) -> None:
    """O1: each file goes by an attempt with evidence and a result; what was there before stays."""
    editor = ScriptedEditor(user=lambda _: "Remove")
    fake = processes(effect=makes("new/.git/config", "new/.git/hooks/post-checkout", "app/.env"))
    async with server(tmp_path, fake, asks(run("make")), says("ok"), editor=editor) as stage:
        stage.workspace.write("app/main.py", "x")
        session = await stage.session("auto")
        await stage.say(session)
        assert not (stage.root / "new" / ".git").exists()
        assert stage.workspace.files() == {"app/main.py": "x"}
        removals = [one for one in session.ledger.attempts.values() if one.tool == "delete_file"]
        assert len(removals) == 3
        assert all(one.result is not None and one.result.check == "satisfied" for one in removals)
        assert all(one.started is not None and one.started.evidence for one in removals)
        last = stage.model.requests[-1].messages[-1]  # told in the same turn, behind the reply (row G15)
        assert last.text.startswith("[Notice] The user removed the new protected names")


async def test_protected_name_that_changed_since_the_question_is_kept(tmp_path: Path) -> None:
    """O1: the deletion is checked: what the user was not asked about is not deleted."""
    folder = tmp_path

    def answer(_: object) -> str:
        (folder / "ws" / ".envrc").write_text("written by a person")
        return "Remove"

    editor = ScriptedEditor(user=answer)
    async with server(tmp_path, processes(effect=makes(".envrc")), asks(run("make")), editor=editor) as stage:
        await stage.say(await stage.session("auto"))
        assert stage.content(".envrc") == "written by a person"
        assert any("not all of them could be removed" in text for text in stage.editor.messages)


async def test_new_protected_name_where_nobody_can_be_asked_keeps_its_warning(tmp_path: Path) -> None:
    """O1: nobody to ask: the warning stands, and the file too."""
    editor = ScriptedEditor(somebody=False)
    async with server(tmp_path, processes(effect=makes(".envrc")), asks(run("make")), editor=editor) as stage:
        await stage.say(await stage.session("auto"))
        assert len(warnings(stage, "protected")) == 1
        assert stage.content(".envrc") == "made .envrc"


async def test_unconfined_system_looks_for_no_protected_names(tmp_path: Path) -> None:
    """O1: without a sandbox nothing was protected, so nothing is said of it."""
    async with server(tmp_path, processes(NOTHING, effect=makes(".envrc")), asks(run("make"))) as stage:
        session = await stage.session("auto")
        ended = await stage.say(session)
        assert (ended.protected, warnings(stage, "protected")) == (None, [])
        assert "created .envrc" in replies(session)[0]
