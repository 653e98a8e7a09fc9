"""Where the readers of a shell's line put the commands they find, and the bounds they keep."""

from __future__ import annotations

import attrs

from steadyhand_values import define

UNKNOWN = "\0"
"""A piece of a word that the text does not show. A command never contains this character."""
WORD_END = frozenset(" \t\n;&|()<>")
"""Characters that end a word."""
DEPTH_MAX = 60
"""Of lists inside lists."""
COMMANDS_MAX = 2_000
"""Of one line."""


class TooDeep(Exception):
    """The line nests deeper, or has more commands, than the bounds allow; it is not read to its end."""


class Unfinished(Exception):
    """A quote or an expansion is not closed, so a shell waits for more text."""


@define
class CommandDraft:
    """A simple command that is being read."""

    words: list[str] = attrs.field(factory=list)
    assignments: list[str] = attrs.field(factory=list)
    redirections: list[tuple[str, str]] = attrs.field(factory=list)  # operator, target


@define
class CommandSink:
    """The commands of a whole line, those inside its words included."""

    is_clear: bool = True
    drafts: list[CommandDraft] = attrs.field(factory=list)

    def begin(self) -> CommandDraft:
        """Return an empty command."""
        if len(self.drafts) >= COMMANDS_MAX:
            raise TooDeep
        return CommandDraft()

    def end(self, draft: CommandDraft) -> None:
        """Keep a command that was read, unless it is empty."""
        if draft.words or draft.assignments or draft.redirections:
            self.drafts.append(draft)
