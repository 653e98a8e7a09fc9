"""`diagnostics {path?}`: what this server itself knows to be wrong: its own marks of uncertain effects.

Problems of compilers and linters belong to other servers of the editor, which a language server is not shown; the reply
says so, so that nobody takes silence for a clean build.
"""

from __future__ import annotations

import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.lines import Lines
from steadyhand.tools.place import display, locate
from steadyhand.tools.reading import PlannedSearch, title_of
from steadyhand.tools.tool import Done, Ground, Refusal, Running

ONLY_OURS = (
    "these are Steadyhand's own marks; what compilers, linters and other language servers report is not visible here:"
    " run the project's own checks for that"
)


class Diagnostics:
    """The tool; see `tool.Tool`."""

    name = "diagnostics"
    effect: EffectClass = "reads"
    offer = ToolOffer(
        name,
        "List the effects of which Steadyhand does not know whether they happened, for a path or for all. It does not"
        " see the problems that compilers or other tools report; run those by a command.",
        canonical_json(
            {
                "type": "object",
                "properties": {"path": {"type": "string", "description": "A file or folder; all if left out."}},
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedDiagnosis | Refusal:
        try:
            path = Fields(self.name, arguments.value, ("path",)).optional_text("path")
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, "." if path is None else path)
        if isinstance(located, Refusal):
            return located
        title = title_of(self.name, display(ground.root, located.resolved))
        return PlannedDiagnosis(ground, located, title, path is None)


@attrs.frozen
class PlannedDiagnosis(PlannedSearch):
    everything: bool

    async def run(self, running: Running) -> Done:
        lines = Lines()
        whole = True
        for problem in running.person.known_problems(None if self.everything else self.located.resolved):
            whole = lines.add(problem) and whole
        return lines.done("nothing is uncertain here", (ONLY_OURS,), whole)
