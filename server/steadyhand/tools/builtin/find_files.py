"""`find_files {pattern, path?}`: paths of files and links whose name or path matches a pattern (`domain.text.globs`).

A pattern without `/` is a whole name at any depth: `*.py`, `test_*`; `config` finds only what has exactly this name. A
pattern with `/` is a path from the start of the search: `src/**/*.py`. `workspace.walk` says what is left out.
"""

from __future__ import annotations

from contextlib import closing

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.text.globs import BadPattern, Glob, glob
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_read import PlannedRead, locate_start, title_of
from steadyhand.tools.contract import Refusal, ToolContext, ToolOutcome
from steadyhand.tools.reply_lines import ReplyLines
from steadyhand.tools.workspace.paths import one_line
from steadyhand.tools.workspace.walk import DirectoryWalk, count_phrase
from steadyhand_values import frozen

FOUND_MAX = 1000  # paths
SYNTAX = "* and ? within a name, ** for any folders, [a-z], {a,b}"


class FindFiles:
    """The tool; see `contract.Tool`."""

    name = "find_files"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        f"Find files by a pattern ({SYNTAX}). Without / it is a whole name at any depth, with / a path from the start"
        " of the search. One path a line, relative to the workspace. Ignored files and .git are left out.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "For example *.py or src/**/test_*.py"},
                    "path": {"type": "string", "description": "The folder to search; the default is the workspace."},
                },
                "required": ["pattern"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedFinding | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("pattern", "path"))
            pattern, path = fields.text("pattern"), fields.optional_text("path")
            wanted = parse_pattern(self.name, "pattern", pattern)
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_start(tool_context, path, self.name, folder_only=True)
        if isinstance(located, Refusal):
            return located
        return PlannedFinding(tool_context, located, title_of(self.name, pattern), pattern, wanted)


def parse_pattern(tool: str, field: str, pattern: str) -> Glob:
    """Parse a pattern from the model. Raises InvalidArguments."""
    wanted = glob(pattern)
    if isinstance(wanted, BadPattern):
        raise InvalidArguments(f"{tool}: the field `{field}` {wanted.why}; it may contain {SYNTAX}.")
    return wanted


@frozen
class PlannedFinding(PlannedRead):
    """One call; see `contract.Planned`."""

    pattern: str
    wanted: Glob

    def _search(self) -> ToolOutcome:
        walk, lines = DirectoryWalk(self.tool_context, self.located), ReplyLines()
        before = "" if self.display_name == "." else self.display_name.rstrip("/") + "/"
        with closing(walk.entries()) as entries:
            for entry in entries:
                if entry.stat.kind not in ("file", "link") or not self.wanted.matches(entry.path):
                    continue
                if len(lines.lines) >= FOUND_MAX or not lines.add(before + entry.display_name):
                    walk.cut_reason = f"after {count_phrase(len(lines.lines), 'file', 'files')}"
                    break
        return lines.to_outcome(f"no file matches {one_line(self.pattern)}", walk.notes, walk.is_complete)
