"""Convert a record to and from the members of a journal line. Types are strict; later additions are ignored.

Members are camelCase on disk; None and defaults are left out. Reading ignores members it does not know (row X1). A
member of the wrong type makes the whole record unreadable, which counts as damage and never as absence.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from steadyhand.domain.records.prompt import ATTACHMENTS, Attachment
from steadyhand.domain.records.record import KINDS, Record, Scope, Unknown
from steadyhand.domain.views.serialize import camel_case


class UnreadableRecord(ValueError):
    """The members do not fit the record's kind."""


def encode(record: Record) -> dict[str, object]:
    """Return the members that follow the envelope, in the order of the class."""
    plain: dict[str, object] = _converter().unstructure(record)
    return plain


def decode(kind: str, members: Mapping[str, object]) -> Record | Unknown:
    """Return the record; `Unknown` for a kind of a later version.

    Raises `UnreadableRecord` if the members do not fit.
    """
    cls = KINDS.get(kind)
    if cls is None:
        return Unknown(kind_name=kind)
    try:
        record: Record = _converter().structure(members, cls)
    except (cattrs.BaseValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableRecord(kind) from error
    return record


def _scope_out(scope: Scope) -> object:
    return scope.plain()


def _scope_in(plain: object, _: type[Scope]) -> Scope:
    if not isinstance(plain, dict):
        raise TypeError("a scope is an object")
    if plain.get("everything") is True:
        return Scope(everything=True)
    paths, identities = plain["paths"], plain.get("identities", [])
    if not _are_texts(paths) or not _are_texts(identities):
        raise TypeError("paths and identities of a scope are strings")
    return Scope(paths=tuple(paths), identities=tuple(identities))


def _are_texts(plain: object) -> bool:
    return isinstance(plain, list) and all(isinstance(one, str) for one in plain)


def _register_attachments(converter: cattrs.Converter) -> None:
    """Write the kind always, because it selects the class; skip attachments of a later version's kind (row X1)."""
    for cls in ATTACHMENTS.values():
        names = {**_names(cls), "kind": override(omit_if_default=False)}
        outward: typing.Any = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True, **names)
        converter.register_unstructure_hook(cls, outward)

    def read(value: object, _: object) -> tuple[object, ...]:
        if not isinstance(value, list) or not all(isinstance(one, dict) and type(one["kind"]) is str for one in value):
            raise TypeError("expected attachments, each with its kind")
        known = [(one, ATTACHMENTS[one["kind"]]) for one in value if one["kind"] in ATTACHMENTS]
        return tuple(converter.structure(one, cls) for one, cls in known)

    converter.register_structure_hook_func(lambda cls: cls == tuple[Attachment, ...], read)


@cache
def _converter() -> cattrs.Converter:
    """Made at the first need: it takes long."""
    converter = cattrs.Converter(detailed_validation=False)

    def exactly(kind: type) -> None:
        def check(value: object, _: type) -> object:
            if type(value) is not kind:
                raise TypeError(f"expected {kind.__name__}")
            return value

        converter.register_structure_hook(kind, check)

    for kind in (int, str, bool):
        exactly(kind)

    def structure_optional(cls: typing.Any) -> typing.Any:
        inner = next(part for part in typing.get_args(cls) if part is not type(None))

        def read(value: object, _: type) -> object:
            if value is None:
                raise TypeError("null stands nowhere")
            return converter.structure(value, inner)

        return read

    converter.register_structure_hook_factory(_is_optional, structure_optional)
    converter.register_structure_hook_factory(_is_literal, _structure_literal)
    converter.register_structure_hook_factory(
        attrs.has, lambda cls: make_dict_structure_fn(cls, converter, **_names(cls))
    )
    converter.register_unstructure_hook_factory(
        attrs.has,
        lambda cls: make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True, **_names(cls)),
    )
    converter.register_structure_hook_factory(_is_tuple, lambda cls: _structure_tuple(converter, cls))
    _register_attachments(converter)
    converter.register_structure_hook(Scope, _scope_in)
    converter.register_unstructure_hook(Scope, _scope_out)
    return converter


def _names(cls: type) -> dict[str, typing.Any]:
    return {field.name: override(rename=camel_case(field.name)) for field in attrs.fields(attrs.resolve_types(cls))}


def _is_tuple(cls: object) -> bool:
    return typing.get_origin(cls) is tuple


def _is_literal(cls: object) -> bool:
    return typing.get_origin(cls) is typing.Literal


def _structure_literal(cls: typing.Any) -> typing.Any:
    words = frozenset(typing.get_args(cls))

    def read(value: object, _: type) -> object:
        if type(value) is not str or value not in words:
            raise ValueError("not one of the words that may stand here")
        return value

    return read


def _is_optional(cls: object) -> bool:
    arguments = typing.get_args(cls)
    return len(arguments) == 2 and type(None) in arguments and typing.get_origin(cls) is not tuple


def _structure_tuple(converter: cattrs.Converter, cls: typing.Any) -> typing.Any:
    item = typing.get_args(cls)[0]

    def read(value: object, _: type) -> tuple[object, ...]:
        if not isinstance(value, list):
            raise TypeError("expected an array")
        return tuple(converter.structure(part, item) for part in value)

    return read
