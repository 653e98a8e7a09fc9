"""`diagnostics {path?}`: the server's own diagnostics: effects whose outcome is unknown.

Other servers of the editor report the problems of compilers and linters, and a language server does not see those. The
reply says so, so that nobody takes an empty list for a clean build.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass
from steadyhand.domain.views.render import display_path
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.builtin.planned_read import PlannedRead, title_of
from steadyhand.tools.contract import CallContext, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.reply_lines import ReplyLines
from steadyhand.tools.workspace.paths import locate_for_call
from steadyhand_values import frozen

ONLY_OURS = (
    "these are Steadyhand's own diagnostics; it does not see those of compilers, linters and other language servers:"
    " run the project's own checks for them"
)


class Diagnostics:
    """The tool; see `contract.Tool`."""

    name = "diagnostics"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "List the effects whose outcome Steadyhand does not know, for a path or for all. It does not see the problems"
        " that compilers or other tools report; run those with a command.",
        canonical_json(
            {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "A file or folder; the default is all."}},
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedDiagnosis | Refusal:
        try:
            path = ArgumentFields(self.name, arguments.value, ("path",)).optional_text("path")
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, "." if path is None else path)
        if isinstance(located, Refusal):
            return located
        title = title_of(self.name, display_path(located.resolved, tool_context.root))
        return PlannedDiagnosis(tool_context, located, title, path is None)


@frozen
class PlannedDiagnosis(PlannedRead):
    """One call; see `contract.Planned`."""

    is_everything: bool

    async def run(self, running: CallContext) -> ToolOutcome:
        lines = ReplyLines()
        whole = True
        for problem in running.person.known_problems(None if self.is_everything else self.located.resolved):
            whole = lines.add(problem) and whole
        return lines.to_outcome("nothing is uncertain here", (ONLY_OURS,), whole)
