"""`edit_file {path, edits: [{old, new, all?}]}`: replace exact pieces of a text file, all of them or none.

Each `old` must occur in the file exactly once, unless `all` is true. Each edit applies to the result of the previous
one. Bytes that no edit names are unchanged (`domain.text.edit`).
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.text.decoding import FileText, NewText
from steadyhand.domain.text.edit import Edit, EditRefused, apply_edits
from steadyhand.tools.arguments import ArgumentFields
from steadyhand.tools.contract import FILE_BYTES_MAX, Refusal
from steadyhand.tools.writes.planned_write import ContentTransform, FileChangeTool, IntendedContent, Pieces

EDITS_MAX = 1000


class EditFile(FileChangeTool):
    """The tool; see `contract.Tool`."""

    name = "edit_file"
    can_create = False
    offer = ToolOffer(
        name,
        "Replace exact pieces of an existing text file. Each old text must occur in the file exactly once, with its"
        " blanks, unless `all` is true; line ends count as LF. Each edit applies to the result of the previous one, and"
        " either all of them are made or none.",
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
                                "old": {"type": "string", "description": "A piece of the file."},
                                "new": {"type": "string", "description": "What replaces it."},
                                "all": {"type": "boolean", "description": "Replace every occurrence."},
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

    def _read_arguments(self, arguments: Arguments) -> tuple[str, ContentTransform, Pieces]:
        fields = ArgumentFields(self.name, arguments.value, ("path", "edits"))
        path = fields.text("path")
        edits = [_edit(number, one) for number, one in enumerate(fields.sequence("edits", EDITS_MAX))]
        pieces = tuple((edit.old, edit.new) for edit in edits)
        return path, lambda before: _apply(before, edits), pieces


def _edit(number: int, member: object) -> Edit:
    fields = ArgumentFields(f"{EditFile.name}: edits[{number}]", member, ("old", "new", "all"))
    return Edit(fields.text("old"), fields.text("new"), fields.optional_bool("all"))


def _apply(before: FileText | NewText, edits: Sequence[Edit]) -> IntendedContent | Refusal:
    if isinstance(before, NewText):
        return Refusal("not_found", "There is no text to edit.")
    edited = apply_edits(before, edits)
    if isinstance(edited, EditRefused):
        return Refusal(edited.reason, edited.text)
    if len(edited.raw) > FILE_BYTES_MAX:
        return Refusal("too_large", f"The file would be larger than {FILE_BYTES_MAX} bytes.")
    places = sum(edited.counts)
    return IntendedContent(edited.raw, edited.content, f" in {places} {'place' if places == 1 else 'places'}")
