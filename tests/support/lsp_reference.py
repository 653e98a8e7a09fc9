"""Standard LSP objects and capabilities as pygls and lsprotocol have them: the reference for `steadyhand.lsp`.

`strict_converter` is lsprotocol's converter with wrong types refused: lsprotocol itself coerces ("1" becomes 1, a
number becomes a string) and takes an object where an array is meant. `capabilities` is what pygls answers to
`initialize` for a server of these features. Both are slow to start, so the server has a table of its own
(docs/decisions/0029).
"""

from __future__ import annotations

import collections.abc
import re
import typing
from collections.abc import Callable
from typing import Any

import attrs
import cattrs
from cattrs.cols import list_structure_factory
from cattrs.gen import make_dict_structure_fn, override
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import default_converter

from steadyhand import __version__
from steadyhand_protocol import methods


def strict_converter() -> cattrs.Converter:
    """A converter for lsprotocol's types; raises any Exception for what does not fit (see `misfits`)."""
    converter: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]  # pygls gives it no type
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook(str, _exactly(str))
    converter.register_structure_hook(bool, _exactly(bool))
    for kind in (types.CodeActionKind | str, types.CodeActionKind | str | None):
        converter.register_structure_hook(kind, _code_action_kind)
    converter.register_structure_hook_factory(_is_sequence, _array)
    converter.register_structure_hook_factory(attrs.has, _object)
    return converter


def misfits(error: Exception) -> list[tuple[str, str]]:
    """(path, message) of each place where a value did not fit; paths as on the wire."""
    if isinstance(error, RecursionError):
        return [("$", "nested too deeply")]
    found = []
    for line in cattrs.transform_error(error, format_exception=_sentence):
        message, _, path = line.rpartition(" @ ")
        found.append((_as_on_the_wire(path), message))
    return found or [("$", "does not fit")]


def _sentence(error: BaseException, expected: type | None) -> str:
    match error:
        case KeyError():
            return "required field missing"
        case Misfit():
            return str(error)
        case _:
            return "expected " + getattr(expected, "__name__", "another value")


def _as_on_the_wire(path: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), path)


class Misfit(TypeError):
    """A value of a wrong type; the text says what was expected."""


def _exactly(wanted: type) -> Callable[[Any, Any], Any]:
    def take(value: Any, _: Any) -> Any:
        if type(value) is not wanted:
            raise Misfit(f"expected {wanted.__name__}")
        return value

    return take


def _integer(value: Any, _: Any) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise Misfit("expected int")


def _number(value: Any, _: Any) -> float:
    if type(value) is int or type(value) is float:
        return float(value)
    raise Misfit("expected a number")


def _code_action_kind(value: Any, _: Any) -> Any:
    if value is None or type(value) is str:
        return value
    raise Misfit("expected str")


def _object(kind: Any, converter: Any) -> Callable[[Any, Any], Any]:
    names: dict[str, Any] = {field.name: override(rename=_key(field.name)) for field in attrs.fields(kind)}
    members = make_dict_structure_fn(kind, converter, **names)

    def take(value: Any, wanted: Any) -> Any:
        if type(value) is not dict:
            raise Misfit("expected an object")
        return members(value, wanted)

    return take


def _key(attribute: str) -> str:
    first, *rest = attribute.removesuffix("_").split("_")
    return first + "".join(word.title() for word in rest)


def _is_sequence(kind: Any) -> bool:
    return typing.get_origin(kind) is collections.abc.Sequence


def _array(kind: Any, converter: Any) -> Callable[[Any, Any], Any]:
    items = list_structure_factory(kind, converter)

    def take(value: Any, wanted: Any) -> Any:
        if type(value) is not list:
            raise Misfit("expected an array")
        return items(value, wanted)

    return take


def capabilities(params: types.InitializeParams) -> Any:
    """The result of `initialize`, as JSON."""
    server = LanguageServer("steadyhand", __version__, converter_factory=strict_converter)
    steps = server.protocol.lsp_initialize(params)
    try:
        next(steps)
    except StopIteration as stop:
        result = stop.value
    found = result.capabilities
    found.text_document_sync = types.TextDocumentSyncOptions(
        open_close=True, change=types.TextDocumentSyncKind.Incremental, save=types.SaveOptions(include_text=False)
    )
    found.code_action_provider = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix], resolve_provider=False
    )
    found.code_lens_provider = types.CodeLensOptions(resolve_provider=False)
    found.execute_command_provider = types.ExecuteCommandOptions(
        commands=[command.name for command in methods.COMMANDS if command.built]
    )
    found.experimental = {"steadyhand": {"protocolVersion": methods.PROTOCOL_VERSION}}
    return server.protocol._converter.unstructure(result)
