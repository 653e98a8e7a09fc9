"""The server's own table of standard LSP types equals lsprotocol's types and the capabilities of pygls.

The tests give every type, every member and every value of a wrong kind to two converters:
`steadyhand.lsp.rpc.lsp_converter` with the generated table, and lsprotocol's converter with the same strictness
(tests/support/lsp_reference.py).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types as theirs
from lsprotocol.converters import get_converter
from pytest_lsp import client_capabilities

from steadyhand.lsp import lsp_types as ours
from steadyhand.lsp.rpc.capabilities import COMMANDS, PROTOCOL_VERSION, initialize_result, position_encoding
from steadyhand.lsp.rpc.lsp_converter import Misfits, structure, unstructure
from steadyhand.lsp.rpc.messages import frame
from steadyhand_protocol import methods
from tests.support.lsp_reference import capabilities, misfits, strict_converter

PROTOCOL = Path(__file__).parents[2] / "protocol"
generate_seconds_max = 60

REFERENCE = strict_converter()
READ = [row.params for row in ours.METHODS.values() if row.params in ours.CLASSES]
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 5, 5.0, 5.5, -1, 1 << 31, 1 << 40, -(1 << 31), -(1 << 31) - 1, "", "x", "quickfix"),
    *([], {}, [5], [None], ["x"], [[]], [{}], {"a": 1}, {"text": "x"}, {"range": None}, {"delta": 1}, {"delta": True}),
    *(
        [{"text": "x"}],
        [{"text": 5}],
        [{"range": 5, "text": "x"}],
        [{"rangeLength": 4}],
        [{"rangeLength": 4, "text": ""}],
    ),
)


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROTOCOL / "generate_lsp.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=generate_seconds_max, check=False)


def test_generated_module_is_current() -> None:
    """The committed module is the one that the generator writes."""
    done = generate("--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Members, by reflection.


@pytest.mark.parametrize("name", ours.CLASSES)
def test_class_members_equal_those_of_lsprotocol(name: str) -> None:
    """Members, their order and their defaults are those of lsprotocol's class."""
    fields = attrs.fields(getattr(theirs, name))
    made = ours.CLASSES[name]
    assert made.__slots__ == tuple(field.name for field in fields)
    given = {field.name: object() for field in fields if field.default is attrs.NOTHING}
    value = made(**given)
    for field in fields:
        assert getattr(value, field.name) is given.get(field.name, field.default)


@pytest.mark.parametrize("name", ours.SHAPES)
def test_table_row_equals_the_members_of_lsprotocol(name: str) -> None:
    """The table has a row for each member, with the same requirement and the same default."""
    fields = attrs.fields(getattr(theirs, name))
    rows = ours.SHAPES[name]
    assert [row.name for row in rows] == [field.name for field in fields]
    assert [row.required for row in rows] == [field.default is attrs.NOTHING for field in fields]
    assert [row.default for row in rows if not row.required] == [
        field.default for field in fields if field.default is not attrs.NOTHING
    ]


@pytest.mark.parametrize("name", ["MessageType", "CodeActionKind", "DiagnosticSeverity"])
def test_enumeration_equals_that_of_lsprotocol(name: str) -> None:
    """Names and values are the same."""
    found = [[(member.name, member.value) for member in getattr(module, name)] for module in (ours, theirs)]
    assert found[0] == found[1]


def test_method_table_equals_that_of_lsprotocol() -> None:
    """Requests, the types of their params, and the list of all notifications are the same."""
    for name, row in ours.METHODS.items():
        _, answer, params, _ = theirs.METHOD_TO_TYPES[name]
        assert row.request is (answer is not None)
        assert row.params in ({"any", getattr(params, "__name__", "")} if params else {""})
    notifications = {name for name, row in theirs.METHOD_TO_TYPES.items() if row[1] is None}
    assert notifications == ours.NOTIFICATIONS


# Messages that come in.


@cache
def smallest(name: str) -> str:
    """The smallest value of a type, as JSON text."""
    return json.dumps({row.key: valid_value(row.kind) for row in ours.SHAPES[name] if row.required})


def valid_value(kind: str) -> Any:
    """A value of a kind."""
    plain = {
        "any": 5,
        "flag": True,
        "integer": 3,
        "text": "t",
        "word": "w",
        "code": 2,
        "change": {"text": "c"},
        "number": 1.5,
    }
    if kind.startswith("["):
        return [valid_value(kind[1:].rstrip("?")[:-1])]
    kind = kind.removesuffix("?").removeprefix("flag ")
    return plain[kind] if kind in plain else json.loads(smallest(kind))


def largest(name: str) -> dict[str, Any]:
    """A value with every member, one level deep."""
    return {row.key: valid_value(row.kind) for row in ours.SHAPES[name]}


def both(name: str, value: Any) -> tuple[object, object]:
    """The results of both converters: the object, or the errors with their paths."""
    found: list[object] = []
    try:
        found.append(structure(name, value))
    except Misfits as error:
        found.append(error.errors())
    try:
        found.append(REFERENCE.structure(value, getattr(theirs, name)))
    except Exception as error:
        found.append(misfits(error))
    return found[0], found[1]


def assert_same(name: str, value: Any) -> None:
    """Assert that both converters refuse with the same words or return the same members."""
    mine, other = both(name, value)
    if isinstance(other, list) or isinstance(mine, list):
        assert mine == other, (name, value)
    else:
        assert_alike(mine, other)


def assert_alike(mine: Any, other: Any) -> None:
    """Assert that two objects have the same members. A type without a class is JSON, which lsprotocol reads."""
    if isinstance(mine, ours.Value):
        assert type(mine).__name__ == type(other).__name__
        for name in mine.__slots__:
            assert_alike(getattr(mine, name), getattr(other, name))
    elif isinstance(mine, list | tuple):
        assert len(mine) == len(other)
        for one, another in zip(mine, other, strict=True):
            assert_alike(one, another)
    elif attrs.has(type(other)):
        assert REFERENCE.structure(mine, type(other)) == other
    else:
        assert mine == other
        assert type(mine) is type(other)


def read_shapes() -> list[str]:
    """Every type that a client sends, with the types of its members."""
    seen: dict[str, None] = {}
    waiting = [*READ, "MessageActionItem"]
    while waiting:
        name = waiting.pop()
        if name in ours.SHAPES and name not in seen:
            seen[name] = None
            kinds = " ".join(row.kind for row in ours.SHAPES[name])
            waiting += kinds.replace("[", " ").replace("]", " ").replace("?", " ").split()
            if "change" in kinds.split("["):
                waiting += ["TextDocumentContentChangePartial", "TextDocumentContentChangeWholeDocument"]
    return list(seen)


def valid_and_invalid_values(name: str) -> Iterator[Any]:
    """The smallest and the largest value; each member missing, and of every other kind; values of other types."""
    yield json.loads(smallest(name))
    yield {**largest(name), "surprise": {"jsonrpc": "2.0"}}
    for row in ours.SHAPES[name]:
        yield {key: value for key, value in largest(name).items() if key != row.key}
        for value in VALUES:
            yield {**json.loads(smallest(name)), row.key: value}
    yield from VALUES


@pytest.mark.parametrize("name", read_shapes())
def test_type_is_read_as_by_lsprotocol(name: str) -> None:
    """A valid value gives the same members, an invalid one the same paths and words."""
    for value in valid_and_invalid_values(name):
        assert_same(name, value)


def test_compared_types_are_more_than_a_hundred() -> None:
    """Params of a client contain more than a hundred types."""
    assert len(read_shapes()) > 100


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, width=16), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=5,
)


@st.composite
def values_of(draw: st.DrawFn, kind: str) -> Any:
    """Mostly a valid value of a kind, sometimes any JSON."""
    if draw(st.integers(0, 15)) == 0:
        return draw(JSON)
    if kind.endswith("?"):
        return draw(st.one_of(st.none(), values_of(kind[:-1])))
    if kind.startswith("["):
        return draw(st.lists(values_of(kind[1:-1]), max_size=3))
    if kind.removeprefix("flag ") not in ours.SHAPES:
        return valid_value(kind)
    found: dict[str, Any] = {}
    for row in ours.SHAPES[kind.removeprefix("flag ")]:
        if draw(st.integers(0, 4)) > (0 if row.required else 2):
            found[row.key] = draw(values_of(row.kind))
    return found


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted({*READ})).flatmap(lambda name: st.tuples(st.just(name), values_of(name))))
def test_whole_messages_are_read_as_by_lsprotocol(case: tuple[str, Any]) -> None:
    """Several errors in one message, at any depth, are found and reported alike."""
    assert_same(*case)


@pytest.mark.parametrize("editor", ["neovim", "emacs", "visual_studio_code"])
def test_capabilities_of_editors_are_read_as_by_lsprotocol(editor: str) -> None:
    """The capabilities of real editors give the same members."""
    declared = get_converter().unstructure(client_capabilities(editor))
    assert_same("InitializeParams", {"capabilities": json.loads(json.dumps(declared))})


@pytest.mark.parametrize("method", [name for name, row in ours.METHODS.items() if row.result])
def test_result_is_read_as_by_lsprotocol(method: str) -> None:
    """The result of a request to the editor gives the same value, or an error in both converters."""
    answer: Any = theirs.METHOD_TO_TYPES[method][1]
    if ours.METHODS[method].result == "any" and not method.startswith(("window/", "client/", "workspace/codeLens/")):
        return  # a result of the server, which it does not read
    for value in (*VALUES, {"title": "x"}, {"title": 5}, {"title": "Yes", "more": 1}):
        try:
            other: object = REFERENCE.structure({"id": 0, "jsonrpc": "2.0", "result": value}, answer).result
        except Exception:
            with pytest.raises(Misfits):
                structure(ours.METHODS[method].result, value)
        else:
            assert_alike(structure(ours.METHODS[method].result, value), other)


# Messages that go out.


def test_read_object_is_written_as_by_lsprotocol() -> None:
    """An object that was read is written with the same keys in the same order."""
    for name in read_shapes():
        if name in ours.CLASSES:
            mine, other = both(name, json.loads(smallest(name)))
            assert json.dumps(unstructure(mine)) == json.dumps(REFERENCE.unstructure(other))


def sent_objects(module: Any) -> list[Any]:
    """Every object that the server makes, of the classes of one module."""
    place = module.Range(module.Position(0, 1), module.Position(2, 3))
    command = module.Command(title="T", command="c", arguments=({"sessionId": "1", "deep": [{"a": None}]},))
    found = module.Diagnostic(
        range=place,
        message="m",
        severity=module.DiagnosticSeverity.Warning,
        code="uncertain-write",
        source="steadyhand",
        data={"attemptId": "2"},
    )
    options = module.TextDocumentContentRegistrationOptions(schemes=("steadyhand",))
    registration = module.Registration(id="i", method="m", register_options=options)
    return [
        module.LogMessageParams(module.MessageType.Log, "text"),
        module.ShowMessageParams(type=module.MessageType.Error, message="text"),
        module.ShowMessageRequestParams(module.MessageType.Info, "text", [module.MessageActionItem("Yes")]),
        module.ShowMessageRequestParams(type=module.MessageType.Info, message="text", actions=()),
        module.PublishDiagnosticsParams(uri="u", diagnostics=(found, module.Diagnostic(range=place, message=""))),
        module.PublishDiagnosticsParams(uri="u", diagnostics=()),
        [module.CodeAction(title="t", kind=module.CodeActionKind.QuickFix, diagnostics=(found,), command=command)],
        [module.CodeLens(range=place, command=command), module.CodeLens(range=place)],
        module.ConfigurationParams(items=(module.ConfigurationItem(section="steadyhand"),)),
        module.RegistrationParams(registrations=(registration,)),
        module.TextDocumentContentResult(text="x"),
        module.ProgressParams(token="t", value=module.WorkDoneProgressBegin(title="Steadyhand", cancellable=True)),
        module.ProgressParams(token="t", value=module.WorkDoneProgressEnd(message="done")),
        module.ProgressParams(token="t", value=module.WorkDoneProgressEnd(message=None)),
        module.WorkDoneProgressCreateParams(token="t"),
        [],
        None,
    ]


def test_sent_object_is_written_as_by_lsprotocol() -> None:
    """Every object that the server sends has the same JSON, key by key."""
    for mine, other in zip(sent_objects(ours), sent_objects(theirs), strict=True):
        assert json.dumps(unstructure(mine)) == json.dumps(REFERENCE.unstructure(other))


def test_equality_compares_members() -> None:
    """Objects are equal when all their members are, and never to one of another class."""
    assert ours.Position(1, 2) == ours.Position(1, 2) != ours.Position(2, 1)
    assert ours.WorkDoneProgressEnd() != ours.InitializedParams()
    assert repr(ours.Position(1, 2)) == "Position(line=1, character=2)"


# The result of initialize.

ENCODINGS: tuple[Any, ...] = (
    None, [], ["utf-8"], ["utf-16"], ["utf-32"], ["utf-7"], ["utf-7", "utf-32", "utf-8"], ["utf-16", "utf-8"],
    [5, None],
)  # fmt: skip


@pytest.mark.parametrize("encodings", ENCODINGS)
@pytest.mark.parametrize("editor", ["", "neovim", "emacs", "visual_studio_code"])
def test_initialize_result_equals_that_of_pygls(editor: str, encodings: Any) -> None:
    """The bytes are equal for any client and any list of encodings."""
    declared = json.loads(json.dumps(get_converter().unstructure(client_capabilities(editor)))) if editor else {}
    declared["general"] = {**declared.get("general", {}), "positionEncodings": encodings}
    params = {"capabilities": declared}
    mine, other = both("InitializeParams", params)
    assert isinstance(mine, ours.InitializeParams)
    assert isinstance(other, theirs.InitializeParams)
    result = initialize_result(position_encoding(mine))
    assert frame({"result": result}) == frame({"result": capabilities(other)})


def test_initialize_result_names_commands_and_version() -> None:
    """Commands and protocol version are those of the protocol's tables."""
    assert tuple(command.name for command in methods.COMMANDS if command.built) == COMMANDS
    assert PROTOCOL_VERSION == methods.PROTOCOL_VERSION
