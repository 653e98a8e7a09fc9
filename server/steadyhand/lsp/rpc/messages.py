"""One body of JSON into one message, and back; pure.

`read` never raises: a body that is no message becomes `Malformed`, with the code and text of its answer. NaN and
infinities are no JSON. UTF-8 cannot hold a lone surrogate, so it would break a journal or a file name much later; here
it becomes U+FFFD, which has the same length in every position encoding. A nested member `jsonrpc` has no special
meaning. `frame` writes ASCII, so its length in characters is its length in bytes. This module imports nothing that
takes time, because the answer to `initialize` waits for it.
"""

from __future__ import annotations

import json
import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
CANCELLED = -32800

MessageId = int | str


class AbsentMember:
    """The type of ABSENT, which says that a member is absent; null is a value."""


ABSENT: Final = AbsentMember()


class Request:
    """A request: gets exactly one answer. `params`: JSON, or ABSENT."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: MessageId, method: str, params: object) -> None:
        self.id = id
        self.method = method
        self.params = params


class Notification:
    """A notification: gets no answer. `params`: JSON, or ABSENT."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: object) -> None:
        self.method = method
        self.params = params


class Response:
    """An answer to a request of ours. `id` is any JSON value; `result` and `error`: JSON, or ABSENT."""

    __slots__ = ("error", "id", "result")

    def __init__(self, id: object, result: object, error: object) -> None:
        self.id = id
        self.result = result
        self.error = error


class Malformed:
    """A body that is no message, with code, id and text of its answer."""

    __slots__ = ("code", "id", "text")

    def __init__(self, code: int, text: str, id: MessageId | None = None) -> None:
        self.code = code
        self.text = text
        self.id = id


Message = Request | Notification | Response | Malformed

_SURROGATE_ESCAPE = rb"\\u[dD][89a-fA-F]"
_ESCAPES = (
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\."  # any other escape, an escaped backslash among them
)


def read(body: bytes) -> Message:
    """Return the message in a body."""
    try:
        value = _load(body)
    except RecursionError:
        return Malformed(PARSE_ERROR, "parse error: nested too deeply")
    except MemoryError:
        return Malformed(PARSE_ERROR, "parse error: too large")
    except ValueError as error:
        return Malformed(PARSE_ERROR, f"parse error: {_reason(error)}")
    if not isinstance(value, dict):
        return Malformed(INVALID_REQUEST, "a message must be an object; batches are not supported")
    return _classify(value)


def frame(message: Mapping[str, object]) -> bytes:
    """Return a message with its header. Raises ValueError, TypeError or RecursionError for a value that is no JSON."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _classify(value: dict[str, object]) -> Message:
    id_member = value.get("id", ABSENT)
    id = id_member if isinstance(id_member, int | str) and not isinstance(id_member, bool) else None
    method = value.get("method", ABSENT)
    if method is ABSENT and ("result" in value or "error" in value):
        return Response(id_member, value.get("result", ABSENT), value.get("error", ABSENT))
    if value.get("jsonrpc") != "2.0":
        return Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', id)
    if not isinstance(method, str):
        return Malformed(INVALID_REQUEST, "method must be a string", id)
    params = value.get("params", ABSENT)
    if id_member is ABSENT:
        return Notification(method, params)
    if id is None:
        return Malformed(INVALID_PARAMS, "id must be an integer or a string")
    return Request(id, method, params)


def _load(body: bytes) -> object:
    if b"\\u" in body and re.search(_SURROGATE_ESCAPE, body):
        body = re.sub(_ESCAPES, lambda found: rb"\ufffd" if found[1] else found[0], body)
    value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_parse_float)
    return value


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number out of range")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    return str(error)[:200]
