"""The golden messages: each fits its shape and comes back as it was, and together they show the whole
contract.

They stand in `protocol/examples/`, one array for each room, and are read by the TypeScript tests as well. A
row has `about` and either `method` with `params` or `result`, or `command` with `arguments` or `result`, or
`error`.
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


def named(row: Row) -> str:
    said = next(key for key in ("params", "arguments", "result", "error") if key in row)
    return f"{row.get('method') or row.get('command') or row['error']['code']} {said} {row['about']}"


def read(row: Row) -> tuple[Any, Any]:
    """The wire value of a row and the JSON value it stands for."""
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
    """Every wire value inside a wire value, itself among them."""
    if isinstance(value, tuple):
        for item in value:
            yield from parts(item)
    elif attrs.has(type(value)):
        yield value
        for field in attrs.fields(type(value)):
            yield from parts(getattr(value, field.name))


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_an_example_comes_back_as_it_was(row: Row) -> None:
    """What is read and written again is the same JSON, with the same types (true is not 1)."""
    value, given = read(row)
    assert json.dumps(wire.unstructure(value), sort_keys=True) == json.dumps(given, sort_keys=True)


def test_every_method_command_and_error_has_examples() -> None:
    """Both halves of each request, each notification, each command, each error kind with its own code."""
    shown = {(row.get("method") or row.get("command"), key) for row in ROWS for key in row}
    for method in methods.METHODS:
        assert (method.name, "params") in shown
        assert ((method.name, "result") in shown) == (method.result is not None)
    for command in methods.COMMANDS:
        assert {(command.name, "arguments"), (command.name, "result")} <= shown
    errors = [row["error"] for row in ROWS if "error" in row]
    kinds = {(error["data"]["kind"], error["code"]) for error in errors if "kind" in error["data"]}
    assert kinds == set(methods.ERRORS.items())


def test_every_kind_of_event_and_attachment_is_shown() -> None:
    """Each member of the two unions, and each word where one member has two."""
    seen = [part for row in ROWS for part in parts(read(row)[0])]
    for union in (turn.Event, turn.Attachment):
        assert {type(part) for part in seen} >= set(get_args(union))
    kinds = {part.kind for part in seen if isinstance(part, turn.DeltaEvent)}
    assert kinds == {"text", "reasoning"}


def test_every_field_that_may_be_left_out_is_once_given_and_once_left_out() -> None:
    """No shape of the contract, and no choice in it, is without an example."""
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
