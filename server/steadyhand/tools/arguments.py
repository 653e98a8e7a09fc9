"""Arguments of a call, read strictly: one declared field after the other, nothing mended and nothing passed over.

A field of another name, a missing one or one of the wrong type refuses the call with a sentence that names the
field. A number is a whole JSON number: `3.0`, `"3"` and `true` are none.

    fields = Fields("read_file", arguments.value, ("path", "offset", "limit"))
    path = fields.text("path")         # raises Unfit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from steadyhand.tools.tool import Refusal

named_chars_max = 60
"""Of a field's name that is told back."""


class Unfit(Exception):
    """Raised inside `prepare` and turned into its `refusal` there; never leaves the tool."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.refusal = Refusal("bad_arguments", text)


class Fields:
    """The members of one object. `where` begins the sentences: a tool's name or a place such as `edits[2]`."""

    def __init__(self, where: str, members: object, names: Sequence[str]) -> None:
        if not isinstance(members, Mapping):
            raise Unfit(f"{where}: not an object with the fields {_listed(names)}.")
        self._where = where
        self._members: Mapping[str, object] = members
        for name in members:
            if name not in names:
                shown = name if len(name) <= named_chars_max else name[:named_chars_max] + "…"
                raise Unfit(f"{where}: there is no field {shown!r}; the fields are {_listed(names)}.")

    def __contains__(self, name: str) -> bool:
        """Whether the field is given."""
        return name in self._members

    def text(self, name: str) -> str:
        found = self.optional_text(name)
        if found is None:
            raise Unfit(f"{self._where}: the field `{name}` is missing.")
        return found

    def optional_text(self, name: str) -> str | None:
        found = self._members.get(name)
        if name in self._members and not isinstance(found, str):
            raise Unfit(f"{self._where}: the field `{name}` must be a text.")
        return found if isinstance(found, str) else None

    def optional_whole(self, name: str, least: int, most: int | None = None) -> int | None:
        """A whole number from `least` to `most`, both included."""
        if name not in self._members:
            return None
        found = self._members[name]
        if not isinstance(found, int) or isinstance(found, bool):
            raise Unfit(f"{self._where}: the field `{name}` must be a whole number.")
        if found < least or (most is not None and found > most):
            span = f"at least {least}" if most is None else f"from {least} to {most}"
            raise Unfit(f"{self._where}: the field `{name}` must be {span}, not {_shortened(found)}.")
        return found

    def optional_yes(self, name: str) -> bool:
        """A truth value; false where it is left out."""
        found = self._members.get(name, False)
        if not isinstance(found, bool):
            raise Unfit(f"{self._where}: the field `{name}` must be true or false.")
        return found

    def listed(self, name: str, most: int) -> Sequence[object]:
        """A list of one to `most` members."""
        if name not in self._members:
            raise Unfit(f"{self._where}: the field `{name}` is missing.")
        found = self._members[name]
        if not isinstance(found, list) or not found:
            raise Unfit(f"{self._where}: the field `{name}` must be a list with at least one member.")
        if len(found) > most:
            raise Unfit(f"{self._where}: the field `{name}` has {len(found)} members; at most {most} are taken.")
        return found


def _shortened(number: int) -> str:
    # A whole number can have millions of digits, which Python refuses to print.
    return str(number) if abs(number) < 10**20 else "a number that large"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
