"""The settings of the sandbox: their sources, bounds and invalid values (row O1; docs/protocol.md, "Settings")."""

from __future__ import annotations

from typing import Any

import pytest

from steadyhand.config.sandbox import WRITE_FOLDERS_MAX
from steadyhand.config.settings import FLAG_PATHS, read_settings
from steadyhand.domain.settings import SandboxSettings

HOME = {"HOME": "/home/ada"}
STATE = "/home/ada/.local/state/steadyhand"


def read(machine: object, environment: dict[str, str] | None = None, **more: Any) -> tuple[SandboxSettings, list[str]]:
    found = read_settings(machine, {**HOME, **(environment or {})}, state_directory=STATE, **more)
    return found.settings.sandbox, list(found.faults)


def test_sandbox_settings_without_values_are_auto_deny_and_no_folders() -> None:
    """The defaults of row O1."""
    assert read(None) == (SandboxSettings("auto", "deny", ()), [])


def test_sandbox_settings_of_the_machine_are_read() -> None:
    """All three, from the editor's settings for this machine (row O1)."""
    given = {"sandbox": {"mode": "required", "network": "allow", "write": ["/var/cache/npm", "/opt/x/"]}}
    assert read(given) == (SandboxSettings("required", "allow", ("/var/cache/npm", "/opt/x")), [])


@pytest.mark.parametrize("mode", ["auto", "required", "off"])
def test_text_in_place_of_the_object_is_the_mode(mode: str) -> None:
    """Row O1: `"sandbox": "off"`."""
    assert read({"sandbox": mode}) == (SandboxSettings(mode=mode), [])  # type: ignore[arg-type]  # parametrized


def test_environment_wins_over_the_editor_and_a_flag_over_both() -> None:
    """STEADYHAND_SANDBOX is the mode (row O1); an empty variable is not set."""
    assert read({"sandbox": "required"}, {"STEADYHAND_SANDBOX": "off"})[0].mode == "off"
    assert read({"sandbox": "required"}, {"STEADYHAND_SANDBOX": ""})[0].mode == "required"
    flags = {"sandbox.mode": "auto", "sandbox.network": "allow", "sandbox.write": ["/data"]}
    assert set(flags) <= FLAG_PATHS
    assert read(None, {"STEADYHAND_SANDBOX": "off"}, flags=flags)[0] == SandboxSettings("auto", "allow", ("/data",))


def test_workspace_cannot_set_the_sandbox() -> None:
    """The settings are machine-scoped: the answer of `workspace/configuration` has no effect (rows O1, G2)."""
    workspace = {"sandbox": {"mode": "off", "network": "allow", "write": ["/data"]}}
    assert read(None, workspace=workspace) == (SandboxSettings(), [])
    assert read(None, workspace={"sandbox": "off"}) == (SandboxSettings(), [])


@pytest.mark.parametrize(
    ("given", "clause"),
    [
        ("none", "steadyhand.sandbox.mode is not one of auto, required, off"),
        (7, "steadyhand.sandbox.mode is not one of auto, required, off"),
        ({"mode": True}, "steadyhand.sandbox.mode is not one of auto, required, off"),
        ({"network": "loopback"}, "steadyhand.sandbox.network is not one of deny, allow"),
        ({"write": "/data"}, "steadyhand.sandbox.write is not a list of absolute paths"),
        ({"write": ["data"]}, "a folder of steadyhand.sandbox.write is not an absolute path: “data”"),
        ({"write": ["~/x"]}, "a folder of steadyhand.sandbox.write is not an absolute path: “~/x”"),
        ({"write": [3]}, "a folder of steadyhand.sandbox.write is not an absolute path: “3”"),
        ({"write": ["/"]}, "a folder of steadyhand.sandbox.write would let commands write to the whole system: “/”"),
        ({"write": ["//"]}, "a folder of steadyhand.sandbox.write would let commands write to the whole system: “//”"),
        ({"write": ["/home/ada"]}, "… would let commands write to your home folder: “/home/ada”"),
        ({"write": ["/home/ada/"]}, "… would let commands write to your home folder: “/home/ada/”"),
        ({"write": ["/home/ada/x/.."]}, "… would let commands write to your home folder: “/home/ada/x/..”"),
        ({"write": ["/home"]}, "… would let commands write to your home folder: “/home”"),
        ({"write": [STATE]}, f"… would let commands write to the state directory: “{STATE}”"),
        ({"write": ["/home/ada/.local"]}, "… would let commands write to the state directory: “/home/ada/.local”"),
    ],
)
def test_bad_value_has_its_default_and_one_sentence(given: object, clause: str) -> None:
    """Each bad value gives one clause of the one message, and its default applies (row O1)."""
    assert read({"sandbox": given}) == (
        SandboxSettings(),
        [clause.replace("…", "a folder of steadyhand.sandbox.write")],
    )


def test_bad_folder_is_left_out_and_the_others_hold() -> None:
    """As with rules: one bad value does not lose the good ones (row O1)."""
    found, faults = read({"sandbox": {"write": ["/a", "b", "/c"]}})
    assert (found.write, len(faults)) == (("/a", "/c"), 1)


def test_folders_over_the_limit_are_ignored_and_said() -> None:
    """I13: at most 50 folders are read, and a clause says so (row O1)."""
    found, faults = read({"sandbox": {"write": [f"/data/{number}" for number in range(WRITE_FOLDERS_MAX + 1)]}})
    assert len(found.write) == WRITE_FOLDERS_MAX == 50
    assert faults == ["steadyhand.sandbox.write has more than 50 folders; the others are ignored"]
