"""Reads settings from their sources and checks each; a setting never fails a request (docs/protocol.md#settings).

The first source that has a key wins: flags, environment, what the editor sends for this machine
(`initializationOptions`, or its later replacement `steadyhand.machine`), the default. Machine-scoped keys have no other
source: the answer of `workspace/configuration` is ignored for them. An invalid value becomes its default and one
sentence; null is not set. An invalid rule is left out, and the other rules of its list hold.

The answer of `workspace/configuration` may only make permissions stricter: its `permissions.ask` and `permissions.deny`
are added to those of the machine and remove none (row G2). It may switch `continuation` off but not on, because a
continuation costs money. Of `files.encoding` it has the whole list.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from steadyhand.config.compaction import TITLES, WINDOW_EXPECTED, is_window, read_compaction
from steadyhand.config.encodings import read_encodings
from steadyhand.config.machine_scope import ignored_settings
from steadyhand.config.prices import PRICES_EXPECTED, amount_of, is_amount, is_prices, prices_of
from steadyhand.config.sandbox import read_sandbox
from steadyhand.config.sources import VARIABLES, SettingSources, at, quoted, sources_of
from steadyhand.domain.model.provider_profiles import PROVIDERS, is_variable_name
from steadyhand.domain.permissions.rules import (
    RULES_MAX,
    BadRule,
    PermissionRule,
    PermissionRules,
    can_allow,
    parse_rule,
)
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import DIALECT_SETTINGS, Settings
from steadyhand.tools.registry import SUBJECTS
from steadyhand_values import frozen

MODES = ("plan", "ask", "edits", "auto")
SETTLE = ("checked", "ask")
RETENTION_DAYS_MIN = 7
RETENTION_DAYS_MAX = 100_000
"""So that every time before now is a date."""
STATE_VARIABLE = "STEADYHAND_STATE_DIR"
FLAG_PATHS = frozenset(
    {*VARIABLES, "environment.add", "cost.prices", "permissions.allow", "permissions.ask", "permissions.deny"}
    | {"sandbox.write", "sandbox.network"}
)
"""The settings that `--setting` of a command line accepts."""


@frozen
class ReadSettings:
    """Settings, and one clause for each invalid value. `ignored`: machine-scoped settings that the workspace sets."""

    settings: Settings
    faults: tuple[str, ...]
    ignored: tuple[str, ...] = ()


def read_settings(
    machine: object,
    environment: Mapping[str, str],
    workspace: object = None,
    flags: Mapping[str, object] | None = None,
    state_directory: str | None = None,
    folders: Sequence[object] = (),
) -> ReadSettings:
    """Return the settings. `machine`: what the editor sends for this machine; `workspace`: its answer for the section
    `steadyhand`, both any JSON; `flags`: the values of a command line, by dotted name. `state_directory`: absolute,
    for what commands must not write to; None: not known here. `folders`: its answer for each folder, if there are
    several (row S11)."""
    sources = sources_of(machine, environment, flags or {})
    take, faults = sources.take, sources.faults
    if machine is not None and not isinstance(machine, Mapping):
        faults.append("the settings are not an object")
    provider = take("model.provider", lambda v: v in PROVIDERS, f"one of {', '.join(PROVIDERS)}", "practice")
    of_provider = sources.for_provider(provider)
    answers = (workspace, *folders)
    stricter = {name: _stricter_rules(answers, name, faults) for name in ("ask", "deny")}
    continues = take("continuation", _is_boolean, "true or false", False)
    settings = Settings(
        model=ModelName(provider, of_provider.take("model.name", _is_text, "a non-empty string", provider)),
        mode=take("mode", lambda v: v in MODES, f"one of {', '.join(MODES)}", "ask"),
        settle=take("recovery.settle", lambda v: v in SETTLE, f"one of {', '.join(SETTLE)}", "checked"),
        retry=take("recovery.retry", _is_boolean, "true or false", False),
        base_url=of_provider.take("model.baseUrl", _is_text, "a non-empty string", None),
        key_variable=of_provider.take("model.apiKeyEnv", is_variable_name, "the name of an environment variable", None),
        dialect=of_provider.take(
            "model.dialect", lambda v: v in DIALECT_SETTINGS, f"one of {', '.join(DIALECT_SETTINGS)}", "auto"
        ),
        window=of_provider.take("model.window", is_window, WINDOW_EXPECTED, None),
        compaction=read_compaction(sources),
        titles=take("titles", lambda v: v in TITLES, f"one of {', '.join(TITLES)}", "firstLine"),
        environment_add=take("environment.add", _is_texts, "an object of names and strings", {}),
        rules=PermissionRules(
            allow=_rules(take, "allow", faults),
            ask=_merge(_rules(take, "ask", faults), stricter["ask"]),
            deny=_merge(_rules(take, "deny", faults), stricter["deny"]),
        ),
        trusted=_read_trust(machine, faults),
        trusted_folders=_trusted_folders(machine),
        continuation=continues and not any(at(answer, "continuation") is False for answer in answers),
        cost_cap=amount_of(take("cost.cap", is_amount, "a number, 0 or more", None)),
        prices=prices_of(take("cost.prices", is_prices, PRICES_EXPECTED, {})),
        retention_days=take("retention.days", _is_days, "an integer, 7 or more, or 0", 90),
        sandbox=read_sandbox(sources, environment, state_directory),
        encodings=read_encodings(sources, workspace),
    )
    for path in NOT_BUILT_YET:
        if at(machine, path):
            faults.append(f"steadyhand.{path} does nothing in this version")
    ignored = dict.fromkeys(name for answer in answers for name in ignored_settings(machine, answer))
    return ReadSettings(settings, tuple(dict.fromkeys(faults)), tuple(ignored))


def state_directory(flag: str | None, environment: Mapping[str, str], machine: object) -> tuple[str | None, str | None]:
    """Return (the chosen folder, None for the system's own; a clause if the setting is invalid)."""
    if flag:
        return flag, None
    if environment.get(STATE_VARIABLE):
        return environment[STATE_VARIABLE], None
    value = at(machine, "stateDirectory")
    if value is None:
        return None, None
    if not _is_path(value):
        return None, "steadyhand.stateDirectory is not the path of a folder"
    return value, None


def _default_state_directory() -> str:
    from platformdirs import user_state_dir  # takes long to import; not needed if a folder is chosen

    return user_state_dir("steadyhand", appauthor=False)


def state_directory_path(chosen: str | None) -> str:
    """Return the absolute path of the state directory; `chosen` None: the system's own."""
    return os.path.abspath(os.path.expanduser(chosen)) if chosen else _default_state_directory()


def _rules(take: Callable[..., Any], list_name: str, faults: list[str]) -> tuple[PermissionRule, ...]:
    """Read the rules of one list. An invalid rule is reported and left out; the others hold."""
    setting = f"steadyhand.permissions.{list_name}"
    value = take(f"permissions.{list_name}", lambda v: isinstance(v, list), "a list of strings", [])
    found: list[PermissionRule] = []
    for item in value[:RULES_MAX]:
        rule = parse_rule(item, SUBJECTS) if isinstance(item, str) else BadRule("is not a string")
        if list_name == "allow" and isinstance(rule, PermissionRule) and not can_allow(rule):
            rule = BadRule("can allow nothing, because a pattern with `*` is only for one plain command")
        if isinstance(rule, PermissionRule):
            found.append(rule)
        else:
            faults.append(f"a rule of {setting} {rule.why}: {quoted(item)}")
    if len(value) > RULES_MAX:
        faults.append(f"{setting} has more than {RULES_MAX} rules; the others are ignored")
    return tuple(found)


def _stricter_rules(answers: Iterable[object], list_name: str, faults: list[str]) -> tuple[PermissionRule, ...]:
    """Read the rules of one list in the editor's answers for the workspace and its folders; each counts in all."""
    found: list[PermissionRule] = []
    for answer in answers:
        sources = SettingSources([(partial(at, answer), lambda path: f"steadyhand.{path}")], faults)
        found += (rule for rule in _rules(sources.take, list_name, faults) if rule not in found)
    return tuple(found)


def _merge(machine: tuple[PermissionRule, ...], workspace: tuple[PermissionRule, ...]) -> tuple[PermissionRule, ...]:
    """Return each rule once: an editor's answer for a workspace contains the user's own rules too."""
    return (*machine, *(rule for rule in workspace if rule not in machine))


def _read_trust(machine: object, faults: list[str]) -> bool:
    """Return whether a folder of the workspace is trusted: yes without a value, because most editors do not know trust;
    no for a value that is neither a boolean nor an object of folders."""
    value = at(machine, "trusted")
    if value is None or isinstance(value, bool):
        return value is not False
    if _is_trust_by_folder(value):
        return any(value.values())
    faults.append("steadyhand.trusted is neither true nor false, so the workspace is not trusted")
    return False


def _trusted_folders(machine: object) -> tuple[str, ...] | None:
    """Return the URIs of the folders that are trusted, where trust is given for each; a folder that is not named is
    not trusted (row S11)."""
    value = at(machine, "trusted")
    return tuple(uri for uri, is_trusted in value.items() if is_trusted) if _is_trust_by_folder(value) else None


def _is_trust_by_folder(value: object) -> TypeGuard[Mapping[str, bool]]:
    return isinstance(value, Mapping) and all(_is_text(uri) and _is_boolean(is_on) for uri, is_on in value.items())


def machine_of(settings: object) -> object:
    """Return the machine-scoped object of a `workspace/didChangeConfiguration`; None if it has none."""
    return at(settings, "steadyhand.machine")


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _is_days(value: object) -> bool:
    return type(value) is int and (value == 0 or RETENTION_DAYS_MIN <= value <= RETENTION_DAYS_MAX)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != "" and "\0" not in value


def _is_path(value: object) -> bool:
    """Whether a text can be the path of a file on this system."""
    try:
        return isinstance(value, str) and _is_text(value) and bool(os.fsencode(value))
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(_is_text(k) and isinstance(v, str) for k, v in value.items())


NOT_BUILT_YET = ("mcpServers", "hooks")
"""Settings of parts that are not built yet: whoever sets one is told that it does nothing (case 139)."""
