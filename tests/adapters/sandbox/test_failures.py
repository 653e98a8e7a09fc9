"""A sandbox that cannot be set up runs nothing and says why; the probe finds what works (rows O1, O4)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.sandbox import bubblewrap, launch, linux
from steadyhand.adapters.sandbox.bubblewrap import Bubblewrap, find_bubblewrap, open_exactly
from steadyhand.adapters.sandbox.linux import LinuxSandbox
from steadyhand.adapters.sandbox.no_sandbox import NoSandbox
from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement, SandboxFailed
from tests.adapters.sandbox.conftest import Box
from tests.support.systems import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

limit_s = 60.0
environment = {"PATH": os.environ["PATH"]}


async def failure_of(box: Box, confinement: Confinement, text: str = "touch ran") -> str:
    """Why the sandbox of a command could not be set up; nothing of it may have run, and no end is reported."""
    pieces: list[bytes] = []
    ends: list[Finished] = []
    with anyio.fail_after(limit_s), pytest.raises(SandboxFailed) as caught:
        await box.processes.run(
            text, str(box.workspace), environment, limit_s, pieces.append, ended=ends.append, confinement=confinement
        )
    assert (pieces, ends) == ([], [])
    assert not list(box.folder.rglob("ran"))
    return str(caught.value)


async def runs(box: Box) -> bool:
    finished = await box.processes.run(
        ":", str(box.workspace), environment, limit_s, lambda piece: None, confinement=box.confinement()
    )
    return finished.exit_code == 0


def replaced(monkeypatch: pytest.MonkeyPatch, box: Box, program: Path, text: str) -> None:
    """Put a script in the place of the bubblewrap that the probe found."""
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    means = attrs.evolve(box.sandbox._means, bubblewrap=Bubblewrap(str(program), True, True))
    monkeypatch.setattr(box.sandbox, "_means", means)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "bwrap: No permissions to create"),
        ("exit 0", "it ended without a word"),
        ("kill -KILL $$", "it ended without a word"),
        ("""echo '{"child-pid": 1}'; echo '{"exit-code": 0}'""", "it ended without a word"),
    ],
)
async def test_command_never_runs_if_bubblewrap_fails(
    text: str, why: str, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1: whatever bubblewrap answers, nothing ran unless the launcher said that it was ready. The next probe looks
    again, and finds the real program."""
    replaced(monkeypatch, box, box.own / "bwrap", text)
    assert why in await failure_of(box, box.confinement())
    status = await anyio.to_thread.run_sync(box.sandbox.probe)
    assert status.kind == "bubblewrap"
    assert await runs(box)


async def test_command_never_runs_if_a_restriction_cannot_be_made(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: a filter that the kernel refuses fails the command; the launcher does not go on without it."""
    monkeypatch.setattr(linux, "system_call_filter", lambda machine, purpose: b"\xff" * 16)
    assert "PR_SET_SECCOMP" in await failure_of(box, box.confinement())
    assert "PR_SET_SECCOMP" in await failure_of(box, box.confinement("landlock"))


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_command_never_runs_if_the_set_up_takes_too_long(
    kind: str, box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1: the set-up has a limit, and what hangs in it is ended."""
    from steadyhand.adapters.processes import system

    monkeypatch.setattr(system, "SETUP_S_MAX", 0.5)
    monkeypatch.setattr(launch, "_TEXT", "import time; time.sleep(600)")
    assert "not ready" in await failure_of(box, box.confinement(kind))


@pytest.mark.parametrize("missing", ["folders", "temporary"])
async def test_command_never_runs_without_a_folder(missing: str, box: Box) -> None:
    """O1: a session's folder, or the command's own, that does not exist: no sandbox."""
    gone = str(box.folder / "gone")
    changes = {"folders": (str(box.workspace), gone)} if missing == "folders" else {"temporary": gone}
    assert f"{gone} is missing" in await failure_of(box, attrs.evolve(box.confinement(), **changes))


async def test_missing_working_folder_is_an_ordinary_error(box: Box) -> None:
    """E4: as without a sandbox, and the sandbox is not to blame."""
    with pytest.raises(FileNotFoundError):
        await box.processes.run(
            ":", str(box.folder / "gone"), environment, limit_s, lambda piece: None, confinement=box.confinement()
        )
    assert box.sandbox.status() is not None


async def test_background_command_fails_before_it_is_followed(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: `ready` raises, nothing ran, and nothing is left to end."""
    replaced(monkeypatch, box, box.own / "bwrap", "exit 1")
    job = box.processes.start(
        "touch ran", str(box.workspace), environment, None, lambda piece: None, confinement=box.confinement()
    )
    with anyio.fail_after(limit_s):
        with pytest.raises(SandboxFailed):
            await job.ready()
        await box.processes.end_all()
    assert not list(box.folder.rglob("ran"))


async def test_bubblewrap_in_a_workspace_is_not_used(
    box: Box, server_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """O4: neither by the probe nor, if it was found outside another session's folders, for this one."""
    program = box.workspace / "bin" / "bwrap"
    program.parent.mkdir()
    shutil.copy(shutil.which("bwrap") or "", program)
    server_environment["PATH"] = str(program.parent)
    monkeypatch.setattr(bubblewrap, "USUAL_FOLDERS", ())
    elsewhere, here = LinuxSandbox(lambda: server_environment), LinuxSandbox(lambda: server_environment)
    found = await anyio.to_thread.run_sync(here.probe, [str(box.workspace)])
    assert (found.kind, found.why) == ("landlock", "bubblewrap (bwrap) is not installed outside the workspace.")
    assert (await anyio.to_thread.run_sync(elsewhere.probe)).kind == "bubblewrap"
    used = attrs.evolve(box, sandbox=elsewhere, processes=SystemProcesses(elsewhere))
    assert "is inside the workspace" in await failure_of(used, box.confinement())


async def test_setuid_bubblewrap_is_not_used(outside: Path) -> None:
    """O1: with privileges of its own it takes options otherwise, and an error in it is an error of root."""
    program = outside / "bwrap"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o4755)
    assert "setuid" in str(find_bubblewrap(str(outside), []))


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_nothing_falls_back_to_another_kind(
    kind: str, outside: Path, server_environment: dict[str, str], box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1: a confinement of a kind that does not work is refused; it does not run by another kind, or by none."""
    monkeypatch.setattr(bubblewrap, "USUAL_FOLDERS", ())
    monkeypatch.setattr(linux, "landlock_abi", lambda: 0)
    server_environment["PATH"] = "/nonexistent"
    sandbox = LinuxSandbox(lambda: server_environment)
    status = await anyio.to_thread.run_sync(sandbox.probe)
    assert (status.kind, status.reading, status.is_sealable) == ("none", "none", False)
    assert status.why == "bubblewrap (bwrap) is not installed outside the workspace."
    used = attrs.evolve(box, sandbox=sandbox, processes=SystemProcesses(sandbox))
    assert "did not work" in await failure_of(used, box.confinement(kind))


async def test_probe_says_what_is_missing_for_the_seal(
    server_environment: dict[str, str], box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1: without Landlock, or without a filter for the machine, a command is confined and not sealed."""
    monkeypatch.setattr(linux, "landlock_abi", lambda: 1)
    status = await anyio.to_thread.run_sync(LinuxSandbox(lambda: server_environment).probe)
    assert (status.kind, status.reading, status.is_sealable) == ("bubblewrap", "bubblewrap", False)
    assert status.why == "This kernel has Landlock ABI 1; 2 is needed."
    monkeypatch.undo()
    monkeypatch.setattr(linux, "system_call_filter", lambda machine, purpose: None)
    status = await anyio.to_thread.run_sync(LinuxSandbox(lambda: server_environment).probe)
    assert (status.kind, status.reading, status.is_sealable) == ("bubblewrap", "bubblewrap", False)
    assert "filter" in str(status.why)


async def test_probe_is_made_once(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: before the first command and after a failure, not before each command."""
    found = box.sandbox.status()
    monkeypatch.setattr(box.sandbox, "_probe", lambda folders: pytest.fail("it was probed again"))
    assert await anyio.to_thread.run_sync(box.sandbox.probe) is found
    box.sandbox.note_failure()
    with pytest.raises(pytest.fail.Exception):
        await anyio.to_thread.run_sync(box.sandbox.probe)


async def test_commands_run_while_the_probe_looks_again(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: a failure of one command does not take the sandbox away from the others."""
    found: list[Bubblewrap | None] = []

    def look(kind: str, means: object) -> None:
        found.append(box.sandbox._means.bubblewrap)

    monkeypatch.setattr(box.sandbox, "_try", look)
    box.sandbox.note_failure()
    assert (await anyio.to_thread.run_sync(box.sandbox.probe)).kind == "bubblewrap"
    assert len(found) == 2
    assert None not in found
    assert await runs(box)


async def test_passing_failure_does_not_weaken_later_commands(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: where bubblewrap is gone for a moment, a command fails, and the next one has it again; none runs weaker."""
    monkeypatch.setattr(box.sandbox, "_find_bubblewrap", lambda folders, means: "bubblewrap is not there.")
    box.sandbox.note_failure()
    assert (await anyio.to_thread.run_sync(box.sandbox.probe)).kind == "bubblewrap"
    assert "did not work when it was tried" in await failure_of(box, box.confinement())
    monkeypatch.undo()
    assert (await anyio.to_thread.run_sync(box.sandbox.probe)).kind == "bubblewrap"
    assert await runs(box)


async def test_system_without_a_sandbox_says_so(box: Box) -> None:
    """O1: on another system nothing is confined, and a confinement is refused."""
    sandbox = NoSandbox()
    assert (sandbox.probe().kind, sandbox.status()) == ("none", sandbox.probe())
    used = attrs.evolve(box, processes=SystemProcesses(sandbox))
    assert "has no sandbox for this system" in await failure_of(used, box.confinement())


def test_open_exactly_follows_no_link(outside: Path) -> None:
    """O1: a folder that is replaced by a link between the look and the mount is not mounted."""
    (outside / "a" / "b").mkdir(parents=True)
    (outside / "link").symlink_to("a")
    descriptor = open_exactly(str(outside / "a" / "b"))
    assert os.path.samestat(os.fstat(descriptor), os.stat(outside / "a" / "b"))
    os.close(descriptor)
    for path in ("link", "link/b", "a/missing"):
        with pytest.raises(SandboxFailed):
            open_exactly(str(outside / path))


@pytest.mark.parametrize("moment", ["plan_mounts", "bubblewrap_launch"])
async def test_root_that_becomes_a_link_is_not_followed(moment: str, box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    """O1: another program exchanges the root, after the paths were resolved or after the folders were opened."""
    real = getattr(linux, moment)

    def exchange_after(*arguments: object) -> object:
        made = real(*arguments)
        box.workspace.rename(box.folder / "moved")
        box.workspace.symlink_to(box.folder / "state")
        return made

    monkeypatch.setattr(linux, moment, exchange_after)
    told = await failure_of(box, box.confinement())
    assert "while the sandbox was set up" in told or told.startswith("bwrap: ")
