"""Fixtures of all tests.

Asynchronous tests are marked `@pytest.mark.anyio` and run on asyncio, the event loop of the server. The test run has a
home directory of its own: no test reads or writes the settings, state or git configuration of the user who runs it.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.tools import in_ci

# Properties are about values, not speed. CI tries the same examples each time, so that a failure means a change.
SLOW = [HealthCheck.too_slow]
settings.register_profile("here", deadline=None, suppress_health_check=SLOW)
settings.register_profile("ci", deadline=None, suppress_health_check=SLOW, derandomize=True)
settings.load_profile("ci" if in_ci() else "here")


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of tests marked `anyio`."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Point every directory that is found through the environment into an empty folder."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("STEADYHAND_SANDBOX", "off")  # a test that is about the sandbox says so
        for name in ("CONFIG", "STATE", "DATA", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
        yield
