"""`write_file {path, content}`: make a file's content this, whole; a missing file and its folders are created.

The byte order mark of an existing file is kept, and CRLF where all its line ends are CRLF and the content has no CR
(`core.text_edit.new_content`). A file above `file_bytes_max` is replaced by the content as it is given.
"""

from __future__ import annotations

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass
from steadyhand.core.text_edit import EditRefused, FileText, new_content
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import Intended, PlannedChange, Recipe
from steadyhand.tools.place import locate
from steadyhand.tools.tool import Ground, Refusal, file_bytes_max


class WriteFile:
    """The tool; see `tool.Tool`."""

    name = "write_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Create a text file with this content, or replace the whole content of one. Missing folders are created. An"
        " existing file keeps its byte order mark, its CRLF line ends and its mode. For a change of a few places,"
        " edit_file is the better tool.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, with / between names."},
                    "content": {"type": "string", "description": "The whole content of the file."},
                },
                "required": ["path", "content"],
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
        return PlannedChange(self.name, ground, located, recipe, creates=True)

    def recipe(self, arguments: Arguments) -> Recipe | None:
        """The recipe alone, to make the intended bytes again; None for bad arguments."""
        try:
            return _read(arguments)[1]
        except Unfit:
            return None


def _read(arguments: Arguments) -> tuple[str, Recipe]:
    fields = Fields(WriteFile.name, arguments.value, ("path", "content"))
    path, content = fields.text("path"), fields.text("content")
    if "\0" in content:
        raise Unfit(f"{WriteFile.name}: the field `content` holds a NUL character, which no text file has.")

    def recipe(before: FileText | None) -> Intended | Refusal:
        made = new_content(before, content)
        if isinstance(made, EditRefused):
            return Refusal("bad_arguments", made.reason)
        if len(made) > file_bytes_max:
            return Refusal("too_large", f"The content is larger than {file_bytes_max} bytes.")
        return Intended(made)

    return path, recipe
