"""Commands are run to their end, ended whole, and told of honestly (rows E4, E5).

Commands of these tests sleep far longer than a test may take: what is not ended is found by its absence,
never by waiting for it. Times are measured only against bounds many times larger.
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

from steadyhand.adapters import child as child_module
from steadyhand.adapters import children, process_list
from steadyhand.adapters.child import piece_bytes_max
from steadyhand.adapters.children import SystemProcesses
from steadyhand.ports import Finished, Processes, Survivor
from tests.support.fakes import FakeProcesses, run_mark
from tests.support.systems import linux_only, wait_s_max

pytestmark = [pytest.mark.anyio, linux_only]

MARK = run_mark + "0123456789abcdef01234567"
soon_s_max = 15.0  # what takes well under a second on a machine with nothing else to do


class Heard:
    """What a command said and how its end was told."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.ends: list[Finished] = []
        self.spoke = anyio.Event()

    def output(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.spoke.set()

    @property
    def text(self) -> str:
        return b"".join(self.pieces).decode()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def processes() -> SystemProcesses:
    return SystemProcesses()


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Whatever a test left running is ended, and is a failure."""
    yield
    left = process_list.survivors(MARK) or []
    for one in left:
        process_list.signal_exactly(one.pid, one.started, signal.SIGKILL)
    assert left == []


async def run(
    processes: SystemProcesses,
    heard: Heard,
    command: str,
    cwd: Path | str = "/",
    timeout_s: float = 60.0,
    mark: str = MARK,
) -> Finished:
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": mark}
    with anyio.fail_after(wait_s_max):
        return await processes.run(command, str(cwd), environment, timeout_s, heard.output, ended=heard.ends.append)


async def gone(processes: SystemProcesses) -> bool:
    """Wait for the end of what was killed a moment ago."""
    return all([await processes.end(one) for one in processes.survivors(MARK) or ()])


def named(finished: Finished, *wanted: str) -> bool:
    """Whether just these were left; one not yet on its way still bears the command line of its shell."""
    found = [one.split(" ", 1)[1] for one in finished.left]
    return len(found) == len(wanted) and all(any(want in one for one in found) for want in wanted)


async def test_a_command_ends_as_it_ended(processes: SystemProcesses, heard: Heard, tmp_path: Path) -> None:
    """Both outputs come in order, with its code; it ran where and with what it was told, and nothing else
    (E1).
    """
    port: Processes = processes
    fake: Processes = FakeProcesses()
    assert port is not fake
    finished = await run(processes, heard, "echo one; echo two >&2; pwd; env | sort; exit 7", tmp_path)
    lines = heard.text.splitlines()
    assert lines[:3] == ["one", "two", str(tmp_path)]
    assert [line.split("=")[0] for line in lines[3:] if not line.startswith(("_=", "SHLVL="))] == [
        "PATH",
        "PWD",
        "STEADYHAND_ATTEMPT_ID",
    ]
    assert finished == Finished(exit_code=7, signal=None, timed_out=False, left=(), group_empty=True)
    assert heard.ends == [finished]


async def test_an_end_by_signal_is_told(processes: SystemProcesses, heard: Heard) -> None:
    """A command that was killed has a signal and no exit code (row E5)."""
    finished = await run(processes, heard, "kill -9 $$")
    assert (finished.exit_code, finished.signal) == (None, signal.SIGKILL)


async def test_a_command_has_no_input_and_not_our_output(
    processes: SystemProcesses, heard: Heard, capfd: pytest.CaptureFixture[str]
) -> None:
    """Reading ends at once, and what it prints never reaches our stdout or stderr (row E4, case 100)."""
    finished = await run(processes, heard, "cat; read line; echo loud; echo louder >&2; ls -l /proc/$$/fd")
    assert finished.exit_code == 0
    assert heard.text.startswith("loud\nlouder\n")
    assert "0 -> /dev/null" in heard.text
    assert capfd.readouterr() == ("", "")


async def test_a_command_has_a_session_and_group_of_its_own(processes: SystemProcesses, heard: Heard) -> None:
    """Its pid, group and session are one number, and not ours (row E5)."""
    await run(processes, heard, "echo $$ $(cut -d' ' -f5,6 /proc/$$/stat)")
    pid, group, session = heard.text.split()
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
async def test_what_outlives_its_shell_is_ended_and_named(
    processes: SystemProcesses, heard: Heard, command: str, left: list[str]
) -> None:
    """A background child, holding the pipe or not, in the group or out of it by setsid: the command is over
    when its shell is, and the child is ended and named (row E5, case 97).
    """
    before_s = time.monotonic()
    finished = await run(processes, heard, command)
    assert time.monotonic() - before_s < soon_s_max
    assert heard.text == "hi\n"
    assert (finished.exit_code, finished.timed_out, finished.group_empty) == (0, False, True)
    assert named(finished, *left), finished.left
    assert not any(processes.alive(int(one.split()[0])) for one in finished.left)


async def test_a_timeout_ends_the_whole_command(processes: SystemProcesses, heard: Heard) -> None:
    """Shell, children, and those that left session and environment but still have their parent (row E5)."""
    finished = await run(
        processes, heard, "env -i setsid sleep 311 & sleep 312 & echo up; sleep 313; echo never", timeout_s=2.0
    )
    assert heard.text == "up\n"
    assert (finished.exit_code, finished.signal) == (None, signal.SIGTERM)
    assert (finished.timed_out, finished.group_empty) == (True, True)
    assert named(finished, "sleep 311", "sleep 312", "sleep 313"), finished.left
    assert not any(processes.alive(int(one.split()[0])) for one in finished.left)


async def test_a_command_deaf_to_term_is_killed(
    processes: SystemProcesses, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM once, SIGKILL when its grace is over; what is said meanwhile is still heard (row E5)."""
    monkeypatch.setattr(children, "end_grace_s", 0.5)
    command = "trap 'echo no' TERM; echo up; while :; do sleep 0.05; done"
    finished = await run(processes, heard, command, timeout_s=1.0)
    assert [line for line in heard.text.splitlines() if line != "Terminated"] == ["up", "no"]
    assert (finished.signal, finished.timed_out, finished.group_empty) == (signal.SIGKILL, True, True)


async def test_a_cancel_ends_the_command_and_goes_on(processes: SystemProcesses, heard: Heard) -> None:
    """A cancel is raised on only after the whole group is gone, and how it ended is told once [I2] (row E5)."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, processes, heard, "sleep 321 & echo up; sleep 322; echo never")
        with anyio.fail_after(wait_s_max):
            await heard.spoke.wait()
        tasks.cancel_scope.cancel()
    assert heard.text == "up\n"
    [finished] = heard.ends
    assert (finished.signal, finished.timed_out, finished.group_empty) == (signal.SIGTERM, False, True)
    assert any("sleep 321" in one for one in finished.left)


async def test_a_cancel_that_knows_no_shield_still_ends_the_command(processes: SystemProcesses, heard: Heard) -> None:
    """asyncio's own cancel goes through a shield: then the group is killed at once, and told of once [I2]."""
    task = asyncio.create_task(run(processes, heard, "trap '' TERM; echo up; sleep 331; sleep 332"))
    with anyio.fail_after(wait_s_max):
        await heard.spoke.wait()
        task.cancel()
        await asyncio.wait([task], timeout=0.3)
        assert not task.done(), "the first cancel is given its grace"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(heard.ends) == 1
    assert heard.ends[0].signal == signal.SIGKILL
    assert not heard.ends[0].timed_out
    assert await gone(processes)


async def test_a_command_may_say_much(processes: SystemProcesses) -> None:
    """Every byte of a long output comes, in bounded pieces, and none of it is kept [I13] (row E5)."""
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
    assert longest <= piece_bytes_max
    assert peak < size // 4


async def test_an_endless_output_does_not_hold_a_timeout_up(processes: SystemProcesses, heard: Heard) -> None:
    """A command that never stops talking is timed out all the same [I13] (row E5)."""
    finished = await run(processes, heard, "yes", timeout_s=0.3)
    assert finished.timed_out
    assert finished.group_empty


async def test_a_receiver_that_raises_ends_the_command(processes: SystemProcesses, heard: Heard) -> None:
    """What the receiver of the output raised is raised on, as it is, after the command was ended (row E5)."""

    def output(piece: bytes) -> None:
        raise LookupError(piece.decode())

    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    with anyio.fail_after(wait_s_max), pytest.raises(LookupError, match="up"):
        await processes.run("echo up; sleep 341", "/", environment, 60.0, output, ended=heard.ends.append)
    assert [one.group_empty for one in heard.ends] == [True]
    assert not heard.ends[0].timed_out


@pytest.mark.parametrize(
    ("command", "cwd", "number"),
    [("true", "/nothing-of-that-name", errno.ENOENT), ("true\0", "/", errno.EINVAL)],
)
async def test_what_cannot_start_is_an_error(
    processes: SystemProcesses, heard: Heard, command: str, cwd: str, number: int
) -> None:
    """A command that could not be spawned is an OSError, has no end, and leaves no descriptor open (row E5)."""
    before = sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError, match=r".") as caught:
        await run(processes, heard, command, cwd)
    assert caught.value.errno == number
    assert heard.ends == []
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_descriptors_are_given_back(processes: SystemProcesses, heard: Heard) -> None:
    """A command costs no descriptor after its end [I13]."""
    await run(processes, heard, "true")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        await run(processes, heard, "sleep 351 & echo hi")
    assert len(os.listdir("/proc/self/fd")) == before


async def test_all_children_are_ended_at_the_end(processes: SystemProcesses) -> None:
    """`end_all` ends what runs, and each run returns with its true end (row E5, case 98)."""
    everyone = [Heard() for _ in range(3)]
    with anyio.fail_after(wait_s_max):
        async with anyio.create_task_group() as tasks:
            for number, one in enumerate(everyone):
                command = "sleep 361 & echo up; sleep 362"
                tasks.start_soon(run, processes, one, command, "/", 60.0, f"{number:032x}")
            for one in everyone:
                await one.spoke.wait()
            await processes.end_all()
            assert [len(one.ends) for one in everyone] == [1, 1, 1]
    for one in everyone:
        [finished] = one.ends
        assert (finished.signal, finished.group_empty) == (signal.SIGTERM, True)
        assert any("sleep 361" in one for one in finished.left)
    await processes.end_all()


@pytest.fixture
def marked() -> Iterator[subprocess.Popen[bytes]]:
    """A stranger's process that carries the mark and is in no group of ours."""
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    child = subprocess.Popen(["sleep", "371"], env=environment, start_new_session=True)
    yield child
    child.kill()
    child.wait(wait_s_max)


async def test_survivors_are_found_by_their_mark(processes: SystemProcesses, marked: subprocess.Popen[bytes]) -> None:
    """Who carries this very mark is listed with pid, start and command; a zombie is over (row E5)."""
    found = processes.survivors(MARK)
    assert found is not None
    assert [(one.pid, one.command) for one in found] == [(marked.pid, "sleep 371")]
    assert processes.survivors(MARK[:-1]) == []
    assert processes.survivors("f" * 32) == []
    marked.kill()
    assert await processes.end(found[0])
    assert marked.returncode is None, "a zombie until its parent asks"
    assert processes.survivors(MARK) == []
    assert not processes.alive(marked.pid)


def test_a_process_that_becomes_another_program_keeps_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5: while it is replaced its environment reads as empty; it is read again, and for a bounded time."""
    folder = tmp_path / "123"
    folder.mkdir()
    (folder / "environ").write_bytes(b"")
    (folder / "statm").write_text("11 3 1 1 0 1 0\n")
    monkeypatch.setattr(process_list, "proc", str(tmp_path))
    waits = [0, 0, 0]

    def wait(_: float) -> None:
        waits.pop()
        if not waits:
            (folder / "environ").write_bytes(f"A=b\0STEADYHAND_ATTEMPT_ID={MARK}\0".encode())

    monkeypatch.setattr(process_list.time, "sleep", wait)
    assert process_list.carries(123, MARK)
    assert waits == []
    (folder / "environ").write_bytes(b"")
    (folder / "statm").write_text("0 0 0 0 0 0 0\n")
    assert not process_list.carries(123, MARK), "a thread of the kernel is not waited for"
    monkeypatch.undo()
    monkeypatch.setattr(process_list, "proc", str(tmp_path))
    (folder / "statm").write_text("11 3 1 1 0 1 0\n")
    begun = time.monotonic()
    assert not process_list.carries(123, MARK)
    assert process_list.exec_s_max <= time.monotonic() - begun < soon_s_max


async def test_a_recycled_pid_is_nobodys_death(processes: SystemProcesses, marked: subprocess.Popen[bytes]) -> None:
    """A process is ended only if its start is the one that was seen; another with its pid is let be (row E5)."""
    found = processes.survivors(MARK)
    assert found is not None
    [one] = found
    gone = Survivor(one.pid, str(int(one.started) - 1), one.command)
    assert not process_list.signal_exactly(gone.pid, gone.started, signal.SIGKILL)
    assert await processes.end(gone), "the one that was meant is gone"
    assert processes.survivors(MARK) == [one]
    assert marked.poll() is None
    assert await processes.end(one)
    assert marked.wait(wait_s_max) == -signal.SIGTERM


def detached(command: str, first_line: bytes) -> subprocess.Popen[bytes]:
    """A marked command in a session of its own that has said its first line."""
    environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": MARK}
    child = subprocess.Popen(
        ["/bin/sh", "-c", command], env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == first_line
    child.stdout.close()
    return child


async def test_a_survivor_deaf_to_term_is_killed(processes: SystemProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """A survivor is ended on request, at last by SIGKILL (row E5)."""
    monkeypatch.setattr(children, "end_grace_s", 0.3)
    deaf = detached("trap '' TERM; echo up; while :; do sleep 0.05; done", b"up\n")
    one = next(one for one in processes.survivors(MARK) or () if one.pid == deaf.pid)
    assert await processes.end(one)
    assert deaf.wait(wait_s_max) == -signal.SIGKILL
    assert await gone(processes)


async def test_where_it_cannot_be_told_none_is_not_claimed(
    processes: SystemProcesses, marked: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without /proc psutil tells; without both the answer is None, never an empty list (row E5)."""
    monkeypatch.setattr(process_list, "proc_is_here", lambda: False)
    found = processes.survivors(MARK)
    assert found is not None
    [one] = found
    assert (one.pid, one.command) == (marked.pid, "sleep 371")
    assert not process_list.signal_exactly(one.pid, "1.0", signal.SIGKILL)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert processes.survivors(MARK) is None


OWNER = """
import anyio, os, sys
from steadyhand.adapters.children import SystemProcesses
environment = {"PATH": os.environ["PATH"], "STEADYHAND_ATTEMPT_ID": sys.argv[1]}
def output(piece):
    os.write(1, piece)
command = "sleep 382 & exec setsid -w sh -c 'echo up >&2; exec sleep 381'"
anyio.run(SystemProcesses().run, command, "/", environment, 60.0, output)
"""


def crashed_owner() -> None:
    """A process that runs a command, and is killed as soon as that has begun."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, MARK],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    owner.kill()
    owner.wait(wait_s_max)
    owner.stdout.close()


async def test_after_a_crash_the_survivors_are_found(processes: SystemProcesses) -> None:
    """The owner is killed; the next one finds what it left by the mark, and ends it on request (E5, case 98)."""
    crashed_owner()
    with anyio.fail_after(wait_s_max):  # it says that it is up before it becomes what it will be
        while (found := processes.survivors(MARK)) is None or "sleep 381" not in {one.command for one in found}:
            await anyio.lowlevel.checkpoint()
    assert len(found) >= 2
    with anyio.fail_after(wait_s_max):
        assert await gone(processes)
    assert processes.survivors(MARK) == []


IGNORING = """
import anyio, os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from steadyhand.adapters.children import SystemProcesses
print(anyio.run(SystemProcesses().run, "exit 3", "/", {}, 60.0, lambda piece: None).exit_code)
"""


async def test_an_exit_code_is_known_though_our_parent_ignored_its_children() -> None:
    """Started with SIGCHLD ignored, a failing command must not look like a good one (row E5)."""
    shown = await anyio.run_process(
        [sys.executable, "-c", IGNORING], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    assert shown.stdout == b"3\n"


async def test_a_status_somebody_else_took_is_not_success(
    processes: SystemProcesses, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the shell was reaped elsewhere its end is not known: neither a code nor a signal (row E5)."""

    def nobody(_pid: int, _options: int) -> tuple[int, int]:
        raise ChildProcessError

    real = os.waitpid
    monkeypatch.setattr("steadyhand.adapters.child.os.waitpid", nobody)
    finished = await run(processes, heard, "echo $$; exit 3")
    monkeypatch.undo()
    real(int(heard.text), 0)
    assert (finished.exit_code, finished.signal) == (None, None)


@pytest.mark.parametrize("missing", ["pidfd", "proc"])
async def test_older_systems_end_a_command_as_well(
    processes: SystemProcesses, heard: Heard, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """Without pidfd a thread waits; without /proc the group is asked and ended as one (row E5)."""
    monkeypatch.setattr(child_module, "_pidfd", lambda _pid: None)
    if missing == "proc":
        monkeypatch.setattr(child_module, "proc_is_here", lambda: False)
    finished = await run(processes, heard, "sleep 391 & echo hi; exit 4")
    assert heard.text == "hi\n"
    assert finished.exit_code == 4
    assert len(finished.left) == 1
    assert process_list.survivors(MARK) == []
    again = await run(processes, Heard(), "sleep 392", timeout_s=0.3)
    assert (again.signal, again.timed_out, again.group_empty) == (signal.SIGTERM, True, True)


async def test_this_process_knows_itself(processes: SystemProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pid, host and boot of this process, who is alive, and the environment it was given (rows E1, J11)."""
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
    monkeypatch.setattr(children, "boot_id_path", "/nothing-of-that-name")
    assert processes.here()[2] is None
