"""What every test shares.

Asynchronous tests are marked `@pytest.mark.anyio` and run on asyncio, the loop the server runs on. The run
gets a home of its own: no test reads or writes the settings, state or git configuration of whoever runs it.
"""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.tools import in_ci

# Laws are about values, not speed. CI tries the same examples each time, so that red means a change.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if in_ci() else "here")


@pytest.fixture
def anyio_backend() -> str:
    """The loop of tests marked `anyio`."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Point everything that is found through the environment into an empty folder."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        for name in ("CONFIG", "STATE", "DATA", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
        yield
