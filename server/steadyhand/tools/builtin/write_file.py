"""`write_file {path, content}`: make this the whole content of a file; a missing file and its folders are created.

An existing file keeps its encoding and its byte order mark; a new one is UTF-8, or what `.editorconfig` or the settings
say for its path. An existing file keeps CRLF if all its line ends are CRLF and the content has no CR
(`domain.text.edit.new_content`). A file above `FILE_BYTES_MAX` is replaced by the content as given.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.text.decoding import FileText, NewText
from steadyhand.domain.text.edit import EditRefused, new_content
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.contract import FILE_BYTES_MAX, Refusal
from steadyhand.tools.writes.planned_write import ContentTransform, FileChangeTool, IntendedContent, Pieces


class WriteFile(FileChangeTool):
    """The tool; see `contract.Tool`."""

    name = "write_file"
    can_create = True
    offer = ToolOffer(
        name,
        "Create a text file with this content, or replace the whole content of one. Missing folders are created. An"
        " existing file keeps its encoding, its byte order mark, its CRLF line ends and its mode. To change a few"
        " places, use edit_file.",
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

    def _read_arguments(self, arguments: Arguments) -> tuple[str, ContentTransform, Pieces]:
        fields = ArgumentFields(self.name, arguments.value, ("path", "content"))
        path, content = fields.text("path"), fields.text("content")
        if "\0" in content:
            raise InvalidArguments(
                f"{self.name}: the field `content` contains a NUL character, which text files cannot have."
            )

        def transform(before: FileText | NewText) -> IntendedContent | Refusal:
            made = new_content(before, content)
            if isinstance(made, EditRefused):
                return Refusal(made.reason, made.text)
            if len(made.raw) > FILE_BYTES_MAX:
                return Refusal("too_large", f"The content is larger than {FILE_BYTES_MAX} bytes.")
            return IntendedContent(made.raw, made.content)

        return path, transform, (("", content),)
