"""The converter is strict: it refuses every value that does not fit, with the path of each error.

Tables of single errors come first. Then come laws over the golden messages: no object accepts an extra key, no
position accepts null or a value of another type, and no required key may be missing.
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
from steadyhand_protocol.faults import ERRORS_COUNT_MAX, MESSAGE_CHARS_MAX, PATH_CHARS_MAX

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

EVENT_US_MAX = 10


def faults(shape: Any, value: object) -> dict[str, str]:
    with pytest.raises(wire.WireError) as caught:
        wire.structure(shape, value)
    return {error.path: error.message for error in caught.value.errors}


def with_attachments(*attachments: object) -> dict[str, Any]:
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
        (with_attachments(*[{"kind": "problems"}] * 21), "$.attachments", "longer than 20 items"),
        (with_attachments([]), "$.attachments[0]", "expected an object, found an array"),
        (with_attachments({}), "$.attachments[0].kind", "missing"),
        (
            with_attachments({"kind": "image"}),
            "$.attachments[0].kind",
            'expected one of "file", "selection", "problems", "text"',
        ),
        (
            with_attachments({"kind": ["file"]}),
            "$.attachments[0].kind",
            'expected one of "file", "selection", "problems", "text"',
        ),
        (with_attachments({"kind": "problems"}, {"kind": "file"}), "$.attachments[1].path", "missing"),
        (with_attachments({"kind": "problems", "path": "a"}), "$.attachments[0].path", "unknown field"),
        (
            with_attachments({"kind": "text", "name": "n", "text": "ä" * 131_073}),
            "$.attachments[0].text",
            "longer than 262144 bytes",
        ),
        (
            with_attachments({"kind": "file", "path": "a", "range": RANGE | {"start": {"line": 1.0, "character": 0}}}),
            "$.attachments[0].range.start.line",
            "expected an integer, found a number with a fraction or exponent",
        ),
        (
            with_attachments({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": True, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer, found a boolean",
        ),
        (
            with_attachments({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": -1, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer from 0 to 2147483647",
        ),
        (
            with_attachments({"kind": "file", "path": "a", "range": RANGE | {"end": {"line": 2**31, "character": 0}}}),
            "$.attachments[0].range.end.line",
            "expected an integer from 0 to 2147483647",
        ),
    ],
)
def test_structure_prompt_with_one_fault_names_its_path(value: object, path: str, message: str) -> None:
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
def test_structure_other_types_with_one_fault_name_its_path(shape: Any, value: object, path: str, message: str) -> None:
    """A resolution with an unknown field has no effect (A3). A union names the field that selects its member."""
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
def test_structure_arguments_of_a_command_are_as_strict(shape: type[Any] | None, arguments: object, path: str) -> None:
    """An array with the one element that the command takes. An error path starts with the index in the array."""
    with pytest.raises(wire.WireError) as caught:
        wire.structure_arguments(shape, arguments)
    assert caught.value.errors[0].path == path


def test_structure_arguments_may_be_absent_where_none_is_required() -> None:
    """A client that calls a command from a list sends no arguments."""
    calls: tuple[object, ...] = (None, [], [{}])
    for arguments in calls:
        found = wire.structure_arguments(recovery.RecoveryListArguments, arguments)
        assert found == recovery.RecoveryListArguments()
    assert wire.structure_arguments(None, []) is None


def test_wire_errors_are_bounded_in_count_and_length() -> None:
    """At most ten errors, with short paths and messages, however large the input is [I13]."""
    huge = START | {"k" * 5_000 + str(number): 0 for number in range(50)} | {"attachments": [0] * 20}
    with pytest.raises(wire.WireError) as caught:
        wire.structure(turn.TurnStartParams, huge)
    errors = caught.value.errors
    assert len(errors) == ERRORS_COUNT_MAX
    assert max(len(error.path) for error in errors) <= PATH_CHARS_MAX
    assert max(len(error.message) for error in errors) <= MESSAGE_CHARS_MAX


def test_structure_reports_all_faults_of_one_object_together() -> None:
    """The client learns of each error at once."""
    wrong = {"sessionId": 1, "epoch": ID, "clientMessageId": "", "aside": 0, "more": 1}
    assert list(faults(turn.TurnStartParams, wrong)) == [
        "$.sessionId", "$.clientMessageId", "$.text", "$.aside", "$.more"
    ]  # fmt: skip


def test_wire_errors_never_repeat_a_received_value() -> None:
    """An error may be logged, and a message may contain a secret (E2)."""
    wrong = START | {"sessionId": "hunter2", "aside": "hunter2", "attachments": [{"kind": "hunter2"}]}
    assert "hunter2" not in json.dumps(faults(turn.TurnStartParams, wrong))


# Laws over the golden messages.

Step = str | int
JsonPath = tuple[Step, ...]


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


def positions(value: Any, here: JsonPath = ()) -> Iterator[tuple[JsonPath, Any]]:
    """Every position in a JSON value, with the value there."""
    yield here, value
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in inside:
        yield from positions(item, (*here, step))


def refusal(shape: Any, value: object) -> list[str] | None:
    """The messages of a refusal, or None when the value fits."""
    try:
        wire.structure(shape, value)
    except wire.WireError as error:
        return [fault.message for fault in error.errors]
    return None


def replaced(value: Any, position: JsonPath, new: Any) -> Any:
    if not position:
        return new
    changed = copy.copy(value)
    changed[position[0]] = replaced(value[position[0]], position[1:], new)
    return changed


def path_of(position: JsonPath) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in position)


GOLDEN = list(golden())
OBJECTS = [
    (n, position)
    for n, (_, value) in enumerate(GOLDEN)
    for position, part in positions(value)
    if isinstance(part, dict)
]


@settings(max_examples=300, deadline=None)
@given(
    place=st.sampled_from(OBJECTS),
    key=st.from_regex("[a-z_][A-Za-z]{0,12}", fullmatch=True),
    extra=st.none() | st.booleans() | st.text(),
)
def test_structure_refuses_an_unknown_key_in_any_object(place: tuple[int, JsonPath], key: str, extra: object) -> None:
    """An unknown field is refused at its own path, at any depth (A3)."""
    number, position = place
    shape, value = GOLDEN[number]
    part = dict(positions(value))[position]
    key = f"{key}Unknown"
    found = faults(shape, replaced(value, position, part | {key: extra}))
    assert found == {path_of((*position, key)): "unknown field"}


@pytest.mark.parametrize("other", [None, True, 1.0, -7, "é", [], [0], {}], ids=repr)
def test_structure_refuses_null_and_other_types_at_every_position(other: object) -> None:
    """Null is never a value and nothing is coerced: each position of each example, one at a time."""
    checked = 0
    for shape, value in GOLDEN:
        for position, part in positions(value):
            # Another value of the same kind may fit.
            if type(part) is type(other):
                continue
            checked += 1
            found = faults(shape, replaced(value, position, other))
            assert all(path.startswith(path_of(position[:-1])) for path in found)
    assert checked > len(GOLDEN)


def test_structure_refuses_a_missing_required_key() -> None:
    """Without one key, either the value is still valid without it, or the error says which key is missing."""
    checked = 0
    for number, position in OBJECTS:
        shape, value = GOLDEN[number]
        part = dict(positions(value))[position]
        for key in part:
            rest = replaced(value, position, {name: part[name] for name in part if name != key})
            missing = refusal(shape, rest)
            if missing is None:
                assert wire.unstructure(wire.structure(shape, rest)) == rest
                continue
            checked += 1
            is_union_key = len(part) == 1 and key in ONE_OF
            assert missing == [f"expected one of the fields {ONE_OF[key]}" if is_union_key else "missing"]
    assert checked > len(OBJECTS)


# Values that the server sends.


def test_unstructure_gives_camel_case_json_without_null() -> None:
    """Keys are in camelCase, without the underscore of a Python keyword. Absent fields are left out, and tuples become
    arrays.
    """
    moved = values.ChangedPath(path="b", change="moved", from_="a")
    ended = turn.EndedEvent(reason="done", changed=(moved,))
    assert wire.unstructure(ended) == {
        "kind": "ended",
        "reason": "done",
        "changed": [{"path": "b", "change": "moved", "from": "a"}],
    }
    assert wire.unstructure((moved,)) == [{"path": "b", "change": "moved", "from": "a"}]


def test_unstructure_small_event_stays_below_its_time_limit() -> None:
    """A turn sends thousands of events. One takes about 0.5 µs, and none may come near the bound."""
    event = turn.TurnEvent(
        session_id=ID,
        epoch=ID,
        turn_id=ID,
        number=1,
        event=turn.DeltaEvent(kind="text", message_id=ID, delta="word "),
    )
    wire.unstructure(event)
    best_seconds = min(timeit.repeat(lambda: wire.unstructure(event), number=500, repeat=20)) / 500
    assert best_seconds * 1e6 < EVENT_US_MAX
