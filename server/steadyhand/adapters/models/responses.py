"""The Responses API (`/v1/responses`): the request, and the reader of its responses (row P6).

    body = {"model", ["tools"], "instructions", "input": [item …], "stream", "store", "include", [limit], [extra]}
    user turn      = message
    assistant turn = [message] [function_call …], or exactly as it came, if it is sealed
    reply          = function_call_output        one for each `call_id`, before the next message (row T1)

The provider stores nothing, so its reasoning comes encrypted and goes back unread, in its place among the other items.
It goes back only to the provider, the address and the model that gave it; a request with `thinking` False leaves it
out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from steadyhand.adapters.models.json_body import Raw, Value, body_of
from steadyhand.domain.model.messages import AssistantMessage, ModelRequest, OutMessage, ReplyMessage
from steadyhand.domain.model.provider_profiles import Profile
from steadyhand.domain.model.transcript import Invalid

PATH = "/responses"
EMPTY_REPLY = "(no output)"
ENCRYPTED = "reasoning.encrypted_content"


def responses_body(
    profile: Profile,
    model: str,
    request: ModelRequest,
    output_tokens_max: int | None,
    left_out: Collection[str] = (),
    origin: str = "",
) -> bytes:
    """Return the bytes of a request. `origin`: of the provider, as in `sealed`; `left_out`: members not to send.

    Raises `Invalid` if a call has not its one output."""
    assert not request.is_continuation, "this API does not continue an assistant message"
    members: dict[str, Value] = {"model": model}
    if request.tools:
        members["tools"] = [
            _without(
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": Raw(tool.parameters),
                    "strict": False,  # the API's default is true, which refuses optional arguments
                },
                left_out,
            )
            for tool in sorted(request.tools, key=lambda tool: tool.name)
        ]
    if request.system.strip():
        members["instructions"] = request.system
    items: list[Mapping[str, Value]] = []
    for message in request.messages:
        items += _items(model, origin if request.thinking else None, message)
    _check_outputs(items)
    members["input"] = items
    members["stream"] = True
    members["store"] = False
    members["include"] = [ENCRYPTED]
    if output_tokens_max is not None and profile.output_member:
        members[profile.output_member] = output_tokens_max
    if not request.can_call and "tools" in members:
        members["tool_choice"] = "none"
    return body_of(_without(members, left_out), profile.extra, None if request.thinking else profile.thinking_off)


def _without(members: Mapping[str, Value], left_out: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in members.items() if name not in left_out}


def _items(model: str, origin: str | None, message: OutMessage) -> list[Mapping[str, Value]]:
    if isinstance(message, ReplyMessage):
        text = message.text if message.text.strip() else EMPTY_REPLY
        return [{"type": "function_call_output", "call_id": message.call_id, "output": text}]
    if not isinstance(message, AssistantMessage):
        return [_text_item("user", "input_text", message.whole)] if message.text.strip() else []
    calls: list[Mapping[str, Value]] = [
        {"type": "function_call", "call_id": call.call_id, "name": call.tool, "arguments": call.arguments}
        for call in message.calls
    ]
    if message.sealed is not None and origin is not None:
        sealed = _restore_sealed(model, origin, message, calls)
        if sealed is not None:
            return sealed
    return [*([_text_item("assistant", "output_text", message.text)] if message.text.strip() else []), *calls]


def _text_item(role: str, kind: str, text: str) -> Mapping[str, Value]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _restore_sealed(
    model: str, origin: str, message: AssistantMessage, calls: list[Mapping[str, Value]]
) -> list[Mapping[str, Value]] | None:
    """Return the items in their original order; None if the seal is another's or does not match."""
    try:
        payload = json.loads(message.sealed or "")
        items: list[Mapping[str, Value]] = []
        at = called = 0
        if (payload["origin"], payload["model"]) != (origin, model):
            return None
        for entry in payload["items"]:
            if isinstance(entry, int):
                text = message.text[at : at + entry]
                at += entry
                items += [_text_item("assistant", "output_text", text)] if text.strip() else []
            elif entry == "call":
                items.append(calls[called])
                called += 1
            else:
                items.append(dict(entry))
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return items if at == len(message.text) and called == len(calls) else None


def _check_outputs(items: Sequence[Mapping[str, Value]]) -> None:
    """Raise `Invalid` unless each call has its one output, in order, before the next message (row T1)."""
    owed: list[object] = []
    seen: set[object] = set()
    for item in items:
        if item["type"] == "function_call":
            if item["call_id"] in seen:
                raise Invalid("a call id stands twice")
            seen.add(item["call_id"])
            owed.append(item["call_id"])
        elif item["type"] == "function_call_output":
            if not owed or owed.pop(0) != item["call_id"]:
                raise Invalid("an output without its call")
        elif owed and item["type"] == "message" and item["role"] == "user":
            raise Invalid("a call without its output")
    if owed:
        raise Invalid("a call without its output")
