"""A prompt as it came over the wire, in the house's values."""

from __future__ import annotations

from steadyhand.core.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    Prompt,
    SelectionAttachment,
    TextAttachment,
)
from steadyhand.core.text_positions import Position, PositionEncoding, Range
from steadyhand_protocol import turn as wire
from steadyhand_protocol.values import Range as WireRange


def prompt_of(params: wire.TurnStartParams, encoding: PositionEncoding) -> Prompt:
    """`encoding`: negotiated with the client that sent it."""
    attached = tuple(_attachment(one) for one in params.attachments or ())
    return Prompt(params.text, attached, params.aside is True, encoding)


def _attachment(sent: wire.Attachment) -> Attachment:
    match sent:
        case wire.FileAttachment():
            return FileAttachment(sent.path, _range(sent.range) if sent.range is not None else None)
        case wire.SelectionAttachment():
            return SelectionAttachment(sent.uri, _range(sent.range), sent.text)
        case wire.ProblemsAttachment():
            return ProblemsAttachment(sent.uri)
        case wire.TextAttachment():
            return TextAttachment(sent.name, sent.text)


def _range(sent: WireRange) -> Range:
    start, end = (Position(place.line, place.character) for place in (sent.start, sent.end))
    return Range(start, end)
