"""Automatic titles: the first line of the first prompt, never over one that is there (rows S3, K3, case 80)."""

from __future__ import annotations

from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Title, User
from steadyhand.core.show import short_title


def first_title(ledger: Ledger, user: User) -> tuple[Title, ...]:
    """The title that comes with this prompt; none if the session has one, or had its first prompt before."""
    begun = any(not turn.command for turn in ledger.turns.values())
    if ledger.title_source != "none" or begun or user.command or not user.text.strip():
        return ()
    return (Title(short_title(user.text.strip().split("\n")[0]), "auto"),)
