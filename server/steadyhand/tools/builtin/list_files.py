"""`list_files {path?, depth?}`: what is in a folder, one name a line, folders with `/`, links with their target.

It lists only the folder itself, unless `depth` says more. `workspace.walk` says what is left out; the reply counts it.
"""

from __future__ import annotations

from contextlib import closing

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.views.render import display_path
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_read import PlannedRead, locate_start, title_of
from steadyhand.tools.contract import Refusal, ToolContext, ToolOutcome
from steadyhand.tools.reply_lines import ReplyLines
from steadyhand.tools.workspace.walk import DirectoryWalk, Entry, count_phrase, printable
from steadyhand_values import frozen

DEPTH_DEFAULT = 1  # levels of folders
LISTED_DEPTH_MAX = 20
LISTED_MAX = 2000  # lines


class ListFiles:
    """The tool; see `contract.Tool`."""

    name = "list_files"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "List what is in a folder: one path a line, relative to it, folders with / at the end, links with -> and their"
        " target. Ignored files and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "A folder; the default is the workspace."},
                    "depth": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": LISTED_DEPTH_MAX,
                        "description": f"How many levels of folders; the default is {DEPTH_DEFAULT}.",
                    },
                },
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedListing | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("path", "depth"))
            path = fields.optional_text("path")
            depth = fields.optional_integer("depth", 1, LISTED_DEPTH_MAX) or DEPTH_DEFAULT
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_start(tool_context, path, self.name, folder_only=True)
        if isinstance(located, Refusal):
            return located
        title = title_of(self.name, display_path(located.resolved, tool_context.root))
        return PlannedListing(tool_context, located, title, depth)


@frozen
class PlannedListing(PlannedRead):
    """One call; see `contract.Planned`."""

    depth: int

    def _search(self) -> ToolOutcome:
        walk, lines = DirectoryWalk(self.tool_context, self.located, self.depth), ReplyLines()
        with closing(walk.entries()) as entries:
            for entry in entries:
                if len(lines.lines) >= LISTED_MAX or not lines.add(_line(entry)):
                    walk.cut_reason = f"after {count_phrase(len(lines.lines), 'line', 'lines')}"
                    break
        nothing = "everything in it is left out by ignore files" if walk.counts.ignored else "the folder is empty"
        return lines.to_outcome(nothing, walk.notes, whole=walk.cut_reason is None)


def _line(entry: Entry) -> str:
    match entry.stat.kind:
        case "folder":
            return f"{entry.display_name}/"
        case "link":
            return f"{entry.display_name} -> {printable(entry.stat.target or '')}"
        case "other":
            return f"{entry.display_name} (neither a file nor a folder)"
        case "file":
            return entry.display_name
