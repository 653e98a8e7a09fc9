"""Convert the params of `steadyhand/turn/start` to a prompt."""

from __future__ import annotations

from steadyhand.domain.records.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    Prompt,
    SelectionAttachment,
    TextAttachment,
)
from steadyhand.domain.text.positions import Position, PositionEncoding, Range
from steadyhand_protocol import turn as wire
from steadyhand_protocol.values import Range as WireRange


def prompt_of(params: wire.TurnStartParams, encoding: PositionEncoding) -> Prompt:
    """`encoding`: negotiated with the client that sent it."""
    attachments = tuple(_attachment(one) for one in params.attachments or ())
    return Prompt(params.text, attachments, params.aside is True, encoding, params.again)


def _attachment(attachment: wire.Attachment) -> Attachment:
    match attachment:
        case wire.FileAttachment():
            return FileAttachment(attachment.path, _range(attachment.range) if attachment.range is not None else None)
        case wire.SelectionAttachment():
            return SelectionAttachment(attachment.uri, _range(attachment.range), attachment.text)
        case wire.ProblemsAttachment():
            return ProblemsAttachment(attachment.uri)
        case wire.TextAttachment():
            return TextAttachment(attachment.name, attachment.text)


def _range(range: WireRange) -> Range:
    start, end = (Position(place.line, place.character) for place in (range.start, range.end))
    return Range(start, end)
