"""Questions to the user, and the answers.

The ids of options and the titles of `window/showMessageRequest` are fixed (docs/protocol.md, "Requests" and "Chosen
here"); labels are for people.
"""

from __future__ import annotations

from steadyhand.domain.views.types import Uncertain
from steadyhand_values import frozen


@frozen
class Option:
    """One answer that the user can choose."""

    id: str
    label: str


BEYOND_THE_SESSION = frozenset({"workspace", "user"})
"""Options that a short question leaves out: `window/showMessageRequest` and the command line do not offer them."""


@frozen
class PermissionQuestion:
    """May this call run?"""

    ask_id: str
    session_id: str
    turn_id: str
    call_id: str
    tool: str
    title: str
    arguments: str  # JSON text, as proposed
    text: str  # one or two sentences: what the call will do, and why it asks
    options: tuple[Option, ...]
    diff: str | None = None  # unified; None: the call changes no file

    @property
    def short_options(self) -> tuple[Option, ...]:
        """The options of a short question."""
        return tuple(option for option in self.options if option.id not in BEYOND_THE_SESSION)


@frozen
class HeldBackQuestion:
    """May this held-back call run?

    `uncertain` is the one effect it asks about; the answers rest on that effect's latest inspection.
    """

    ask_id: str
    session_id: str  # session of the call that waits
    turn_id: str
    call_id: str
    tool: str
    title: str
    arguments: str
    text: str
    uncertain: Uncertain | None  # None: an effect of a fork's origin that cannot be read (row S3)
    options: tuple[Option, ...]


@frozen
class UserQuestion:
    """A question of the model to the user. Without options the answer is free text."""

    ask_id: str
    session_id: str
    turn_id: str
    question: str
    options: tuple[str, ...] = ()


@frozen
class Choice:
    """The user's choice. `option` is an id of one of the options; `note` is a text for the model."""

    option: str
    note: str | None = None
