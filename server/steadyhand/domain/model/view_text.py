"""A conversation as plain text, for a model that did not have it: another provider's, or in pieces (row K4)."""

from __future__ import annotations

from collections.abc import Iterable

from steadyhand.domain.model.messages import AssistantMessage, OutMessage, UserMessage
from steadyhand.domain.text.fences import code_block


def view_text(messages: Iterable[OutMessage]) -> str:
    """Return the messages in order, each below a line that says whose it is. Reasoning is left out."""
    return "\n\n".join(map(_text, messages))


def _text(message: OutMessage) -> str:
    if isinstance(message, UserMessage):
        return f"{'Server' if message.is_told else 'User'}:\n{message.whole}"
    if isinstance(message, AssistantMessage):
        calls = [f"Call {call.call_id}: {call.tool}\n{code_block(call.arguments, 'json')}" for call in message.calls]
        return "\n".join(["Assistant:", *([message.text] if message.text else []), *calls])
    return f"Reply to {message.call_id} ({message.state}):\n{code_block(message.text)}"


def pieces_of(text: str, bytes_max: int) -> list[str]:
    """Divide a text into pieces of at most so many bytes, at line ends if there are any. Joined they are the text."""
    pieces: list[str] = []
    raw, start = text.encode("utf-8", "surrogatepass"), 0
    while start < len(raw):
        end = min(len(raw), start + bytes_max)
        if end < len(raw):
            line = raw.rfind(b"\n", start, end)
            end = line + 1 if line >= start else _whole_character(raw, start, end)
        pieces.append(raw[start:end].decode("utf-8", "surrogatepass"))
        start = end
    return pieces


def _whole_character(raw: bytes, start: int, end: int) -> int:
    """Return the last place up to `end` where a character begins; there is one behind `start`."""
    while end > start + 1 and raw[end] & 0xC0 == 0x80:
        end -= 1
    return end
