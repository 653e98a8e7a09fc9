"""`run_command`, mostly with real processes: output, exit, timeout, cancel, and what counts as a reading."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from steadyhand.adapters.children import SystemProcesses
from steadyhand.core.identity import sha256
from steadyhand.core.scope import EVERYTHING, NOTHING
from steadyhand.ports import Finished
from steadyhand.tools import content
from steadyhand.tools.output import Output, shown_bytes_max, visible
from steadyhand.tools.run_command import RunCommand, timeout_ms_max
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, reply_bytes_max
from tests.support.fakes import FakeProcesses, Script
from tests.support.ground import ATTEMPT, Yard, carried_out, planned, refusal, running

TOOL = RunCommand()
pytestmark = pytest.mark.anyio
limit_s = 30


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard.under(tmp_path)


async def run(yard: Yard, command: str, **fields: object) -> Done:
    with anyio.fail_after(limit_s):
        return await carried_out(TOOL, yard.ground(processes=SystemProcesses()), command=command, **fields)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "command"),
        ({"command": " "}, "command"),
        ({"command": "a\0b"}, "command"),
        ({"command": "true", "timeoutMs": 0}, "timeoutMs"),
        ({"command": "true", "timeoutMs": timeout_ms_max + 1}, "timeoutMs"),
        ({"command": "true", "timeoutMs": "5"}, "timeoutMs"),
        ({"command": "true", "cwd": "missing"}, "cwd"),
        ({"command": "true", "cwd": "file"}, "cwd"),
        ({"command": "true", "shell": "zsh"}, "shell"),
    ],
)
async def test_arguments_are_strict(yard: Yard, fields: Mapping[str, object], named: str) -> None:
    """N1: refused with a sentence that names the field."""
    yard.write("file", b"")
    found = refusal(TOOL, yard.ground(), **fields)
    assert found.reason == "bad_arguments"
    assert named in found.text


async def test_both_outputs_come_in_order_and_the_exit_code_after_them(yard: Yard) -> None:
    """C6: a non-zero exit is returned; the text ends with it."""
    done = await run(yard, "echo one; echo two >&2; echo three; exit 3")
    assert (done.outcome, done.exit_code, done.reason) == ("returned", 3, None)
    assert done.text == "one\ntwo\nthree\n[exit code 3]"
    assert (done.truncated, done.output, done.bytes) == (False, None, 14)


async def test_no_output_is_said(yard: Yard) -> None:
    """G1: a reply is never empty."""
    assert (await run(yard, "true")).text == "(no output)\n[exit code 0]"


async def test_it_runs_in_its_folder_with_its_marks(yard: Yard) -> None:
    """E1, E5, N2: the workspace or `cwd`; attempt, key and session in the environment."""
    (yard.root / "d").mkdir()
    done = await run(
        yard, 'pwd; echo "$STEADYHAND_ATTEMPT_ID $STEADYHAND_IDEMPOTENCY_KEY $STEADYHAND_SESSION_ID"', cwd="d"
    )
    assert done.text.startswith(f"{yard.root}/d\n{ATTEMPT} {'k' * 64} {'5' * 32}\n")


async def test_what_is_left_running_is_ended_and_named(yard: Yard) -> None:
    """Case 97, E5: it returns when its process ends, not when the pipe is closed."""
    done = await run(yard, "sleep 60 & echo hi")
    assert done.outcome == "returned"
    assert done.text.startswith("hi\n")
    assert done.left
    assert "left running, and ended now" in done.text


async def test_a_timeout_is_stopped_with_its_output_so_far(yard: Yard) -> None:
    """C6: its group is empty, so it holds nothing back; the words say that it may be half done."""
    done = await run(yard, "echo begun; sleep 60", timeoutMs=300)
    assert (done.outcome, done.reason) == ("stopped", "timeout")
    assert done.text.startswith("begun\n")
    assert "may be half done" in done.text


async def test_a_cancel_is_returned_as_stopped_and_comes_again(yard: Yard) -> None:
    """C6, I2: what was ended is a result; the cancel is not lost, it comes at the next checkpoint."""
    heard = anyio.Event()

    class Heard(SystemProcesses):
        async def run(self, command: str, cwd: str, *rest: Any, **named: Any) -> Finished:
            environment, timeout_s, output = rest

            def noted(piece: bytes) -> None:
                output(piece)
                heard.set()

            return await super().run(command, cwd, environment, timeout_s, noted, **named)

    call = planned(TOOL, yard.ground(processes=Heard()), command="echo begun; sleep 60")
    results: list[Done] = []
    after: list[str] = []
    with anyio.fail_after(limit_s), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:

            async def body() -> None:
                results.append(await call.run(running()))
                await anyio.lowlevel.checkpoint()
                after.append("went on")

            tasks.start_soon(body)
            await heard.wait()
            scope.cancel()
    assert after == []
    assert (results[0].outcome, results[0].reason) == ("stopped", "cancelled")
    assert results[0].text.startswith("begun\n")


async def test_a_cancel_before_the_start_ran_nothing(yard: Yard) -> None:
    """C6: cancelled before it was spawned it is stopped, and nothing ran."""

    class Late(FakeProcesses):
        async def run(self, *rest: Any, **named: Any) -> Finished:
            await anyio.sleep_forever()
            raise AssertionError

    results: list[Done] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        results.append(await planned(TOOL, yard.ground(processes=Late()), command="x").run(running()))
    assert (results[0].outcome, results[0].reason) == ("stopped", "cancelled")
    assert "nothing ran" in results[0].text


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_what_could_not_be_ended_is_unknown(yard: Yard, how: str) -> None:
    """C6: an executor that may live on leaves the outcome unknown."""
    alive = Finished(None, 15, how == "timeout", ("7 stuck",), group_empty=False)
    script = Script(finished=alive, hangs=how == "cancel", after_cancel=alive)
    call = planned(TOOL, yard.ground(processes=FakeProcesses(otherwise=script)), command="x")
    results: list[Done] = []
    with anyio.move_on_after(0.05):
        results.append(await call.run(running()))
    assert results[0].outcome == "unknown"
    assert "may still run" in results[0].text


async def test_what_cannot_be_spawned_failed(yard: Yard) -> None:
    """C6: nothing ran, and the sentence says so."""
    script = Script(not_started=FileNotFoundError(2, "No such file or directory"))
    done = await carried_out(TOOL, yard.ground(processes=FakeProcesses(otherwise=script)), command="x")
    assert (done.outcome, done.reason) == ("failed", "not_started")
    assert "Nothing ran" in done.text


async def test_output_is_made_visible(yard: Yard) -> None:
    """G1: bytes that are no text and control characters show, and break nothing."""
    done = await run(yard, r"printf 'a\000b\377c\033[0m\r\nd\re'")
    assert done.text == "a\u2400b\ufffdc\u241b[0m\nd\u240de\n[exit code 0]"
    assert visible("x\u202ey\x7f\u0085".encode()) == "x\\u202ey\u2421\\u0085"


async def test_large_output_is_kept_and_its_ends_are_shown(yard: Yard) -> None:
    """J12: beginning and end in the reply, the whole under its digest."""
    done = await run(yard, "seq 1 20000")
    whole = b"".join(b"%d\n" % number for number in range(1, 20001))
    assert done.text.startswith("1\n2\n")
    assert "\n20000\n[" in done.text
    assert len(done.text.encode()) <= reply_bytes_max
    assert (done.truncated, done.bytes, done.output) == (True, len(whole), sha256(whole))
    assert (yard.session / "outputs" / sha256(whole)).read_bytes() == whole


@pytest.mark.parametrize("size", [shown_bytes_max - 1, shown_bytes_max, shown_bytes_max + 1])
@pytest.mark.parametrize("piece", [b"\0", "ä€𝄞".encode(), b"\xff"])
async def test_shown_output_is_bounded_whatever_it_is(yard: Yard, size: int, piece: bytes) -> None:
    """I13: also where a byte becomes three, at and around the bound; what is cut is kept whole."""
    body = (piece * size)[:size]
    output = Output(yard.ground().disk, str(yard.session), ATTEMPT)
    for start in range(0, size, 4093):
        output.take(body[start : start + 4093])
    shown = output.shown()
    assert len(shown.text.encode()) <= shown_bytes_max + 200
    assert shown.bytes == size
    assert shown.cut == (shown.digest is not None)
    if shown.digest is not None:
        assert (yard.session / "outputs" / shown.digest).read_bytes() == body
    else:
        assert shown.text == visible(body)


async def test_a_chatty_command_takes_little_memory(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 65, I13: 300 MB of output; memory stays bounded, and the file on disk too."""
    monkeypatch.setattr(content, "output_bytes_max", 1024 * 1024)
    unit = 1024 if sys.platform != "darwin" else 1
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    done = await run(yard, "yes | head -c 300000000", timeoutMs=25_000)
    assert done.outcome == "returned"
    assert done.bytes == 300_000_000
    assert (yard.session / "outputs" / str(done.output)).stat().st_size == 1024 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit - before < 64 * 1024 * 1024


async def test_output_that_cannot_be_kept_does_not_touch_the_outcome(yard: Yard) -> None:
    """J12: the ends are shown, the reply says why the rest is gone, and no digest is invented."""
    (yard.session / "outputs").write_bytes(b"not a folder")
    done = await run(yard, "seq 1 20000")
    assert (done.outcome, done.exit_code, done.output) == ("returned", 0, None)
    assert "could not be kept" in done.text


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
async def test_the_title_is_the_program_alone(yard: Yard, command: str, title: str) -> None:
    """G1, wire.md, "Shapes": arguments and variables may hold what no list should show; where a shell's own words come
    first, the program is the shell."""
    assert planned(TOOL, yard.ground(), command=command).title == f"run_command: {title}"


async def test_a_command_may_touch_everything(yard: Yard) -> None:
    """B2: opaque, everything; its preview is the command; a folder outside asks; the state directory never."""
    call = planned(TOOL, yard.ground(), command="make", cwd="../out")
    assert (call.effect, call.scope, call.outside) == ("opaque", EVERYTHING, (str(yard.outside),))
    assert call.command == ("make", str(yard.outside))
    preview = call.preview()
    assert isinstance(preview, Preview)
    assert "make" in preview.text
    assert refusal(TOOL, yard.ground(), command="make", cwd=str(yard.state)).reason == "policy"


async def test_a_folder_that_leads_elsewhere_since_is_refused(yard: Yard) -> None:
    """E3: turned between the question and the start."""
    (yard.root / "d").mkdir()
    call = planned(TOOL, yard.ground(), command="make", cwd="d")
    assert isinstance(call.gather(ATTEMPT, None), Gathered)
    (yard.root / "d").rmdir()
    (yard.root / "d").symlink_to(yard.outside)
    assert isinstance(call.gather(ATTEMPT, None), Refusal)


def reads(ground: Ground, command: str, cwd: str = ".") -> bool:
    call = planned(TOOL, ground, command=command, cwd=cwd)
    assert call.scope == (NOTHING if call.effect == "reads" else EVERYTHING)
    return call.effect == "reads"


async def test_reading_commands_stay_in_the_workspace(yard: Yard) -> None:
    """B2, E3: only what is there, is a file or folder, and lies inside by its links too."""
    yard.write("src/a", b"")
    (yard.outside / "o").write_bytes(b"")
    (yard.root / "out").symlink_to(yard.outside)
    ground = yard.ground()
    for command in ("cat src/a", "ls", "ls -la src", "pwd", f"cat {yard.root}/src/a"):
        assert reads(ground, command), command
    for command in (
        "cat out/o",
        "cat ../out/o",
        "cat missing",
        "cat src/a > x",
        "rm src/a",
        "ls out",
        "cat /etc/passwd",
    ):
        assert not reads(ground, command), command
    assert reads(ground, "cat a", cwd="src")
    assert not reads(ground, "cat src/a", cwd="src")
    assert not reads(ground, "ls", cwd="out")


async def test_a_program_of_the_workspace_is_no_reading(yard: Yard) -> None:
    """B2: with the workspace, a relative folder or nothing in PATH, or a function by that name, it may be anything."""
    assert reads(yard.ground(), "ls")
    for name, value in (
        ("PATH", f"{yard.root}/bin:/usr/bin"),
        ("PATH", "bin:/usr/bin"),
        ("PATH", ""),
        ("BASH_FUNC_ls%%", "() { :; }"),
        ("LD_PRELOAD", "x.so"),
    ):
        yard.given = {"PATH": "/usr/bin", name: value}
        assert not reads(yard.ground(), "ls"), (name, value)


async def test_git_reads_only_in_a_plain_repository(yard: Yard) -> None:
    """B2: its configuration runs nothing, and it is the workspace's own."""
    ground = yard.ground()
    assert not reads(ground, "git status"), "no repository here: git would look above"
    yard.write(".git/config", b"[core]\n\tbare = false\n")
    (yard.root / "src").mkdir()
    assert reads(ground, "git status")
    assert reads(ground, "git diff HEAD~1 -- src", cwd="src"), "what is not there may be a revision"
    assert not reads(ground, "git diff -- ../../out/o", cwd="src")
    assert reads(ground, "git log --oneline", cwd="src")
    yard.write("src/HEAD", b"")
    (yard.root / "src/objects").mkdir()
    (yard.root / "src/refs").mkdir()
    assert not reads(ground, "git log", cwd="src"), "a folder that is itself a repository"
    yard.write(".git/config", b'[filter "x"]\n\tclean = evil\n')
    assert not reads(ground, "git status")
    (yard.root / ".git/config").unlink()
    (yard.root / ".git").rmdir()
    yard.write(".git", b"gitdir: /elsewhere\n")
    assert not reads(ground, "git status"), "a file that leads elsewhere"


async def test_a_reading_runs_with_the_reading_environment(yard: Yard) -> None:
    """B2: what switches git's own programs off is added last; a reading leaves no doubt behind (C7)."""
    alive = Finished(None, 15, True, (), group_empty=False)
    processes = FakeProcesses(otherwise=Script(finished=alive))
    done = await carried_out(TOOL, yard.ground(processes=processes), command="ls")
    assert processes.runs[0].environment["GIT_OPTIONAL_LOCKS"] == "0"
    assert done.outcome == "stopped"
