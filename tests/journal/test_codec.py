"""The codec between records and members: every kind survives a round trip, and nothing that does not fit is decoded."""

from __future__ import annotations

import json
import typing
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steadyhand.domain.records import prompt as prompt_module
from steadyhand.domain.records import record as record_module
from steadyhand.domain.records.record import (
    KINDS,
    Cancel,
    Evidence,
    FileChange,
    Intent,
    ModeSet,
    Record,
    Result,
    Scope,
    SessionHeader,
    Started,
    ToolResult,
    Unknown,
)
from steadyhand.journal.codec import UnreadableRecord, decode, encode
from steadyhand.journal.format import read_journal
from tests.support.journals import journal

scopes = st.one_of(
    st.lists(st.text(max_size=5)).map(lambda paths: Scope(tuple(paths))), st.just(Scope(everything=True))
)
st.register_type_strategy(Scope, scopes)
# hypothesis reads the signature of a class, which a value class has once its fields were read.
for _module in (record_module, prompt_module):
    for _value in list(vars(_module).values()):
        if isinstance(_value, type):
            attrs.has(_value)


def records() -> st.SearchStrategy[Record]:
    """Any record of any kind, by the types that its class declares."""
    return st.one_of([instances_of(cls) for cls in KINDS.values()])


def instances_of(cls: type) -> st.SearchStrategy[Record]:
    hints = typing.get_type_hints(cls)
    return st.builds(cls, **{field.name: st.from_type(hints[field.name]) for field in attrs.fields(cls)})


def through_json(record: Record) -> object:
    """The record encoded, written, parsed and decoded as a line does it."""
    return decode(record.kind, json.loads(json.dumps(encode(record))))


@given(records())
def test_codec_roundtrip_keeps_every_record(record: Record) -> None:
    """J1, X1: whatever its members contain."""
    assert through_json(record) == record


@given(st.lists(records(), max_size=5))
def test_journal_roundtrip_keeps_every_record_in_order(every: list[Record]) -> None:
    """J1, J2: in one journal, in order."""
    loaded = read_journal(journal(every))
    assert [stamped.record for stamped in loaded.records] == every
    assert loaded.damaged == 0


def has_no_null(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(part is not None and has_no_null(part) for part in value.values())
    return not isinstance(value, list | tuple) or all(map(has_no_null, value))


@given(records())
def test_encode_writes_no_null_and_camel_case_names(record: Record) -> None:
    """docs/journal-format.md: an absent member is left out, and names are camelCase."""
    encoded = json.loads(json.dumps(encode(record)))
    assert has_no_null(encoded)
    assert all("_" not in name for name in encoded)


def test_record_members_never_use_an_envelope_name() -> None:
    """J2: the six members of the envelope mean one thing in every kind."""
    envelope = {"sum", "prev", "v", "seq", "at"}
    for cls in KINDS.values():
        assert not envelope & {field.name for field in attrs.fields(cls)}


def test_attempt_records_have_attempt_and_call_id_at_the_top_level() -> None:
    """docs/journal-format.md: attemptId and callId are at the top level of each."""
    for kind in ("intent", "started", "result", "permission", "inspection", "settlement", "reject"):
        assert {"attempt_id", "call_id"} <= {field.name for field in attrs.fields(KINDS[kind])}


def test_attempt_records_contain_digests_and_no_texts() -> None:
    """J3: the arguments are stored once, in the assistant message, and the reply once, in the tool message."""
    for kind in ("intent", "started", "result"):
        assert not {"arguments", "text", "content"} & {field.name for field in attrs.fields(KINDS[kind])}
    assert "text" in {field.name for field in attrs.fields(ToolResult)}


def test_encode_uses_the_names_on_disk() -> None:
    """docs/journal-format.md: camelCase, `from` of a move, a scope as an object."""
    change = FileChange(path="b", change="moved", from_="a")
    result = encode(Result(attempt_id="a", call_id="c", turn_id="t", outcome="returned", files=(change,), exit_code=0))
    assert result["files"] in (
        [{"path": "b", "change": "moved", "from": "a"}],
        ({"path": "b", "change": "moved", "from": "a"},),
    )
    assert result["exitCode"] == 0
    intent = encode(
        Intent(
            attempt_id="a",
            call_id="c",
            turn_id="t",
            tool="x",
            title="x",
            effect="opaque",
            arguments_digest="d",
            scope=Scope(everything=True),
            key="k",
            occurrence=0,
        )
    )
    assert intent["scope"] == {"everything": True}
    assert decode("intent", {**intent, "scope": {"paths": ["/b", "/a", "/b"]}}) == attrs.evolve(
        Intent(
            attempt_id="a",
            call_id="c",
            turn_id="t",
            tool="x",
            title="x",
            effect="opaque",
            arguments_digest="d",
            scope=Scope(("/a", "/b")),
            key="k",
            occurrence=0,
        )
    )


INTENT = encode(
    Intent(
        attempt_id="a",
        call_id="c",
        turn_id="t",
        tool="x",
        title="x",
        effect="reads",
        arguments_digest="d",
        scope=Scope(),
        key="k",
        occurrence=0,
    )
)
STARTED = json.loads(
    json.dumps(
        encode(Started(attempt_id="a", call_id="c", evidence=(Evidence(path="f", resolved="/f", existed=False),)))
    )
)


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
def test_decode_members_that_do_not_fit_are_unreadable(kind: str, members: dict[str, object]) -> None:
    """J9: a wrong type, a value that is not allowed there, null: unreadable, never guessed and never another error."""
    with pytest.raises(UnreadableRecord):
        decode(kind, members)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_decode_any_member_value_is_read_or_unreadable(kind: str, data: st.DataObject) -> None:
    """J9: with any value in place of one member, the record is read or it is unreadable."""
    record = data.draw(instances_of(KINDS[kind]))
    encoded = json.loads(json.dumps(encode(record)))
    name = data.draw(st.sampled_from(sorted(encoded) or ["x"]))
    encoded[name] = data.draw(json_values)
    try:
        found = decode(kind, encoded)
    except UnreadableRecord:
        return
    assert isinstance(found, KINDS[kind])


def test_decode_ignores_unknown_members_and_kinds() -> None:
    """X1: additions of a later version are ignored and cause no error, inside nested objects too."""
    assert decode("cancel", {"turnId": "t", "why": {"x": 1}}) == Cancel(turn_id="t")
    assert decode("future", {"turnId": "t"}) == Unknown(kind_name="future")
    nested = decode(
        "session", {"sessionId": "s", "mode": "ask", "model": {"provider": "p", "name": "n", "x": 1}, "createdBy": "1"}
    )
    assert isinstance(nested, SessionHeader)


def test_decode_absent_optional_members_have_defaults() -> None:
    """X1: every member that is not required has a default, so that it may be absent."""
    assert decode("mode", {"mode": "plan"}) == ModeSet(mode="plan")
    shortest = decode("started", {"attemptId": "a", "callId": "c"})
    assert shortest == Started(attempt_id="a", call_id="c")
