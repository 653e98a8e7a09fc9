"""Messages without credentials, for an export that others read (case 106). Pure.

Only the view is redacted. What is stored, what the model gets and what a tool writes stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs

from steadyhand.domain.permissions.child_environment import looks_like_credential
from steadyhand.domain.permissions.redaction import REDACTED_CHARS_MAX, redact
from steadyhand.domain.records.prompt import SelectionAttachment, TextAttachment
from steadyhand.domain.views.types import CallView, MessageView

MARK = "***"
LEFT_OUT = "\n[The rest is left out of a redacted export.]"


def redact_messages(messages: Sequence[MessageView], secrets: Sequence[str]) -> tuple[MessageView, ...]:
    """Return the messages with each credential hidden. `secrets`: known values; others are found by their form."""
    return tuple(_message(message, secrets) for message in messages)


def redact_text(text: str, secrets: Sequence[str]) -> str:
    """Return a text with each credential hidden; what is beyond the bound is left out."""
    return redact(text, secrets, MARK) + (LEFT_OUT if len(text) > REDACTED_CHARS_MAX else "")


def _message(message: MessageView, secrets: Sequence[str]) -> MessageView:
    attachments = message.attachments and tuple(
        attrs.evolve(one, text=redact_text(one.text, secrets))
        if isinstance(one, SelectionAttachment | TextAttachment)
        else one
        for one in message.attachments
    )
    return attrs.evolve(
        message,
        text=redact_text(message.text, secrets),
        reasoning=None if message.reasoning is None else redact_text(message.reasoning, secrets),
        attachments=attachments,
        calls=message.calls and tuple(_call(call, secrets) for call in message.calls),
    )


def _call(call: CallView, secrets: Sequence[str]) -> CallView:
    reply = call.reply and attrs.evolve(call.reply, text=redact_text(call.reply.text, secrets))
    title = redact_text(call.title, secrets)
    return attrs.evolve(call, title=title, arguments=_arguments(call.arguments, secrets), reply=reply)


def _arguments(text: str, secrets: Sequence[str]) -> str:
    """Return arguments that are still JSON: each text in them is redacted for itself, and by the name before it."""
    try:
        return json.dumps(_value(json.loads(text), secrets), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return redact_text(text, secrets)


def _value(value: object, secrets: Sequence[str]) -> object:
    match value:
        case str():
            return redact_text(value, secrets)
        case list():
            return [_value(one, secrets) for one in value]
        case dict():
            return {name: _member(name, one, secrets) for name, one in value.items()}
        case _:
            return value


def _member(name: str, value: object, secrets: Sequence[str]) -> object:
    is_secret = isinstance(value, str) and looks_like_credential(name, value)
    return MARK if is_secret else _value(value, secrets)
