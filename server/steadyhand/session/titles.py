"""Titles: the user's, on one line and bounded, and the automatic one, which never replaces it (rows S3, K3, case 80).

An automatic title is the first line of the first prompt.
"""

from __future__ import annotations

from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Title, User
from steadyhand.core.refusal import invalid
from steadyhand.core.show import short_title

title_chars_max = 200


def users_title(given: str) -> str:
    """What the user gave, on one line without what cannot be shown; Refused above `title_chars_max`."""
    title = " ".join("".join(c if c.isprintable() else " " for c in given).split())
    if len(title) > title_chars_max:
        raise invalid("$.title", f"longer than {title_chars_max} characters")
    return title


def first_title(ledger: Ledger, user: User) -> tuple[Title, ...]:
    """The title that comes with this prompt; none if the session has one, or had its first prompt before."""
    begun = any(turn.in_history for turn in ledger.turns.values())
    if ledger.title_source != "none" or begun or user.command or user.aside or not user.text.strip():
        return ()
    return (Title(short_title(user.text.strip().split("\n")[0]), "auto"),)
