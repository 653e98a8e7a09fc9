"""The converter is strict: whatever does not fit is refused, with the path of each fault.

Tables of single faults first; then laws over the golden messages: no object of a message takes a further key,
no place in it takes null or another kind of value, no required key may be missing.
"""

import copy
import json
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadyhand_protocol import methods, recovery, session, turn, values, wire
from steadyhand_protocol.faults import errors_count_max, message_chars_max, path_chars_max

ID = "0123456789abcdef" * 2
DIGEST = ID * 2
START: dict[str, Any] = {"sessionId": ID, "epoch": ID, "clientMessageId": "a", "text": "hello"}
RANGE = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
RESOLVE = {"sessionId": ID, "runtimeEpoch": ID, "revision": DIGEST, "attemptId": ID, "action": "inspect"}

ONE_OF = {
    "paths": "paths, everything",
    "everything": "paths, everything",
    "answer": "answer, dismissed",
    "dismissed": "answer, dismissed",
}

event_microseconds_max = 10


def faults(shape: Any, value: object) -> dict[str, str]:
    with pytest.raises(wire.WireError) as caught:
        wire.structure(shape, value)
    return {error.path: error.message for error in caught.value.errors}


def attached(*attachments: object) -> dict[str, Any]:
    return START | {"attachments": list(attachments)}


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ([], "$", "expected an object, found an array"),
        (None, "$", "expected an object, found null"),
        ("text", "$", "expected an object, found a string"),
        (START | {"extra": 1}, "$.extra", "unknown field"),
        (START | {"client_message_id": "a"}, "$.client_message_id", "unknown field"),
        (START | {"an \ud800 odd\nkey": 1}, '$["an \\ud800 odd\\nkey"]', "unknown field"),
        ({key: START[key] for key in START if key != "text"}, "$.text", "missing"),
        (START | {"text": None}, "$.text", "expected a string, found null"),
        (START | {"text": 5}, "$.text", "expected a string, found an integer"),
        (START | {"text": "ab\ud800"}, "$.text", "half a surrogate pair at character 2"),
        (START | {"aside": None}, "$.aside", "expected a boolean, found null"),
        (START | {"aside": 1}, "$.aside", "expected a boolean, found an integer"),
        (START | {"sessionId": ID.upper()}, "$.sessionId", "expected 32 lower-case hexadecimal digits"),
        (START | {"sessionId": ID + "\n"}, "$.sessionId", "expected 32 lower-case hexadecimal digits"),
        (START | {"epoch": ID[1:]}, "$.epoch", "expected 32 lower-case hexadecimal digits"),
        (START | {"epoch": 7}, "$.epoch", "expected a string, found an integer"),
        (
            START | {"clientMessageId": ""},
            "$.clientMessageId",
            "expected 1 to 128 printable ASCII characters",
        ),
        (
            START | {"clientMessageId": "a" * 129},
            "$.clientMessageId",
            "expected 1 to 128 printable ASCII characters",
        ),
        (
            START | {"clientMessageId": "ä"},
            "$.clientMessageId",
            "expected 1 to 128 printable ASCII characters",
        ),
        (
            START | {"clientMessageId": "a\n"},
            "$.clientMessageId",
            "expected 1 to 128 printable ASCII characters",
        ),
        (START | {"attachments": None}, "$.attachments", "expected an array, found null"),
        (START | {"attachments": "text"}, "$.attachments", "expected an array, found a string"),
        (
            START | {"attachments": {"kind": "problems"}},
            "$.attachments",
            "expected an array, found an object",
        ),
        (attached(*[{"kind": "problems"}] * 21), "$.attachments", "longer than 20 items"),
        (attached([]), "$.attachments[0]", "expected an object, found an array"),
        (attached({}), "$.attachments[0].kind", "missing"),
        (
            attached({"kind": "image"}),
            "$.attachments[0].kind",
            'expected one of "file", "selection", "problems", "text"',
        ),
        (
            attached({"kind": ["file"]}),
            "$.attachments[0].kind",
            'expected one of "file", "selection", "problems", "text"',
        ),
        (attached({"kind": "problems"}, {"kind": "file"}), "$.attachments[1].path", "missing"),
        (attached({"kind": "problems", "path": "a"}), "$.attachments[0].path", "unknown field"),
        (
            attached({"kind": "text", "name": "n", "text": "ä" * 131_073}),
            "$.attachments[0].text",
            "longer than 262144 bytes",
        ),
        (
            attached({"kind": "file", "path": "a", "range": RANGE | {"start": {"line": 1.0, "character": 0}}}),
            "$.attachments[0].range.start.line",
            "expected an integer, found a number with a fraction or exponent",
        ),
        (
            attached({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": True, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer, found a boolean",
        ),
        (
            attached({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": -1, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer from 0 to 2147483647",
        ),
        (
            attached({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": 2**31, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer from 0 to 2147483647",
        ),
    ],
)
def test_a_prompt_with_one_fault_is_refused_there(value: object, path: str, message: str) -> None:
    """Unknown fields and wrong types name their path (D1: the client's id is within its bounds)."""
    assert faults(turn.TurnStartParams, value) == {path: message}


@pytest.mark.parametrize(
    ("shape", "value", "path", "message"),
    [
        (recovery.ResolveParams, RESOLVE | {"arguments": "{}"}, "$.arguments", "unknown field"),
        (
            recovery.ResolveParams,
            RESOLVE | {"revision": ID},
            "$.revision",
            "expected 64 lower-case hexadecimal digits",
        ),
        (
            recovery.ResolveParams,
            RESOLVE | {"inspectionId": None},
            "$.inspectionId",
            "expected a string, found null",
        ),
        (
            recovery.ResolveParams,
            RESOLVE | {"action": "Inspect"},
            "$.action",
            'expected one of "inspect", "confirm", "reject", "waive", "retry", "restore"',
        ),
        (values.Nothing, {"a": 1}, "$.a", "unknown field"),
        (values.Nothing, [], "$", "expected an object, found an array"),
        (values.Scope, {}, "$", "expected one of the fields paths, everything"),
        (values.Scope, {"everything": 1}, "$.everything", "expected true"),
        (values.Scope, {"everything": False}, "$.everything", "expected true"),
        (values.Scope, {"paths": [], "everything": True}, "$.everything", "unknown field"),
        (values.Scope, {"paths": "ab"}, "$.paths", "expected an array, found a string"),
        (values.Scope, {"paths": ["a", "\udfff"]}, "$.paths[1]", "half a surrogate pair at character 0"),
        (values.Scope, "paths", "$", "expected an object, found a string"),
        (
            session.SessionOpenParams,
            {"sessionId": ID, "tail": -1},
            "$.tail",
            "expected an integer from 0 to 9007199254740991",
        ),
        (
            session.SessionOpenParams,
            {"sessionId": ID, "tail": "9"},
            "$.tail",
            "expected an integer, found a string",
        ),
        (
            turn.TurnEventsParams,
            {"sessionId": ID, "epoch": ID, "after": 10**400},
            "$.after",
            "expected an integer from 0 to 9007199254740991",
        ),
        (
            values.Owner,
            {"pid": 1, "host": "h", "since": "2026-01-31T09:30:00Z"},
            "$.since",
            "expected a UTC time with milliseconds, as 2026-01-31T09:30:00.000Z",
        ),
    ],
)
def test_other_shapes_with_one_fault_are_refused_there(shape: Any, value: object, path: str, message: str) -> None:
    """A resolution with an unknown field has no effect (A3); a union says by which field it is told apart."""
    assert faults(shape, value) == {path: message}


@pytest.mark.parametrize(
    ("shape", "arguments", "path"),
    [
        (turn.TurnCancelParams, {}, "$"),
        (turn.TurnCancelParams, [], "$[0].sessionId"),
        (turn.TurnCancelParams, None, "$[0].sessionId"),
        (turn.TurnCancelParams, [{"sessionId": ID, "turnId": 1}], "$[0].turnId"),
        (turn.TurnCancelParams, [None], "$[0]"),
        (turn.TurnCancelParams, [{"sessionId": ID, "turnId": ID}, {}], "$"),
        (None, [{}], "$"),
        (None, "[]", "$"),
    ],
)
def test_arguments_of_a_command_are_as_strict(shape: type[Any] | None, arguments: object, path: str) -> None:
    """An array with the one element the command takes; its path begins with the place in the array."""
    with pytest.raises(wire.WireError) as caught:
        wire.structure_arguments(shape, arguments)
    assert caught.value.errors[0].path == path


def test_a_command_may_be_called_with_nothing_where_nothing_is_needed() -> None:
    """A client that calls a command from a list sends no arguments."""
    calls: tuple[object, ...] = (None, [], [{}])
    for arguments in calls:
        found = wire.structure_arguments(recovery.RecoveryListArguments, arguments)
        assert found == recovery.RecoveryListArguments()
    assert wire.structure_arguments(None, []) is None


def test_errors_are_bounded() -> None:
    """At most ten, each path and message short, however large what came was [I13]."""
    huge = START | {"k" * 5_000 + str(number): 0 for number in range(50)} | {"attachments": [0] * 20}
    with pytest.raises(wire.WireError) as caught:
        wire.structure(turn.TurnStartParams, huge)
    errors = caught.value.errors
    assert len(errors) == errors_count_max
    assert max(len(error.path) for error in errors) <= path_chars_max
    assert max(len(error.message) for error in errors) <= message_chars_max


def test_all_faults_of_one_object_are_told_together() -> None:
    """The client learns of each at once."""
    wrong = {"sessionId": 1, "epoch": ID, "clientMessageId": "", "aside": 0, "more": 1}
    assert list(faults(turn.TurnStartParams, wrong)) == [
        "$.sessionId", "$.clientMessageId", "$.text", "$.aside", "$.more"
    ]  # fmt: skip


def test_no_value_that_came_is_repeated() -> None:
    """An error may be logged; what was in the message may be a secret (E2)."""
    wrong = START | {"sessionId": "hunter2", "aside": "hunter2", "attachments": [{"kind": "hunter2"}]}
    assert "hunter2" not in json.dumps(faults(turn.TurnStartParams, wrong))


# --- laws over the golden messages --------------------------------------------------------------------------

Step = str | int
Spot = tuple[Step, ...]


def golden() -> Iterator[tuple[Any, Any]]:
    """Shape and JSON value of every example of a method, and of the arguments of every command."""
    folder = Path(__file__).parents[2] / "protocol" / "examples"
    for file in sorted(folder.glob("*.json")):
        for row in json.loads(file.read_text("utf-8")):
            if "method" in row:
                method = methods.BY_NAME[row["method"]]
                yield (method.params, row["params"]) if "params" in row else (method.result, row["result"])
            elif row.get("arguments"):
                yield methods.COMMANDS_BY_NAME[row["command"]].arguments, row["arguments"][0]


def spots(value: Any, here: Spot = ()) -> Iterator[tuple[Spot, Any]]:
    """Every place in a JSON value with what stands there."""
    yield here, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inside:
        yield from spots(item, (*here, step))


def refusal(shape: Any, value: object) -> list[str] | None:
    """The messages of a refusal, None when the value fits."""
    try:
        wire.structure(shape, value)
    except wire.WireError as error:
        return [fault.message for fault in error.errors]
    return None


def replaced(value: Any, spot: Spot, new: Any) -> Any:
    if not spot:
        return new
    changed = copy.copy(value)
    changed[spot[0]] = replaced(value[spot[0]], spot[1:], new)
    return changed


def path_of(spot: Spot) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in spot)


GOLDEN = list(golden())
OBJECTS = [(n, spot) for n, (_, value) in enumerate(GOLDEN) for spot, part in spots(value) if isinstance(part, dict)]


@settings(max_examples=300, deadline=None)
@given(
    place=st.sampled_from(OBJECTS),
    key=st.from_regex("[a-z_][A-Za-z]{0,12}", fullmatch=True),
    extra=st.none() | st.booleans() | st.text(),
)
def test_no_object_anywhere_takes_a_further_key(place: tuple[int, Spot], key: str, extra: object) -> None:
    """An unknown field is refused at its own path, wherever it stands (A3)."""
    number, spot = place
    shape, value = GOLDEN[number]
    part = dict(spots(value))[spot]
    key = f"{key}Unknown"
    found = faults(shape, replaced(value, spot, part | {key: extra}))
    assert found == {path_of((*spot, key)): "unknown field"}


@pytest.mark.parametrize("other", [None, True, 1.0, -7, "é", [], [0], {}], ids=repr)
def test_no_place_takes_another_kind_of_value(other: object) -> None:
    """Null is never a value; nothing is coerced: each place of each example, one at a time."""
    tried = 0
    for shape, value in GOLDEN:
        for spot, part in spots(value):
            # Another value of the same kind may fit.
            if type(part) is type(other):
                continue
            tried += 1
            found = faults(shape, replaced(value, spot, other))
            assert all(path.startswith(path_of(spot[:-1])) for path in found)
    assert tried > len(GOLDEN)


def test_no_required_key_may_be_missing() -> None:
    """Taking one key out leaves either a value without it, or a fault that says which one is missing."""
    tried = 0
    for number, spot in OBJECTS:
        shape, value = GOLDEN[number]
        part = dict(spots(value))[spot]
        for key in part:
            rest = replaced(value, spot, {name: part[name] for name in part if name != key})
            missing = refusal(shape, rest)
            if missing is None:
                assert wire.unstructure(wire.structure(shape, rest)) == rest
                continue
            tried += 1
            told_apart_by_key = len(part) == 1 and key in ONE_OF
            assert missing == [f"expected one of the fields {ONE_OF[key]}" if told_apart_by_key else "missing"]
    assert tried > len(OBJECTS)


# --- the way out --------------------------------------------------------------------------------------------


def test_what_goes_out_is_plain_json_without_null() -> None:
    """Keys in camelCase, a Python keyword's underscore gone, absent left out, tuples as arrays."""
    moved = values.ChangedPath(path="b", change="moved", from_="a")
    ended = turn.EndedEvent(reason="done", changed=(moved,))
    assert wire.unstructure(ended) == {
        "kind": "ended",
        "reason": "done",
        "changed": [{"path": "b", "change": "moved", "from": "a"}],
    }
    assert wire.unstructure((moved,)) == [{"path": "b", "change": "moved", "from": "a"}]


def test_a_small_event_is_quick() -> None:
    """Thousands of events go out in a turn; measured 0.5 µs, and none may come near the bound."""
    event = turn.TurnEvent(
        session_id=ID,
        epoch=ID,
        turn_id=ID,
        number=1,
        event=turn.DeltaEvent(kind="text", message_id=ID, delta="word "),
    )
    wire.unstructure(event)
    best_seconds = min(timeit.repeat(lambda: wire.unstructure(event), number=500, repeat=20)) / 500
    assert best_seconds * 1e6 < event_microseconds_max
