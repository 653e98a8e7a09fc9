"""`edit_file {path, edits: [{old, new, all?}]}`: replace exact pieces of a text file, all of them or none.

Each `old` must stand in the file once, or `all` is asked for; each edit is done on the result of the one before. What
an edit does not name keeps its bytes (`core.text_edit`).
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.core.text_edit import Edit, EditRefused, FileText, apply_edits
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import Intended, PlannedChange, Recipe
from steadyhand.tools.place import locate
from steadyhand.tools.tool import Ground, Refusal, file_bytes_max

edits_max = 1000


class EditFile:
    """The tool; see `tool.Tool`."""

    name = "edit_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Replace exact pieces of an existing text file. Each old text must stand in the file exactly once, blanks and"
        " all, unless `all` is true; line ends count as LF. The edits are done in order, each on the result of the one"
        " before, and either all of them are done or none.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, with / between names."},
                    "edits": {
                        "type": "array",
                        "minItems": 1,
                        "items": {
                            "type": "object",
                            "properties": {
                                "old": {"type": "string", "description": "A piece that stands in the file."},
                                "new": {"type": "string", "description": "What stands there afterwards."},
                                "all": {"type": "boolean", "description": "Replace it wherever it stands."},
                            },
                            "required": ["old", "new"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["path", "edits"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedChange | Refusal:
        try:
            path, recipe = _read(arguments)
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, path)
        if isinstance(located, Refusal):
            return located
        return PlannedChange(self.name, ground, located, recipe, creates=False)

    def recipe(self, arguments: Arguments) -> Recipe | None:
        """The recipe alone, to make the intended bytes again; None for bad arguments."""
        try:
            return _read(arguments)[1]
        except Unfit:
            return None


def _read(arguments: Arguments) -> tuple[str, Recipe]:
    fields = Fields(EditFile.name, arguments.value, ("path", "edits"))
    path = fields.text("path")
    edits = [_edit(number, one) for number, one in enumerate(fields.listed("edits", edits_max))]
    return path, lambda before: _edited(before, edits)


def _edit(number: int, member: object) -> Edit:
    fields = Fields(f"{EditFile.name}: edits[{number}]", member, ("old", "new", "all"))
    return Edit(fields.text("old"), fields.text("new"), fields.optional_yes("all"))


def _edited(before: FileText | None, edits: Sequence[Edit]) -> Intended | Refusal:
    if before is None:
        return Refusal("not_found", "There is no text to edit.")
    edited = apply_edits(before, edits)
    if isinstance(edited, EditRefused):
        return Refusal("bad_arguments", edited.reason)
    if len(edited.raw) > file_bytes_max:
        return Refusal("too_large", f"The file would be larger than {file_bytes_max} bytes.")
    places = sum(edited.counts)
    return Intended(edited.raw, f" in {places} {'place' if places == 1 else 'places'}")
