"""`run_command`, mostly with real processes: output, exit, timeout, cancel, and which commands count as reading."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.scope import EVERYTHING, NOTHING
from steadyhand.domain.settings import SandboxSettings
from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import SandboxStatus
from steadyhand.tools.builtin.run_command import TIMEOUT_MS_MAX, RunCommand
from steadyhand.tools.commands.output_buffer import SHOWN_BYTES_MAX, OutputBuffer, make_visible
from steadyhand.tools.contract import REPLY_BYTES_MAX, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.writes import blob_store
from tests.support.fakes import FakeProcesses, Script
from tests.support.tool_calls import ATTEMPT, ToolWorkspace, carried_out, planned, refusal, running

TOOL = RunCommand()
pytestmark = pytest.mark.anyio
LIMIT_S = 30


@pytest.fixture
def workspace(tmp_path: Path) -> ToolWorkspace:
    return ToolWorkspace.under(tmp_path)


async def run(workspace: ToolWorkspace, command: str, **fields: object) -> ToolOutcome:
    with anyio.fail_after(LIMIT_S):
        return await carried_out(TOOL, workspace.tool_context(processes=SystemProcesses()), command=command, **fields)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "command"),
        ({"command": " "}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"command": "true", "timeoutMs": 0}, "timeoutMs"),
        ({"command": "true", "timeoutMs": TIMEOUT_MS_MAX + 1}, "timeoutMs"),
        ({"command": "true", "timeoutMs": "5"}, "timeoutMs"),
        ({"command": "true", "cwd": "missing"}, "cwd"),
        ({"command": "true", "cwd": "file"}, "cwd"),
        ({"command": "true", "shell": "zsh"}, "shell"),
    ],
)
async def test_run_command_invalid_argument_is_refused_by_name(
    workspace: ToolWorkspace, fields: Mapping[str, object], named: str
) -> None:
    """N1: refused with a sentence that names the field."""
    workspace.write("file", b"")
    found = refusal(TOOL, workspace.tool_context(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_run_command_returns_both_outputs_in_order_and_the_exit_code(workspace: ToolWorkspace) -> None:
    """C6: a non-zero exit is returned, and the text ends with it."""
    done = await run(workspace, "echo one; echo two >&2; echo three; exit 3")
    assert (done.outcome, done.exit_code, done.reason) == ("returned", 3, None)
    assert done.text == "one\ntwo\nthree\n[exit code 3]"
    assert (done.is_truncated, done.output, done.bytes) == (False, None, 14)


async def test_run_command_without_output_says_so(workspace: ToolWorkspace) -> None:
    """G1: a reply is never empty."""
    assert (await run(workspace, "true")).text == "(no output)\n[exit code 0]"


async def test_run_command_runs_in_its_folder_with_the_attempt_mark(workspace: ToolWorkspace) -> None:
    """E1, E5, N2: the workspace or `cwd`, with attempt, key and session in the environment."""
    (workspace.root / "d").mkdir()
    done = await run(
        workspace, 'pwd; echo "$STEADYHAND_ATTEMPT_ID $STEADYHAND_IDEMPOTENCY_KEY $STEADYHAND_SESSION_ID"', cwd="d"
    )
    assert done.text.startswith(f"{workspace.root}/d\n{ATTEMPT} {'k' * 64} {'5' * 32}\n")


async def test_run_command_ends_and_names_processes_left_running(workspace: ToolWorkspace) -> None:
    """Case 97, E5: it returns when its process ends, and not when the pipe is closed."""
    done = await run(workspace, "sleep 60 & echo hi")
    assert done.outcome == "returned"
    assert done.text.startswith("hi\n")
    assert done.left_processes
    assert "left running, and ended now" in done.text


async def test_run_command_timeout_is_stopped_with_the_output_so_far(workspace: ToolWorkspace) -> None:
    """C6: its process group is empty, so it holds nothing back. The text says that it may be half done."""
    done = await run(workspace, "echo begun; sleep 60", timeoutMs=300)
    assert (done.outcome, done.reason) == ("stopped", "timeout")
    assert done.text.startswith("begun\n")
    assert "may be half done" in done.text


async def test_run_command_cancelled_returns_stopped_and_reraises_the_cancel(workspace: ToolWorkspace) -> None:
    """C6, I2: the ended command has a result. The cancel is not lost and arrives at the next checkpoint."""
    output_seen = anyio.Event()

    class ReportingProcesses(SystemProcesses):
        async def run(self, command: str, cwd: str, *rest: Any, **named: Any) -> Finished:
            environment, timeout_s, output = rest

            def report(piece: bytes) -> None:
                output(piece)
                output_seen.set()

            return await super().run(command, cwd, environment, timeout_s, report, **named)

    call = planned(TOOL, workspace.tool_context(processes=ReportingProcesses()), command="echo begun; sleep 60")
    results: list[ToolOutcome] = []
    after: list[str] = []
    with anyio.fail_after(LIMIT_S), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def body() -> None:
                results.append(await call.run(running()))
                await anyio.lowlevel.checkpoint()
                after.append("went on")

            tasks.start_soon(body)
            await output_seen.wait()
            scope.cancel()
    assert after == []
    assert (results[0].outcome, results[0].reason) == ("stopped", "cancelled")
    assert results[0].text.startswith("begun\n")


async def test_run_command_cancelled_before_the_start_ran_nothing(workspace: ToolWorkspace) -> None:
    """C6: cancelled before it was spawned, the command is stopped, and nothing ran."""

    class NeverStarting(FakeProcesses):
        async def run(self, *rest: Any, **named: Any) -> Finished:
            await anyio.sleep_forever()
            raise AssertionError

    results: list[ToolOutcome] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        results.append(
            await planned(TOOL, workspace.tool_context(processes=NeverStarting()), command="x").run(running())
        )
    assert (results[0].outcome, results[0].reason) == ("stopped", "cancelled")
    assert "nothing ran" in results[0].text


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_run_command_that_cannot_be_ended_is_unknown(workspace: ToolWorkspace, how: str) -> None:
    """C6: a process that may still be alive leaves the outcome unknown."""
    alive = Finished(None, 15, how == "timeout", ("7 stuck",), group_empty=False)
    script = Script(finished=alive, hangs=how == "cancel", after_cancel=alive)
    call = planned(TOOL, workspace.tool_context(processes=FakeProcesses(otherwise=script)), command="x")
    results: list[ToolOutcome] = []
    with anyio.move_on_after(0.05):
        results.append(await call.run(running()))
    assert results[0].outcome == "unknown"
    assert "may still run" in results[0].text


async def test_run_command_that_cannot_be_spawned_failed(workspace: ToolWorkspace) -> None:
    """C6: nothing ran, and the sentence says so."""
    script = Script(not_started=FileNotFoundError(2, "No such file or directory"))
    done = await carried_out(TOOL, workspace.tool_context(processes=FakeProcesses(otherwise=script)), command="x")
    assert (done.outcome, done.reason) == ("failed", "not_started")
    assert "Nothing ran" in done.text


async def test_run_command_output_shows_control_and_invalid_bytes(workspace: ToolWorkspace) -> None:
    """G1: bytes that are not text and control characters are shown, and they break nothing."""
    done = await run(workspace, r"printf 'a\000b\377c\033[0m\r\nd'")
    assert done.text == "a\u2400b\ufffdc\nd\n[exit code 0]"
    assert make_visible("x\u202ey\x7f\u0085".encode()) == "x\\u202ey\u2421\\u0085"


@pytest.mark.parametrize(("command", "ended"), [("exit 3", (3, None)), ("true", (0, None)), ("kill -9 $$", (None, 9))])
async def test_run_command_tells_how_the_command_ended(
    workspace: ToolWorkspace, command: str, ended: tuple[int | None, int | None]
) -> None:
    """Case 123: the exit code or the signal is a fact of its own, so that a client can show a failure as one."""
    done = await run(workspace, command)
    assert (done.outcome, done.exit_code, done.exit_signal) == ("returned", *ended)


async def test_run_command_shows_what_a_terminal_shows_and_keeps_the_rest(workspace: ToolWorkspace) -> None:
    """Case 119: a progress bar is one line of the reply, and the whole output is stored."""
    done = await run(workspace, r"for n in $(seq 1 5000); do printf '\r%d of 5000' $n; done; printf '\nready\n'")
    whole = "".join(f"\r{number} of 5000" for number in range(1, 5001)).encode() + b"\nready\n"
    note = f"{len(whole)} bytes of output, shown as a terminal shows it at the end; the whole output is stored"
    assert done.text == f"5000 of 5000\nready\n[{note} with the session]\n[exit code 0]"
    assert (workspace.session / "outputs" / sha256(whole)).read_bytes() == whole


async def test_run_command_large_output_is_kept_and_its_ends_are_shown(workspace: ToolWorkspace) -> None:
    """J12: the beginning and the end are in the reply, and the whole is stored under its digest."""
    done = await run(workspace, "seq 1 20000")
    whole = b"".join(b"%d\n" % number for number in range(1, 20001))
    assert done.text.startswith("1\n2\n")
    assert "\n20000\n[" in done.text
    assert len(done.text.encode()) <= REPLY_BYTES_MAX
    assert (done.is_truncated, done.bytes, done.output) == (True, len(whole), sha256(whole))
    assert (workspace.session / "outputs" / sha256(whole)).read_bytes() == whole


@pytest.mark.parametrize("size", [SHOWN_BYTES_MAX - 1, SHOWN_BYTES_MAX, SHOWN_BYTES_MAX + 1])
@pytest.mark.parametrize("piece", [b"\0", "ä€𝄞".encode(), b"\xff"])
async def test_shown_output_is_bounded_for_any_bytes(workspace: ToolWorkspace, size: int, piece: bytes) -> None:
    """I13: also where a byte becomes three, at and around the bound. Truncated output is stored whole."""
    body = (piece * size)[:size]
    output = OutputBuffer(workspace.tool_context().disk, str(workspace.session), ATTEMPT)
    for start in range(0, size, 4093):
        output.add(body[start : start + 4093])
    shown = output.finish()
    assert len(shown.text.encode()) <= SHOWN_BYTES_MAX + 200
    assert shown.bytes == size
    assert shown.is_cut == (shown.digest is not None)
    if shown.digest is not None:
        assert (workspace.session / "outputs" / shown.digest).read_bytes() == body
    else:
        assert shown.text == make_visible(body)


async def test_run_command_with_300_mb_of_output_uses_bounded_memory(
    workspace: ToolWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 65, I13: memory stays bounded, and so does the file on disk."""
    monkeypatch.setattr(blob_store, "OUTPUT_BYTES_MAX", 1024 * 1024)
    unit = 1024 if sys.platform != "darwin" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    done = await run(workspace, "yes | head -c 300000000", timeoutMs=25_000)
    assert done.outcome == "returned"
    assert done.bytes == 300_000_000
    assert (workspace.session / "outputs" / str(done.output)).stat().st_size == 1024 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before < 64 * 1024 * 1024


async def test_run_command_output_that_cannot_be_kept_keeps_the_outcome(workspace: ToolWorkspace) -> None:
    """J12: both ends are shown, the reply says why the rest is missing, and no digest is invented."""
    (workspace.session / "outputs").write_bytes(b"not a folder")
    done = await run(workspace, "seq 1 20000")
    assert (done.outcome, done.exit_code, done.output) == ("returned", 0, None)
    assert "could not be stored" in done.text


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("/usr/bin/curl -H 'Token: x'", "curl"),
        ("TOKEN=secret make all", "make"),
        ("T='a b' make", "sh"),
        ("T=$(cat x) make", "sh"),
        ("(cd a; ls)", "sh"),
        ("for f in *; do rm $f; done", "sh"),
        (". ./secret.sh", "sh"),
        ("cd a/b && npm test", "npm"),
        ("cd a", "cd"),
        ("time T=1 make", "make"),
        ("-x", "sh"),
        ("../build.sh x", "build.sh"),
    ],
)
async def test_run_command_title_is_the_program_alone(workspace: ToolWorkspace, command: str, title: str) -> None:
    """G1, docs/protocol.md, "Shapes": arguments and variables may contain what no list should show. Where the shell's
    own syntax comes first, the program is the shell.
    """
    assert planned(TOOL, workspace.tool_context(), command=command).title == f"run_command: {title}"


async def test_run_command_is_opaque_over_everything(workspace: ToolWorkspace) -> None:
    """B2: the effect is opaque over everything, and the preview is the command. A folder outside asks, and the state
    directory is refused.
    """
    call = planned(TOOL, workspace.tool_context(), command="make", cwd="../out")
    assert (call.effect, call.scope, call.outside) == ("opaque", EVERYTHING, (str(workspace.outside),))
    assert call.command == ("make", str(workspace.outside))
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert "make" in preview.text
    assert refusal(TOOL, workspace.tool_context(), command="make", cwd=str(workspace.state)).reason == "policy"


async def test_run_command_in_a_folder_replaced_by_a_link_is_refused(workspace: ToolWorkspace) -> None:
    """E3: the folder was replaced between the question and the start."""
    (workspace.root / "d").mkdir()
    call = planned(TOOL, workspace.tool_context(), command="make", cwd="d")
    assert isinstance(call.gather(ATTEMPT, None), EvidenceResult)
    (workspace.root / "d").rmdir()
    (workspace.root / "d").symlink_to(workspace.outside)
    assert isinstance(call.gather(ATTEMPT, None), Refusal)


def reading_context(workspace: ToolWorkspace, **changes: object) -> ToolContext:
    """A context of a system that can confine reading commands, with its programs."""
    processes = FakeProcesses(otherwise=Script())
    processes.programs = {name: f"/usr/bin/{name}" for name in ("cat", "head", "ls", "git", "pwd", "tail", "wc")}
    processes.sandbox.found = SandboxStatus("bubblewrap", "landlock", is_sealable=True, landlock_abi=7)
    context = attrs.evolve(workspace.tool_context(processes=processes), sandbox=SandboxSettings)
    return attrs.evolve(context, **changes)  # type: ignore[arg-type]  # members of the context


def is_reading(context: ToolContext, command: str, cwd: str = ".") -> bool:
    call = planned(TOOL, context, command=command, cwd=cwd)
    assert call.scope == (NOTHING if call.effect == "reads" else EVERYTHING)
    return call.effect == "reads"


async def test_reading_command_is_limited_to_paths_in_the_workspace(workspace: ToolWorkspace) -> None:
    """B2, E3: only a path that exists, is a file or folder, and is inside the workspace with its links resolved."""
    workspace.write("src/a", b"")
    (workspace.outside / "o").write_bytes(b"")
    (workspace.root / "out").symlink_to(workspace.outside)
    context = reading_context(workspace)
    for command in ("cat src/a", "cat -n src/a", "ls", "ls -la src", "pwd", f"cat {workspace.root}/src/a"):
        assert is_reading(context, command), command
    for command in (
        "cat out/o",
        "cat ../out/o",
        "cat missing",
        "cat src/a > x",
        "rm src/a",
        "ls out",
        "cat /etc/passwd",
    ):
        assert not is_reading(context, command), command
    assert is_reading(context, "cat a", cwd="src")
    assert not is_reading(context, "cat src/a", cwd="src")
    assert not is_reading(context, "ls", cwd="out")


async def test_reading_command_with_a_program_of_the_workspace_is_opaque(workspace: ToolWorkspace) -> None:
    """B2: with the workspace, a relative folder or nothing in PATH, or a function by that name, it may be any
    program.
    """
    assert is_reading(reading_context(workspace), "ls -l")
    for name, value in (
        ("PATH", f"{workspace.root}/bin:/usr/bin"),
        ("PATH", "bin:/usr/bin"),
        ("PATH", ""),
        ("BASH_FUNC_ls%%", "() { :; }"),
        ("LD_PRELOAD", "x.so"),
    ):
        workspace.given = {"PATH": "/usr/bin", name: value}
        assert not is_reading(reading_context(workspace), "ls -l"), (name, value)


async def test_reading_git_command_needs_an_ordinary_repository(workspace: ToolWorkspace) -> None:
    """B2: its configuration runs nothing, and the repository is the workspace's own."""
    context = reading_context(workspace)
    assert not is_reading(context, "git status"), "no repository here: git would search the parent folders"
    workspace.write(".git/config", b"[core]\n\tbare = false\n")
    (workspace.root / "src").mkdir()
    assert is_reading(context, "git status")
    assert is_reading(context, "git diff HEAD~1 -- src", cwd="src"), "a missing path may be a revision"
    assert not is_reading(context, "git diff -- ../../out/o", cwd="src")
    assert is_reading(context, "git log --oneline", cwd="src")
    workspace.write("src/HEAD", b"")
    (workspace.root / "src/objects").mkdir()
    (workspace.root / "src/refs").mkdir()
    assert not is_reading(context, "git log", cwd="src"), "a folder that is itself a repository"
    workspace.write(".git/config", b"[include]\n\tpath = evil\n")
    assert not is_reading(context, "git status")
    (workspace.root / ".git/config").unlink()
    (workspace.root / ".git").rmdir()
    workspace.write(".git", b"gitdir: /elsewhere\n")
    assert not is_reading(context, "git status"), "a file that points to another folder"


async def test_reading_command_runs_with_the_reading_environment(workspace: ToolWorkspace) -> None:
    """B2: the variables that switch git's own programs off are added last. A reading command leaves nothing uncertain
    (C7).
    """
    alive = Finished(None, 15, True, (), group_empty=False)
    context = reading_context(workspace)
    assert isinstance(context.processes, FakeProcesses)
    context.processes.otherwise = Script(finished=alive)
    done = await carried_out(TOOL, context, command="ls -l")
    assert context.processes.runs[0].environment["GIT_OPTIONAL_LOCKS"] == "0"
    assert done.outcome == "stopped"


async def test_reading_command_without_a_sandbox_is_answered_or_opaque(workspace: ToolWorkspace) -> None:
    """O2: where nothing confines a read, or the sandbox is off, only what the server answers itself counts."""
    workspace.write("a", b"x")
    workspace.write(".git/config", b"[core]\n")
    nothing = SandboxStatus("none", "none", is_sealable=False, landlock_abi=0)
    off = reading_context(workspace, sandbox=lambda: SandboxSettings("off"))
    none = reading_context(workspace)
    assert isinstance(none.processes, FakeProcesses)
    none.processes.sandbox.found = nothing
    for context in (off, none):
        for command in ("cat a", "head a", "head -n 2 a", "tail -n 2 a", "wc -l a a", "pwd", "ls", "ls ."):
            assert is_reading(context, command), command
        for command in ("cat -n a", "head -2 a", "ls -l", "wc a", "git status", "git diff", "git log"):
            assert not is_reading(context, command), command
    assert isinstance(off.processes, FakeProcesses)
    assert off.processes.sandbox.probed == [], "with the sandbox off nothing is probed"


async def test_confined_reading_command_can_write_nowhere_and_names_its_program(workspace: ToolWorkspace) -> None:
    """O2, O4: the confinement is for reading, and the program's path is absolute; the reply names no changed files."""
    workspace.write("a", b"x")
    context = reading_context(workspace)
    done = await carried_out(TOOL, context, command="cat -n 'a'")
    assert isinstance(context.processes, FakeProcesses)
    (run,) = context.processes.runs
    assert run.command == "/usr/bin/cat -n a"
    confinement = run.confinement
    assert confinement is not None
    assert (confinement.kind, confinement.is_reading, confinement.temporary) == ("landlock", True, None)
    assert (confinement.folders, confinement.write) == ((str(workspace.root),), ())
    assert confinement.hidden == (str(workspace.state),)
    assert (done.outcome, done.during) == ("returned", None)


async def test_reading_git_command_is_given_its_repository(workspace: ToolWorkspace) -> None:
    """O2, case 141: git searches for no repository and enters no submodule; its programs are switched off."""
    workspace.write("app/.git/config", b"[core]\n")
    (workspace.root / "app/src").mkdir()
    context = reading_context(workspace)
    await carried_out(TOOL, context, command="git --no-pager diff HEAD -- .", cwd="app/src")
    assert isinstance(context.processes, FakeProcesses)
    *_, run = context.processes.runs
    app = f"{workspace.root}/app"
    assert run.command == (
        f"/usr/bin/git --no-pager --git-dir={app}/.git --work-tree={app} diff --ignore-submodules=dirty"
        " --no-ext-diff --no-textconv HEAD -- ."
    )
    assert run.environment["GIT_CEILING_DIRECTORIES"] == str(workspace.root)
    pairs = {
        run.environment[f"GIT_CONFIG_KEY_{number}"]: run.environment[f"GIT_CONFIG_VALUE_{number}"]
        for number in range(int(run.environment["GIT_CONFIG_COUNT"]))
    }
    assert (pairs["core.fsmonitor"], pairs["core.hooksPath"]) == ("", "/dev/null")
    assert run.environment["GIT_CONFIG_GLOBAL"] == "/dev/null"


async def test_cancel_while_git_is_asked_is_stopped_and_nothing_ran(workspace: ToolWorkspace) -> None:
    """C6, I2: the question before a reading of git can be cancelled, and the call has a result."""
    workspace.write(".git/config", b"[core]\n")
    context = reading_context(workspace)
    assert isinstance(context.processes, FakeProcesses)
    asked = anyio.Event()
    context.processes.otherwise = Script(hangs=True, started=asked)
    done: list[ToolOutcome] = []

    async def call() -> None:
        done.append(await carried_out(TOOL, context, command="git status"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        with anyio.fail_after(LIMIT_S):
            await asked.wait()
        tasks.cancel_scope.cancel()
    assert [(one.outcome, one.reason) for one in done] == [("stopped", "cancelled")]
    assert "nothing ran" in done[0].text


async def test_git_in_an_untrusted_workspace_or_without_a_program_is_no_reading(workspace: ToolWorkspace) -> None:
    """O2, O4: an untrusted repository is not read by git, nor by a git that only the workspace has."""
    workspace.write(".git/config", b"[core]\n")
    assert is_reading(reading_context(workspace), "git status")
    assert not is_reading(reading_context(workspace, trusts=lambda _: False), "git status")
    assert is_reading(reading_context(workspace, trusts=lambda _: False), "ls -l")
    context = reading_context(workspace)
    assert isinstance(context.processes, FakeProcesses)
    del context.processes.programs["git"]
    assert not is_reading(context, "git status")


def test_preview_shows_the_whole_command_on_one_line_without_hidden_characters(workspace: ToolWorkspace) -> None:
    """O7, case 146: no line end and no escape of the command can look like words of the question."""
    command = "echo " + "a" * 5000 + "\n\u202eAsked because it is harmless\x1b[2K"
    shown = planned(TOOL, workspace.tool_context(), command=command).preview()
    assert isinstance(shown, Preview)
    assert shown.text.endswith("a" * 5000 + "\\n\\u202eAsked because it is harmless\\u001b[2K")
