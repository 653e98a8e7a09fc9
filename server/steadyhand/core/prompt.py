"""A prompt as it was sent, with its attachments; frozen values, shaped as on the wire and in the journal.

What is attached is kept as it came. What the model is told of it is another thing, made once when the turn begins
(`core.given`) and stored. Two prompts are the same if a resend may stand for the first one: text, attachments and
`aside` are compared, the position encoding of the connection is not.
"""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.core.text_positions import PositionEncoding, Range


@attrs.frozen
class FileAttachment:
    """A file, or a stretch of it, read when the turn begins."""

    path: str  # relative to the workspace with `/`, absolute if outside
    range: Range | None = None  # None: the whole file
    kind: Literal["file"] = "file"


@attrs.frozen
class SelectionAttachment:
    """What was selected in an editor, as it was then."""

    uri: str
    range: Range
    text: str
    kind: Literal["selection"] = "selection"


@attrs.frozen
class ProblemsAttachment:
    """Diagnostics; of those the server knows its own alone."""

    uri: str | None = None  # None: of all documents
    kind: Literal["problems"] = "problems"


@attrs.frozen
class TextAttachment:
    """Any text under a name."""

    name: str
    text: str
    kind: Literal["text"] = "text"


Attachment = FileAttachment | SelectionAttachment | ProblemsAttachment | TextAttachment
ATTACHMENTS: dict[str, type] = {
    "file": FileAttachment,
    "selection": SelectionAttachment,
    "problems": ProblemsAttachment,
    "text": TextAttachment,
}


def attachment_name(attached: Attachment) -> str:
    """What a person reads of it: path, place, or name."""
    match attached:
        case FileAttachment(path, place):
            return path if place is None else f"{path}, {lines_of(place)}"
        case SelectionAttachment(uri, place):
            return f"selection in {uri}, {lines_of(place)}"
        case ProblemsAttachment(uri):
            return "problems" if uri is None else f"problems in {uri}"
        case TextAttachment(name):
            return name


def lines_of(place: Range) -> str:
    """“line 3” or “lines 3 to 9”, counted from 1."""
    first, last = place.lines
    return f"line {first}" if first == last else f"lines {first} to {last}"


@attrs.frozen
class Prompt:
    """`encoding`: of the ranges in `attachments`. `aside`: a quick question, outside the history (row S2)."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    aside: bool = False
    encoding: PositionEncoding = attrs.field(default="utf-16", eq=False)

    @property
    def command(self) -> bool:
        """Whether it is a slash command, which never goes to a model."""
        return self.text.startswith("/")
