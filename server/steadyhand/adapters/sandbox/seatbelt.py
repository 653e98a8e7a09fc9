"""The sandbox of macOS (seatbelt): a profile for `sandbox-exec`. Never run on macOS so far; tests use a fake program.

So `SystemSandbox` does not choose it: nothing is called confined that nobody has tried (decision 38). In a profile the
last rule that fits decides. It cannot give a command folders for temporary files of its own, and has no namespaces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from steadyhand.adapters.sandbox.launch import Channels, Command, Launch
from steadyhand.adapters.sandbox.mounts import git_entries
from steadyhand.adapters.sandbox.places import hidden_places
from steadyhand.ports.sandbox import Confinement, SandboxFailed

PROGRAM = "/usr/bin/sandbox-exec"
_READY = 'cd -- "$1" && echo ready && exec >"/dev/fd/$2" 2>&1 || exit 125; shift 2; exec "$@"'
"""What the shell does before the command: it reports that the profile holds, and connects the output."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def seatbelt_profile(confinement: Confinement, server_environment: Mapping[str, str]) -> str:
    """Return the profile of one child. Raises SandboxFailed if a folder of the confinement is missing."""
    hidden = hidden_places(server_environment, confinement.hidden)
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    if not confinement.is_reading:
        temporary = () if confinement.temporary is None else (confinement.temporary,)
        lines += [_rule("allow file-write*", path) for path in (*confinement.folders, *temporary, *confinement.write)]
        lines += [_rule("deny file-write*", path) for path in _protected(confinement.protected)]
    lines += [_rule("allow file-write*", path, "literal") for path in _DEVICES]
    lines += [_rule("deny file-read* file-write*", path) for path in sorted(hidden.folders | hidden.files)]
    lines += [_rule("allow file-read*", path) for path in confinement.folders]
    if confinement.network == "deny" or confinement.is_reading:
        lines.append("(deny network*)")
    return "\n".join(lines)


def seatbelt_launch(
    confinement: Confinement, environment: Callable[[], Mapping[str, str]], command: Command, channels: Channels
) -> Launch:
    """Return how to spawn the command under the profile."""
    for folder in confinement.folders:
        if not os.path.isdir(folder):
            raise SandboxFailed(f"The folder {folder} is missing.")
    temporary = {} if confinement.temporary is None else {"TMPDIR": confinement.temporary}
    profile = seatbelt_profile(confinement, environment())
    before = ("/bin/sh", "-c", _READY, "sh", command.cwd, str(channels.output))
    arguments = (PROGRAM, "-p", profile, *before, *command.arguments)
    return Launch(arguments, None, {**command.environment, **temporary}, (), is_namespace=False)


def _protected(paths: Sequence[str]) -> list[str]:
    found = []
    for path in dict.fromkeys((*paths, *(os.path.realpath(path) for path in paths))):
        if os.path.basename(path) == ".git" and os.path.isdir(path):
            found += git_entries(path)
        else:
            found.append(path)
    return found


def _rule(what: str, path: str, kind: str = "subpath") -> str:
    real = os.path.realpath(path) if kind == "subpath" else path
    quoted = real.replace("\\", "\\\\").replace('"', '\\"')
    return f'({what} ({kind} "{quoted}"))'
