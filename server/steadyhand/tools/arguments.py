"""Read the arguments of a call strictly, one declared field after the other; nothing is corrected or ignored.

An unknown field, a missing one or one of the wrong type refuses the call with a sentence that names the field. A whole
number is a JSON integer: `3.0`, `"3"` and `true` are not.

    fields = ArgumentFields("read_file", arguments.value, ("path", "offset", "limit"))
    path = fields.text("path")         # raises InvalidArguments
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steadyhand.tools.contract import Refusal

NAMED_CHARS_MAX = 60
"""Of an unknown field's name, in the refusal."""


class InvalidArguments(Exception):
    """Raised inside `prepare`, which turns it into its `refusal`; it never leaves the tool."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.refusal = Refusal("bad_arguments", text)


class ArgumentFields:
    """The members of one JSON object. Sentences begin with `where`: a tool's name, or a place such as `edits[2]`."""

    def __init__(self, where: str, members: object, names: Sequence[str]) -> None:
        if not isinstance(members, Mapping):
            raise InvalidArguments(f"{where} must be an object with the fields {_join_names(names)}.")
        self._where = where
        self._members: Mapping[str, object] = members
        for name in members:
            if name not in names:
                shown = name if len(name) <= NAMED_CHARS_MAX else name[:NAMED_CHARS_MAX] + "…"
                raise InvalidArguments(f"{where}: there is no field {shown!r}; the fields are {_join_names(names)}.")

    def __contains__(self, name: str) -> bool:
        """Whether the field is given."""
        return name in self._members

    def text(self, name: str) -> str:
        """Return a text. Raises InvalidArguments if it is missing."""
        found = self.optional_text(name)
        if found is None:
            raise InvalidArguments(f"{self._where}: the field `{name}` is missing.")
        return found

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None if it is missing."""
        found = self._members.get(name)
        if name in self._members and not isinstance(found, str):
            raise InvalidArguments(f"{self._where}: the field `{name}` must be a text.")
        return found if isinstance(found, str) else None

    def optional_integer(self, name: str, least: int, most: int | None = None) -> int | None:
        """Return a whole number from `least` to `most`, both included, or None if it is missing."""
        if name not in self._members:
            return None
        found = self._members[name]
        if not isinstance(found, int) or isinstance(found, bool):
            raise InvalidArguments(f"{self._where}: the field `{name}` must be a whole number.")
        if found < least or (most is not None and found > most):
            span = f"at least {least}" if most is None else f"from {least} to {most}"
            raise InvalidArguments(f"{self._where}: the field `{name}` must be {span}, not {_short_number(found)}.")
        return found

    def optional_bool(self, name: str) -> bool:
        """Return true or false; false if it is missing."""
        found = self._members.get(name, False)
        if not isinstance(found, bool):
            raise InvalidArguments(f"{self._where}: the field `{name}` must be true or false.")
        return found

    def sequence(self, name: str, most: int) -> Sequence[object]:
        """Return a list of one to `most` members."""
        if name not in self._members:
            raise InvalidArguments(f"{self._where}: the field `{name}` is missing.")
        found = self._members[name]
        if not isinstance(found, list) or not found:
            raise InvalidArguments(f"{self._where}: the field `{name}` must be a list with at least one member.")
        if len(found) > most:
            raise InvalidArguments(f"{self._where}: the field `{name}` has {len(found)} members; the limit is {most}.")
        return found


def _short_number(number: int) -> str:
    # A JSON integer can have millions of digits, and Python refuses to print those.
    return str(number) if abs(number) < 10**20 else "a number that large"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
