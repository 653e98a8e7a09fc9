"""JSON for request bodies: the same bytes for the same values each time (row P4).

Members keep the given order; nothing is sorted or padded. `Raw` is text that is already JSON and is sent unchanged:
tool schemas, a call's arguments with their numbers as written, signed blocks. A lone surrogate, which UTF-8 cannot
encode, becomes U+FFFD.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from steadyhand_values import frozen, pattern

Value: TypeAlias = "str | int | bool | Raw | Sequence[Value] | Mapping[str, Value] | None"

_SURROGATE = pattern("[\ud800-\udfff]")
# One encoder for all values and one for all names: `json.dumps` with these options makes a new one for each.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_encode_name = json.JSONEncoder().encode


@frozen
class Raw:
    """Text that is already JSON."""

    json: str


def text_of(value: Value) -> str:
    """Return compact JSON."""
    if isinstance(value, str):
        return _encode(value)
    if isinstance(value, Raw):
        return value.json
    if isinstance(value, Mapping):
        return "{" + ",".join([f"{_encode_name(name)}:{text_of(inner)}" for name, inner in value.items()]) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(map(text_of, value)) + "]"
    return _encode(value)


def body_of(members: Mapping[str, Value], *more: str | None) -> bytes:
    """Return an object's bytes; `more`: JSON members that come after its own."""
    text = ",".join([text_of(members)[1:-1], *filter(None, more)])
    return _SURROGATE.sub("\ufffd", "{" + text + "}").encode("utf-8")
