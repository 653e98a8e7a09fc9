"""The composition root: the only module that names adapters. Without arguments it serves LSP over stdio; with a verb
as first argument it runs the command line of `cli`.

`run` takes the ports, so that tests and the demo can pass others; nothing here knows injected faults. The program
claims the protocol's descriptors before any other import that matters (row E4), and then answers `initialize`
(`lsp.rpc.greeting`). That is why the imports are inside the functions.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Thread
    from typing import NoReturn

    from steadyhand.domain.settings import Settings
    from steadyhand.lsp.rpc.stdio import Stdio
    from steadyhand.ports.bundle import Ports

VERBS = ("sessions", "show", "export", "recovery", "jobs", "permissions", "ask", "doctor")
UNFLUSHED_CODE = 120
"""The exit code of an interpreter that cannot flush its standard streams."""
USAGE = (
    "usage: steadyhand [--stdio] [--clientProcessId=N] [--state-dir DIR] [--version]   serve an editor\n"
    f"       steadyhand {{{','.join(VERBS)}}} [--help]   without an editor"
)


class ServerArguments:
    """The flags of the server; None: not given."""

    __slots__ = ("client_process_id", "state_directory")

    def __init__(self) -> None:
        self.client_process_id: int | None = None
        self.state_directory: str | None = None


def main() -> NoReturn:
    """Run the installed program; it ends with the exit code of `run_arguments`."""
    gc.disable()  # until everything is imported, because none of it is garbage
    from steadyhand.adapters.interpreter import restart_with_own_packages

    restart_with_own_packages(os.path.abspath(__file__))
    end_process(run_arguments())


def end_process(code: int) -> NoReturn:
    """Flush logs and streams, wait for threads that still work, and end without the interpreter's teardown.

    Everything that must outlive the process is synced, closed or ended by then, so the teardown would only free memory
    object by object. A stream that cannot be flushed has no reader."""
    for thread in _unfinished_threads():
        thread.join()
    logging = sys.modules.get("logging")
    if logging is not None:
        logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError:
            code = UNFLUSHED_CODE
    os._exit(code)


def _unfinished_threads() -> list[Thread]:
    """Return the threads that the interpreter would wait for too."""
    threading = sys.modules.get("threading")
    if threading is None:
        return []
    current = threading.current_thread()
    return [thread for thread in threading.enumerate() if thread is not current and not thread.daemon]


def run_arguments() -> int:
    """Do what the command line says; return the exit code, 2 for invalid flags."""
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
        sys.stderr.write(f"steadyhand: unknown flags: {' '.join(arguments)}\n{USAGE}\n")
        return 2
    try:
        from steadyhand.lsp.rpc.stdio import claim_stdio
    except ImportError as missing:
        sys.stderr.write(f"steadyhand: this system cannot serve over stdio ({missing}); use Linux or macOS.\n")
        return 1
    from steadyhand.lsp.rpc.greeting import greet

    stdio = claim_stdio()
    greet(stdio)
    return run(stdio, system_ports(), flags)


def run(stdio: Stdio, ports: Ports, flags: ServerArguments) -> int:
    """Serve one editor until the connection ends; return the exit code."""
    from steadyhand.lsp.app import App

    app = App(stdio, flags.client_process_id, flags.state_directory, *ports)
    _enable_collector()
    return app.run()


def command_line(arguments: list[str], ports: Ports) -> int:
    """Run one verb; return the exit code. Raises SystemExit(2) for invalid flags."""
    from steadyhand.cli.program import CommandLine
    from steadyhand.config.settings import FLAG_PATHS, read_settings, state_directory, state_directory_path
    from steadyhand.session.private_state import PrivateState

    environment = ports.processes.environment()

    def folder(flag: str | None) -> str:
        return PrivateState(ports.disk, state_directory_path(state_directory(flag, environment, None)[0])).prepare()

    def settings(flags: Mapping[str, object]) -> tuple[Settings, tuple[str, ...]]:
        read = read_settings(
            None, environment, flags=flags, state_directory=state_directory(None, environment, None)[0]
        )
        return read.settings, read.faults

    program = CommandLine(settings, FLAG_PATHS, folder, *ports)
    _enable_collector()
    return program.run(arguments)


def _enable_collector() -> None:
    """Exclude the imported objects from collection, because they live until the end; then collect garbage."""
    gc.freeze()
    gc.enable()


def system_ports() -> Ports:
    """Protect this process, before a key is read or a child is started, and return the real ports."""
    from steadyhand.adapters.own_process import hide_memory

    hide_memory()
    from steadyhand.adapters.clock import SystemClock
    from steadyhand.adapters.disk.posix import system_disk
    from steadyhand.adapters.encoding_detection import likely_encodings
    from steadyhand.adapters.ids import RandomIds
    from steadyhand.adapters.logs import write_redacted_log
    from steadyhand.adapters.models.catalog import ModelCatalog
    from steadyhand.adapters.processes.system import SystemProcesses
    from steadyhand.adapters.ripgrep import Ripgrep
    from steadyhand.ports.bundle import Ports

    processes = SystemProcesses()
    write_redacted_log(processes.environment())
    models, text_filter = ModelCatalog(processes.environment), Ripgrep(processes.environment)
    return Ports(system_disk(), processes, SystemClock(), RandomIds(), models, text_filter, likely_encodings)


def read_flags(arguments: list[str]) -> ServerArguments | None:
    """Return the flags of the server; None if there are others."""
    flags = ServerArguments()
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
            flags.state_directory = value
        else:
            flags.client_process_id = int(value)
    return flags


if __name__ == "__main__":
    main()
