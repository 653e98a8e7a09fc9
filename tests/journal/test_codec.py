"""Record and members: every kind goes out and comes back, and nothing that does not fit comes in."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.core.record import (
    KINDS,
    Cancel,
    Evidence,
    FileChange,
    Intent,
    ModeSet,
    Record,
    Result,
    Scope,
    Session,
    Started,
    Tool,
    Unknown,
)
from steadyhand.journal.codec import Unreadable, decode, encode
from steadyhand.journal.format import read_journal
from tests.support.journals import journal

scopes = st.one_of(
    st.lists(st.text(max_size=5)).map(lambda paths: Scope(tuple(paths))), st.just(Scope(everything=True))
)
st.register_type_strategy(Scope, scopes)


def records() -> st.SearchStrategy[Record]:
    """Any record of any kind, by the types its class declares."""
    return st.one_of([built(cls) for cls in KINDS.values()])


def built(cls: type) -> st.SearchStrategy[Record]:
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{field.name: st.from_type(hints[field.name]) for field in attrs.fields(cls)})


def through_json(record: Record) -> object:
    """As a line takes it: encoded, written, parsed and decoded."""
    return decode(record.kind, json.loads(json.dumps(encode(record))))


@given(records())
def test_every_record_comes_back(record: Record) -> None:
    """J1, X1: whatever its members hold."""
    assert through_json(record) == record


@given(st.lists(records(), max_size=5))
def test_every_journal_comes_back(every: list[Record]) -> None:
    """J1, J2: in one journal, in order."""
    loaded = read_journal(journal(every))
    assert [stamped.record for stamped in loaded.records] == every
    assert loaded.damaged == 0


def everything_absent(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(part is not None and everything_absent(part) for part in value.values())
    return not isinstance(value, list | tuple) or all(map(everything_absent, value))


@given(records())
def test_nothing_is_written_as_null(record: Record) -> None:
    """wire.md: absent means left out, and names are camelCase."""
    encoded = json.loads(json.dumps(encode(record)))
    assert everything_absent(encoded)
    assert all("_" not in name for name in encoded)


def test_no_member_has_a_name_of_the_envelope() -> None:
    """J2: the six members of the envelope mean one thing in every kind."""
    envelope = {"sum", "prev", "v", "seq", "at"}
    for cls in KINDS.values():
        assert not envelope & {field.name for field in attrs.fields(cls)}


def test_records_of_an_attempt_name_it_at_the_top() -> None:
    """wire.md: attemptId and callId stand at the top level of each."""
    for kind in ("intent", "started", "result", "permission", "inspection", "settlement", "reject"):
        assert {"attempt_id", "call_id"} <= {field.name for field in attrs.fields(KINDS[kind])}


def test_receipts_hold_digests_and_no_texts() -> None:
    """J3: the arguments stand once, in the assistant message; the reply once, in the tool message."""
    for kind in ("intent", "started", "result"):
        assert not {"arguments", "text", "content"} & {field.name for field in attrs.fields(KINDS[kind])}
    assert "text" in {field.name for field in attrs.fields(Tool)}


def test_names_on_disk() -> None:
    """wire.md: camelCase, `from` of a move, a scope as an object."""
    change = FileChange("b", "moved", from_="a")
    result = encode(Result("a", "c", "t", "returned", files=(change,), exit_code=0))
    assert result["files"] in (
        [{"path": "b", "change": "moved", "from": "a"}],
        ({"path": "b", "change": "moved", "from": "a"},),
    )
    assert result["exitCode"] == 0
    intent = encode(Intent("a", "c", "t", "x", "x", "opaque", "d", Scope(everything=True), "k", 0))
    assert intent["scope"] == {"everything": True}
    assert decode("intent", {**intent, "scope": {"paths": ["/b", "/a", "/b"]}}) == attrs.evolve(
        Intent("a", "c", "t", "x", "x", "opaque", "d", Scope(("/a", "/b")), "k", 0)
    )


INTENT = encode(Intent("a", "c", "t", "x", "x", "reads", "d", Scope(), "k", 0))
STARTED = json.loads(json.dumps(encode(Started("a", "c", (Evidence("f", "/f", False),)))))


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("cancel", {}),
        ("cancel", {"turnId": None}),
        ("cancel", {"turnId": 1}),
        ("cancel", {"turn_id": "t"}),
        ("mode", {"mode": "later"}),
        ("mode", {"mode": {}}),
        ("mode", {"mode": 1}),
        ("title", {"title": "x", "source": "elsewhere"}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "exploded"}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "check": "maybe"}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "check": None}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "by": "user"}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "exitCode": "0"}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "exitCode": True}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "files": {}}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "files": ["f"]}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "held": 1}),
        ("result", {"attemptId": "a", "callId": "c", "turnId": "t", "outcome": "returned", "left": "abc"}),
        ("intent", {**INTENT, "scope": None}),
        ("intent", {**INTENT, "scope": []}),
        ("intent", {**INTENT, "scope": {}}),
        ("intent", {**INTENT, "scope": {"everything": False}}),
        ("intent", {**INTENT, "scope": {"everything": 1}}),
        ("intent", {**INTENT, "scope": {"paths": "/a"}}),
        ("intent", {**INTENT, "scope": {"paths": [1]}}),
        ("intent", {**INTENT, "occurrence": 1.0}),
        ("started", {**STARTED, "evidence": [{**STARTED["evidence"][0], "existed": "no"}]}),
        ("started", {**STARTED, "evidence": [None]}),
        ("damage", {"count": 1, "offsets": ["1"]}),
        ("session", {"sessionId": "s", "mode": "ask", "model": "practice", "createdBy": "1"}),
    ],
)
def test_what_does_not_fit_is_unreadable(kind: str, members: dict[str, object]) -> None:
    """J9: a wrong type, a word that may not stand there, null: unreadable, never guessed and never another error."""
    with pytest.raises(Unreadable):
        decode(kind, members)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_no_members_raise_anything_else(kind: str, data: st.DataObject) -> None:
    """J9: whatever stands in place of one member, it is read or it is unreadable."""
    record = data.draw(built(KINDS[kind]))
    encoded = json.loads(json.dumps(encode(record)))
    name = data.draw(st.sampled_from(sorted(encoded) or ["x"]))
    encoded[name] = data.draw(json_values)
    try:
        found = decode(kind, encoded)
    except Unreadable:
        return
    assert isinstance(found, KINDS[kind])


def test_unknown_members_and_kinds_are_passed_over() -> None:
    """X1: what a later version adds is not read and not in the way, inside nested objects too."""
    assert decode("cancel", {"turnId": "t", "why": {"x": 1}}) == Cancel("t")
    assert decode("rewind", {"turnId": "t"}) == Unknown("rewind")
    nested = decode(
        "session", {"sessionId": "s", "mode": "ask", "model": {"provider": "p", "name": "n", "x": 1}, "createdBy": "1"}
    )
    assert isinstance(nested, Session)


def test_what_an_old_journal_leaves_out_has_a_meaning() -> None:
    """X1: every member that is not required has a default, so that it may be absent."""
    assert decode("mode", {"mode": "plan"}) == ModeSet("plan")
    shortest = decode("started", {"attemptId": "a", "callId": "c"})
    assert shortest == Started("a", "c")
