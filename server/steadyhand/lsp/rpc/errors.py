"""The one place where exceptions become error answers.

`error_answer` tells three kinds apart. An `RpcError` has its answer. A `Refused` is an expected refusal of the session
layer: its kind becomes the code and `data.kind` (docs/protocol.md#errors). Anything else is a defect: the answer is
"internal error", without a trace or a path, and the trace goes to stderr. An exception group with one exception in it
counts as that exception.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from steadyhand.domain.errors import Refused
from steadyhand.lsp.rpc.messages import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    Malformed,
)
from steadyhand.lsp.state.documents import DocumentNotOpen
from steadyhand_protocol import methods, wire
from steadyhand_values import frozen

TEXT_CHARS_MAX = 1_000
ERRORS_MAX = 10

log = logging.getLogger(__name__)

_CODES: Mapping[str, int] = {
    **methods.ERRORS,
    "invalidParams": INVALID_PARAMS,
    "cancelled": CANCELLED,
}


@frozen
class ErrorAnswer:
    """An error answer: `data` is JSON, None where there is none."""

    code: int
    text: str
    data: Mapping[str, object] | None = None

    def as_json(self) -> dict[str, object]:
        """Return the member `error`."""
        error: dict[str, object] = {"code": self.code, "message": self.text[:TEXT_CHARS_MAX]}
        if self.data is not None:
            error["data"] = self.data
        return error


class RpcError(Exception):
    """A request that is answered with this error."""

    def __init__(self, answer: ErrorAnswer) -> None:
        super().__init__(answer.text)
        self.answer = answer


def unknown_method_error(method: str) -> RpcError:
    """There is no such method, or it is not built."""
    return RpcError(ErrorAnswer(METHOD_NOT_FOUND, f"unknown method {method[:200]}"))


def request_error(text: str) -> RpcError:
    """The request may not come, or not now."""
    return RpcError(ErrorAnswer(INVALID_REQUEST, text))


def not_initialized_error() -> RpcError:
    return RpcError(ErrorAnswer(NOT_INITIALIZED, "initialize must be sent first"))


def cancelled_error() -> RpcError:
    return RpcError(ErrorAnswer(CANCELLED, "cancelled", {"kind": "cancelled"}))


def malformed_error(message: Malformed) -> RpcError:
    return RpcError(ErrorAnswer(message.code, message.text))


def params_error(subject: str, errors: Iterable[tuple[str, str]]) -> RpcError:
    """Params have a wrong form; each error is (path, message)."""
    listed = [{"path": path[:200], "message": message[:200]} for path, message in errors][:ERRORS_MAX]
    text = "; ".join(f"{error['path']}: {error['message']}" for error in listed)
    data = {"kind": "invalidParams", "errors": listed}
    return RpcError(ErrorAnswer(INVALID_PARAMS, f"invalid {subject}: {text}", data))


def error_answer(error: Exception, subject: str) -> ErrorAnswer:
    """Return the answer to a request that ended with `error`; `subject` names the request in the log."""
    while isinstance(inner := getattr(error, "exceptions", None), tuple) and len(inner) == 1:
        if not isinstance(inner[0], Exception):
            break
        error = inner[0]
    match error:
        case RpcError():
            return error.answer
        case DocumentNotOpen():
            return ErrorAnswer(INVALID_PARAMS, "the document is not open")
        case Refused() if error.kind in _CODES:
            return _refusal_answer(error, subject)
        case _:
            return _defect_answer(error, subject)


def _refusal_answer(refused: Refused, subject: str) -> ErrorAnswer:
    try:
        more = {name: wire.unstructure(value) for name, value in refused.more.items()}
    except Exception as error:  # what it carries has no form on the wire
        return _defect_answer(error, subject)
    return ErrorAnswer(_CODES[refused.kind], refused.message, {"kind": refused.kind, **more})


def _defect_answer(error: Exception, subject: str) -> ErrorAnswer:
    log.error("%s failed unexpectedly", subject[:200], exc_info=error)
    return ErrorAnswer(INTERNAL_ERROR, "internal error")
