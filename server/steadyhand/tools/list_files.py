"""`list_files {path?, depth?}`: what is in a folder, one name a line, folders with `/`, links with their target.

Only the folder itself, unless `depth` says more. Left out is what `tools.walk` leaves out; it says how much that is.
"""

from __future__ import annotations

from contextlib import closing

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.lines import Lines
from steadyhand.tools.place import display
from steadyhand.tools.reading import PlannedSearch, located_for, title_of
from steadyhand.tools.tool import Done, Ground, Refusal
from steadyhand.tools.walk import Entry, Walk, counted, readable

depth_default = 1
listed_depth_max = 20
listed_max = 2000


class ListFiles:
    """The tool; see `tool.Tool`."""

    name = "list_files"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "List what is in a folder: one path a line, relative to it, folders with / at the end, links with -> and their"
        " target. What ignore files name and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "A folder; the workspace if left out."},
                    "depth": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": listed_depth_max,
                        "description": f"How many levels of folders; {depth_default} if left out.",
                    },
                },
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedListing | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("path", "depth"))
            path = fields.optional_text("path")
            depth = fields.optional_whole("depth", 1, listed_depth_max) or depth_default
        except Unfit as unfit:
            return unfit.refusal
        located = located_for(ground, path, self.name, folder_only=True)
        if isinstance(located, Refusal):
            return located
        title = title_of(self.name, display(ground.root, located.resolved))
        return PlannedListing(ground, located, title, depth)


@attrs.frozen
class PlannedListing(PlannedSearch):
    depth: int

    def _search(self) -> Done:
        walk, lines = Walk(self.ground, self.located, self.depth), Lines()
        with closing(walk.entries()) as entries:
            for entry in entries:
                if len(lines.lines) >= listed_max or not lines.add(_line(entry)):
                    walk.cut = f"after {counted(len(lines.lines), 'line', 'lines')}"
                    break
        return lines.done("the folder is empty", walk.notes, whole=walk.cut is None)


def _line(entry: Entry) -> str:
    match entry.look.kind:
        case "folder":
            return f"{entry.shown}/"
        case "link":
            return f"{entry.shown} -> {readable(entry.look.target or '')}"
        case "other":
            return f"{entry.shown} (neither a file nor a folder)"
        case "file":
            return entry.shown
