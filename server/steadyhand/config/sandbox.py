"""Reads the settings of the sandbox: `sandbox.mode`, `sandbox.write`, `sandbox.network` (row O1).

A text in place of the object `sandbox` is the mode. An invalid folder of `sandbox.write` is left out and named, and the
other folders hold. A folder is invalid if commands could then write to the whole system, to all files of the user, or
to the journals. Only the spelling is compared here; `session` compares the folders that the links lead to.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Any

from steadyhand.config.sources import SettingSources, quoted
from steadyhand.domain.permissions.sandbox_folders import is_at_or_above
from steadyhand.domain.settings import SandboxSettings

SANDBOX_MODES = ("auto", "required", "off")
NETWORKS = ("deny", "allow")
WRITE_FOLDERS_MAX = 50


def read_sandbox(
    sources: SettingSources, environment: Mapping[str, str], state_directory: str | None
) -> SandboxSettings:
    """Return the settings; a clause for each invalid value goes into `sources.faults`.

    `environment`: of this process, for the home folder. `state_directory`: absolute; None: not known here."""
    mode = sources.take("sandbox.mode", lambda v: v in SANDBOX_MODES, f"one of {', '.join(SANDBOX_MODES)}", "auto")
    network = sources.take("sandbox.network", lambda v: v in NETWORKS, f"one of {', '.join(NETWORKS)}", "deny")
    given = sources.take("sandbox.write", lambda v: isinstance(v, list), "a list of absolute paths", [])
    forbidden = {"/": "the whole system"}
    if environment.get("HOME"):
        forbidden[environment["HOME"]] = "your home folder"
    if state_directory is not None:
        forbidden[state_directory] = "the state directory"
    folders: list[str] = []
    for item in given[:WRITE_FOLDERS_MAX]:
        trouble = _trouble_of(item, forbidden)
        if trouble is None:
            folders.append(posixpath.normpath(item))
        else:
            sources.faults.append(f"a folder of steadyhand.sandbox.write {trouble}: {quoted(item)}")
    if len(given) > WRITE_FOLDERS_MAX:
        sources.faults.append(
            f"steadyhand.sandbox.write has more than {WRITE_FOLDERS_MAX} folders; the others are ignored"
        )
    return SandboxSettings(mode=mode, network=network, write=tuple(folders))


def _trouble_of(item: Any, forbidden: Mapping[str, str]) -> str | None:
    """Return why this is no folder that commands may write to, as a clause; None: it is one."""
    if not isinstance(item, str) or not item.startswith("/") or "\0" in item:
        return "is not an absolute path"
    for folder, name in forbidden.items():
        if is_at_or_above(item, folder):
            return f"would let commands write to {name}"
    return None
