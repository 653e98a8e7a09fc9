"""The settings about how much goes to a model (rows K4, K5)."""

from __future__ import annotations

from typing import Any

import pytest

from steadyhand.config.settings import read_settings
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.settings import CompactionSettings


def test_settings_of_window_compaction_and_titles_are_read() -> None:
    """K4, K5: from the editor's settings of this machine; each has its default."""
    machine = {
        "model": {"window": 1_024},
        "compaction": {"auto": False, "at": 0.95, "model": {"provider": "openai", "name": "small"}},
        "titles": "model",
    }
    read = read_settings(machine, {})
    assert read.faults == ()
    assert (read.settings.window, read.settings.titles) == (1_024, "model")
    assert read.settings.compaction == CompactionSettings(False, 0.95, ModelName("openai", "small"))
    default = read_settings(None, {}).settings
    assert (default.window, default.titles, default.compaction) == (None, "firstLine", CompactionSettings(True, 0.8))


@pytest.mark.parametrize(
    "machine",
    [
        {"model": {"window": 1_023}},
        {"model": {"window": 10_000_001}},
        {"model": {"window": True}},
        {"model": {"window": 5000.0}},
        {"compaction": {"auto": 1}},
        {"compaction": {"at": 0.49}},
        {"compaction": {"at": 0.96}},
        {"compaction": {"at": True}},
        {"compaction": {"model": "openai"}},
        {"compaction": {"model": {"provider": "nobody", "name": "x"}}},
        {"compaction": {"model": {"provider": "openai", "name": " "}}},
        {"compaction": {"model": {"provider": "openai"}}},
        {"titles": "first"},
    ],
)
def test_setting_outside_its_bounds_has_its_default_and_is_named(machine: dict[str, Any]) -> None:
    """K4, K5, [I13]: each bound of the table."""
    read = read_settings(machine, {})
    assert len(read.faults) == 1
    default = read_settings(None, {}).settings
    assert (read.settings.window, read.settings.titles) == (default.window, default.titles)
    assert read.settings.compaction == default.compaction


def test_workspace_cannot_set_them() -> None:
    """K4, case 140: they cost money or decide what a model gets, so they belong to the machine."""
    workspace = {"model": {"window": 5000}, "compaction": {"auto": False, "at": 0.6}, "titles": "model"}
    read = read_settings(None, {}, workspace)
    assert read.settings == read_settings(None, {}).settings
    assert set(read.ignored) == {
        "steadyhand.model.window",
        "steadyhand.compaction.auto",
        "steadyhand.compaction.at",
        "steadyhand.titles",
    }


def test_window_belongs_to_the_provider_of_its_source() -> None:
    """K4: a variable that chooses another provider does not take the window of the editor's one."""
    machine = {"model": {"provider": "ollama", "name": "x", "window": 5000}}
    assert read_settings(machine, {}).settings.window == 5000
    assert read_settings(machine, {"STEADYHAND_MODEL_PROVIDER": "openai"}).settings.window is None
