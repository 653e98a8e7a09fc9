"""Settings as they are read: sources, what a workspace may say, and what is bad (wire.md, "Settings"; row G2)."""

from __future__ import annotations

from typing import Any

import pytest

from steadyhand.core.rules import Rule, rules_max
from steadyhand.edge.settings import read_settings


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
