"""The golden messages: each one fits its type and survives a round trip, and together they cover the whole contract.

They are in `protocol/examples/`, one array for each module, and the TypeScript tests read them as well. A row has
`about` and either `method` with `params` or `result`, or `command` with `arguments` or `result`, or `error`.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import attrs
import pytest

from steadyhand_protocol import methods, refusals, turn, wire

EXAMPLES = Path(__file__).parents[2] / "protocol" / "examples"

Row = dict[str, Any]

ROWS: list[Row] = [row for file in sorted(EXAMPLES.glob("*.json")) for row in json.loads(file.read_text("utf-8"))]


def row_id(row: Row) -> str:
    part_name = next(key for key in ("params", "arguments", "result", "error") if key in row)
    return f"{row.get('method') or row.get('command') or row['error']['code']} {part_name} {row['about']}"


def read(row: Row) -> tuple[Any, Any]:
    """The wire value of a row and the JSON value that it represents."""
    if "error" in row:
        value = row["error"]["data"]
        shape = refusals.Refusal if "kind" in value else refusals.InvalidParams
        return wire.structure(shape, value), value
    if "command" in row:
        command = methods.COMMANDS_BY_NAME[row["command"]]
        if "arguments" in row:
            element = wire.structure_arguments(command.arguments, row["arguments"])
            return (() if element is None else (element,)), row["arguments"]
        return wire.structure(command.result, row["result"]), row["result"]
    method = methods.BY_NAME[row["method"]]
    if "params" in row:
        return wire.structure(method.params, row["params"]), row["params"]
    assert method.result is not None
    return wire.structure(method.result, row["result"]), row["result"]


def parts(value: Any) -> Iterator[Any]:
    """Every wire value inside a wire value, itself included."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif attrs.has(type(value)):
        yield value
        for field in attrs.fields(type(value)):
            yield from parts(getattr(value, field.name))


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_example_roundtrip_gives_the_same_json(row: Row) -> None:
    """A value that is read and written again is the same JSON, with the same types (true is not 1)."""
    value, given = read(row)
    assert json.dumps(wire.unstructure(value), sort_keys=True) == json.dumps(given, sort_keys=True)


def test_examples_cover_every_method_command_and_error() -> None:
    """Both halves of each request, each notification, each command, and each error kind with its own code."""
    shown = {(row.get("method") or row.get("command"), key) for row in ROWS for key in row}
    for method in methods.METHODS:
        assert (method.name, "params") in shown
        assert ((method.name, "result") in shown) == (method.result is not None)
    for command in methods.COMMANDS:
        assert {(command.name, "arguments"), (command.name, "result")} <= shown
    errors = [row["error"] for row in ROWS if "error" in row]
    kinds = {(error["data"]["kind"], error["code"]) for error in errors if "kind" in error["data"]}
    assert kinds == set(methods.ERRORS.items())


def test_examples_cover_every_kind_of_event_and_attachment() -> None:
    """Each member of the two unions, and each value where one member has two."""
    seen = [part for row in ROWS for part in parts(read(row)[0])]
    for union in (turn.Event, turn.Attachment):
        assert {type(part) for part in seen} >= set(get_args(union))
    kinds = {part.kind for part in seen if isinstance(part, turn.DeltaEvent)}
    assert kinds == {"text", "reasoning"}


def test_examples_give_and_omit_every_optional_field() -> None:
    """No type of the contract, and no optional field in it, is without an example."""
    given: set[tuple[str, str]] = set()
    left_out: set[tuple[str, str]] = set()
    shapes: set[type[Any]] = set()
    for part in (part for row in ROWS for part in parts(read(row)[0])):
        shapes.add(type(part))
        for field in attrs.fields(type(part)):
            if field.default is None:
                target = left_out if getattr(part, field.name) is None else given
                target.add((type(part).__name__, field.name))
    optional = {
        (shape.__name__, field.name) for shape in shapes for field in attrs.fields(shape) if field.default is None
    }
    assert optional - given == set()
    assert optional - left_out == set()
