"""What planned reads of the workspace share: they read one path, need no evidence, and change nothing."""

from __future__ import annotations

from typing import ClassVar

import attrs

from steadyhand.domain.records.record import EffectClass, Scope
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Disk
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.paths import ResolvedPath, locate, locate_for_call, one_line
from steadyhand.tools.workspace.similar_names import missing_note
from steadyhand.tools.workspace.stoppable_reads import run_stoppable
from steadyhand.tools.workspace.walk import printable
from steadyhand.tools.writes.planned_write import TITLE_CHARS_MAX
from steadyhand_values import frozen


@frozen
class PlannedRead:
    """One call; see `contract.Planned`. A subclass reads in `_search`, which blocks."""

    tool_context: ToolContext
    located: ResolvedPath
    title: str

    effect: ClassVar[EffectClass] = "reads"
    is_folder_only: ClassVar[bool] = True  # whether the read begins at a folder, and not at a file
    command: ClassVar[tuple[str, str] | None] = None

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self.located.resolved,))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self.located.is_inside else (self.located.resolved,)

    @property
    def protected(self) -> tuple[str, ...]:
        """The path if its name is a secret's (case 137)."""
        return (self.located.resolved,) if self.located.is_secret else ()

    @property
    def display_name(self) -> str:
        """The path as the user sees it."""
        return one_line(display_path(self.located.resolved, self.tool_context.root))

    def preview(self) -> Preview | Refusal:
        where = "" if self.located.is_inside else " It is outside the workspace."
        return Preview(f"Reads what is in {self.display_name}.{where}")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        return EvidenceResult()

    async def run(self, running: CallContext) -> ToolOutcome:
        return await run_stoppable(self.tool_context.disk, self._run_on)

    def _run_on(self, disk: Disk) -> ToolOutcome:
        """Read with this disk, in a thread."""
        return attrs.evolve(self, tool_context=attrs.evolve(self.tool_context, disk=disk))._run()

    def _run(self) -> ToolOutcome:
        try:
            if self.located.is_inside:
                return self._search()
            located = locate(self.tool_context, self.located.asked)
            if isinstance(located, Refusal):
                return ToolOutcome("failed", located.text, located.reason)
            if located.resolved != self.located.resolved:
                return ToolOutcome("failed", f"The path {self.display_name} leads elsewhere now.", "changed")
            trouble = start_trouble(self.tool_context, located, self.is_folder_only)
            if trouble is not None:
                return ToolOutcome("failed", trouble.text, trouble.reason)
            return attrs.evolve(self, located=located)._search()
        except OSError as error:
            return ToolOutcome("failed", f"{self.display_name} cannot be read: {error.strerror or error}.", "io_error")

    def _search(self) -> ToolOutcome:
        raise NotImplementedError


def title_of(tool: str, subject: str) -> str:
    """Return the title of a call: the tool and what it reads."""
    start = f"{tool}: "
    return start + one_line(printable(subject), TITLE_CHARS_MAX - len(start))


def locate_start(tool_context: ToolContext, path: str | None, tool: str, folder_only: bool) -> ResolvedPath | Refusal:
    """Resolve where a read begins: the workspace if no path is given."""
    located = locate_for_call(tool_context, "." if path is None else path)
    if isinstance(located, Refusal):
        return located
    if located.is_in_state_directory:
        return Refusal(
            "policy", f"{one_line(located.asked)} belongs to Steadyhand itself and cannot be read by a tool."
        )
    if not located.is_inside:
        return located  # nothing of it is looked at before somebody permits it
    return start_trouble(tool_context, located, folder_only, f"{tool}: `path`: ") or located


def start_trouble(
    tool_context: ToolContext, located: ResolvedPath, folder_only: bool, before: str = ""
) -> Refusal | None:
    """Return why no read can begin there, or None. `before`: the beginning of a sentence about a field."""
    if located.kind is None:
        note = missing_note(tool_context, located)
        return Refusal("not_found", f"{one_line(located.asked)} does not exist.{note}")
    if located.kind != "folder" and (folder_only or located.kind != "file"):
        return Refusal("bad_arguments", f"{before}{one_line(located.asked)} is not a folder.")
    return None
