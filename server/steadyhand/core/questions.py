"""Questions to the person, and what comes back. Ids of options are wire.md's; labels are for reading."""

from __future__ import annotations

import attrs

from steadyhand.core.views import Uncertain


@attrs.frozen
class Option:
    id: str
    label: str


BEYOND_THE_SESSION = frozenset({"workspace", "user"})
"""Options of a permission that a short question leaves out: the titles of `window/showMessageRequest` are wire.md's."""


@attrs.frozen
class PermissionQuestion:
    ask_id: str
    session_id: str
    turn_id: str
    call_id: str
    tool: str
    title: str
    arguments: str  # JSON text, as proposed
    text: str  # one plain sentence or two: what will happen
    options: tuple[Option, ...]
    diff: str | None = None

    @property
    def short_options(self) -> tuple[Option, ...]:
        """Those of a short question."""
        return tuple(option for option in self.options if option.id not in BEYOND_THE_SESSION)


@attrs.frozen
class HeldBackQuestion:
    """`uncertain` is the one effect this question is about; its answers rest on its inspection."""

    ask_id: str
    session_id: str  # of the call that waits
    turn_id: str
    call_id: str
    tool: str
    title: str
    arguments: str
    text: str
    uncertain: Uncertain
    options: tuple[Option, ...]


@attrs.frozen
class UserQuestion:
    ask_id: str
    session_id: str
    turn_id: str
    question: str
    options: tuple[str, ...] = ()


@attrs.frozen
class Answer:
    option: str
    note: str | None = None
