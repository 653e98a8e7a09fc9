"""JSON for request bodies, the same bytes for the same values each time (row P4).

Members stand in the order they are given; nothing is sorted here, nothing is padded. `Raw` is text that is JSON
already and goes out as it is: tool schemas, a call's arguments with their numbers as written, signed blocks.
A lone surrogate, which no UTF-8 can hold, becomes U+FFFD.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import attrs

Value: TypeAlias = "str | int | bool | Raw | Sequence[Value] | Mapping[str, Value] | None"

_SURROGATE = re.compile("[\ud800-\udfff]")


@attrs.frozen
class Raw:
    json: str


def text_of(value: Value) -> str:
    """Compact JSON."""
    if isinstance(value, Raw):
        return value.json
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{text_of(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(map(text_of, value)) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def body_of(members: Mapping[str, Value], *more: str | None) -> bytes:
    """An object's bytes; `more` is JSON members put behind its own."""
    text = ",".join([text_of(members)[1:-1], *filter(None, more)])
    return _SURROGATE.sub("\ufffd", "{" + text + "}").encode("utf-8")
