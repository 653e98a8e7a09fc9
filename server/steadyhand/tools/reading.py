"""What the planned readings of the workspace share: they touch one path, need no evidence, and change nothing."""

from __future__ import annotations

from typing import ClassVar

import anyio.to_thread
import attrs

from steadyhand.core.record import EffectClass, Scope
from steadyhand.tools.change import title_chars_max
from steadyhand.tools.place import Located, display, locate, one_line
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running
from steadyhand.tools.walk import readable


@attrs.frozen
class PlannedSearch:
    """One call; see `tool.Planned`. A subclass says in `_search` what is done; it blocks."""

    ground: Ground
    located: Located
    title: str

    effect: ClassVar[EffectClass] = "reads"
    protected: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[tuple[str, str] | None] = None

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self.located.resolved,))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self.located.inside else (self.located.resolved,)

    @property
    def shown(self) -> str:
        return one_line(display(self.ground.root, self.located.resolved))

    def preview(self) -> Preview | Refusal:
        where = "" if self.located.inside else " It lies outside the workspace."
        return Preview(f"Reads what is in {self.shown}.{where}")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        return Gathered()

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._run)

    def _run(self) -> Done:
        try:
            return self._search()
        except OSError as error:
            return Done("failed", f"{self.shown} cannot be read: {error.strerror or error}.", "io_error")

    def _search(self) -> Done:
        raise NotImplementedError


def title_of(tool: str, subject: str) -> str:
    start = f"{tool}: "
    return start + one_line(readable(subject), title_chars_max - len(start))


def located_for(ground: Ground, path: str | None, tool: str, folder_only: bool) -> Located | Refusal:
    """Where a reading begins: the workspace if no path is given."""
    located = locate(ground, "." if path is None else path)
    if isinstance(located, Refusal):
        return located
    if located.in_state_directory:
        return Refusal("policy", f"{one_line(located.asked)} belongs to Steadyhand itself and is never read by a tool.")
    if located.kind is None:
        return Refusal("not_found", f"{one_line(located.asked)} does not exist.")
    if located.kind != "folder" and (folder_only or located.kind != "file"):
        return Refusal("bad_arguments", f"{tool}: `path`: {one_line(located.asked)} is not a folder.")
    return located
