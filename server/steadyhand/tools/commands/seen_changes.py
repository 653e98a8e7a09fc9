"""What stands below the roots of a command after its end, compared with before (row O1, case 124). Blocks."""

from __future__ import annotations

from steadyhand.domain.records.record import ChangedDuring
from steadyhand.domain.views.render import display_path
from steadyhand.tools.commands.confinement import roots_of
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.prepared_command import PreparedCommand
from steadyhand.tools.workspace.paths import one_line
from steadyhand.tools.workspace.roots_listing import changes_between, list_roots, protected_since
from steadyhand.tools.workspace.walk import printable
from steadyhand_values import frozen

NAMED_MAX = 20
"""Files that the reply names."""
PROTECTED_MAX = 200
"""Protected names that are recorded."""
NAME_CHARS_MAX = 80


@frozen
class SeenChanges:
    """`protected`: names that are new or changed; `protected_new`: those that are new. All as they are shown."""

    during: ChangedDuring
    protected: tuple[str, ...] = ()
    protected_new: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The note of the reply about the files; empty: none changed."""
        named = ", ".join(f"{one.change} {_shown(one.path)}" for one in self.during.files[:NAMED_MAX])
        more = len(self.during.files) - NAMED_MAX
        count = max(0, more) + self.during.more
        return f"Changed while it ran: {named}{f' and {count} more' if count else ''}" if named else ""

    @property
    def protected_sentence(self) -> str:
        """The note of the reply about protected names."""
        named = ", ".join(_shown(path) for path in self.protected[:NAMED_MAX])
        more = len(self.protected) - NAMED_MAX
        return f"New or changed protected names: {named}{f' and {more} more' if more > 0 else ''}"


def see_changes(tool_context: ToolContext, command: PreparedCommand) -> SeenChanges:
    """Look again and compare. Protected names are compared only after a confined command."""
    after = list_roots(tool_context, roots_of(tool_context))
    during = changes_between(tool_context, command.before, after)
    if command.confinement is None:
        return SeenChanges(during)
    new, changed = protected_since(command.before, after)
    names = [display_path(path, tool_context.root) for path in (*new, *changed)][:PROTECTED_MAX]
    return SeenChanges(during, tuple(names), tuple(names[: len(new)]))


def _shown(path: str) -> str:
    return one_line(printable(path), NAME_CHARS_MAX)
