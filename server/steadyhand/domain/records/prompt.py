"""A prompt as it was sent, with its attachments: frozen values in the shapes of the wire and the journal.

Attachments are kept as they came. The text for the model about them is another value, made once when the turn begins
(`domain.model.attachment_text`) and stored. Two prompts are equal if a resend may stand for the first one: text,
attachments, `aside` and `again` are compared; the position encoding of the connection is not.
"""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.domain.text.positions import PositionEncoding, Range
from steadyhand_values import frozen


@frozen
class FileAttachment:
    """A file or a range of it. The server reads it when the turn begins."""

    path: str  # relative to the workspace with `/`, absolute if outside
    range: Range | None = None  # None: the whole file
    kind: Literal["file"] = "file"


@frozen
class SelectionAttachment:
    """A selection in an editor, with its text at the time of sending."""

    uri: str
    range: Range
    text: str
    kind: Literal["selection"] = "selection"


@frozen
class ProblemsAttachment:
    """Diagnostics; the server knows only its own."""

    uri: str | None = None  # None: of all documents
    kind: Literal["problems"] = "problems"


@frozen
class TextAttachment:
    """Any text with a name."""

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
    """Return the name of an attachment for people: its path, its place, or its own name."""
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
    """Return “line 3” or “lines 3 to 9”, counted from 1."""
    first, last = place.lines
    return f"line {first}" if first == last else f"lines {first} to {last}"


@frozen
class Prompt:
    """A prompt.

    `encoding` is that of the ranges in `attachments`. `aside`: a quick question, outside the history (row S2).
    `again`: the turn whose failed request is sent again; the text is that turn's and is not sent twice (case 114).
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    aside: bool = False
    encoding: PositionEncoding = attrs.field(default="utf-16", eq=False)
    again: str | None = None

    @property
    def command(self) -> bool:
        """Whether it is a slash command; those never go to a model."""
        return self.text.startswith("/")
