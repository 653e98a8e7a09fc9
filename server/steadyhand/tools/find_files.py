"""`find_files {pattern, path?}`: paths of files and links whose name or path fits a pattern (`core.globs.glob`).

A pattern without `/` is a name at any depth, whole: `*.py`, `test_*`; `config` finds only what is called just that. One
with `/` is a path from where the search begins: `src/**/*.py`. Left out is what `tools.walk` leaves out.
"""

from __future__ import annotations

from contextlib import closing

import attrs

from steadyhand.core.globs import BadPattern, Glob, glob
from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.lines import Lines
from steadyhand.tools.place import one_line
from steadyhand.tools.reading import PlannedSearch, located_for, title_of
from steadyhand.tools.tool import Done, Ground, Refusal
from steadyhand.tools.walk import Walk, counted

found_max = 1000
SYNTAX = "* and ? within a name, ** for any folders, [a-z], {a,b}"


class FindFiles:
    """The tool; see `tool.Tool`."""

    name = "find_files"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        f"Find files by a pattern ({SYNTAX}). Without / it is a whole name at any depth, with / a path from where the"
        " search begins. One path a line, relative to the workspace. What ignore files name and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "For example *.py or src/**/test_*.py"},
                    "path": {"type": "string", "description": "The folder to search; the workspace if left out."},
                },
                "required": ["pattern"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedFinding | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("pattern", "path"))
            pattern, path = fields.text("pattern"), fields.optional_text("path")
            wanted = wanted_paths(self.name, "pattern", pattern)
        except Unfit as unfit:
            return unfit.refusal
        located = located_for(ground, path, self.name, folder_only=True)
        if isinstance(located, Refusal):
            return located
        return PlannedFinding(ground, located, title_of(self.name, pattern), pattern, wanted)


def wanted_paths(tool: str, field: str, pattern: str) -> Glob:
    """A pattern from the model. Raises Unfit."""
    wanted = glob(pattern)
    if isinstance(wanted, BadPattern):
        raise Unfit(f"{tool}: the field `{field}` {wanted.why}; it may hold {SYNTAX}.")
    return wanted


@attrs.frozen
class PlannedFinding(PlannedSearch):
    pattern: str
    wanted: Glob

    def _search(self) -> Done:
        walk, lines = Walk(self.ground, self.located), Lines()
        before = "" if self.shown == "." else self.shown.rstrip("/") + "/"
        with closing(walk.entries()) as entries:
            for entry in entries:
                if entry.look.kind not in ("file", "link") or not self.wanted.matches(entry.path):
                    continue
                if len(lines.lines) >= found_max or not lines.add(before + entry.shown):
                    walk.cut = f"after {counted(len(lines.lines), 'file', 'files')}"
                    break
        return lines.done(f"no file fits {one_line(self.pattern)}", walk.notes, walk.whole)
