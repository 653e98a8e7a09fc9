"""How a confined child is spawned, as values; and the order for its launcher.

The child's environment, folder and command go through a descriptor and reach only the launcher. bubblewrap and the
interpreter start in `/` with no variables but the mark: a variable such as LD_LIBRARY_PATH would make them load code
from the workspace before any limit holds.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
from collections.abc import Mapping, Sequence
from functools import cache

from steadyhand.adapters.sandbox.landlock import LandlockRules
from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME
from steadyhand_values import frozen

LAUNCHER_MODULE = "steadyhand.adapters.sandbox.launcher"
FAILURE_CHARS_MAX = 300
_TEXT = (
    "import marshal,sys;f=open(int(sys.argv[1]),'rb',closefd=False);f.seek(0);o=marshal.load(f);f.close();"
    "exec(marshal.loads(o['code']),{'__name__':'steadyhand_launcher','order':o})"
)


@frozen
class Command:
    """What is to run confined."""

    arguments: tuple[str, ...]  # the first one is an absolute path
    cwd: str
    environment: Mapping[str, str]


@frozen
class Channels:
    """Descriptors of the child; the launcher gives the command only the output."""

    output: int  # both outputs of the command
    report: int  # what the launcher and bubblewrap tell, a line each


@frozen
class Launch:
    """A child that can be spawned: in `/`, with no input, in a session of its own, with nothing else inherited."""

    arguments: tuple[str, ...]
    executable: str | None  # None: the first argument
    environment: Mapping[str, str]
    descriptors: tuple[int, ...]  # what it inherits besides the channels; to be closed after the spawn
    is_namespace: bool  # bubblewrap: its processes end with it, and the launcher stays beside the command

    def close(self) -> None:
        """Close the descriptors, once it is spawned or cannot be spawned."""
        for descriptor in self.descriptors:
            os.close(descriptor)


@frozen
class Restrictions:
    """What the launcher puts on itself."""

    landlock: LandlockRules | None
    system_calls: bytes | None  # the filter
    drops_capabilities: bool
    ends_with: int | None  # the pid of its parent, with which it ends; None: bubblewrap sees to that
    stays: bool  # as the first process of a namespace, beside the command


def launcher_arguments(
    command: Command, channels: Channels, restrictions: Restrictions, program: str
) -> tuple[tuple[str, ...], int]:
    """Return the arguments of the launcher, and the descriptor of its order, which it must inherit."""
    order = {
        "code": launcher_code(),
        "command": [os.fsencode(argument) for argument in command.arguments],
        "cwd": os.fsencode(command.cwd),
        "environment": {os.fsencode(name): os.fsencode(value) for name, value in command.environment.items()},
        "report": channels.report,
        "output": channels.output,
        "landlock": None if restrictions.landlock is None else restrictions.landlock.values,
        "filter": restrictions.system_calls,
        "drop": restrictions.drops_capabilities,
        "parent": restrictions.ends_with,
        "stay": restrictions.stays,
    }
    descriptor = memory_file(marshal.dumps(order))
    return (program, "-I", "-S", "-c", _TEXT, str(descriptor)), descriptor


@cache
def launcher_code() -> bytes:
    """Return the launcher's code as `marshal` writes it; it is not imported here."""
    found = importlib.util.find_spec(LAUNCHER_MODULE)
    loader = found.loader if found is not None else None
    code = loader.get_code(LAUNCHER_MODULE) if loader is not None and hasattr(loader, "get_code") else None
    assert code is not None, "the launcher is part of this package"
    return marshal.dumps(code)


def memory_file(content: bytes) -> int:
    """Return a descriptor of a file in memory with this content; it is read from its beginning."""
    descriptor = os.memfd_create("steadyhand", os.MFD_CLOEXEC)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def own_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that every process of the child carries: the mark, by which a later server finds it."""
    return {name: value for name, value in environment.items() if name == ATTEMPT_MARK_NAME}


def failure_text(lines: Sequence[str]) -> str:
    """Return why a sandbox could not be set up, from what bubblewrap and the launcher told: one line."""
    told = [line.strip() for line in lines if line.strip() and not line.startswith(("{", "ready", "exited"))]
    last = told[-1] if told else "it ended without a word"
    return last.removeprefix("failed ").strip("'\"")[:FAILURE_CHARS_MAX]
