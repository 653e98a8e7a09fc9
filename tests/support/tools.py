"""Programs that a test needs and a machine may lack.

In CI a missing program is a failure: the build installs it, and a skip would hide that a part is never tested. On other
machines the test is skipped with the name of the program.
"""

import os
import shutil

import pytest


def in_ci() -> bool:
    """Whether this is a build machine (`CI` is set and is neither empty, `0` nor `false`)."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def require_tool(name: str) -> str:
    """The absolute path of program `name`; without it the test fails in CI and is skipped elsewhere."""
    found = shutil.which(name)
    if found is not None:
        return found
    if in_ci():
        pytest.fail(f"{name} is missing; CI must have it")
    pytest.skip(f"{name} is not installed")
