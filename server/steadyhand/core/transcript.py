"""The transcript: what goes out to the model, mended in the view and never in the journal (rows T1 to T7).

`outgoing` is a pure fold of the ledger, so a healthy history goes out byte for byte as last time, plus its tail.
Missing replies are supplied with stored words; where none are stored yet, the caller records `Supplied` first. Our
own ids decide; a provider's ids may repeat. Notices go out before the next user text.

`validate` is the last look before the bytes leave. It changes nothing; what it finds is a defect of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from steadyhand.core.folded import Call
from steadyhand.core.given import NEVER_READ
from steadyhand.core.identity import BadArguments, parse_arguments
from steadyhand.core.ledger import Ledger
from steadyhand.core.model import AskedCall, AssistantMessage, OutMessage, ReplyMessage, UserMessage
from steadyhand.core.record import Assistant, Notice, Supplied, Tool, User
from steadyhand.core.words import outcome_of, state_of, supplied_reply, unrecorded

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ID = re.compile(r"[0-9a-f]{32}")
UNNAMED = "invalid_tool_name"
EMPTY_REPLY = "(no output)"


class Invalid(AssertionError):
    """An outgoing history that no provider accepts; a defect."""


def missing_replies(ledger: Ledger) -> list[Supplied]:
    """Words for replies that neither stand in the journal nor were supplied yet; to be recorded before they go out."""
    found: list[Supplied] = []
    for call in _calls_of_record(ledger):
        if call.reply is None and call.supplied is None:
            found.append(Supplied(call.turn_id, call.call_id, supplied_reply(call)))
    return found


def outgoing(ledger: Ledger, aside: UserMessage | None = None) -> tuple[OutMessage, ...]:
    """The whole history as it goes out; with `aside` at its end, for the one request of a quick question."""
    messages: list[OutMessage] = []
    notices: list[OutMessage] = []
    for said in ledger.said:
        match said.record:
            case Notice(model=True) as notice:
                notices.append(UserMessage(f"[Notice] {notice.text}", notice.message_id))
            case Notice():
                pass
            case User() as user:
                if not user.command and not user.aside and user.text.strip():
                    messages += [*notices, UserMessage(user.text, user.message_id, _attached(ledger, user))]
                    notices = []
            case Assistant() as assistant:
                if not _of_command(ledger, assistant):
                    messages += _assistant(ledger, assistant)
    return (*messages, *notices, aside) if aside is not None else tuple(messages)


def validate(messages: Sequence[OutMessage]) -> None:
    """T1: each call exactly one reply, in order, before the next message; no orphan, no empty text, sound names."""
    owed: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ReplyMessage):
            if not owed or message.call_id != owed.pop(0):
                raise Invalid(f"a reply without its call: {message.call_id}")
            if not message.text.strip():
                raise Invalid("an empty reply")
            continue
        if owed:
            raise Invalid(f"a call without its reply: {owed[0]}")
        if isinstance(message, AssistantMessage):
            if not message.text.strip() and not message.calls:
                raise Invalid("an empty assistant message")
            if message.text and not message.text.strip():
                raise Invalid("a blank text beside calls")
            for call in message.calls:
                _validate_call(call, seen)
            owed = [call.call_id for call in message.calls]
        elif not message.text.strip():
            raise Invalid("an empty user message")
    if owed:
        raise Invalid(f"a call without its reply: {owed[0]}")


def _validate_call(call: AskedCall, seen: set[str]) -> None:
    if not _NAME.fullmatch(call.tool):
        raise Invalid("a tool name no provider accepts")
    if not _ID.fullmatch(call.call_id) or call.call_id in seen:
        raise Invalid("a call id that is not ours or stands twice")
    if isinstance(parse_arguments(call.arguments), BadArguments):
        raise Invalid("arguments that are no JSON object")
    seen.add(call.call_id)


def _attached(ledger: Ledger, user: User) -> str:
    """As it is stored; where nothing is, no model was asked in that turn."""
    turn = ledger.turns.get(user.turn_id)
    stored = turn.attached if turn is not None else None
    return stored if stored is not None else NEVER_READ if user.attachments else ""


def _of_command(ledger: Ledger, record: Assistant) -> bool:
    """Answers to slash commands are ours, not the model's."""
    turn = ledger.turns.get(record.turn_id)
    return turn is not None and turn.command


def _calls_of_record(ledger: Ledger) -> Iterator[Call]:
    for said in ledger.said:
        if isinstance(said.record, Assistant) and not said.record.withdrawn:
            for proposed in said.record.calls:
                yield ledger.calls[proposed.call_id]


def _assistant(ledger: Ledger, record: Assistant) -> Iterator[OutMessage]:
    if record.withdrawn or not (record.text.strip() or record.calls):
        return
    calls = tuple(_asked(proposed.call_id, proposed.tool, proposed.arguments) for proposed in record.calls)
    yield AssistantMessage(record.text if record.text.strip() else "", calls, record.reasoning, record.sealed)
    for proposed in record.calls:
        call = ledger.calls[proposed.call_id]
        outcome, reason = outcome_of(call)
        state = state_of(outcome or unrecorded(call) or "unknown")
        yield ReplyMessage(proposed.call_id, _reply_text(call, call.reply), state, reason)


def _reply_text(call: Call, reply: Tool | None) -> str:
    text = reply.text if reply is not None and call.supplied is None else call.supplied  # what went out once, stays
    assert text is not None, "missing replies are supplied before the history goes out"
    return text if text.strip() else EMPTY_REPLY


def _asked(call_id: str, tool: str, arguments: str) -> AskedCall:
    """Neutralised, never dropped: what a provider would reject goes out in a valid form, the original stays stored."""
    sound = _NAME.fullmatch(tool) is not None
    parsed = parse_arguments(arguments)
    return AskedCall(call_id, tool if sound else UNNAMED, "{}" if isinstance(parsed, BadArguments) else arguments)
