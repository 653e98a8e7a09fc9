"""One small session as it goes out, message by message, for the bodies of requests."""

from __future__ import annotations

from steadyhand.domain.model.messages import (
    AssistantMessage,
    ModelRequest,
    OutgoingCall,
    OutMessage,
    ReplyMessage,
    ToolOffer,
    UserMessage,
)

SYSTEM = "You are Steadyhand. Say “done” only for what is done."
# Out of order, and with values that reading and writing the JSON again would change: 1.0, an escape, a long number.
TOOLS = (
    ToolOffer(
        "write_file", "Writes.",
        '{"properties":{"content":{"type":"string"},"path":{"type":"string"}},"required":["path"],"type":"object"}',
    ),
    ToolOffer(
        "read_file", "Reads “one” file.",
        '{"properties":{"limit":{"maximum":1.0,"x":"\\u00e9"}},"type":"object"}',
    ),
)  # fmt: skip


def call_id(number: int) -> str:
    return f"{number:032x}"


HISTORY: tuple[OutMessage, ...] = (
    UserMessage("Read a.py and b.py"),
    AssistantMessage(
        "",
        (
            OutgoingCall(call_id(1), "read_file", '{"path":"a.py","limit":1.10}'),
            OutgoingCall(call_id(2), "read_file", '{"path": "b.py"}'),
        ),
        "I need both.",
    ),
    ReplyMessage(call_id(1), 'print("é🙂")\n', "returned"),
    ReplyMessage(call_id(2), "", "returned"),
    AssistantMessage("b.py is empty.", (), "Nothing more."),
    UserMessage("[Notice] A write was settled."),
    UserMessage("Write a \ud800 file"),
    AssistantMessage("I write.", (OutgoingCall(call_id(3), "write_file", "{}"),)),
    ReplyMessage(call_id(3), "did not run", "notRun", "cut"),
    UserMessage("And now?"),
)
SEALED = (
    '{"model":"claude-sonnet-5","blocks":[{"type":"thinking","thinking":"","signature":"c2ln"},'
    '"call",{"type":"redacted_thinking","data":"ZGF0YQ"},"call"]}'
)


REQUEST = ModelRequest(SYSTEM, TOOLS, HISTORY)
