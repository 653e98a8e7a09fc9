"""Reading settings: their sources, what a workspace may set, and invalid values (docs/protocol.md, "Settings"; row
G2).
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand.config.machine_scope import MACHINE_SCOPED
from steadyhand.config.prices import PRICES_MAX
from steadyhand.config.settings import FLAG_PATHS, NOT_BUILT_YET, read_settings, state_directory
from steadyhand.domain.permissions.rules import RULES_MAX, PermissionRule
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import Price, Settings

ROOT = Path(__file__).resolve().parents[2]


def texts(rules: tuple[PermissionRule, ...]) -> list[str]:
    return [rule.text for rule in rules]


def permissions(**lists: Any) -> dict[str, Any]:
    return {"permissions": lists}


def test_workspace_settings_can_only_tighten_the_rules() -> None:
    """G2: its `ask` and `deny` rules are added, each once. Its `allow` rules, trust and mode have no effect, and
    nothing is removed.
    """
    machine = {**permissions(allow=["write_file(a)"], ask=["run_command"], deny=["delete_file"]), "trusted": False}
    workspace = {
        **permissions(allow=["*"], ask=["run_command", "move_file"], deny=[]),
        "trusted": True,
        "mode": "auto",
        "recovery": {"retry": True},
    }
    read = read_settings(machine, {}, workspace)
    assert texts(read.settings.rules.allow) == ["write_file(a)"]
    assert texts(read.settings.rules.ask) == ["run_command", "move_file"]
    assert texts(read.settings.rules.deny) == ["delete_file"]
    assert (read.settings.trusted, read.settings.mode, read.settings.retry) == (False, "ask", False)
    assert read.faults == ()
    assert texts(read_settings(machine, {}, permissions(deny=None)).settings.rules.deny) == ["delete_file"]


class Watched(dict[str, Any]):
    """Settings of the machine that note the dotted name of each value that is read."""

    def __init__(self, read: set[str], path: str = "") -> None:
        super().__init__()
        self._read, self._path = read, path

    def get(self, name: str, default: Any = None) -> Any:
        path = f"{self._path}.{name}".lstrip(".")
        self._read.add(path)
        return Watched(self._read, path) if path in GROUPS else None


GROUPS = {"model", "permissions", "recovery", "cost", "environment", "sandbox", "compaction", "retention", "files"}


def test_every_machine_setting_is_machine_scoped_except_rules_that_tighten() -> None:
    """Case 140: a setting that is read from the machine is one that a workspace cannot set, and is in the table of
    those that are named when it tries; `permissions.ask`, `.deny` and `files.encoding` alone may come from both."""
    read: set[str] = set()
    machine = Watched(read)
    read_settings(machine, {})
    state_directory(None, {}, machine)
    of_both = {"permissions.ask", "permissions.deny", "files.encoding"}
    assert {path for path in read if path not in GROUPS} == {*MACHINE_SCOPED, *of_both}


@pytest.mark.parametrize(
    ("machine", "answer", "ignored"),
    [
        ({}, {"mode": "auto"}, ["mode"]),
        ({}, {"mode": "ask", "model": {"provider": "practice", "name": ""}, "cost": {"prices": {}, "cap": None}}, []),
        ({"mode": "auto"}, {"mode": "auto"}, []),
        ({"mode": "plan"}, {"mode": "auto"}, ["mode"]),
        ({}, {"permissions": {"allow": ["*"], "deny": ["delete_file"], "ask": ["run_command"]}}, ["permissions.allow"]),
        ({}, {"trusted": True, "continuation": False}, ["trusted"]),
        ({}, {"continuation": True}, ["continuation"]),
        ({}, {"model": {"baseUrl": "https://evil.example", "apiKeyEnv": "HOME"}}, ["model.baseUrl", "model.apiKeyEnv"]),
        ({}, {"environment": {"add": {"LD_PRELOAD": "/w/x.so"}}, "stateDirectory": "/w"}, [
            "environment.add", "stateDirectory",
        ]),
        ({}, {"hooks": [{"command": "./x"}], "mcpServers": {"a": {"command": "./x"}}}, ["mcpServers", "hooks"]),
        ({}, {"sandbox": "off", "model": {"dialect": "chat"}}, ["sandbox.mode", "model.dialect"]),
        ({"sandbox": "off"}, {"sandbox": {"mode": "off", "write": [], "network": "deny"}}, []),
        ({}, {"sandbox": {"write": ["/srv"], "network": "allow"}}, ["sandbox.write", "sandbox.network"]),
        ({}, {"recovery": {"retry": True, "settle": "ask"}}, ["recovery.settle", "recovery.retry"]),
        ({}, [], []), ({}, "mode", []), (5, {"mode": 5}, ["mode"]),
    ],
)  # fmt: skip
def test_machine_setting_of_a_workspace_is_ignored_and_named(machine: Any, answer: Any, ignored: list[str]) -> None:
    """Case 140: what a workspace sets and only the machine may set has no effect and is named. A value that the editor
    repeats from the user's settings, and a default, is not the workspace's."""
    found = read_settings(machine, {}, answer)
    assert sorted(found.ignored) == sorted(f"steadyhand.{name}" for name in ignored)
    rules = found.settings.rules
    alone = read_settings(machine, {}).settings
    assert attrs.evolve(found.settings, rules=attrs.evolve(rules, ask=(), deny=())) == alone


def test_invalid_rule_is_named_and_the_others_apply() -> None:
    """docs/protocol.md: one sentence for each, from either source. A deny rule is not lost because of an invalid
    neighbour.
    """
    machine = permissions(deny=["write_file(x", "delete_file", 7, "no_such_tool"], allow="write_file")
    read = read_settings(machine, {}, permissions(ask=["todo(x)"]))
    assert texts(read.settings.rules.deny) == ["delete_file"]
    assert (read.settings.rules.allow, read.settings.rules.ask) == ((), ())
    assert len(read.faults) == 5
    assert any("permissions.allow is not a list" in fault for fault in read.faults)
    assert any("“no_such_tool”" in fault and "names a tool that does not exist" in fault for fault in read.faults)
    assert any("“todo(x)”" in fault and "permissions.ask" in fault for fault in read.faults)


def test_flag_rules_replace_the_machine_rules() -> None:
    """docs/protocol.md: flags come first. The command line has its rules from them alone."""
    said = {"permissions.deny": ["delete_file"], "permissions.allow": "write_file"}
    read = read_settings(permissions(deny=["move_file"]), {}, permissions(deny=["run_command"]), flags=said)
    assert texts(read.settings.rules.deny) == ["delete_file", "run_command"]
    assert read.faults == ("--setting permissions.allow is not a list of strings",)
    assert set(said) <= FLAG_PATHS


def test_rules_over_the_limit_are_dropped_and_reported() -> None:
    """I13: the rules after the limit are not read, and a fault says so."""
    read = read_settings(permissions(deny=["delete_file"] * (RULES_MAX + 1)), {})
    assert len(read.settings.rules.deny) == RULES_MAX
    assert len(read.faults) == 1


@pytest.mark.parametrize(
    ("said", "trusted", "faults"),
    [(None, True, 0), (True, True, 0), (False, False, 0), ("no", False, 1), (0, False, 1)],
)
def test_trust_is_the_default_and_an_unreadable_value_is_untrusted(said: object, trusted: bool, faults: int) -> None:
    """G2: without a value the workspace is trusted. With an unreadable value it is not, and the value is named."""
    read = read_settings({"trusted": said}, {})
    assert (read.settings.trusted, len(read.faults)) == (trusted, faults)


def test_any_workspace_answer_gives_settings() -> None:
    """docs/protocol.md: settings never fail a request."""
    answers: list[object] = [None, 5, [], "x", {"permissions": 5}, {"permissions": {"deny": {}}}]
    for answer in answers:
        assert read_settings(None, {}, answer).settings.rules.deny == ()


# Sources.


def test_settings_come_from_flags_then_environment_then_machine_then_default() -> None:
    """docs/protocol.md: flags, environment, the editor's settings for this machine, the default. An empty value is not
    set.
    """
    machine = {"mode": "plan", "recovery": {"settle": "ask"}, "continuation": True, "cost": {"cap": 3}}
    environment = {"STEADYHAND_MODE": "edits", "STEADYHAND_COST_CAP": "2.50", "STEADYHAND_RECOVERY_SETTLE": ""}
    found = read_settings(machine, environment, flags={"mode": "auto"}).settings
    assert (found.mode, found.cost_cap, found.settle, found.continuation) == ("auto", Decimal("2.50"), "ask", True)
    assert read_settings(machine, environment).settings.mode == "edits"
    assert read_settings(machine, {}).settings.mode == "plan"
    assert read_settings(None, {}).settings == Settings()


def test_invalid_value_of_one_source_is_not_replaced_by_the_next_source() -> None:
    """docs/protocol.md: the default applies. A mistyped stricter mode must not become the laxer one of a later
    source.
    """
    read = read_settings({"mode": "auto", "model": {"baseUrl": "http://x"}}, {"STEADYHAND_MODE": "paln"})
    assert read.settings.mode == "ask"
    assert len(read.faults) == 1
    assert "STEADYHAND_MODE" in read.faults[0]
    flagged = read_settings({"mode": "auto"}, {"STEADYHAND_MODE": "edits"}, flags={"mode": "paln"})
    assert flagged.settings.mode == "ask"
    assert len(flagged.faults) == 1


@pytest.mark.parametrize(
    ("machine", "variable", "retry"),
    [(None, "1", True), (False, "true", True), (True, "0", False), (True, "", True), (None, "", False)],
)
def test_retry_environment_variable_overrides_the_setting(machine: bool | None, variable: str, retry: bool) -> None:
    """F1: the variable wins, whatever the setting is."""
    given = {"recovery": {"retry": machine}} if machine is not None else {}
    found = read_settings(given, {"STEADYHAND_RECOVERY_RETRY": variable})
    assert (found.settings.retry, found.faults) == (retry, ())


def test_model_name_address_and_key_apply_only_to_their_provider() -> None:
    """P1, E2: a provider chosen by one source is not asked at another's address, or with another's key or model."""
    machine = {
        "model": {"provider": "openai", "name": "gpt-5", "baseUrl": "https://relay.example", "apiKeyEnv": "RELAY"}
    }
    other = read_settings(machine, {"STEADYHAND_MODEL_PROVIDER": "ollama", "STEADYHAND_MODEL_NAME": "small"}).settings
    assert (other.model, other.base_url, other.key_variable) == (ModelName("ollama", "small"), None, None)
    same = read_settings(machine, {"STEADYHAND_MODEL_PROVIDER": "openai"}, flags={"model.name": "gpt-5.1"}).settings
    assert (same.model.name, same.base_url, same.key_variable) == ("gpt-5.1", "https://relay.example", "RELAY")
    assert read_settings(machine, {}, flags={"model.provider": "deepseek"}).settings.model == ModelName(
        "deepseek", "deepseek"
    )


def test_workspace_can_only_switch_continuation_off() -> None:
    """P2, G2: a workspace may only tighten, and one more request costs money. The cap and the prices are the machine's
    alone.
    """
    answer = {"continuation": False, "cost": {"cap": 99, "prices": {"a/b": {"input": 0, "output": 0}}}}
    found = read_settings({"continuation": True, "cost": {"cap": 1}}, {}, answer).settings
    assert (found.continuation, found.cost_cap, dict(found.prices)) == (False, Decimal(1), {})
    assert read_settings({}, {}, {"continuation": True}).settings.continuation is False
    assert read_settings({"continuation": True}, {}, {"continuation": True}).settings.continuation is True
    assert read_settings({"continuation": True}, {}, {"continuation": "no"}).settings.continuation is True


def test_prices_are_read_as_exact_decimals() -> None:
    """U2: numbers and texts alike become the decimal numbers that they show. Optional members may be left out."""
    prices = {
        "a/b": {"input": 0.1, "output": "0.30", "cacheHit": 1e-3, "currency": "EUR"},
        "c/*": {"input": 0, "output": 2},
    }
    found = read_settings({"cost": {"prices": prices, "cap": 0.1}}, {})
    assert found.faults == ()
    assert found.settings.prices == {
        "a/b": Price(Decimal("0.1"), Decimal("0.30"), Decimal("0.001"), currency="EUR"),
        "c/*": Price(Decimal(0), Decimal(2)),
    }
    assert found.settings.cost_cap == Decimal("0.1")


INVALID: list[tuple[str, Any]] = [
    ("cost.cap", -1), ("cost.cap", "much"), ("cost.cap", True), ("cost.cap", "NaN"), ("cost.cap", 10**10),
    ("cost.cap", []),
    ("cost.prices", []), ("cost.prices", {"model": {"input": 1, "output": 1}}), ("cost.prices", {"a/b": {"input": 1}}),
    ("cost.prices", {"a/b": {"input": 1, "output": -1}}), ("cost.prices", {"a/b": {"input": 1, "output": 1, "x": 1}}),
    ("cost.prices", {"a/b": {"input": 1, "output": 1, "currency": "dollars"}}), ("cost.prices", {"a/b": 3}),
    ("cost.prices", {"a/b": {"input": True, "output": 1}}),
    ("cost.prices", {"a/b": {"input": "0.0000000000001", "output": 1}}),
    ("cost.prices", {f"a/{number}": {"input": 1, "output": 1} for number in range(PRICES_MAX + 1)}),
    ("model.apiKeyEnv", "sk-proj-a1B2c3D4e5F6g7H8"), ("model.apiKeyEnv", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    ("model.apiKeyEnv", "MY KEY"), ("model.apiKeyEnv", "x" * 101),
    ("continuation", "yes"), ("recovery.retry", 1), ("model.provider", "nobody"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), INVALID)
def test_invalid_value_is_named_and_replaced_by_its_default(path: str, value: Any) -> None:
    """docs/protocol.md: it is named once and never fails anything, and the default applies."""
    machine: dict[str, Any] = {}
    inner = machine
    *outer, last = path.split(".")
    for name in outer:
        inner = inner.setdefault(name, {})
    inner[last] = value
    found = read_settings(machine, {})
    assert found.settings == Settings()
    (fault,) = found.faults
    assert fault.startswith(f"steadyhand.{path} is not ")
    assert "sk-proj" not in fault


def test_invalid_variable_or_flag_is_named_as_written() -> None:
    """docs/protocol.md: the sentence names the source that must be corrected."""
    found = read_settings(None, {"STEADYHAND_COST_CAP": "lots", "STEADYHAND_MODE": "fast"}, flags={"continuation": 3})
    assert {fault.split(" is not ")[0] for fault in found.faults} == {
        "STEADYHAND_MODE", "--setting continuation", "STEADYHAND_COST_CAP",
    }  # fmt: skip
    assert found.settings == Settings()


@pytest.mark.parametrize("name", NOT_BUILT_YET)
def test_setting_without_effect_is_named(name: str) -> None:
    """Case 139: a setting of a part that is not built does nothing silently, and the extension does not offer it."""
    assert read_settings({name: {"a": {}}}, {}).faults == (f"steadyhand.{name} does nothing in this version",)
    assert read_settings({name: {}}, {}).faults == ()
    offered = json.loads((ROOT / "editor-client" / "package.json").read_text(encoding="utf-8"))
    assert f"steadyhand.{name}" not in json.dumps(offered)


@pytest.mark.parametrize(
    ("name", "rule", "why"),
    [
        ("deny", "write_file(../x)", "fits nothing"),
        ("deny", "write_file(src/./x)", "fits nothing"),
        ("ask", "read_file(~/x)", "fits nothing"),
        ("allow", "run_command(npm test*; ls)", "can allow nothing"),
        ("allow", "run_command(echo $HOME *)", "can allow nothing"),
    ],
)
def test_rule_that_fits_nothing_is_told(name: str, rule: str, why: str) -> None:
    """Case 117: nobody relies on a rule that can never apply."""
    read = read_settings(permissions(**{name: [rule, "write_file(ok)"]}), {}, None)
    assert texts(getattr(read.settings.rules, name)) == ["write_file(ok)"]
    (fault,) = read.faults
    assert why in fault
    assert rule in fault
