"""The one door where exceptions become error answers.

Three kinds come here: `Failed`, raised by the edge itself with its code; `Refused`, an expected refusal of
the house (wire.md, "Errors"), whose kind becomes the code and `data.kind`; anything else, a defect, which is
answered "internal error" without a trace or a path and written to stderr. A task group's exception with a
single one in it counts as that one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import attrs

from steadyhand.core.refusal import Refused
from steadyhand.edge.messages import CANCELLED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from steadyhand_protocol import methods, wire

text_chars_max = 1_000
errors_max = 10

log = logging.getLogger(__name__)

_CODES: Mapping[str, int] = {
    **methods.ERRORS,
    "invalidParams": INVALID_PARAMS,
    "cancelled": CANCELLED,
}


@attrs.frozen
class Failure:
    """An error answer: `data` is JSON, None where there is none."""

    code: int
    text: str
    data: Mapping[str, object] | None = None

    def as_json(self) -> dict[str, object]:
        """The member `error`."""
        error: dict[str, object] = {"code": self.code, "message": self.text[:text_chars_max]}
        if self.data is not None:
            error["data"] = self.data
        return error


class Failed(Exception):
    """A request that the edge itself answers with an error."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def not_found(method: str) -> Failed:
    """No such method, or one of a part that is not built."""
    return Failed(Failure(METHOD_NOT_FOUND, f"unknown method {method[:200]}"))


def invalid(subject: str, errors: Iterable[tuple[str, str]]) -> Failed:
    """Params that do not fit; each error is (path, message)."""
    listed = [{"path": path[:200], "message": message[:200]} for path, message in errors][:errors_max]
    told = "; ".join(f"{error['path']}: {error['message']}" for error in listed)
    failure = Failure(INVALID_PARAMS, f"invalid {subject}: {told}", {"kind": "invalidParams", "errors": listed})
    return Failed(failure)


def failure_of(error: Exception, subject: str) -> Failure:
    """The answer to a request that ended with `error`; `subject` names it in the log."""
    while isinstance(inner := getattr(error, "exceptions", None), tuple) and len(inner) == 1:
        if not isinstance(inner[0], Exception):
            break
        error = inner[0]
    match error:
        case Failed():
            return error.failure
        case Refused() if error.kind in _CODES:
            return _of_refusal(error, subject)
        case _:
            return _of_defect(error, subject)


def _of_refusal(refused: Refused, subject: str) -> Failure:
    try:
        more = {name: wire.unstructure(value) for name, value in refused.more.items()}
    except Exception as error:  # what it carries has no shape on the wire
        return _of_defect(error, subject)
    return Failure(_CODES[refused.kind], refused.message, {"kind": refused.kind, **more})


def _of_defect(error: Exception, subject: str) -> Failure:
    log.error("%s failed unexpectedly", subject[:200], exc_info=error)
    return Failure(INTERNAL_ERROR, "internal error")
