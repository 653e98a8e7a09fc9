"""Settings as they are read: sources, what a workspace may say, and what is bad (wire.md, "Settings"; row G2)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from steadyhand.core.record import ModelName
from steadyhand.core.rules import Rule, rules_max
from steadyhand.core.settings import Price, Settings
from steadyhand.edge.prices import prices_max
from steadyhand.edge.settings import FLAG_PATHS, read_settings


def texts(rules: tuple[Rule, ...]) -> list[str]:
    return [rule.text for rule in rules]


def permissions(**lists: Any) -> dict[str, Any]:
    return {"permissions": lists}


def test_a_workspace_may_only_tighten() -> None:
    """G2: its `ask` and `deny` are added, each once; its `allow`, trust and mode are not heard, and nothing is taken
    away."""
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


def test_a_bad_rule_is_named_and_the_others_hold() -> None:
    """wire.md: one sentence for each, from either source; a rule that denies is not lost for a bad neighbour."""
    machine = permissions(deny=["write_file(x", "delete_file", 7, "no_such_tool"], allow="write_file")
    read = read_settings(machine, {}, permissions(ask=["todo(x)"]))
    assert texts(read.settings.rules.deny) == ["delete_file"]
    assert (read.settings.rules.allow, read.settings.rules.ask) == ((), ())
    assert len(read.faults) == 5
    assert any("permissions.allow is not a list" in fault for fault in read.faults)
    assert any("“no_such_tool”" in fault and "names no tool" in fault for fault in read.faults)
    assert any("“todo(x)”" in fault and "permissions.ask" in fault for fault in read.faults)


def test_a_flag_says_rules_too() -> None:
    """wire.md: flags come first; the command line has its rules from them alone."""
    said = {"permissions.deny": ["delete_file"], "permissions.allow": "write_file"}
    read = read_settings(permissions(deny=["move_file"]), {}, permissions(deny=["run_command"]), flags=said)
    assert texts(read.settings.rules.deny) == ["delete_file", "run_command"]
    assert read.faults == ("--setting permissions.allow is not a list of texts",)
    assert set(said) <= FLAG_PATHS


def test_so_many_rules_are_read() -> None:
    """I13: what stands after them is not read, and that is said."""
    read = read_settings(permissions(deny=["delete_file"] * (rules_max + 1)), {})
    assert len(read.settings.rules.deny) == rules_max
    assert len(read.faults) == 1


@pytest.mark.parametrize(
    ("said", "trusted", "faults"),
    [(None, True, 0), (True, True, 0), (False, False, 0), ("no", False, 1), (0, False, 1)],
)
def test_trust(said: object, trusted: bool, faults: int) -> None:
    """G2: not said is trusted; what cannot be read is not, and is named."""
    read = read_settings({"trusted": said}, {})
    assert (read.settings.trusted, len(read.faults)) == (trusted, faults)


def test_whatever_a_workspace_answers() -> None:
    """wire.md: settings never fail a request."""
    for answer in (None, 5, [], "x", {"permissions": 5}, {"permissions": {"deny": {}}}):
        assert read_settings(None, {}, answer).settings.rules.deny == ()


# --- where they come from -------------------------------------------------------------------------------------------


def test_the_first_source_wins() -> None:
    """wire.md: flags, environment, the editor's settings for this machine, the default; empty is not set."""
    machine = {"mode": "plan", "recovery": {"settle": "ask"}, "continuation": True, "cost": {"cap": 3}}
    environment = {"STEADYHAND_MODE": "edits", "STEADYHAND_COST_CAP": "2.50", "STEADYHAND_RECOVERY_SETTLE": ""}
    found = read_settings(machine, environment, flags={"mode": "auto"}).settings
    assert (found.mode, found.cost_cap, found.settle, found.continuation) == ("auto", Decimal("2.50"), "ask", True)
    assert read_settings(machine, environment).settings.mode == "edits"
    assert read_settings(machine, {}).settings.mode == "plan"
    assert read_settings(None, {}).settings == Settings()


@pytest.mark.parametrize(
    ("machine", "variable", "retry"),
    [(None, "1", True), (False, "true", True), (True, "0", False), (True, "", True), (None, "", False)],
)
def test_retry_by_the_environment(machine: bool | None, variable: str, retry: bool) -> None:
    """F1: the variable wins, whatever the setting is."""
    given = {"recovery": {"retry": machine}} if machine is not None else {}
    found = read_settings(given, {"STEADYHAND_RECOVERY_RETRY": variable})
    assert (found.settings.retry, found.faults) == (retry, ())


def test_name_address_and_key_belong_to_a_provider() -> None:
    """P1, E2: a provider chosen by one source is not asked at another's address, with another's key or model."""
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


def test_a_workspace_may_switch_continuation_off() -> None:
    """P2, G2: a workspace may only tighten, and one more request costs; cap and prices are the machine's alone."""
    answer = {"continuation": False, "cost": {"cap": 99, "prices": {"a/b": {"input": 0, "output": 0}}}}
    found = read_settings({"continuation": True, "cost": {"cap": 1}}, {}, answer).settings
    assert (found.continuation, found.cost_cap, dict(found.prices)) == (False, Decimal(1), {})
    assert read_settings({}, {}, {"continuation": True}).settings.continuation is False
    assert read_settings({"continuation": True}, {}, {"continuation": True}).settings.continuation is True
    assert read_settings({"continuation": True}, {}, {"continuation": "no"}).settings.continuation is True


def test_prices_are_read_as_they_were_written() -> None:
    """U2: numbers and texts alike become the decimal numbers they show; what may be left out is."""
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


BAD: list[tuple[str, Any]] = [
    ("cost.cap", -1), ("cost.cap", "much"), ("cost.cap", True), ("cost.cap", "NaN"), ("cost.cap", 10**10),
    ("cost.cap", []),
    ("cost.prices", []), ("cost.prices", {"model": {"input": 1, "output": 1}}), ("cost.prices", {"a/b": {"input": 1}}),
    ("cost.prices", {"a/b": {"input": 1, "output": -1}}), ("cost.prices", {"a/b": {"input": 1, "output": 1, "x": 1}}),
    ("cost.prices", {"a/b": {"input": 1, "output": 1, "currency": "dollars"}}), ("cost.prices", {"a/b": 3}),
    ("cost.prices", {"a/b": {"input": True, "output": 1}}),
    ("cost.prices", {"a/b": {"input": "0.0000000000001", "output": 1}}),
    ("cost.prices", {f"a/{number}": {"input": 1, "output": 1} for number in range(prices_max + 1)}),
    ("model.apiKeyEnv", "sk-proj-a1B2c3D4e5F6g7H8"), ("model.apiKeyEnv", "AIzaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"),
    ("model.apiKeyEnv", "MY KEY"), ("model.apiKeyEnv", "x" * 101),
    ("continuation", "yes"), ("recovery.retry", 1), ("model.provider", "nobody"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), BAD)
def test_a_bad_value_has_its_default(path: str, value: Any) -> None:
    """wire.md: it is named once, never fails anything, and the default holds."""
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


def test_a_bad_variable_is_named_as_it_is_written() -> None:
    """wire.md: the sentence names the source that has to be mended."""
    found = read_settings(None, {"STEADYHAND_COST_CAP": "lots", "STEADYHAND_MODE": "fast"}, flags={"continuation": 3})
    assert {fault.split(" is not ")[0] for fault in found.faults} == {
        "STEADYHAND_MODE", "--setting continuation", "STEADYHAND_COST_CAP",
    }  # fmt: skip
    assert found.settings == Settings()
