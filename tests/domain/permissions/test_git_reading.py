"""What git lists as its configuration, and what overrides it for a reading (row O2, decision 61)."""

from __future__ import annotations

from steadyhand.domain.permissions.git_reading import (
    FILTERS_MAX,
    GitConfiguration,
    parse_configuration,
    reading_environment,
)


def listed(*entries: tuple[str, str, str]) -> bytes:
    return b"".join(f"{scope}\0{key}\n{value}\0".encode() for scope, key, value in entries)


def test_filters_of_every_scope_are_found_and_switched_off() -> None:
    """O2: whatever file names them, and whatever a filter is called."""
    found = parse_configuration(
        listed(
            ("system", "filter.lfs.clean", "git-lfs clean -- %f"),
            ("global", "filter.a.b c.process", "x"),
            ("local", "filter.only.required", "true"),
            ("global", "core.excludesfile", "~/.ignored"),
            ("local", "core.excludesfile", "/etc/shadow"),
            ("global", "alias.x", "!sh"),
        )
    )
    assert found == GitConfiguration(("lfs", "a.b c", "only"), ("~/.ignored",))
    variables = reading_environment(found)
    pairs = {
        variables[f"GIT_CONFIG_KEY_{number}"]: variables[f"GIT_CONFIG_VALUE_{number}"]
        for number in range(int(variables["GIT_CONFIG_COUNT"]))
    }
    assert pairs["filter.lfs.clean"] == pairs["filter.a.b c.process"] == ""
    assert pairs["filter.only.required"] == "false"
    assert pairs["core.fsmonitor"] == ""


def test_what_is_no_list_is_none() -> None:
    """O2: then the configuration of user and system is left out; git always lists what it was given."""
    for output in (b"", b"usage: git config", b"global\0", b"global\0a.b\n1", b"one\0two\0three\0"):
        assert parse_configuration(output) is None


def test_too_many_filters_are_none() -> None:
    """I13: each filter is four variables of the environment."""
    many = [("global", f"filter.f{number}.clean", "x") for number in range(FILTERS_MAX + 1)]
    assert parse_configuration(listed(*many[:-1])) is not None
    assert parse_configuration(listed(*many)) is None
