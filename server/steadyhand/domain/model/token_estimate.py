"""Estimate tokens from bytes where no provider has counted them. The estimate is rather too high."""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.model.messages import AssistantMessage, ModelRequest, OutMessage, UserMessage

BYTES_PER_TOKEN = 3
"""English prose has about 4, code and other scripts fewer; the estimate errs upwards."""
TOKENS_PER_MESSAGE = 8


def estimate_request_tokens(request: ModelRequest) -> int:
    """Estimate the tokens of a request: its system text, its tools and its messages."""
    texts = [request.system]
    for tool in request.tools:
        texts += [tool.name, tool.description, tool.parameters]
    overhead = TOKENS_PER_MESSAGE * (len(request.tools) + 1)
    return _estimate_text_tokens(texts) + overhead + estimate_message_tokens(request.messages)


def estimate_message_tokens(messages: Sequence[OutMessage]) -> int:
    """Estimate the tokens of messages."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.whole if isinstance(message, UserMessage) else message.text)
        if isinstance(message, AssistantMessage):
            texts.append(message.reasoning or "")
            texts += [text for call in message.calls for text in (call.tool, call.arguments)]
    return _estimate_text_tokens(texts) + TOKENS_PER_MESSAGE * len(messages)


def _estimate_text_tokens(texts: Sequence[str]) -> int:
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) // BYTES_PER_TOKEN
