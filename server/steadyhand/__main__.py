"""The composition root: the one place that names adapters. Without arguments it serves LSP over stdio; with a verb
first it is the command line of `cli`.

`run` takes the ports, so that tests, the demo and the harness hand in others; nothing here knows of faults. The
descriptors of the protocol are claimed before anything else that matters is imported (row E4), which is why the
imports stand inside the functions.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steadyhand.core.settings import Settings
    from steadyhand.edge.stdio import Stdio
    from steadyhand.ports import Clock, Disk, Ids, Models, Processes, TextFilter

VERBS = ("sessions", "show", "export", "recovery", "jobs", "permissions", "ask", "doctor")
USAGE = (
    "usage: steadyhand [--stdio] [--clientProcessId=N] [--state-dir DIR] [--version]   serve an editor\n"
    f"       steadyhand {{{','.join(VERBS)}}} [--help]   without one"
)


class Flags(NamedTuple):
    """What the command line says; None: nothing."""

    client_process_id: int | None = None
    state_directory: str | None = None


class Ports(NamedTuple):
    """What the house stands on; the editor comes with the connection."""

    disk: Disk
    processes: Processes
    clock: Clock
    ids: Ids
    models: Models
    text_filter: TextFilter | None = None


def main() -> int:
    """The installed program. Exit 2 for bad flags."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from steadyhand import __version__

        sys.stdout.write(f"steadyhand {__version__}\n")
        return 0
    if arguments[:1] in (["--help"], ["-h"]):
        sys.stdout.write(f"{USAGE}\n")
        return 0
    if arguments and arguments[0] in VERBS:
        return command_line(arguments, system_ports())
    flags = read_flags(arguments)
    if flags is None:
        sys.stderr.write(f"steadyhand: cannot read the flags {' '.join(arguments)}\n{USAGE}\n")
        return 2
    try:
        from steadyhand.edge.stdio import claim_stdio
    except ImportError as missing:
        sys.stderr.write(f"steadyhand: this system cannot serve over stdio ({missing}); use Linux or macOS.\n")
        return 1
    stdio = claim_stdio()
    return run(stdio, system_ports(), flags)


def run(stdio: Stdio, ports: Ports, flags: Flags) -> int:
    """Serve one editor until it is gone; the exit code."""
    from steadyhand.edge.connection import Connection

    connection = Connection(stdio, flags.client_process_id, flags.state_directory, *ports)
    return connection.run()


def command_line(arguments: list[str], ports: Ports) -> int:
    """Carry out one verb; the exit code. SystemExit(2) for bad flags."""
    from steadyhand.cli.program import CommandLine
    from steadyhand.edge.settings import FLAG_PATHS, read_settings, resolved_state_directory, state_directory

    environment = ports.processes.environment()

    def folder(flag: str | None) -> str:
        return resolved_state_directory(ports.disk, state_directory(flag, environment, None)[0])

    def settings(given: Mapping[str, object]) -> tuple[Settings, tuple[str, ...]]:
        read = read_settings(None, environment, flags=given)
        return read.settings, read.faults

    return CommandLine(settings, FLAG_PATHS, folder, *ports).run(arguments)


def system_ports() -> Ports:
    """The real ones."""
    from steadyhand.adapters.children import SystemProcesses
    from steadyhand.adapters.clock import SystemClock
    from steadyhand.adapters.disk import system_disk
    from steadyhand.adapters.ids import RandomIds
    from steadyhand.adapters.providers import AllModels
    from steadyhand.adapters.ripgrep import Ripgrep

    processes = SystemProcesses()
    models, text_filter = AllModels(processes.environment), Ripgrep(processes.environment)
    return Ports(system_disk(), processes, SystemClock(), RandomIds(), models, text_filter)


def read_flags(arguments: list[str]) -> Flags | None:
    """None for flags that are not ours."""
    flags = Flags()
    rest = iter(arguments)
    for argument in rest:
        name, has_value, value = argument.partition("=")
        if name == "--stdio" and not has_value:
            continue
        if name not in ("--clientProcessId", "--state-dir"):
            return None
        value = value if has_value else next(rest, "")
        if not value or (name == "--clientProcessId" and not value.isdecimal()):
            return None
        if name == "--state-dir":
            flags = flags._replace(state_directory=value)
        else:
            flags = flags._replace(client_process_id=int(value))
    return flags


if __name__ == "__main__":
    sys.exit(main())
