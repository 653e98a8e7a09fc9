"""How often a provider refused a session's conversation for the reasoning in it (cases 94, 95)."""

from __future__ import annotations

from steadyhand_values import define


@define(eq=False)
class ReasoningRefusals:
    """Turns in a row that were refused; `given_up`: the user chose to go on without reasoning in this session."""

    in_a_row: int = 0
    given_up: bool = False

    def count(self) -> int:
        """Count a turn that was refused and return how many there are in a row."""
        self.in_a_row += 1
        return self.in_a_row

    def reset(self) -> None:
        """A request with reasoning was answered: nothing is refused in a row."""
        self.in_a_row = 0

    def give_up(self) -> None:
        """Ask without reasoning as long as this session stays open here."""
        self.given_up = True
