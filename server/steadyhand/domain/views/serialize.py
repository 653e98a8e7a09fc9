"""Serialize views to plain values in the wire's spelling: camelCase keys, None left out, tuples as lists."""

from __future__ import annotations

from functools import cache

import attrs


def to_plain(view: object) -> object:
    """Return the plain form of a view, a tuple of views, or a plain value."""
    if isinstance(view, tuple | list):
        return [to_plain(item) for item in view]
    if isinstance(view, dict):
        return {key: to_plain(value) for key, value in view.items()}
    cls = type(view)
    if attrs.has(cls):
        found: dict[str, object] = {}
        for name, spelled in _names(cls):
            value = getattr(view, name)
            if value is not None:
                found[spelled] = to_plain(value)
        return found
    return view


@cache
def _names(cls: type[attrs.AttrsInstance]) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, camel_case(field.name)) for field in attrs.fields(cls))


def camel_case(name: str) -> str:
    """Return the spelling of a name on the wire and in the journal: `session_id` → `sessionId`, `from_` → `from`."""
    head, *rest = name.rstrip("_").split("_")
    return head + "".join(part.title() for part in rest)
