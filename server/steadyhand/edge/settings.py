"""Settings: read from their sources, checked one by one, never failing a request (wire.md, "Settings").

Sources, the first that has a key wins: flags, environment, what the editor sends for this machine
(`initializationOptions`, or its later replacement `steadyhand.machine`), the default. Machine-scoped keys are taken
from nowhere else; whatever `workspace/configuration` answers for them is ignored. A bad value becomes its default and
one sentence; null is not set. Of lists of rules a bad rule alone is left out.

The answer of `workspace/configuration` may only tighten: its `permissions.ask` and `permissions.deny` are added to
those of the machine and take none away (row G2). It may switch `continuation` off, and not on, for that costs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from platformdirs import user_state_dir

from steadyhand.core.environment import credential_values
from steadyhand.core.profiles import PROVIDERS
from steadyhand.core.record import ModelName
from steadyhand.core.rules import BadRule, Rule, Rules, parse, rules_max
from steadyhand.core.settings import Settings
from steadyhand.edge.prices import PRICES_EXPECTED, amount_of, is_amount, is_prices, prices_of
from steadyhand.edge.sources import VARIABLES, Sources, at, sources_of
from steadyhand.ports import Disk
from steadyhand.tools.catalogue import SUBJECTS
from steadyhand.tools.place import one_line

MODES = ("plan", "ask", "edits", "auto")
SETTLE = ("checked", "ask")
rule_told_chars_max = 80
STATE_VARIABLE = "STEADYHAND_STATE_DIR"
FLAG_PATHS = frozenset(
    {*VARIABLES, "environment.add", "cost.prices", "permissions.allow", "permissions.ask", "permissions.deny"}
)
"""What `--setting` of a command line takes."""


@attrs.frozen
class Read:
    """Settings and one sentence for each bad value."""

    settings: Settings
    faults: tuple[str, ...]


def read_settings(
    machine: object,
    environment: Mapping[str, str],
    workspace: object = None,
    flags: Mapping[str, object] | None = None,
) -> Read:
    """The settings that the house reads; `machine` is the editor's nested object, whatever it is, `workspace` its
    answer for the section `steadyhand`, `flags` what a command line says, by dotted name."""
    sources = sources_of(machine, environment, flags or {})
    take, faults = sources.take, sources.faults
    if machine is not None and not isinstance(machine, Mapping):
        faults.append("the settings are not an object")
    provider = take("model.provider", lambda v: v in PROVIDERS, f"one of {', '.join(PROVIDERS)}", "practice")
    theirs = sources.of_provider(provider)
    of_workspace = Sources([(lambda path: at(workspace, path), lambda path: f"steadyhand.{path}")], faults).take
    continues = take("continuation", _truth, "true or false", False)
    settings = Settings(
        model=ModelName(provider, theirs.take("model.name", _text, "a text", provider)),
        mode=take("mode", lambda v: v in MODES, f"one of {', '.join(MODES)}", "ask"),
        settle=take("recovery.settle", lambda v: v in SETTLE, f"one of {', '.join(SETTLE)}", "checked"),
        retry=take("recovery.retry", _truth, "true or false", False),
        base_url=theirs.take("model.baseUrl", _text, "a text", None),
        key_variable=theirs.take("model.apiKeyEnv", _variable, "the name of a variable", None),
        environment_add=take("environment.add", _texts, "an object of names and texts", {}),
        rules=Rules(
            allow=_rules(take, "allow", faults),
            ask=_added(_rules(take, "ask", faults), _rules(of_workspace, "ask", faults)),
            deny=_added(_rules(take, "deny", faults), _rules(of_workspace, "deny", faults)),
        ),
        trusted=_trusted(machine, faults),
        continuation=continues and at(workspace, "continuation") is not False,
        cost_cap=amount_of(take("cost.cap", is_amount, "a number, 0 or more", None)),
        prices=prices_of(take("cost.prices", is_prices, PRICES_EXPECTED, {})),
    )
    for path, fits, expected in _NOT_READ_YET:
        take(path, fits, expected, None)
    return Read(settings, tuple(faults))


def state_directory(flag: str | None, environment: Mapping[str, str], machine: object) -> tuple[str | None, str | None]:
    """(the chosen folder or None for the system's own, one sentence if the setting is bad)."""
    if flag:
        return flag, None
    if environment.get(STATE_VARIABLE):
        return environment[STATE_VARIABLE], None
    value = at(machine, "stateDirectory")
    if value is None:
        return None, None
    if not _text(value):
        return None, "steadyhand.stateDirectory is not a text"
    return value, None


def resolved_state_directory(disk: Disk, chosen: str | None) -> str:
    """The state directory with links resolved, made if it can be; unmade, sessions say so one by one."""
    path = os.path.abspath(os.path.expanduser(chosen)) if chosen else user_state_dir("steadyhand", appauthor=False)
    try:
        disk.make_root(path)
        folder = disk.open_folder(path)
        try:
            return disk.real_path(folder)
        finally:
            disk.close(folder)
    except OSError:
        return path


def _rules(take: Callable[..., Any], list_name: str, faults: list[str]) -> tuple[Rule, ...]:
    """The rules of one list. A bad one is left out and named; the others hold."""
    setting = f"steadyhand.permissions.{list_name}"
    value = take(f"permissions.{list_name}", lambda v: isinstance(v, list), "a list of texts", [])
    found: list[Rule] = []
    for item in value[:rules_max]:
        rule = parse(item, SUBJECTS) if isinstance(item, str) else BadRule("is no text")
        if isinstance(rule, Rule):
            found.append(rule)
        else:
            faults.append(f"a rule of {setting} {rule.why}: {_named(item)}")
    if len(value) > rules_max:
        faults.append(f"{setting} has more than {rules_max} rules")
    return tuple(found)


def _added(machine: tuple[Rule, ...], workspace: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Each once: an editor's answer for a workspace holds the user's own too."""
    return (*machine, *(rule for rule in workspace if rule not in machine))


def _named(rule: object) -> str:
    return f"“{one_line(str(rule), rule_told_chars_max)}”"


def _trusted(machine: object, faults: list[str]) -> bool:
    """Not said is trusted, since most editors know no trust; what cannot be read is not."""
    value = at(machine, "trusted")
    if value is None or isinstance(value, bool):
        return value is not False
    faults.append("steadyhand.trusted is neither true nor false, so the workspace counts as not trusted")
    return False


def machine_of(settings: object) -> object:
    """The machine-scoped object of a `workspace/didChangeConfiguration`; None where it has none."""
    return at(settings, "steadyhand.machine")


def _variable(value: object) -> bool:
    """A name, and no key put there by mistake, which would be told as one wherever the variable is named (row E2)."""
    named = isinstance(value, str) and re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,99}", value) is not None
    return named and credential_values.search(str(value)) is None


def _truth(value: object) -> bool:
    return isinstance(value, bool)


def _text(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(_text(k) and isinstance(v, str) for k, v in value.items())


_NOT_READ_YET: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("mcpServers", lambda v: isinstance(v, Mapping), "an object"),
    ("hooks", lambda v: isinstance(v, Mapping | list), "an object or a list"),
)
"""Settings of parts that are not built yet; a bad value is named all the same."""
