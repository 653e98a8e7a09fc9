"""The settings that belong to the machine alone, and those of them that a workspace sets all the same (case 140).

Each of them names a program, a key or an address, costs money, or widens what the agent may do. `read_settings` never
takes them from the answer to `workspace/configuration`. That answer holds everything that the editor knows of the
section, the user's own values and the defaults too, so a value counts as the workspace's if it is neither.
"""

from __future__ import annotations

from collections.abc import Mapping

from steadyhand.config.sources import machine_value

MACHINE_SCOPED: Mapping[str, object] = {
    "model.provider": "practice",
    "model.name": None,
    "model.baseUrl": None,
    "model.apiKeyEnv": None,
    "model.dialect": "auto",
    "model.window": None,
    "compaction.auto": True,
    "compaction.at": 0.8,
    "compaction.model": None,
    "titles": "firstLine",
    "mode": "ask",
    "trusted": None,
    "permissions.allow": None,
    "recovery.settle": "checked",
    "recovery.retry": False,
    "continuation": False,
    "cost.cap": None,
    "cost.prices": None,
    "environment.add": None,
    "sandbox.mode": "auto",
    "sandbox.write": None,
    "sandbox.network": "deny",
    "retention.days": 90,
    "stateDirectory": None,
    "mcpServers": None,
    "hooks": None,
}
"""Dotted name → what an editor answers where nobody has set it, besides null and an empty text, list or object."""


def ignored_settings(machine: object, workspace: object) -> tuple[str, ...]:
    """Return the names of machine-scoped settings that the answer for a workspace sets by itself.

    `machine`: what the editor sends for this machine; `workspace`: its answer; both any JSON."""
    return tuple(
        f"steadyhand.{path}"
        for path, default in MACHINE_SCOPED.items()
        if _is_set(value := machine_value(workspace, path)) and value not in (default, machine_value(machine, path))
    )


def ignored_sentence(names: tuple[str, ...]) -> str:
    """Return what the user is told about them; there is at least one."""
    what = f"the setting {names[0]}" if len(names) == 1 else f"the settings {', '.join(names)}"
    return f"The workspace sets {what}. Only your own settings of this machine can do that, so it is ignored."


def _is_set(value: object) -> bool:
    return value is not None and value not in ("", [], {})
