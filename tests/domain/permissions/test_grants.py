"""Standing grants: what one covers, and a file format in which no damaged byte makes a grant that the user did not
give (row G2).
"""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.permissions.grants import (
    InvalidGrants,
    StandingGrant,
    decode_grants,
    encode_grants,
    grant_for,
    is_covered,
)
from steadyhand.domain.permissions.policy import CallFacts
from steadyhand.domain.records.record import EffectClass, Scope
from steadyhand.domain.records.scope import EVERYTHING

texts = st.text(max_size=20)
grants = st.one_of(
    st.builds(StandingGrant, texts, texts, texts, st.none() | texts),
    st.builds(StandingGrant, texts, texts, texts, st.none() | texts, texts, texts),
)
TWO_GRANTS = (
    StandingGrant("1" * 32, "then", "write_file", "/w"),
    StandingGrant("2" * 32, "then", "run_command", None, "make && make test", "sub"),
)


def lined(body: object) -> bytes:
    text = json.dumps(body, separators=(",", ":"))[1:].encode()
    return b'{"sum":"' + f"{zlib.crc32(text):08x}".encode() + b'",' + text + b"\n"


@given(st.lists(grants, max_size=4))
def test_grants_file_roundtrip_keeps_every_grant(some: list[StandingGrant]) -> None:
    """G2: any grants, with any texts, in one line."""
    content = encode_grants(some)
    assert decode_grants(content) == tuple(some)
    assert content.count(b"\n") == 1


def test_grants_file_with_any_damaged_byte_is_unusable() -> None:
    """G2: each flipped, missing or doubled byte, and each truncation, makes the file unusable."""
    content = encode_grants(TWO_GRANTS)
    for at in range(len(content)):
        for bit in range(8):
            flipped = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            assert decode_grants(flipped) == InvalidGrants(newer=False)
        assert isinstance(decode_grants(content[:at]), InvalidGrants)
        assert isinstance(decode_grants(content[:at] + content[at + 1 :]), InvalidGrants)
        assert isinstance(decode_grants(content[: at + 1] + content[at:]), InvalidGrants)


@given(st.binary(max_size=100))
def test_grants_file_of_arbitrary_bytes_is_unusable(content: bytes) -> None:
    """S6: reading never fails, whatever the file contains."""
    assert isinstance(decode_grants(content), InvalidGrants)


def test_grants_file_of_a_newer_version_is_not_reported_as_damage() -> None:
    """X1: a newer file is not ours to judge or to change. Members that this version does not know are ignored."""
    assert decode_grants(lined({"v": 2, "grants": "other"})) == InvalidGrants(newer=True)
    assert decode_grants(lined({"v": 1, "grants": [], "more": 1})) == ()
    for body in ({"v": 0, "grants": []}, {"v": "1", "grants": []}, {"v": 1}, {"v": 1, "grants": [{"id": "1"}]}):
        assert decode_grants(lined(body)) == InvalidGrants(newer=False)
    half = {"id": "1", "at": "then", "tool": "run_command", "command": "make"}
    assert decode_grants(lined({"v": 1, "grants": [half]})) == InvalidGrants(newer=False)


def wanted(tool: str, root: str | None = "/w", command: tuple[str, str] | None = None) -> CallFacts:
    effect: EffectClass = "writes_files" if command is None else "opaque"
    return CallFacts(tool, effect, EVERYTHING if command else Scope(("/w/a",)), False, False, command, root)


MAKE = ("make", "/w/sub")


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize(
    ("given_for", "asked", "where"),
    [
        (wanted("write_file"), wanted("write_file"), "here"),
        (wanted("write_file"), wanted("write_file", "/other"), "everywhere"),
        (wanted("write_file"), wanted("write_file", None), "nowhere"),
        (wanted("write_file"), wanted("delete_file"), "nowhere"),
        (wanted("write_file"), wanted("run_command", "/w", MAKE), "nowhere"),
        (wanted("run_command", "/w", MAKE), wanted("run_command", "/w", MAKE), "here"),
        (wanted("run_command", "/w", MAKE), wanted("run_command", "/w", ("make all", "/w/sub")), "nowhere"),
        (wanted("run_command", "/w", MAKE), wanted("run_command", "/w", ("make", "/w")), "nowhere"),
        (wanted("run_command", "/w", MAKE), wanted("run_command", "/v", ("make", "/v/sub")), "everywhere"),
        (wanted("run_command", "/w", MAKE), wanted("run_command", "/v", MAKE), "nowhere"),
    ],
)
def test_grant_covers_its_tool_or_command_in_its_workspace_or_all(
    given_for: CallFacts, asked: CallFacts, where: str, everywhere: bool
) -> None:
    """As for a grant of the session, docs/protocol.md: that tool, or exactly that command in that folder, in its
    workspace or in every one.
    """
    grant = grant_for(given_for, everywhere, "1" * 32, "then")
    assert is_covered([grant], asked) is (where == "here" or (where == "everywhere" and everywhere))


def test_grant_never_covers_an_effect_without_a_path() -> None:
    """G2: settling an effect or stopping a job is asked about each time."""
    settles = CallFacts("settle_effect", "opaque", Scope(), False, False, None, "/w")
    assert not is_covered([StandingGrant("1" * 32, "then", "settle_effect", "/w")], settles)
