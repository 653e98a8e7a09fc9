"""What is wrong with a value that does not fit, and where.

Inside, a `Misfit` rises from the place of the fault and gathers the steps of its path on the way; at the
door it becomes a `WireError` with at most `errors_count_max` errors. A path is written as
`$.attachments[0].range`; a key that is no plain word as `$["a key"]`, shortened. No message repeats a
value, which may be a secret, or names a Python class.
"""

import json
import re
from collections.abc import Callable
from types import NoneType
from typing import Any, TypeAlias

from steadyhand_protocol.refusals import FieldError

errors_count_max = 10
message_chars_max = 200
path_chars_max = 200
shown_key_chars_max = 40

Step: TypeAlias = str | int
Hook: TypeAlias = Callable[[object, Any], Any]


class WireError(ValueError):
    """A value does not fit its shape; `errors` (1 to `errors_count_max`) say where and what was expected."""

    def __init__(self, errors: tuple[FieldError, ...]) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{error.path}: {error.message}" for error in errors))


class Misfit(Exception):
    """Faults below some place: each with the steps from there, and what was expected."""

    def __init__(self, message: str | None = None) -> None:
        self.faults: list[tuple[tuple[Step, ...], str]] = [] if message is None else [((), message)]

    @property
    def full(self) -> bool:
        return len(self.faults) >= errors_count_max

    def add(self, step: Step, message: str) -> None:
        if not self.full:
            self.faults.append(((step,), message))

    def take(self, step: Step, inner: "Misfit") -> None:
        free = errors_count_max - len(self.faults)
        self.faults.extend(((step, *steps), message) for steps, message in inner.faults[:free])

    def errors(self) -> tuple[FieldError, ...]:
        return tuple(FieldError(_path(steps), message[:message_chars_max]) for steps, message in self.faults)


def _path(steps: tuple[Step, ...]) -> str:
    path = "$" + "".join(_shown(step) for step in steps)
    return path if len(path) <= path_chars_max else path[: path_chars_max - 1] + "…"


def _shown(step: Step) -> str:
    if type(step) is int:
        return f"[{step}]"
    key = str(step)
    if re.fullmatch("[A-Za-z_][A-Za-z0-9_]{0,39}", key):
        return f".{key}"
    return f"[{json.dumps(key[:shown_key_chars_max])}]"


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
    """The fault of another kind of value than `what`; says the kind found, never the value."""
    return Misfit(f"expected {what}, found {_kind(found)}")


def within(step: Step, hook: Hook, value: object, shape: Any) -> Any:
    """What the hook makes of the value; its faults rise as faults below `step`."""
    try:
        return hook(value, shape)
    except Misfit as inner:
        misfit = Misfit()
        misfit.take(step, inner)
        raise misfit from None
