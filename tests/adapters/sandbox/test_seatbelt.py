"""The profile for macOS, and its launch with a fake `sandbox-exec` (row O1). Nothing here runs on macOS."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import anyio
import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.sandbox import seatbelt
from steadyhand.adapters.sandbox.launch import Channels, Command, Launch
from steadyhand.adapters.sandbox.no_sandbox import NoSandbox
from steadyhand.adapters.sandbox.seatbelt import seatbelt_launch, seatbelt_profile
from steadyhand.ports.sandbox import Confinement, SandboxFailed
from tests.support.systems import posix_only

pytestmark = [pytest.mark.anyio, posix_only]


@pytest.fixture
def confinement(tmp_path: Path) -> Confinement:
    top = Path(os.path.realpath(tmp_path))
    for name in ("ws/.git/hooks", "own", "state", "home/.ssh"):
        (top / name).mkdir(parents=True)
    (top / "ws" / ".env").write_text("A=1\n")
    (top / 'ws/with"quote').write_text("")
    protected = tuple(str(top / "ws" / name) for name in (".git", ".env", 'with"quote'))
    return Confinement(
        "bubblewrap", (str(top / "ws"),), str(top / "own"), protected=protected, hidden=(str(top / "state"),)
    )


def rules_about(profile: str, path: str) -> Sequence[str]:
    return [line.split(" (")[0].lstrip("(") for line in profile.split("\n") if f'"{path}"' in line]


def test_profile_allows_the_roots_and_then_denies_protected_and_hidden_paths(confinement: Confinement) -> None:
    """O1, macOS: the last rule that fits decides, so the order is part of the promise."""
    top = os.path.dirname(confinement.folders[0])
    profile = seatbelt_profile(confinement, {"HOME": f"{top}/home"})
    assert profile.split("\n")[:3] == ["(version 1)", "(allow default)", "(deny file-write*)"]
    assert rules_about(profile, f"{top}/ws") == ["allow file-write*", "allow file-read*"]
    assert rules_about(profile, f"{top}/own") == ["allow file-write*"]
    for name in ("ws/.env", "ws/.git/hooks", 'ws/with\\"quote'):
        assert rules_about(profile, f"{top}/{name}") == ["deny file-write*"]
    assert rules_about(profile, f"{top}/ws/.git") == []
    for name in ("state", "home/.ssh"):
        assert rules_about(profile, f"{top}/{name}") == ["deny file-read* file-write*"]
    assert profile.index(f'"{top}/ws"') < profile.index(f'"{top}/ws/.env"')
    assert profile.endswith("(deny network*)")


def test_profile_of_a_reading_command_allows_no_write(confinement: Confinement) -> None:
    """O2, macOS: nothing but devices can be written."""
    profile = seatbelt_profile(attrs.evolve(confinement, is_reading=True, network="allow"), {})
    allowed = [line for line in profile.split("\n") if line.startswith("(allow file-write*")]
    assert allowed != []
    assert all('(literal "/dev/' in line for line in allowed)
    assert "(deny network*)" in profile
    assert "(deny network*)" not in seatbelt_profile(attrs.evolve(confinement, network="allow"), {})


class FakeMacSandbox(NoSandbox):
    """Launches by `seatbelt_launch`."""

    def launch(self, confinement: Confinement, command: Command, channels: Channels) -> Launch:
        return seatbelt_launch(confinement, dict, command, channels)


async def test_command_runs_once_the_profile_holds(
    confinement: Confinement, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O1, macOS: with a program that takes the arguments of `sandbox-exec`, the command runs; if it fails, nothing
    does."""
    fake = tmp_path / "sandbox-exec"
    fake.write_text('#!/bin/sh\n[ "$1" = -p ] || exit 9\nshift 2\nexec "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(seatbelt, "PROGRAM", str(fake))
    processes = SystemProcesses(FakeMacSandbox())
    pieces: list[bytes] = []

    async def run(text: str) -> int | None:
        with anyio.fail_after(60):
            finished = await processes.run(
                text, confinement.folders[0], {"PATH": os.environ["PATH"]}, 60.0, pieces.append, confinement=confinement
            )
        return finished.exit_code

    assert await run("pwd; echo $TMPDIR; exit 3") == 3
    assert b"".join(pieces).decode().split() == [confinement.folders[0], confinement.temporary]
    fake.write_text("#!/bin/sh\necho 'sandbox-exec: invalid profile' >&2\nexit 65\n")
    with pytest.raises(SandboxFailed, match="invalid profile"):
        await run("touch ran")
    assert "ran" not in os.listdir(confinement.folders[0])
