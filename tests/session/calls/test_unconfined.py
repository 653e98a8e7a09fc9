"""Asking to leave the sandbox: the question, what covers it, the reply of a confined command that failed (row O3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steadyhand.domain.model.messages import CallProposed
from steadyhand.domain.permissions.rules import PermissionRule, PermissionRules, parse_rule
from steadyhand.domain.records.record import Intent, Mode, Permission
from steadyhand.domain.settings import SandboxMode, SandboxSettings, Settings
from steadyhand.domain.views.questions import Choice
from steadyhand.ports.processes import Finished
from steadyhand.tools.builtin.run_command import WHY_CHARS_MAX
from steadyhand.tools.commands.sandbox_hints import CHANGES_GIT, HINTS, MAY_HAVE_CAUSED
from steadyhand.tools.registry import SUBJECTS
from tests.session.calls.test_sandboxed_command import BUBBLEWRAP, LANDLOCK, processes
from tests.support.editor import Park, ScriptedEditor
from tests.support.in_process_server import scripted_server
from tests.support.model import asks, call, run, says
from tests.support.session_state import calls_of, on_disk, outcomes, replies, states

pytestmark = pytest.mark.anyio

RAN_IN = "[This command ran in a sandbox (bubblewrap, network deny).]"
FAILED = Finished(exit_code=2, signal=None, timed_out=False, left=(), group_empty=True)
AUTO = SandboxSettings()


def outside(command: str = "npm install", **more: object) -> CallProposed:
    """The call of a command that asks to leave the sandbox."""
    return run(command, unconfined=True, **more)


def rule(text: str) -> PermissionRule:
    found = parse_rule(text, SUBJECTS)
    assert isinstance(found, PermissionRule)
    return found


# The question.


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
@pytest.mark.parametrize("sandbox", ["auto", "off"])
async def test_unconfined_command_asks_in_every_mode(tmp_path: Path, mode: Mode, sandbox: SandboxMode) -> None:
    """O3: title, options and the model's words; also with `sandbox: off`, where the field changes nothing else."""
    park = Park()
    settings = Settings(rules=PermissionRules(allow=(rule("run_command(npm *)"), rule("*"))))
    async with scripted_server(
        tmp_path,
        asks(outside(why="It needs the registry.")),
        processes=(fake := processes()),
        editor=ScriptedEditor(park),
        settings=settings,
        sandbox=SandboxSettings(sandbox),
    ) as stage:
        session = await stage.session(mode)
        accepted = await stage.send(session, "go on")
        question = await park.wait_open()
        assert question.title == "Run outside the sandbox: npm"
        assert [option.id for option in question.options] == ["once", "workspace", "reject"]
        assert [option.label for option in question.short_options] == ["Allow once", "Reject"]
        assert "The model says why: It needs the registry." in question.text
        assert "outside the sandbox" in question.text
        assert "npm install" in question.text
        park.answer_with("once")
        await stage.ended(session, accepted.turn_id)
        assert [one.confinement for one in fake.runs] == [None]
        assert states(session) == ["returned"]
        (intent,) = [record for record in on_disk(session) if isinstance(record, Intent)]
        (permission,) = [record for record in on_disk(session) if isinstance(record, Permission)]
        assert (intent.unconfined, permission.unconfined, permission.answer) == (True, True, "once")
        view = stage.last_view(calls_of(session)[0].call_id)
        assert (view.unconfined, view.sandbox) == (True, None)
        assert "ran in a sandbox" not in replies(session)[0]


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        (Settings(rules=PermissionRules(deny=(rule("run_command(npm *)"),))), "auto"),
        (Settings(trusted=False), "auto"),
        (Settings(), "plan"),
    ],
    ids=["deny rule", "untrusted", "plan"],
)
async def test_unconfined_command_is_refused_unasked_where_no_command_may_run(
    tmp_path: Path, settings: Settings, mode: Mode
) -> None:
    """O3: deny rules, `plan` and distrust refuse it, and nobody is asked."""
    async with scripted_server(
        tmp_path,
        asks(outside("npm ci")),
        asks(outside("npm x")),
        processes=(fake := processes()),
        settings=settings,
        sandbox=AUTO,
    ) as stage:
        session = await stage.session(mode)
        await stage.say(session)
        assert states(session) == ["refused", "refused"]
        assert fake.runs == []
        assert stage.editor.questions == []


async def test_unconfined_reading_command_is_no_read(tmp_path: Path) -> None:
    """O3, O2: outside the sandbox nothing counts as reading, so it asks."""
    async with scripted_server(
        tmp_path,
        asks(outside("pwd")),
        processes=processes(),
        sandbox=AUTO,
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert [question.title for question in stage.editor.questions] == ["Run outside the sandbox: pwd"]


# What covers it.


async def test_workspace_grant_covers_it_and_the_confined_command(tmp_path: Path) -> None:
    """O3: a grant with `unconfined: true` covers this command outside and inside the sandbox, for this workspace."""
    editor = ScriptedEditor("workspace")
    plays = [asks(outside()), asks(outside()), asks(run("npm install")), asks(outside("npm ci"))]
    async with scripted_server(tmp_path, *plays, processes=(fake := processes()), editor=editor, sandbox=AUTO) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert len(editor.questions) == 1 + 1, "the other command asks"
        kinds = [one.confinement.kind if one.confinement else None for one in fake.runs]
        assert kinds == [None, None, "bubblewrap", None]
        stored = json.loads((stage.state / "permissions.json").read_text())
        assert [(one["command"], one["unconfined"]) for one in stored["grants"]] == [("npm install", True)]


@pytest.mark.parametrize("answer", ["session", "workspace", "user"])
async def test_grant_without_it_never_covers_an_unconfined_call(tmp_path: Path, answer: str) -> None:
    """O3: whenever it was given, and however long it lasts."""
    editor = ScriptedEditor(answer, permission=lambda _: Choice("reject"))
    async with scripted_server(
        tmp_path,
        asks(run("npm install")),
        asks(run("npm install")),
        asks(outside()),
        processes=(fake := processes()),
        editor=editor,
        sandbox=AUTO,
    ) as stage:
        session = await stage.session("ask")
        await stage.say(session)
        assert [question.title for question in editor.questions] == [
            "run_command: npm",
            "Run outside the sandbox: npm",
        ]
        assert len(fake.runs) == 2
        assert outcomes(session)[-1] == ("refused", "denied")


async def test_unconfined_call_where_nobody_can_be_asked_is_refused(tmp_path: Path) -> None:
    """O3: mode `auto` never covers it."""
    async with scripted_server(
        tmp_path,
        asks(outside()),
        processes=(fake := processes()),
        editor=ScriptedEditor(somebody=False),
        sandbox=AUTO,
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert fake.runs == []
        assert outcomes(session) == [("refused", "not_answered")]


async def test_unconfined_command_in_required_runs_if_the_user_allows_it(tmp_path: Path) -> None:
    """O3, O1: leaving the sandbox is the person's decision in `required` too."""
    async with scripted_server(
        tmp_path,
        asks(outside()),
        processes=(fake := processes()),
        sandbox=SandboxSettings("required"),
    ) as stage:
        await stage.say(await stage.session("auto"))
        assert [one.confinement for one in fake.runs] == [None]


# The identity.


async def test_why_is_in_no_key_and_no_digest(tmp_path: Path) -> None:
    """O3, N2: the same command with other words is the same intention, with the same digest of its arguments."""
    plays = [asks(outside(why="a")), asks(outside(why="b")), asks(run("npm install"))]
    async with scripted_server(tmp_path, *plays, processes=processes(), sandbox=AUTO) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        first, second, third = [record for record in on_disk(session) if isinstance(record, Intent)]
        assert first.arguments_digest == second.arguments_digest != third.arguments_digest
        assert first.intention == second.intention == third.intention
        assert [first.occurrence, second.occurrence, third.occurrence] == [0, 1, 2]


@pytest.mark.parametrize(
    ("more", "word"),
    [({"why": "x" * (WHY_CHARS_MAX + 1)}, "`why`"), ({"why": 7}, "`why`"), ({"unconfined": "yes"}, "`unconfined`")],
)
async def test_bad_field_is_refused(tmp_path: Path, more: dict[str, object], word: str) -> None:
    """O3: `why` has at most 500 characters [I13]."""
    async with scripted_server(tmp_path, asks(run("a", **more)), says("ok"), sandbox=AUTO) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert WHY_CHARS_MAX == 500
        assert states(session) == ["refused"]
        assert word in replies(session)[0]


# The reply of a confined command that failed.


async def reply_of(folder: Path, output: str, command: str = "make", finished: Finished = FAILED) -> str:
    pieces = [output.encode()[:7], output.encode()[7:]]
    fake = processes(BUBBLEWRAP, output=pieces, finished=finished)
    async with scripted_server(folder, asks(run(command)), processes=fake, sandbox=AUTO) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        return replies(session)[0]


@pytest.mark.parametrize("word", HINTS)
async def test_failed_confined_command_says_that_the_sandbox_may_have_caused_it(tmp_path: Path, word: str) -> None:
    """O3: both fixed lines, behind the exit code, in this order; the word may be split between two pieces."""
    assert f"\n[exit code 2]\n{RAN_IN}\n[{MAY_HAVE_CAUSED}]" in await reply_of(tmp_path, f"sh: x: {word}\n")


async def test_failed_confined_command_without_such_words_names_its_sandbox_alone(tmp_path: Path) -> None:
    """O3: the second line is only behind words that a sandbox may have caused."""
    assert (await reply_of(tmp_path, "1 test failed\n")).endswith(f"[exit code 2]\n{RAN_IN}")


async def test_confined_command_that_succeeds_says_nothing_of_its_sandbox(tmp_path: Path) -> None:
    """O3: an exit code of 0 has neither line."""
    good = Finished(exit_code=0, signal=None, timed_out=False, left=(), group_empty=True)
    assert (await reply_of(tmp_path, "Permission denied\n", finished=good)).endswith("[exit code 0]")


@pytest.mark.parametrize(
    "output",
    [
        "error: could not write config file .git/config: Device or resource busy\n",
        "warning: Branch is renamed, but update of config-file failed\n",
        "fatal: could not create .git/hooks/pre-commit: Read-only file system\n",
    ],
)
async def test_git_command_that_fails_at_what_chooses_programs_says_so(tmp_path: Path, output: str) -> None:
    """O1: `This changes how git runs programs.` is behind the failure of a git command in its own folder."""
    assert (await reply_of(tmp_path, output, "cd a && git branch -m b")).endswith(f"[{CHANGES_GIT}]")
    assert CHANGES_GIT == "This changes how git runs programs."


async def test_other_failures_do_not_speak_of_git(tmp_path: Path) -> None:
    """O1: neither another program's failure at such a file nor another failure of git."""
    text = "could not write .git/config: Device or resource busy\n"
    assert CHANGES_GIT not in await reply_of(tmp_path / "a", text, "make legit")
    assert CHANGES_GIT not in await reply_of(tmp_path / "b", "fatal: x: Read-only file system\n", "git push")


async def test_landlock_is_named_where_it_confines(tmp_path: Path) -> None:
    """O3: the line names what confined the command and the network of the setting."""
    fake = processes(LANDLOCK, finished=FAILED)
    async with scripted_server(
        tmp_path, asks(run("make")), processes=fake, sandbox=SandboxSettings(network="allow")
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        assert "[This command ran in a sandbox (landlock, network allow).]" in replies(session)[0]


async def test_failed_background_command_says_it_too(tmp_path: Path) -> None:
    """O3, E5: the look at a job that ended has the same lines."""
    fake = processes(BUBBLEWRAP, output=[b"bind: Permission denied\n"], finished=FAILED)
    async with scripted_server(
        tmp_path, asks(run("serve", background=True)), says("ok"), processes=fake, sandbox=AUTO
    ) as stage:
        session = await stage.session("auto")
        await stage.say(session)
        (job,) = session.jobs.running.values()
        await job.over.wait()
        stage.model.answers = [asks(call("command_output", jobId=job.job_id))]
        await stage.say(session)
        assert f"{RAN_IN}\n[{MAY_HAVE_CAUSED}]" in replies(session)[-1]
