"""One body of JSON into one message, and back; pure.

`read` never raises: what is no message becomes `Malformed`, with the answer it deserves. NaN and infinities
are no JSON. A lone surrogate, which UTF-8 cannot hold and which would break a journal or a file name much
later, becomes U+FFFD here; it has the same length in every position encoding. No object is treated specially
for a key it has, so a nested `jsonrpc` is a member like any other. `frame` writes ASCII, so its length in
characters is that in bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Final

import attrs

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800

MessageId = int | str


class Absent:
    """The one value that says that a member is not there; null is a value."""


ABSENT: Final = Absent()


@attrs.frozen
class Request:
    """Wants exactly one answer."""

    id: MessageId
    method: str
    params: object  # JSON, or ABSENT


@attrs.frozen
class Notice:
    """A notification: wants no answer."""

    method: str
    params: object  # JSON, or ABSENT


@attrs.frozen
class Response:
    """An answer to a request of ours. `id` is whatever stood there."""

    id: object
    result: object  # JSON, or ABSENT
    error: object  # JSON, or ABSENT


@attrs.frozen
class Malformed:
    """What is no message, with code, id and text of its answer."""

    code: int
    text: str
    id: MessageId | None = None


Message = Request | Notice | Response | Malformed

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\."  # any other escape, an escaped backslash among them
)


def read(body: bytes) -> Message:
    """The message in a body."""
    try:
        value = _load(body)
    except RecursionError:
        return Malformed(PARSE_ERROR, "parse error: nested too deeply")
    except MemoryError:
        return Malformed(PARSE_ERROR, "parse error: too large")
    except ValueError as error:
        return Malformed(PARSE_ERROR, f"parse error: {_reason(error)}")
    if not isinstance(value, dict):
        return Malformed(INVALID_REQUEST, "a message is an object; batches are not taken")
    return _classify(value)


def frame(message: Mapping[str, object]) -> bytes:
    """A message with its header. Raises ValueError, TypeError or RecursionError for what is no JSON."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _classify(value: dict[str, object]) -> Message:
    given = value.get("id", ABSENT)
    id = given if isinstance(given, int | str) and not isinstance(given, bool) else None
    method = value.get("method", ABSENT)
    if method is ABSENT and ("result" in value or "error" in value):
        return Response(given, value.get("result", ABSENT), value.get("error", ABSENT))
    if value.get("jsonrpc") != "2.0":
        return Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', id)
    if not isinstance(method, str):
        return Malformed(INVALID_REQUEST, "method must be a string", id)
    params = value.get("params", ABSENT)
    if given is ABSENT:
        return Notice(method, params)
    if id is None:
        return Malformed(INVALID_PARAMS, "id must be an integer or a string")
    return Request(id, method, params)


def _load(body: bytes) -> object:
    if _SURROGATE_ESCAPE.search(body):
        body = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)
    value: object = json.loads(body.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number out of range")
    return value


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no JSON")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"no UTF-8 at byte {error.start}"
    return str(error)[:200]
