"""Converts standard LSP objects from JSON and back, by the table in `lsp_types`. It refuses wrong types.

A wrong type is an error with its path, at most one for each value. Unknown fields are ignored, as LSP requires. A float
without a fraction counts as an integer, for clients whose language has only one kind of number. A word of the table
says what a member may be:

    any                anything
    flag integer text  a boolean; an integer; a string
    word code          a string, an integer that a client may have its own for: any value that is no array or object
    flag NAME          any value that is no array or object, or an object of that name
    change             one of the two ways in which a document changes; only one has `range`
    NAME               an object of that name
    [KIND]  KIND?      an array of them; one of them, or null

This module imports nothing that takes time: the answer to `initialize` waits for it.
"""

from __future__ import annotations

from enum import Enum

from steadyhand.lsp.lsp_types import CLASSES, SHAPES, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[object], Any]

_SIMPLE = (bool, int, float, str, type(None))
_READERS: dict[str, Reader] = {}


class Misfits(Exception):
    """A value does not fit its type: the steps to each place, and what was expected there."""

    def __init__(self, faults: list[tuple[tuple[str | int, ...], str]]) -> None:
        super().__init__(faults)
        self.faults = faults

    def errors(self) -> list[tuple[str, str]]:
        """Return (path, message) for each place."""
        return [(_path(steps), message) for steps, message in self.faults]


def structure(kind: str, value: object) -> Any:
    """Structure a JSON value as this kind. Raises Misfits."""
    return _reader_of(kind)(value)


def unstructure(value: object) -> Any:
    """Return the JSON of a value of `lsp_types`, or of a list or dict that holds such values."""
    if isinstance(value, Value):
        json: dict[str, object] = {}
        for field in SHAPES[type(value).__name__]:
            member = getattr(value, field.name)
            if field.always or member != field.default:
                json[field.key] = unstructure(member)
        return json
    if isinstance(value, list | tuple):
        return [unstructure(each) for each in value]
    if isinstance(value, dict):
        return {key: unstructure(each) for key, each in value.items()}
    return value.value if isinstance(value, Enum) else value


def _path(steps: tuple[str | int, ...]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _misfit(message: str) -> Misfits:
    return Misfits([((), message)])


def _reader_of(kind: str) -> Reader:
    """Return the reader of this kind; it is made at its first use."""
    reader = _READERS.get(kind)
    if reader is None:
        reader = _READERS[kind] = _make_reader(kind)
    return reader


def _make_reader(kind: str) -> Reader:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind.endswith("?"):
        return _optional(_reader_of(kind[:-1]))
    if kind.startswith("["):
        return _array(_reader_of(kind[1:-1]))
    if kind.startswith("flag "):
        return _flag_or(_reader_of(kind.removeprefix("flag ")))
    return _object(kind)


def _any(value: object) -> Any:
    return value


def _flag(value: object) -> bool:
    if type(value) is not bool:
        raise _misfit("expected bool")
    return value


def _integer(value: object) -> int:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise _misfit("expected int")


def _text(value: object) -> str:
    if type(value) is not str:
        raise _misfit("expected str")
    return value


def _word(value: object) -> Any:
    if not isinstance(value, _SIMPLE):
        raise _misfit("expected str")
    return value


def _code(value: object) -> Any:
    if not isinstance(value, _SIMPLE):
        raise _misfit("expected int")
    return value


def _change(value: object) -> Any:
    if type(value) is dict and "range" in value:
        return _reader_of("TextDocumentContentChangePartial")(value)
    if type(value) is dict and "text" in value:
        return _reader_of("TextDocumentContentChangeWholeDocument")(value)
    raise _misfit("expected Union")


def _optional(inner: Reader) -> Reader:
    def read(value: object) -> Any:
        return None if value is None else inner(value)

    return read


def _flag_or(inner: Reader) -> Reader:
    def read(value: object) -> Any:
        return value if isinstance(value, _SIMPLE) else inner(value)

    return read


def _array(inner: Reader) -> Reader:
    def read(value: object) -> list[Any]:
        if type(value) is not list:
            raise _misfit("expected an array")
        faults: list[tuple[tuple[str | int, ...], str]] = []
        items: list[Any] = []
        for index, item in enumerate(value):
            try:
                items.append(inner(item))
            except Misfits as below:
                faults += [((index, *steps), message) for steps, message in below.faults]
        if faults:
            raise Misfits(faults)
        return items

    return read


def _object(name: str) -> Reader:
    fields = [(field.key, field.name, _reader_of(field.kind), field.required) for field in SHAPES[name]]
    limited = [(field.name, field.limits) for field in SHAPES[name] if field.limits is not None]
    made: Callable[..., Value] | None = CLASSES.get(name)

    def read(value: object) -> Any:
        if type(value) is not dict:
            raise _misfit("expected an object")
        faults: list[tuple[tuple[str | int, ...], str]] = []
        found: dict[str, Any] = {}
        for key, attribute, reader, required in fields:
            if key in value:
                try:
                    found[attribute] = reader(value[key])
                except Misfits as below:
                    faults += [((key, *steps), message) for steps, message in below.faults]
            elif required:
                faults.append(((key,), "required field missing"))
        if faults:
            raise Misfits(faults)
        for attribute, limits in limited:
            number = found.get(attribute)
            if number is not None and number not in limits:
                raise _misfit("expected another value")
        return value if made is None else made(**found)

    return read


_PLAIN: dict[str, Reader] = {
    "any": _any,
    "flag": _flag,
    "integer": _integer,
    "text": _text,
    "word": _word,
    "code": _code,
    "change": _change,
}
