"""Convert wire types from and to JSON values: strict on the way in, fast on the way out.

In: nothing is coerced or ignored. An unknown field, a missing one, null, a wrong type (true is no integer, 1 is not
true, 1.0 is no integer, a string is no array), half a surrogate pair, a value outside its pattern or bounds: each is
one `FieldError` with a path such as `$.attachments[0].range.start.line`. Out: keys in camelCase, None left out, tuples
as lists. Outgoing values are built by us and not checked again.

The hooks are our own, because those of cattrs accept null for an optional, take 1 for `Literal[True]`, iterate over a
string in place of an array, and raise AttributeError for a list at the top.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, overload

import attrs
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn, override

from steadyhand_protocol.faults import Hook, Misfit, WireError, expected, within
from steadyhand_protocol.refusals import FieldError
from steadyhand_protocol.values import AtMost, Between, Form
from steadyhand_values import frozen

__all__ = [
    "FieldError",
    "WireError",
    "WireField",
    "is_union",
    "structure",
    "structure_arguments",
    "unstructure",
    "wire_fields",
    "wire_name",
]

T = TypeVar("T")
Choose: TypeAlias = Callable[[dict[str, Any]], type[Any]]


@overload
def structure(shape: type[T], value: object) -> T: ...
@overload
def structure(shape: UnionType, value: object) -> Any: ...
def structure(shape: Any, value: object) -> Any:
    """Return the wire value of a JSON value (as `json.loads` gives it). Raises WireError."""
    try:
        return _CONVERTER.structure(value, shape)
    except Misfit as misfit:
        raise WireError(misfit.errors()) from None


def structure_arguments(shape: type[T] | None, arguments: object) -> T | None:
    """Return the only element of a command's `arguments` array; None for a command without arguments. Raises WireError.

    A missing array (None) counts as empty, and an empty one as `[{}]`, because clients send that for a command chosen
    from a list. It is an error unless all fields of the element may be left out.
    """
    items = [] if arguments is None else arguments
    try:
        if type(items) is not list:
            raise expected("an array", items)
        if len(items) > (0 if shape is None else 1):
            raise Misfit("too many items in the array" if shape else "expected an empty array")
        if shape is None:
            return None
        found: T = within(0, _CONVERTER.structure, items[0] if items else {}, shape)
        return found
    except Misfit as misfit:
        raise WireError(misfit.errors()) from None


def unstructure(value: Any) -> Any:
    """Return the JSON value of a wire value (a dict, or a list for a tuple), ready for `json.dumps`."""
    return _CONVERTER.unstructure(value)


def wire_name(attribute: str) -> str:
    """Return the key of an attribute on the wire: `session_id` → `sessionId`, `from_` → `from`."""
    first, *rest = attribute.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


@frozen
class WireField:
    """One field: the attribute's name, its key, its shape without None, and whether it is required."""

    name: str
    key: str
    shape: Any
    required: bool


def wire_fields(cls: type[Any]) -> tuple[WireField, ...]:
    """Return the fields of a wire type, in the order of the class."""
    return tuple(
        WireField(field.name, wire_name(field.name), _without_none(field.type), field.default is not None)
        for field in attrs.fields(cls)
    )


# --- shapes -------------------------------------------------------------------------------------------------


def is_union(shape: Any) -> bool:
    """Return whether the shape is `A | B`."""
    return get_origin(shape) in (Union, UnionType)


def _without_none(shape: Any) -> Any:
    """Return `X` for `X | None`, where X may be a union; other shapes are returned unchanged."""
    if not is_union(shape):
        return shape
    members = [member for member in get_args(shape) if member is not NoneType]
    return members[0] if len(members) == 1 else reduce(or_, members)


def _text(value: object, _: Any) -> str:
    if type(value) is not str:
        raise expected("a string", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Misfit(f"half a surrogate pair at character {error.start}") from None
    return value


def _integer(value: object, _: Any) -> int:
    if type(value) is not int:
        raise expected("an integer", value)
    return value


def _boolean(value: object, _: Any) -> bool:
    if type(value) is not bool:
        raise expected("a boolean", value)
    return value


def _literal_hook(values: tuple[Any, ...]) -> Hook:
    # The type is part of the key, because 1 equals True and must not pass for it.
    allowed = {(type(value), value) for value in values}
    words = [json.dumps(value) for value in values]
    message = f"expected {words[0]}" if len(words) == 1 else f"expected one of {', '.join(words)}"

    def hook(value: object, _: Any) -> Any:
        # Other types may not be hashable, and none of them is ever allowed.
        if type(value) not in (str, bool, int) or (type(value), value) not in allowed:
            raise Misfit(message)
        return value

    return hook


def _annotated_hook(shape: Any) -> Hook:
    plain, *limits = get_args(shape)
    inner = _CONVERTER.get_structure_hook(plain)
    checks = [_limit(limit) for limit in limits]

    def hook(value: object, _: Any) -> Any:
        found = inner(value, plain)
        for check in checks:
            check(found)
        return found

    def counted(value: object, _: Any) -> Any:
        # The size of an array is checked before its items, so that a huge one costs nothing.
        if type(value) is list:
            for check in checks:
                check(value)
        return inner(value, plain)

    return counted if get_origin(plain) is tuple else hook


def _limit(limit: object) -> Callable[[Any], None]:
    match limit:
        case Form(pattern, expected):
            matches = re.compile(pattern).fullmatch

            def check_form(value: str) -> None:
                if not matches(value):
                    raise Misfit(f"expected {expected}")

            return check_form
        case AtMost(count, unit):

            def check_size(value: Any) -> None:
                if len(value.encode() if unit == "bytes" else value) > count:
                    raise Misfit(f"longer than {count} {unit}")

            return check_size
        case Between(low, high):

            def check_range(value: int) -> None:
                if not low <= value <= high:
                    raise Misfit(f"expected an integer from {low} to {high}")

            return check_range
        case _:
            raise AssertionError(f"no such limit: {limit}")


def _array_hook(shape: Any) -> Hook:
    item_shape, ellipsis = get_args(shape)
    assert ellipsis is ..., shape
    item_hook = _CONVERTER.get_structure_hook(item_shape)

    def hook(value: object, _: Any) -> tuple[Any, ...]:
        if type(value) is not list:
            raise expected("an array", value)
        misfit = Misfit()
        items: list[Any] = []
        for index, item in enumerate(value):
            try:
                items.append(item_hook(item, item_shape))
            except Misfit as inner:
                misfit.take(index, inner)
                if misfit.full:
                    break
        if misfit.faults:
            raise misfit
        return tuple(items)

    return hook


def _mapping_hook(shape: Any) -> Hook:
    key_shape, item_shape = get_args(shape)
    assert key_shape is str, shape
    item_hook = _CONVERTER.get_structure_hook(item_shape)

    def hook(value: object, _: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise expected("an object", value)
        return {within(key, _text, key, str): within(key, item_hook, item, item_shape) for key, item in value.items()}

    return hook


def _object_hook(cls: type[Any]) -> Hook:
    rows = [
        (field.key, field.name, field.shape, _CONVERTER.get_structure_hook(field.shape), field.required)
        for field in wire_fields(cls)
    ]
    keys = frozenset(row[0] for row in rows)

    def hook(value: object, _: Any) -> Any:
        if type(value) is not dict:
            raise expected("an object", value)
        misfit = Misfit()
        found: dict[str, Any] = {}
        for key, name, shape, field_hook, required in rows:
            if key in value:
                try:
                    found[name] = field_hook(value[key], shape)
                except Misfit as inner:
                    misfit.take(key, inner)
            elif required:
                misfit.add(key, "missing")
        if len(value) > len(found):
            for key in value:
                if key not in keys:
                    misfit.add(key, "unknown field")
        if misfit.faults:
            raise misfit
        return cls(**found)

    return hook


def _union_hook(shape: Any) -> Hook:
    """Return the hook of a union of objects.

    `kind` tells the members apart, or else a key that only one of them has.
    """
    members: tuple[type[Any], ...] = get_args(shape)
    assert all(attrs.has(member) for member in members), shape
    by_kind = {kind: member for member in members for kind in _kinds(member)}
    choose = _by_kind(by_kind) if by_kind else _by_key(members)

    def hook(value: object, _: Any) -> Any:
        if type(value) is not dict:
            raise expected("an object", value)
        member = choose(value)
        return _CONVERTER.structure(value, member)

    return hook


def _kinds(cls: type[Any]) -> tuple[str, ...]:
    return next((get_args(field.shape) for field in wire_fields(cls) if field.key == "kind"), ())


def _by_kind(by_kind: Mapping[str, type[Any]]) -> Choose:
    known = _literal_hook(tuple(by_kind))

    def choose(value: dict[str, Any]) -> type[Any]:
        misfit = Misfit()
        if "kind" not in value:
            misfit.add("kind", "missing")
            raise misfit
        return by_kind[within("kind", known, value["kind"], None)]

    return choose


def _by_key(members: tuple[type[Any], ...]) -> Choose:
    firsts = {next(field.key for field in wire_fields(member) if field.required): member for member in members}
    assert len(firsts) == len(members), members
    message = f"expected one of the fields {', '.join(firsts)}"

    def choose(value: dict[str, Any]) -> type[Any]:
        for key, member in firsts.items():
            if key in value:
                return member
        raise Misfit(message)

    return choose


# --- to JSON ------------------------------------------------------------------------------------------------


def _object_out(cls: type[Any]) -> Callable[[Any], dict[str, Any]]:
    renamed: dict[str, Any] = {
        field.name: override(rename=field.key, omit_if_default=not field.required) for field in wire_fields(cls)
    }
    return make_dict_unstructure_fn(cls, _CONVERTER, **renamed)


def _array_out(shape: Any) -> Callable[[Any], list[Any]]:
    # A bare tuple that is passed to `unstructure` does not tell the type of its items.
    item = (get_args(shape) or (Any,))[0]
    out = _CONVERTER.get_unstructure_hook(_plain(item))
    if item is str:
        return list
    return lambda value: [out(each) for each in value]


def _plain(shape: Any) -> Any:
    return get_args(shape)[0] if get_origin(shape) is Annotated else shape


def _has_origin(origin: object) -> Callable[[Any], bool]:
    return lambda shape: get_origin(shape) is origin


def _is_array(shape: Any) -> bool:
    return shape is tuple or get_origin(_plain(shape)) is tuple


def _strict_converter() -> Converter:
    converter = Converter()
    converter.register_structure_hook(str, _text)
    converter.register_structure_hook(int, _integer)
    converter.register_structure_hook(bool, _boolean)
    into = converter.register_structure_hook_factory
    into(_has_origin(Literal), lambda shape: _literal_hook(get_args(shape)))
    into(_has_origin(Annotated), _annotated_hook)
    into(_has_origin(tuple), _array_hook)
    into(_has_origin(Mapping), _mapping_hook)
    into(is_union, _union_hook)
    into(attrs.has, _object_hook)
    converter.register_unstructure_hook_factory(attrs.has, _object_out)
    converter.register_unstructure_hook_factory(_is_array, lambda shape: _array_out(_plain(shape)))
    return converter


_CONVERTER = _strict_converter()
