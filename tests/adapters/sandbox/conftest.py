"""A folder outside the places that a sandbox replaces, and a sandbox whose probe has succeeded."""

import os
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from steadyhand.adapters.processes.system import SystemProcesses
from steadyhand.adapters.sandbox.linux import LinuxSandbox
from steadyhand.ports.sandbox import Confinement
from tests.adapters.sandbox.boxes import folder_of, give_up, require_bubblewrap, require_landlock


@attrs.frozen
class Box:
    """A workspace with an own folder for temporary files, and the processes that confine commands to it."""

    folder: Path
    sandbox: LinuxSandbox
    processes: SystemProcesses

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def own(self) -> Path:
        """The command's folder for temporary files: in the state directory, which is hidden."""
        return self.folder / "state" / "own"

    def confinement(self, kind: str = "bubblewrap") -> Confinement:
        assert kind in ("bubblewrap", "landlock")
        git = self.workspace / ".git"
        return Confinement(
            kind,  # type: ignore[arg-type]  # mypy does not narrow by `in`
            (str(self.workspace),),
            str(self.own),
            protected=(str(git),) if git.is_dir() else (),
            hidden=(str(self.folder / "state"),),
        )


@pytest.fixture
def outside() -> Iterator[Path]:
    """An empty folder that no sandbox replaces."""
    with folder_of(os.geteuid()) as folder:
        yield folder


@pytest.fixture
def server_environment(outside: Path) -> dict[str, str]:
    """The environment that the sandbox takes for the server's; a test may change it."""
    return {"PATH": os.environ["PATH"], "HOME": str(outside / "home")}


@pytest.fixture
def box(outside: Path, server_environment: dict[str, str]) -> Box:
    """Skips, or fails in CI, where bubblewrap or Landlock is missing."""
    require_bubblewrap()
    require_landlock()
    for name in ("workspace", "state/own", "home"):
        (outside / name).mkdir(parents=True)
    sandbox = LinuxSandbox(lambda: server_environment)
    status = sandbox.probe()
    if status.kind != "bubblewrap":
        give_up(str(status.why))
    assert (status.reading, status.is_sealable, status.why) == ("landlock", True, None)
    return Box(outside, sandbox, SystemProcesses(sandbox))
