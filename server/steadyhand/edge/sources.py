"""Where a setting comes from: flags, environment, the editor's settings for this machine; the first that has it wins.

Each source is asked by the setting's dotted name. Null is not set. A value that does not fit is named as its source
names it, and the default is taken: a bad value never lets another source's through unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

VARIABLES: Mapping[str, str] = {
    "model.provider": "STEADYHAND_MODEL_PROVIDER",
    "model.name": "STEADYHAND_MODEL_NAME",
    "model.baseUrl": "STEADYHAND_MODEL_BASE_URL",
    "model.apiKeyEnv": "STEADYHAND_MODEL_API_KEY_ENV",
    "mode": "STEADYHAND_MODE",
    "recovery.settle": "STEADYHAND_RECOVERY_SETTLE",
    "recovery.retry": "STEADYHAND_RECOVERY_RETRY",
    "continuation": "STEADYHAND_CONTINUATION",
    "cost.cap": "STEADYHAND_COST_CAP",
}
"""The variables that say a setting."""
TRUTHS = frozenset({"recovery.retry", "continuation"})  # 1, 0, true or false there

Look = Callable[[str], Any]
"""A setting's dotted name → its value in one source; None: not set."""


class Sources:
    """What is wrong with a value goes into `faults`, a clause each."""

    def __init__(self, looks: list[tuple[Look, Callable[[str], str]]], faults: list[str]) -> None:
        """`looks`: each source with how it names a setting."""
        self.faults = faults
        self._looks = looks

    def take(self, path: str, fits: Callable[[Any], bool], expected: str, default: Any) -> Any:
        """The value of the first source that has one, the default where none has or it does not fit."""
        for look, named in self._looks:
            value = look(path)
            if value is None:
                continue
            if fits(value):
                return value
            self.faults.append(f"{named(path)} is not {expected}")
            return default
        return default

    def of_provider(self, provider: str) -> Sources:
        """Those whose name, address and key are meant for the provider that was chosen: the source that chose it, those
        before it, and any that names the same one."""
        theirs: list[tuple[Look, Callable[[str], str]]] = []
        chosen = False
        for look, named in self._looks:
            says = look("model.provider")
            if not chosen or says == provider:
                theirs.append((look, named))
            chosen = chosen or says is not None
        return Sources(theirs, self.faults)


def sources_of(machine: object, environment: Mapping[str, str], flags: Mapping[str, object]) -> Sources:
    """`machine`: the editor's nested object, whatever it is; `flags`: what a command line says, by dotted name."""
    return Sources(
        [
            (flags.get, lambda path: f"--setting {path}"),
            (lambda path: _spoken(environment, path), lambda path: VARIABLES[path]),
            (lambda path: at(machine, path), lambda path: f"steadyhand.{path}"),
        ],
        [],
    )


def at(where: object, path: str) -> Any:
    """The value at a dotted name of a nested object; None where there is none."""
    for name in path.split("."):
        if not isinstance(where, Mapping):
            return None
        where = where.get(name)
    return where


def _spoken(environment: Mapping[str, str], path: str) -> object:
    """A variable's text as the value it stands for; empty is not set."""
    word = environment.get(VARIABLES.get(path, "")) or None
    if word is None or path not in TRUTHS:
        return word
    return {"1": True, "true": True, "0": False, "false": False}.get(word.lower(), word)
