"""Errors in a JSON value: what does not fit, and where.

A `Misfit` is raised at the place of the error and collects the steps of its path on the way up. `wire` turns it into a
`WireError` with at most `ERRORS_COUNT_MAX` errors. A path is written as `$.attachments[0].range`; a key that is no
plain word as `$["a key"]`, shortened. No message repeats a value, which may be a secret, or names a Python class.
"""

import json
import re
from collections.abc import Callable
from types import NoneType
from typing import Any, TypeAlias

from steadyhand_protocol.refusals import FieldError

ERRORS_COUNT_MAX = 10
MESSAGE_CHARS_MAX = 200
PATH_CHARS_MAX = 200
SHOWN_KEY_CHARS_MAX = 40

Step: TypeAlias = str | int
Hook: TypeAlias = Callable[[object, Any], Any]


class WireError(ValueError):
    """A value does not fit its shape. `errors` (1 to `ERRORS_COUNT_MAX`) say where and what was expected."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{error.path}: {error.message}" for error in errors))


class Misfit(Exception):
    """Errors below a place: for each, the steps from there and what was expected."""

    def __init__(self, message: str | None = None) -> None:
        self.faults: list[tuple[tuple[Step, ...], str]] = [] if message is None else [((), message)]

    @property
    def full(self) -> bool:
        """Whether it holds `ERRORS_COUNT_MAX` errors; more are dropped."""
        return len(self.faults) >= ERRORS_COUNT_MAX

    def add(self, step: Step, message: str) -> None:
        """Add one error at a step below."""
        if not self.full:
            self.faults.append(((step,), message))

    def take(self, step: Step, inner: "Misfit") -> None:
        """Take over the errors that were found below a step."""
        free = ERRORS_COUNT_MAX - len(self.faults)
        self.faults.extend(((step, *steps), message) for steps, message in inner.faults[:free])

    def errors(self) -> tuple[FieldError, ...]:
        """Return the errors with their paths from the root."""
        return tuple(FieldError(_path(steps), message[:MESSAGE_CHARS_MAX]) for steps, message in self.faults)


def _path(steps: tuple[Step, ...]) -> str:
    path = "$" + "".join(_shown(step) for step in steps)
    return path if len(path) <= PATH_CHARS_MAX else path[: PATH_CHARS_MAX - 1] + "…"


def _shown(step: Step) -> str:
    if type(step) is int:
        return f"[{step}]"
    key = str(step)
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,39}", key):
        return f".{key}"
    return f"[{json.dumps(key[:SHOWN_KEY_CHARS_MAX])}]"


def _kind(value: object) -> str:
    names: dict[type, str] = {
        NoneType: "null",
        bool: "a boolean",
        int: "an integer",
        float: "a number with a fraction or exponent",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return names.get(type(value), "no JSON value")


def expected(what: str, found: object) -> Misfit:
    """Return the error that another kind of value than `what` was found; it names the kind, never the value."""
    return Misfit(f"expected {what}, found {_kind(found)}")


def within(step: Step, hook: Hook, value: object, shape: Any) -> Any:
    """Return what the hook makes of the value; its errors are raised as errors below `step`."""
    try:
        return hook(value, shape)
    except Misfit as inner:
        misfit = Misfit()
        misfit.take(step, inner)
        raise misfit from None
