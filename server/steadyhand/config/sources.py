"""The sources of settings: flags, environment, the editor's settings for this machine. The first that has a value wins.

A source maps the dotted name of a setting to a value; null means that the setting is not set. An invalid value is
reported by the name that the setting has in its source, and the default applies: no later source replaces it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from steadyhand.tools.workspace.paths import one_line

VARIABLES: Mapping[str, str] = {
    "model.provider": "STEADYHAND_MODEL_PROVIDER",
    "model.name": "STEADYHAND_MODEL_NAME",
    "model.baseUrl": "STEADYHAND_MODEL_BASE_URL",
    "model.apiKeyEnv": "STEADYHAND_MODEL_API_KEY_ENV",
    "model.dialect": "STEADYHAND_MODEL_DIALECT",
    "mode": "STEADYHAND_MODE",
    "recovery.settle": "STEADYHAND_RECOVERY_SETTLE",
    "recovery.retry": "STEADYHAND_RECOVERY_RETRY",
    "continuation": "STEADYHAND_CONTINUATION",
    "cost.cap": "STEADYHAND_COST_CAP",
    "sandbox.mode": "STEADYHAND_SANDBOX",
}
"""The variables that have the value of a setting."""
BOOLEANS = frozenset({"recovery.retry", "continuation"})  # 1, 0, true or false in a variable

Read = Callable[[str], Any]
"""A setting's dotted name → its value in one source; None: not set."""


VALUE_SHOWN_CHARS_MAX = 80


def quoted(value: object) -> str:
    """Return an invalid value of JSON for a sentence: in quotation marks, on one line, and short."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"“{one_line(text, VALUE_SHOWN_CHARS_MAX)}”"


class SettingSources:
    """Sources in their order. A clause for each invalid value goes into `faults`."""

    def __init__(self, sources: list[tuple[Read, Callable[[str], str]]], faults: list[str]) -> None:
        """`sources`: each source, with a function that returns its name of a setting."""
        self.faults = faults
        self._sources = sources

    def take(self, path: str, fits: Callable[[Any], bool], expected: str, default: Any) -> Any:
        """Return the value of the first source that has one; the default if none has or the value is invalid."""
        for read, name_of in self._sources:
            value = read(path)
            if value is None:
                continue
            if fits(value):
                return value
            self.faults.append(f"{name_of(path)} is not {expected}")
            return default
        return default

    def for_provider(self, provider: str) -> SettingSources:
        """Return the sources whose model name, address and key are for the chosen provider: the source that chose it,
        those before it, and any that names the same provider."""
        found: list[tuple[Read, Callable[[str], str]]] = []
        chosen = False
        for read, name_of in self._sources:
            named = read("model.provider")
            if not chosen or named == provider:
                found.append((read, name_of))
            chosen = chosen or named is not None
        return SettingSources(found, self.faults)


def sources_of(machine: object, environment: Mapping[str, str], flags: Mapping[str, object]) -> SettingSources:
    """Return all sources. `machine`: what the editor sends, any JSON; `flags`: values by dotted name."""
    return SettingSources(
        [
            (flags.get, lambda path: f"--setting {path}"),
            (lambda path: _variable_value(environment, path), lambda path: VARIABLES[path]),
            (lambda path: machine_value(machine, path), lambda path: f"steadyhand.{path}"),
        ],
        [],
    )


def at(where: object, path: str) -> Any:
    """Return the value at a dotted name of a nested object; None if there is none."""
    for name in path.split("."):
        if not isinstance(where, Mapping):
            return None
        where = where.get(name)
    return where


def machine_value(machine: object, path: str) -> object:
    """Return what the editor sends for a setting; anything but an object in the place of `sandbox` is the mode."""
    if path == "sandbox.mode" and not isinstance(at(machine, "sandbox"), Mapping):
        return at(machine, "sandbox")
    return at(machine, path)


def _variable_value(environment: Mapping[str, str], path: str) -> object:
    """Return the value of a variable; an empty text is not set."""
    text = environment.get(VARIABLES.get(path, "")) or None
    if text is None or path not in BOOLEANS:
        return text
    return {"1": True, "true": True, "0": False, "false": False}.get(text.lower(), text)
