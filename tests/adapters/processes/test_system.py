"""Commands run to their end, end as a whole group, and report their real outcome (rows E4, E5).

Commands of these tests sleep far longer than a test may take: a test checks that a process is gone and never waits
for its natural end. Times are compared only with bounds that are many times larger.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from steadyhand.adapters.processes import child as child_module
from steadyhand.adapters.processes import process_table, system
from steadyhand.adapters.processes.child import PIECE_BYTES_MAX
from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.ports.processes import Finished, OrphanProcess, Processes
from tests.support.commands import OutputRecorder, assert_no_process_left
from tests.support.fakes import FakeProcesses, run_mark
from tests.support.systems import linux_only, wait_s_max

pytestmark = [pytest.mark.anyio, linux_only]

MARK = run_mark + "0123456789abcdef01234567"
soon_s_max = 15.0  # an idle machine needs well under a second


@pytest.fixture
def recorder() -> OutputRecorder:
    return OutputRecorder()


@pytest.fixture
def processes() -> SystemProcesses:
    return SystemProcesses()


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Kill what a test left running, and fail the test."""
    yield
    assert_no_process_left(MARK)


async def run(
    processes: SystemProcesses,
    recorder: OutputRecorder,
    command: str,
    cwd: Path | str = "/",
    timeout_s: float = 60.0,
    mark: str = MARK,
) -> Finished:
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": mark}
    with anyio.fail_after(wait_s_max):
        return await processes.run(
            command, str(cwd), environment, timeout_s, recorder.output, ended=recorder.ends.append
        )


async def end_survivors(processes: SystemProcesses) -> bool:
    """End what a signal hit a moment ago, and wait until it is gone."""
    return all([await processes.end(one) for one in processes.survivors(MARK) or ()])


def are_named(finished: Finished, *wanted: str) -> bool:
    """Whether exactly these processes were left. A process before its exec still has the command line of its shell."""
    found = [one.split(" ", 1)[1] for one in finished.left]
    return len(found) == len(wanted) and all(any(want in one for one in found) for want in wanted)


async def test_run_returns_exit_code_and_both_outputs_in_order(
    processes: SystemProcesses, recorder: OutputRecorder, tmp_path: Path
) -> None:
    """Row E1: Both outputs come in order, with the exit code. The command runs in the given folder, with the given
    environment and nothing else."""
    port: Processes = processes
    fake: Processes = FakeProcesses()
    assert port is not fake
    finished = await run(processes, recorder, "echo one; echo two >&2; pwd; env | sort; exit 7", tmp_path)
    lines = recorder.text.splitlines()
    assert lines[:3] == ["one", "two", str(tmp_path)]
    assert [line.split("=")[0] for line in lines[3:] if not line.startswith(("_=", "SHLVL="))] == [
        "PATH",
        "PWD",
        "STEADYHAND_ATTEMPT_ID",
    ]
    assert finished == Finished(exit_code=7, signal=None, timed_out=False, left=(), group_empty=True)
    assert recorder.ends == [finished]


async def test_run_ended_by_signal_reports_signal_without_exit_code(
    processes: SystemProcesses, recorder: OutputRecorder
) -> None:
    """Row E5: A command that was killed has a signal and no exit code."""
    finished = await run(processes, recorder, "kill -9 $$")
    assert (finished.exit_code, finished.signal) == (None, signal.SIGKILL)


async def test_run_has_empty_stdin_and_not_our_stdout(
    processes: SystemProcesses, recorder: OutputRecorder, capfd: pytest.CaptureFixture[str]
) -> None:
    """Row E4, case 100: A read ends at once, and the command's output never reaches our stdout or stderr."""
    finished = await run(processes, recorder, "cat; read line; echo loud; echo louder >&2; ls -l /proc/$$/fd")
    assert finished.exit_code == 0
    assert recorder.text.startswith("loud\nlouder\n")
    assert "0 -> /dev/null" in recorder.text
    assert capfd.readouterr() == ("", "")


async def test_run_has_a_process_session_and_group_of_its_own(
    processes: SystemProcesses, recorder: OutputRecorder
) -> None:
    """Row E5: The pid, group and session of a command are one number, which is not ours."""
    await run(processes, recorder, "echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)")
    pid, group, session = recorder.text.split()
    assert pid == group == session
    assert int(group) != os.getpgrp()


@pytest.mark.parametrize(
    ("command", "left"),
    [
        ("sleep 301 & echo hi", ["sleep 301"]),
        ("setsid sleep 302 & echo hi", ["sleep 302"]),
        ("(setsid sleep 303 >/dev/null 2>&1 &); echo hi", ["sleep 303"]),
        ("sleep 304 >/dev/null 2>&1 & sleep 305 & echo hi", ["sleep 304", "sleep 305"]),
    ],
)
async def test_child_that_outlives_its_shell_is_ended_and_named(
    processes: SystemProcesses, recorder: OutputRecorder, command: str, left: list[str]
) -> None:
    """Row E5, case 97: A command is over when its shell is. A background child is ended and named, whether or not it
    holds the pipe, and whether it is in the group or left it by setsid."""
    before_s = time.monotonic()
    finished = await run(processes, recorder, command)
    assert time.monotonic() - before_s < soon_s_max
    assert recorder.text == "hi\n"
    assert (finished.exit_code, finished.timed_out, finished.group_empty) == (0, False, True)
    assert are_named(finished, *left), finished.left
    assert not any(processes.alive(int(one.split()[0])) for one in finished.left)


async def test_timeout_ends_shell_and_all_children(processes: SystemProcesses, recorder: OutputRecorder) -> None:
    """Row E5: The timeout ends the shell, its children, and those that left session and environment but still have
    their parent."""
    finished = await run(
        processes, recorder, "env -i setsid sleep 311 & sleep 312 & echo up; sleep 313; echo never", timeout_s=2.0
    )
    assert recorder.text == "up\n"
    assert (finished.exit_code, finished.signal) == (None, signal.SIGTERM)
    assert (finished.timed_out, finished.group_empty) == (True, True)
    assert are_named(finished, "sleep 311", "sleep 312", "sleep 313"), finished.left
    assert not any(processes.alive(int(one.split()[0])) for one in finished.left)


async def test_timeout_kills_a_command_that_ignores_sigterm(
    processes: SystemProcesses, recorder: OutputRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row E5: The command gets SIGTERM once, and SIGKILL when its grace period is over. Output in between still
    arrives."""
    monkeypatch.setattr(system, "END_GRACE_S", 0.5)
    command = "trap 'echo no' TERM; echo up; while :; do sleep 0.05; done"
    finished = await run(processes, recorder, command, timeout_s=1.0)
    assert [line for line in recorder.text.splitlines() if line != "Terminated"] == ["up", "no"]
    assert (finished.signal, finished.timed_out, finished.group_empty) == (signal.SIGKILL, True, True)


async def test_cancel_ends_the_group_before_it_propagates(processes: SystemProcesses, recorder: OutputRecorder) -> None:
    """Row E5 [I2]: The cancellation propagates only after the whole group is gone, and the end is reported once."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, processes, recorder, "sleep 321 & echo up; sleep 322; echo never")
        with anyio.fail_after(wait_s_max):
            await recorder.has_output.wait()
        tasks.cancel_scope.cancel()
    assert recorder.text == "up\n"
    [finished] = recorder.ends
    assert (finished.signal, finished.timed_out, finished.group_empty) == (signal.SIGTERM, False, True)
    assert any("sleep 321" in one for one in finished.left)


async def test_asyncio_cancel_through_the_shield_kills_the_group(
    processes: SystemProcesses, recorder: OutputRecorder
) -> None:
    """[I2]: asyncio's own cancellation passes a shield. The group is then killed at once, and its end is reported
    once."""
    task = asyncio.create_task(run(processes, recorder, "trap '' TERM; echo up; sleep 331; sleep 332"))
    with anyio.fail_after(wait_s_max):
        await recorder.has_output.wait()
        task.cancel()
        await asyncio.wait([task], timeout=0.3)
        assert not task.done(), "the first cancel leaves the grace period"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(recorder.ends) == 1
    assert recorder.ends[0].signal == signal.SIGKILL
    assert not recorder.ends[0].timed_out
    assert await end_survivors(processes)


async def test_long_output_arrives_whole_in_bounded_pieces(processes: SystemProcesses) -> None:
    """Row E5 [I13]: Every byte of a long output arrives, in bounded pieces, and none of it stays in memory."""
    total = 0
    longest = 0

    def output(piece: bytes) -> None:
        nonlocal total, longest
        total += len(piece)
        longest = max(longest, len(piece))

    size = 30_000_000
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    tracemalloc.start()
    try:
        with anyio.fail_after(wait_s_max):
            finished = await processes.run(f"head -c {size} /dev/zero", "/", environment, 60.0, output)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert finished.exit_code == 0
    assert total == size
    assert longest <= PIECE_BYTES_MAX
    assert peak < size // 4


async def test_timeout_ends_a_command_with_endless_output(processes: SystemProcesses, recorder: OutputRecorder) -> None:
    """Row E5 [I13]: A command that never stops writing still times out."""
    finished = await run(processes, recorder, "yes", timeout_s=0.3)
    assert finished.timed_out
    assert finished.group_empty


async def test_receiver_that_raises_ends_the_command(processes: SystemProcesses, recorder: OutputRecorder) -> None:
    """Row E5: The exception of the output's receiver propagates unchanged, after the command has ended."""

    def output(piece: bytes) -> None:
        raise LookupError(piece.decode())

    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    with anyio.fail_after(wait_s_max), pytest.raises(LookupError, match="up"):
        await processes.run("echo up; sleep 341", "/", environment, 60.0, output, ended=recorder.ends.append)
    assert [one.group_empty for one in recorder.ends] == [True]
    assert not recorder.ends[0].timed_out


@pytest.mark.parametrize(
    ("command", "cwd", "number"),
    [("true", "/nothing-of-that-name", errno.ENOENT), ("true\0", "/", errno.EINVAL)],
)
async def test_command_that_cannot_spawn_raises_oserror(
    processes: SystemProcesses, recorder: OutputRecorder, command: str, cwd: str, number: int
) -> None:
    """Row E5: A command that cannot be spawned is an OSError, reports no end, and leaves no descriptor open."""
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r".") as caught:
        await run(processes, recorder, command, cwd)
    assert caught.value.errno == number
    assert recorder.ends == []
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_run_closes_its_descriptors(processes: SystemProcesses, recorder: OutputRecorder) -> None:
    """[I13]: A command holds no descriptor after its end."""
    await run(processes, recorder, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run(processes, recorder, "sleep 351 & echo hi")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_end_all_ends_every_running_command(processes: SystemProcesses) -> None:
    """Row E5, case 98: `end_all` ends what runs, and each run returns with its real end."""
    recorders = [OutputRecorder() for _ in range(3)]
    with anyio.fail_after(wait_s_max):
        async with anyio.create_task_group() as tasks:
            for number, one in enumerate(recorders):
                command = "sleep 361 & echo up; sleep 362"
                tasks.start_soon(run, processes, one, command, "/", 60.0, f"{number:032x}")
            for one in recorders:
                await one.has_output.wait()
            await processes.end_all()
            assert [len(one.ends) for one in recorders] == [1, 1, 1]
    for one in recorders:
        [finished] = one.ends
        assert (finished.signal, finished.group_empty) == (signal.SIGTERM, True)
        assert any("sleep 361" in one for one in finished.left)
    await processes.end_all()


@pytest.fixture
def marked_process() -> Iterator[subprocess.Popen[bytes]]:
    """A foreign process that carries the mark and is in no group of ours."""
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    child = subprocess.Popen(["sleep", "371"], env=environment, start_new_session=True)
    yield child
    child.kill()
    child.wait(wait_s_max)


async def test_survivors_lists_living_processes_with_the_mark(
    processes: SystemProcesses, marked_process: subprocess.Popen[bytes]
) -> None:
    """Row E5: A process with exactly this mark is listed with pid, start and command. A zombie is over."""
    found = processes.survivors(MARK)
    assert found is not None
    assert [(one.pid, one.command) for one in found] == [(marked_process.pid, "sleep 371")]
    assert processes.survivors(MARK[:-1]) == []
    assert processes.survivors("f" * 32) == []
    marked_process.kill()
    assert await processes.end(found[0])
    assert marked_process.returncode is None, "a zombie until its parent waits for it"
    assert processes.survivors(MARK) == []
    assert not processes.alive(marked_process.pid)


def test_mark_is_read_again_during_exec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row E5: During an exec the environment reads as empty. The adapter reads it again, for a bounded time."""
    folder = tmp_path / "123"
    folder.mkdir()
    (folder / "environ").write_bytes(b"")
    (folder / "statm").write_text("11 3 1 1 0 1 0\n")
    monkeypatch.setattr(process_table, "PROC", str(tmp_path))
    waits = [0, 0, 0]

    def wait(_: float) -> None:
        waits.pop()
        if not waits:
            (folder / "environ").write_bytes(f"A=b\0STEADYHAND_ATTEMPT_ID={MARK}\0".encode())

    monkeypatch.setattr(time, "sleep", wait)
    assert process_table.marked_processes([123], MARK)
    assert waits == []
    (folder / "environ").write_bytes(b"")
    (folder / "statm").write_text("0 0 0 0 0 0 0\n")
    assert not process_table.marked_processes([123], MARK), "a kernel thread is not read again"
    monkeypatch.undo()
    monkeypatch.setattr(process_table, "PROC", str(tmp_path))
    (folder / "statm").write_text("11 3 1 1 0 1 0\n")
    begun = time.monotonic()
    assert not process_table.marked_processes([123], MARK)
    assert process_table.EXEC_S_MAX <= time.monotonic() - begun < soon_s_max


def test_processes_with_an_empty_environment_are_waited_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row E5: many of them, as `env -i` leaves them, cost one wait and not one each."""
    pids = range(200, 300)
    for pid in pids:
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(b"")
        (tmp_path / str(pid) / "statm").write_text("11 3 1 1 0 1 0\n")
    (tmp_path / "250" / "environ").write_bytes(f"STEADYHAND_ATTEMPT_ID={MARK}\0".encode())
    monkeypatch.setattr(process_table, "PROC", str(tmp_path))
    now_s = [0.0]

    def wait(pause_s: float) -> None:
        now_s[0] += pause_s

    monkeypatch.setattr(time, "sleep", wait)
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    assert process_table.marked_processes(pids, MARK) == {250}
    assert now_s[0] <= process_table.EXEC_S_MAX + 2 * process_table.EXEC_PAUSE_S


async def test_end_spares_another_process_with_a_recycled_pid(
    processes: SystemProcesses, marked_process: subprocess.Popen[bytes]
) -> None:
    """Row E5: A process is ended only if its start is the observed one. Another process with the same pid keeps
    running."""
    found = processes.survivors(MARK)
    assert found is not None
    [one] = found
    earlier = OrphanProcess(one.pid, str(int(one.started) - 1), one.command)
    assert not process_table.signal_process(earlier.pid, earlier.started, signal.SIGKILL)
    assert await processes.end(earlier), "the intended process is gone"
    assert processes.survivors(MARK) == [one]
    assert marked_process.poll() is None
    assert await processes.end(one)
    assert marked_process.wait(wait_s_max) == -signal.SIGTERM


def start_detached(command: str, first_line: bytes) -> subprocess.Popen[bytes]:
    """Start a marked command in a session of its own, and wait for its first line."""
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    child = subprocess.Popen(
        ["/bin/sh", "-c", command], env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == first_line
    child.stdout.close()
    return child


async def test_end_kills_a_survivor_that_ignores_sigterm(
    processes: SystemProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row E5: A survivor is ended on request, in the end by SIGKILL."""
    monkeypatch.setattr(system, "END_GRACE_S", 0.3)
    child = start_detached("trap '' TERM; echo up; while :; do sleep 0.05; done", b"up\n")
    one = next(one for one in processes.survivors(MARK) or () if one.pid == child.pid)
    assert await processes.end(one)
    assert child.wait(wait_s_max) == -signal.SIGKILL
    assert await end_survivors(processes)


async def test_survivors_without_proc_and_psutil_is_none(
    processes: SystemProcesses, marked_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row E5: Without /proc psutil answers. Without both the answer is None, never an empty list."""
    monkeypatch.setattr(process_table, "has_proc", lambda: False)
    found = processes.survivors(MARK)
    assert found is not None
    [one] = found
    assert (one.pid, one.command) == (marked_process.pid, "sleep 371")
    assert not process_table.signal_process(one.pid, "1.0", signal.SIGKILL)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert processes.survivors(MARK) is None


RUNNER = """
import anyio, os, sys
from steadyhand.adapters.processes.system import SystemProcesses
environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": sys.argv[1]}
def output(piece):
    os.write(1, piece)
command = "sleep 382 & exec setsid -w sh -c 'echo up >&2; exec sleep 381'"
anyio.run(SystemProcesses().run, command, "/", environment, 60.0, output)
"""


def start_and_kill_runner() -> None:
    """Start a process that runs a command, and kill it as soon as the command has begun."""
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, MARK],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert runner.stdout is not None
    assert runner.stdout.readline() == b"up\n"
    runner.kill()
    runner.wait(wait_s_max)
    runner.stdout.close()


async def test_survivors_of_a_killed_runner_are_found_and_ended(processes: SystemProcesses) -> None:
    """Row E5, case 98: The process that runs a command is killed. The next one finds what it left by the mark, and
    ends it on request."""
    start_and_kill_runner()
    with anyio.fail_after(wait_s_max):  # it writes its line before its exec
        while (found := processes.survivors(MARK)) is None or "sleep 381" not in {one.command for one in found}:
            await anyio.lowlevel.checkpoint()
    assert len(found) >= 2
    with anyio.fail_after(wait_s_max):
        assert await end_survivors(processes)
    assert processes.survivors(MARK) == []


SIGCHLD_IGNORED = """
import anyio, os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from steadyhand.adapters.processes.system import SystemProcesses
print(anyio.run(SystemProcesses().run, "exit 3", "/", {}, 60.0, lambda piece: None).exit_code)
"""


async def test_exit_code_is_known_with_sigchld_ignored() -> None:
    """Row E5: Started with SIGCHLD ignored, the server must not take a failing command for a successful one."""
    shown = await anyio.run_process(
        [sys.executable, "-c", SIGCHLD_IGNORED], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert shown.stdout == b"3\n"


async def test_status_that_was_reaped_elsewhere_is_unknown(
    processes: SystemProcesses, recorder: OutputRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row E5: If other code reaped the shell, its end is unknown: neither an exit code nor a signal."""

    def raise_no_child(_pid: int, _options: int) -> tuple[int, int]:
        raise ChildProcessError

    real = os.waitpid
    monkeypatch.setattr("steadyhand.adapters.processes.child.os.waitpid", raise_no_child)
    finished = await run(processes, recorder, "echo $$; exit 3")
    monkeypatch.undo()
    real(int(recorder.text), 0)
    assert (finished.exit_code, finished.signal) == (None, None)


@pytest.mark.parametrize("missing", ["pidfd", "proc"])
async def test_run_without_pidfd_or_proc_ends_the_command(
    processes: SystemProcesses, recorder: OutputRecorder, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Row E5: Without pidfd a thread waits. Without /proc the adapter queries and ends the group as one."""
    monkeypatch.setattr(child_module, "_pidfd", lambda _pid: None)
    if missing == "proc":
        monkeypatch.setattr(child_module, "has_proc", lambda: False)
    finished = await run(processes, recorder, "sleep 391 & echo hi; exit 4")
    assert recorder.text == "hi\n"
    assert finished.exit_code == 4
    assert len(finished.left) == 1
    assert process_table.find_survivors(MARK) == []
    again = await run(processes, OutputRecorder(), "sleep 392", timeout_s=0.3)
    assert (again.signal, again.timed_out, again.group_empty) == (signal.SIGTERM, True, True)


async def test_adapter_reports_its_own_process_and_environment(
    processes: SystemProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows E1, J11: The adapter reports pid, host and boot of this process, which processes are alive, and the
    environment it was given."""
    pid, host, boot = processes.here()
    assert pid == os.getpid()
    assert host
    assert boot is not None
    assert len(boot) == len("00000000-0000-0000-0000-000000000000")
    assert processes.alive(pid)
    assert processes.alive(1)
    assert not processes.alive(0)
    assert not processes.alive(-1)
    assert not processes.alive(2**22 + 1)
    monkeypatch.setenv("LOUD", "yes")
    assert processes.environment()["LOUD"] == "yes"
    monkeypatch.setattr(system, "BOOT_ID_PATH", "/nothing-of-that-name")
    assert processes.here()[2] is None
