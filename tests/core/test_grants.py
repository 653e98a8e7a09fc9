"""Standing grants: what one covers, and a file in which no damaged byte makes a grant that nobody gave (row G2)."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.admission import Wanted
from steadyhand.core.grants import Standing, Unusable, covered, read_grants, standing_for, written
from steadyhand.core.record import EffectClass, Scope
from steadyhand.core.scope import EVERYTHING

texts = st.text(max_size=20)
grants = st.one_of(
    st.builds(Standing, texts, texts, texts, st.none() | texts),
    st.builds(Standing, texts, texts, texts, st.none() | texts, texts, texts),
)
SOME = (
    Standing("1" * 32, "then", "write_file", "/w"),
    Standing("2" * 32, "then", "run_command", None, "make && make test", "sub"),
)


def lined(body: object) -> bytes:
    text = json.dumps(body, separators=(",", ":"))[1:].encode()
    return b'{"sum":"' + f"{zlib.crc32(text):08x}".encode() + b'",' + text + b"\n"


@given(st.lists(grants, max_size=4))
def test_what_is_written_is_read(some: list[Standing]) -> None:
    """G2: any grants, with any texts; one line."""
    content = written(some)
    assert read_grants(content) == tuple(some)
    assert content.count(b"\n") == 1


def test_no_damaged_byte_makes_a_grant() -> None:
    """G2: each flipped, missing or doubled byte, and each beginning, makes the file unusable."""
    content = written(SOME)
    for at in range(len(content)):
        for bit in range(8):
            flipped = content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
            assert read_grants(flipped) == Unusable(newer=False)
        assert isinstance(read_grants(content[:at]), Unusable)
        assert isinstance(read_grants(content[:at] + content[at + 1 :]), Unusable)
        assert isinstance(read_grants(content[: at + 1] + content[at:]), Unusable)


@given(st.binary(max_size=100))
def test_any_bytes_are_read(content: bytes) -> None:
    """S6: whatever stands there."""
    assert isinstance(read_grants(content), Unusable)


def test_a_newer_version_is_told_from_damage() -> None:
    """X1: it is not ours to judge or to change; members that are not known here are passed over."""
    assert read_grants(lined({"v": 2, "grants": "other"})) == Unusable(newer=True)
    assert read_grants(lined({"v": 1, "grants": [], "more": 1})) == ()
    for body in ({"v": 0, "grants": []}, {"v": "1", "grants": []}, {"v": 1}, {"v": 1, "grants": [{"id": "1"}]}):
        assert read_grants(lined(body)) == Unusable(newer=False)
    half = {"id": "1", "at": "then", "tool": "run_command", "command": "make"}
    assert read_grants(lined({"v": 1, "grants": [half]})) == Unusable(newer=False)


def wanted(tool: str, root: str | None = "/w", command: tuple[str, str] | None = None) -> Wanted:
    effect: EffectClass = "writes_files" if command is None else "opaque"
    return Wanted(tool, effect, EVERYTHING if command else Scope(("/w/a",)), False, False, command, root)


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
def test_what_a_grant_covers(given_for: Wanted, asked: Wanted, where: str, everywhere: bool) -> None:
    """wire.md, as of the session: that tool, or that very command in that folder, in its workspace or in each."""
    grant = standing_for(given_for, everywhere, "1" * 32, "then")
    assert covered([grant], asked) is (where == "here" or (where == "everywhere" and everywhere))


def test_an_effect_without_a_path_is_never_covered() -> None:
    """G2: settling an effect, or stopping a job, is asked about each time."""
    settles = Wanted("settle_effect", "opaque", Scope(), False, False, None, "/w")
    assert not covered([Standing("1" * 32, "then", "settle_effect", "/w")], settles)
