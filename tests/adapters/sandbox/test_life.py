"""How a confined command begins, is signalled and ends (rows O1, E4, E5).

Commands of these tests sleep far longer than a test may take. Waits ask for an event and have generous limits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import anyio
import attrs
import pytest

from steadyhand.adapters.processes import process_table
from steadyhand.adapters.processes.confined_child import ConfinedChild
from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement
from tests.adapters.sandbox.boxes import python_path
from tests.adapters.sandbox.conftest import Box
from tests.support.commands import OutputRecorder, assert_no_process_left
from tests.support.fakes import run_mark
from tests.support.systems import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

MARK = run_mark + "1123456789abcdef01234567"
KINDS = ("bubblewrap", "landlock")
limit_s = 60.0
environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Kill what a test left running, and fail the test."""
    yield
    assert_no_process_left(MARK)


def of_process(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


async def run(
    box: Box, told: OutputRecorder, text: str, kind: str = "bubblewrap", timeout_s: float = limit_s
) -> Finished:
    with anyio.fail_after(limit_s * 2):
        return await box.processes.run(
            text,
            str(box.workspace),
            environment,
            timeout_s,
            told.output,
            ended=told.ends.append,
            confinement=box.confinement(kind),
        )


@pytest.mark.parametrize("kind", KINDS)
async def test_run_returns_code_output_folder_and_environment(box: Box, kind: str) -> None:
    """O1: as without a sandbox (row E1), but for TMPDIR. Nothing else of the server's environment arrives."""
    told = OutputRecorder()
    finished = await run(box, told, "echo one; echo two >&2; pwd; env | sort | grep -v -e ^PWD -e ^_=; exit 7", kind)
    own = "/tmp" if kind == "bubblewrap" else str(box.own)
    assert told.text.splitlines() == [
        *("one", "two", str(box.workspace)),
        *sorted((f"PATH={environment['PATH']}", f"STEADYHAND_ATTEMPT_ID={MARK}", f"TMPDIR={own}")),
    ]
    assert finished == Finished(7, None, False, (), True)
    assert told.ends == [finished]


@pytest.mark.parametrize("network", ["deny", "allow"])
async def test_command_in_bubblewrap_has_namespaces_of_its_own(box: Box, network: Literal["deny", "allow"]) -> None:
    """O1: mount, processes, shared memory, name of the machine, users; a network only if it is denied."""
    told = OutputRecorder()
    await box.processes.run(
        "for name in mnt pid ipc uts user net; do readlink /proc/self/ns/$name; done",
        str(box.workspace),
        environment,
        limit_s,
        told.output,
        confinement=attrs.evolve(box.confinement(), network=network),
    )
    own = [os.readlink(f"/proc/self/ns/{name}") for name in ("mnt", "pid", "ipc", "uts", "user", "net")]
    same = [one for one, other in zip(told.text.split(), own, strict=True) if one == other]
    assert same == ([own[-1]] if network == "allow" else [])


@pytest.mark.parametrize("kind", KINDS)
async def test_run_tells_a_signal_from_an_exit_code(box: Box, kind: str) -> None:
    """E4: a command that a signal ended has no exit code; one that exits with 137 has."""
    killed = await run(box, OutputRecorder(), "kill -KILL $$", kind)
    assert (killed.exit_code, killed.signal) == (None, 9)
    assert (await run(box, OutputRecorder(), "exit 137", kind)).exit_code == 137


@pytest.mark.parametrize("kind", KINDS)
async def test_run_names_and_ends_what_the_command_left(box: Box, kind: str) -> None:
    """E5: also what left the session and cleared its environment, which only the namespace finds."""
    told = OutputRecorder()
    text = "sleep 3341 & echo up" + ("; env -i setsid sleep 3342 &" if kind == "bubblewrap" else "")
    finished = await run(box, told, text, kind)
    assert (told.text, finished.exit_code, finished.group_empty) == ("up\n", 0, True)
    assert sorted(one.split(" ", 1)[1] for one in finished.left) == sorted(
        ["sleep 3341", *(["sleep 3342"] if kind == "bubblewrap" else [])]
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_run_lets_a_command_end_by_itself_at_its_time_limit(box: Box, kind: str) -> None:
    """E4: SIGTERM reaches the command inside, and its handler decides the exit code."""
    told = OutputRecorder()
    text = "trap 'echo told; exit 4' TERM; echo up; while :; do sleep 0.1; done"
    finished = await run(box, told, text, kind, timeout_s=2.0)
    assert (finished.exit_code, finished.timed_out, finished.group_empty) == (4, True, True)
    assert {"up", "told"} <= set(told.text.splitlines())


@pytest.mark.parametrize("kind", KINDS)
async def test_run_kills_a_command_that_ignores_the_signal(box: Box, kind: str) -> None:
    """E4: SIGKILL follows; bubblewrap is killed, and the kernel ends what is inside."""
    finished = await run(box, OutputRecorder(), "trap '' TERM; while :; do sleep 0.1; done", kind, timeout_s=0.5)
    assert (finished.exit_code, finished.signal, finished.timed_out, finished.group_empty) == (None, 9, True, True)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancel_ends_the_command_and_reports_it_once(box: Box, kind: str) -> None:
    """E4: the cancel is raised after everything has ended and `ended` was called."""
    told = OutputRecorder()
    with anyio.fail_after(limit_s):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, box, told, "echo up; sleep 3343", kind)
            await told.has_output.wait()
            tasks.cancel_scope.cancel()
    assert [end.signal for end in told.ends] == [15]


async def test_cancel_before_the_sandbox_is_ready_leaves_no_process(box: Box) -> None:
    """E4, O1: a cancel may fall into the set-up, or come when the command has just begun; no process is left then, and
    the end is reported once."""
    told = OutputRecorder()
    with anyio.fail_after(limit_s), anyio.CancelScope() as scope:
        scope.cancel()
        await box.processes.run(
            "sleep 3355",
            str(box.workspace),
            environment,
            limit_s,
            told.output,
            ended=told.ends.append,
            confinement=box.confinement(),
        )
    assert scope.cancelled_caught
    assert len(told.ends) == 1
    assert not box.processes.survivors(MARK)


async def test_all_processes_of_a_running_command_carry_its_mark(box: Box) -> None:
    """E5: a later server finds them by the mark, bubblewrap too; and nothing of it is in a command line."""
    told = OutputRecorder()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, box, told, "echo up; sleep 3344 # secret-text")
        with anyio.fail_after(limit_s):
            await told.has_output.wait()
        found = box.processes.survivors(MARK) or ()
        lines = [of_process(one.pid, "cmdline") for one in found]
        tasks.cancel_scope.cancel()
    assert sum(b"--args" in line for line in lines) == 2  # bubblewrap, and the first process inside
    assert any(b"sleep" in line for line in lines)
    assert not [line for line in lines if b"--args" in line and b"secret-text" in line]


async def test_bubblewrap_gets_no_variable_of_the_command(box: Box) -> None:
    """O1: a variable such as LD_LIBRARY_PATH would make bubblewrap load code of the workspace outside the sandbox."""
    told = OutputRecorder()
    given = {**environment, "LD_LIBRARY_PATH": ".", "LD_PRELOAD": str(box.workspace / "evil.so"), "OTHER": "1"}
    async with anyio.create_task_group() as tasks:
        child = ConfinedChild(box.sandbox, box.confinement(), "sleep 3345", str(box.workspace), given)
        with anyio.fail_after(limit_s):
            await child.ready()
        variables = of_process(child.pid, "environ").split(b"\0")
        folder = os.readlink(f"/proc/{child.pid}/cwd")
        child.kill()
        await child.end_sandbox()  # on a busy machine the namespace ends later than its first process
        child.reap()
        child.close()
        tasks.cancel_scope.cancel()
    assert [one for one in variables if one] == [f"STEADYHAND_ATTEMPT_ID={MARK}".encode()]
    assert folder == "/"
    assert told.ends == []


SERVER = """
import os, sys, anyio
from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.ports.sandbox import Confinement
processes = SystemProcesses()
processes.sandbox.probe()
confinement = Confinement(sys.argv[1], (sys.argv[2],), sys.argv[3])
environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": sys.argv[4]}
def output(piece):
    sys.stdout.write("up\\n")
    sys.stdout.flush()
text = sys.argv[5]
async def main():
    await processes.run(text, sys.argv[2], environment, 600.0, output, confinement=confinement)
anyio.run(main)
"""


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bubblewrap", "echo up; env -i setsid sleep 3346 & exec sleep 3347"),
        ("landlock", "echo up; exec sleep 3347"),
    ],
)
def test_confined_command_ends_with_a_killed_server(kind: str, text: str, box: Box) -> None:
    """O1: kill -9 of the server ends bubblewrap and everything inside, what cleared its environment too. With Landlock
    alone it ends the shell."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, kind, str(box.workspace), str(box.own), MARK, text],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": python_path(), "HOME": str(box.folder)},
        stdout=subprocess.PIPE,
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        listed = process_table.list_processes()
        of_server = {one.pid: one for one in listed if one.pid == server.pid}
        inside = process_table.with_descendants(listed, of_server)
        server.kill()
    assert len(inside) >= (5 if kind == "bubblewrap" else 2)
    limit = time.monotonic() + limit_s
    while any(process_table.is_running(one.pid, one.started) for one in inside):
        assert time.monotonic() < limit, "something of it still runs"


@pytest.mark.parametrize("kind", KINDS)
async def test_background_command_is_ready_followed_and_ended(box: Box, kind: str) -> None:
    """O1, E5: the same for a background command."""
    told = OutputRecorder()
    job = box.processes.start(
        "echo up; sleep 3348", str(box.workspace), environment, None, told.output, confinement=box.confinement(kind)
    )
    finished: list[Finished] = []

    async def follow() -> None:
        finished.append(await job.follow())

    with anyio.fail_after(limit_s):
        await job.ready()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await told.has_output.wait()
            await job.end()
    assert [(one.signal, one.group_empty) for one in finished] == [(15, True)]


async def test_confined_child_is_started_on_the_main_thread_only(box: Box) -> None:
    """O1: the kernel's parent-death signal belongs to the thread, and a thread of a pool ends early."""

    def start() -> None:
        ConfinedChild(box.sandbox, box.confinement(), ":", str(box.workspace), environment)

    with pytest.raises(AssertionError, match="this thread"):
        await anyio.to_thread.run_sync(start)


async def test_command_inside_cannot_speak_for_the_launcher(box: Box) -> None:
    """O1: the command has no way to the socket on which the launcher reports, neither inherited nor by /proc."""
    told = OutputRecorder()
    text = (
        "for fd in /proc/[0-9]*/fd/*; do case $(readlink $fd) in socket*) echo open $fd;; esac;"
        " echo 'exited 0' > $fd; done 2>/dev/null; exit 3"
    )
    assert (await run(box, told, text)).exit_code == 3
    assert "open" not in told.text


async def test_two_folders_and_another_writable_one(box: Box) -> None:
    """O1, S7: every folder of the session and of `sandbox.write` is writable, and nothing between them."""
    second, cache = box.folder / "second", box.folder / "a" / "cache"
    second.mkdir()
    cache.mkdir(parents=True)
    confinement = Confinement(
        "bubblewrap",
        (str(box.workspace), str(second)),
        str(box.own),
        write=(str(cache), str(box.folder / "missing")),
    )
    told = OutputRecorder()
    text = f"touch here {second}/x {cache}/x; touch {box.folder}/x {box.folder}/a/x 2>/dev/null || echo refused"
    await box.processes.run(text, str(box.workspace), environment, limit_s, told.output, confinement=confinement)
    assert told.text == "refused\n"
    made = sorted(str(path.relative_to(box.folder)) for path in box.folder.rglob("*") if path.is_file())
    assert made == ["a/cache/x", "second/x", "workspace/here"]


async def test_home_folder_as_workspace_keeps_its_secrets(box: Box) -> None:
    """O1: secret places are hidden inside a writable root too, and can neither be replaced nor filled."""
    home = box.folder / "home"
    (home / ".ssh").mkdir()
    for name in (".ssh/id", ".netrc", "notes"):
        (home / name).write_text("secret\n")
    told = OutputRecorder()
    await box.processes.run(
        "cat notes .netrc .ssh/id; echo x > .ssh/x; mv .ssh old; echo x > .netrc; rm .netrc; echo x > made",
        str(home),
        environment,
        limit_s,
        told.output,
        confinement=Confinement("bubblewrap", (str(home),), str(box.own)),
    )
    assert [line for line in told.text.splitlines() if line == "secret"] == ["secret"]
    left = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert left == {".ssh/id": "secret\n", ".netrc": "secret\n", "notes": "secret\n", "made": "x\n"}


async def test_workspace_among_temporary_files_is_there_alone(box: Box, tmp_path: Path) -> None:
    """O1: a workspace below `/tmp` is writable at its place; what else is in `/tmp` belongs to others."""
    if not str(tmp_path).startswith("/tmp/"):
        pytest.skip("temporary files are elsewhere")
    workspace, other = tmp_path / "ws", tmp_path / "other"
    workspace.mkdir()
    other.write_text("secret")
    told = OutputRecorder()
    await box.processes.run(
        f"echo a > a; cat {other}; echo t > /tmp/t; ls -A /tmp /var/tmp",
        str(workspace),
        environment,
        limit_s,
        told.output,
        confinement=Confinement("bubblewrap", (str(workspace),), str(box.own)),
    )
    assert "secret" not in told.text
    assert (workspace / "a").read_text() == "a\n"
    assert (box.own / "t").read_text() == "t\n"
