"""The transcript: the messages that go to the model. It is repaired in the view, never in the journal (rows T1 to T7).

`outgoing_messages` is a pure fold of the ledger, so a healthy history is sent again byte for byte, plus its tail.
`growing_transcript` gives the same messages and makes only the new ones. A
missing reply is supplied from stored words; if none are stored yet, the caller records `Supplied` first. Calls are
matched by our own ids, because a provider's ids may repeat. Notices go out before the next user text. A turn that sends
a failed request again adds no text, and what had come of the answer before is left out (case 114).

A stored message of a turn stands behind the replies of the answer before it, and never between a call and its reply. It
stands behind the answer that the model was giving when it was recorded, since that request went out without it. One
that was recorded outside a turn goes out before the next user text (row G15). A steer is a user's text like a prompt;
its entry is behind the answer whose replies it stands behind (row S8).

A compaction stands first, and what it was cut behind is not sent (row K4). Of the calls that it names the outputs are
left out.

`validate` is the last check before the bytes are sent. It changes nothing; what it finds is a defect of ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from steadyhand.domain.ledger.compaction import sent_entries
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import ToolCall, TranscriptEntry
from steadyhand.domain.model.attachment_text import NEVER_READ
from steadyhand.domain.model.messages import AssistantMessage, OutgoingCall, OutMessage, ReplyMessage, UserMessage
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.domain.records.record import Assistant, Compaction, Notice, Steer, Supplied, Told, ToolResult, User
from steadyhand.domain.views.sentences import outcome_of, state_of, supplied_reply, unrecorded_verdict
from steadyhand_values import pattern

_NAME = pattern(r"[A-Za-z0-9_-]{1,64}")
_ID = pattern(r"[0-9a-f]{32}")
UNNAMED = "invalid_tool_name"
"""Sent in place of a tool name that providers reject."""
EMPTY_REPLY = "(no output)"
"""Sent in place of a blank reply, since providers reject one."""
OMITTED_REPLY = "[output left out]"
"""Sent in place of an output that a compaction leaves out."""


class Invalid(AssertionError):
    """No provider accepts this outgoing history; a defect."""


def missing_replies(ledger: Ledger) -> list[Supplied]:
    """Return the words for missing replies that are not supplied yet; the caller records them before they are sent."""
    return missing_replies_of(ledger, entries_sent(ledger))


def entries_sent(ledger: Ledger) -> Sequence[TranscriptEntry]:
    """Return the entries of the history that are sent."""
    return sent_entries(ledger.said, ledger.standing)


def missing_replies_of(ledger: Ledger, entries: Iterable[TranscriptEntry]) -> list[Supplied]:
    """As `missing_replies`, for the calls of these entries."""
    found: list[Supplied] = []
    for call in calls_of_record(ledger, entries):
        if call.reply is None and call.supplied is None:
            found.append(Supplied(turn_id=call.turn_id, call_id=call.call_id, text=supplied_reply(call)))
    return found


def outgoing_messages(ledger: Ledger, aside: UserMessage | None = None) -> tuple[OutMessage, ...]:
    """Return the whole history as it is sent. `aside` is added at its end, for the one request of a quick question."""
    messages, notices = messages_of(ledger, entries_sent(ledger), ())
    return (*messages, *notices, aside) if aside is not None else tuple(messages)


def messages_of(
    ledger: Ledger, entries: Sequence[TranscriptEntry], waiting: Iterable[OutMessage]
) -> tuple[list[OutMessage], list[OutMessage]]:
    """Return the messages of consecutive entries of the history, and what waits for the next user text after them.

    `waiting`: what waits for the next user text before them."""
    messages: list[OutMessage] = []
    notices = [*waiting]
    sent = _answers_sent(ledger, entries)
    behind = _told_behind(entries, sent)
    for said in entries:
        match said.record:
            case Notice(model=True) as notice:
                notices.append(UserMessage(f"[Notice] {notice.text}", notice.message_id))
            case Notice():
                pass
            case Told(turn_id=None) as told:
                notices.append(_told_message(told))
            case Told() as told:
                messages += [_told_message(told)] if told.after not in sent else []
            case User(again=str() as turn_id) if turn_id in ledger.turns:
                messages += notices
                notices = []
            case User() as user:
                if not user.command and not user.aside and user.text.strip():
                    messages += [*notices, UserMessage(user.text, user.message_id, _attachment_text(ledger, user))]
                    notices = []
            case Compaction() as compaction:
                messages.append(UserMessage(compaction.text, compaction.message_id, is_told=True))
            case Steer() as steer:
                messages += [*notices, UserMessage(steer.text, steer.message_id)]
                notices = []
            case Assistant(message_id=message_id) as assistant if message_id in sent and not assistant.withdrawn:
                messages += _assistant(ledger, assistant)
                messages += behind.get(message_id, ())
            case Assistant():
                pass
    return messages, notices


def without_told_at_end(messages: Sequence[OutMessage]) -> tuple[OutMessage, ...]:
    """Return the messages up to the last answer, for a request that continues it: it takes no stored message (P2)."""
    end = len(messages)
    while end and isinstance(last := messages[end - 1], UserMessage) and last.is_told:
        end -= 1
    return tuple(messages[:end])


def validate(messages: Iterable[OutMessage], earlier: Collection[str] = ()) -> set[str]:
    """Check the history (row T1); raise `Invalid` if it is unsound. Return the ids of its calls.

    Each call has exactly one reply, in order, before the next message. No reply lacks its call, no text is blank, and
    names, ids and arguments are well formed. `earlier`: the ids of the calls in the messages before these.
    """
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
                _validate_call(call, seen, earlier)
            owed = [call.call_id for call in message.calls]
        elif not message.text.strip():
            raise Invalid("an empty user message")
    if owed:
        raise Invalid(f"a call without its reply: {owed[0]}")
    return seen


def _validate_call(call: OutgoingCall, seen: set[str], earlier: Collection[str]) -> None:
    if not _NAME.fullmatch(call.tool):
        raise Invalid("a tool name no provider accepts")
    if not _ID.fullmatch(call.call_id) or call.call_id in seen or call.call_id in earlier:
        raise Invalid("a call id that is not ours or stands twice")
    if isinstance(parse_arguments(call.arguments), BadArguments):
        raise Invalid("arguments that are no JSON object")
    seen.add(call.call_id)


def _attachment_text(ledger: Ledger, user: User) -> str:
    """Return the stored text about the attachments; if there is none, no model was asked in that turn."""
    turn = ledger.turns.get(user.turn_id)
    stored = turn.attached if turn is not None else None
    return stored if stored is not None else NEVER_READ if user.attachments else ""


def _answers_sent(ledger: Ledger, entries: Iterable[TranscriptEntry]) -> frozenset[str]:
    """Return the ids of the model's answers that are part of the history."""
    sent_again = {said.record.again for said in entries if isinstance(said.record, User) and said.record.again}
    return frozenset(
        answer.message_id
        for said in entries
        if isinstance(answer := said.record, Assistant)
        and not answer.withdrawn
        and (answer.text.strip() or answer.calls)
        and not _is_of_command(ledger, answer)
        and not (answer.turn_id in sent_again and answer.finish is None and not answer.calls)
    )


def _told_behind(entries: Iterable[TranscriptEntry], sent: frozenset[str]) -> Mapping[str, list[OutMessage]]:
    """Return the stored messages that stand behind an answer although they were recorded before it, by its id."""
    behind: dict[str, list[OutMessage]] = {}
    for said in entries:
        told = said.record
        if isinstance(told, Told) and told.turn_id is not None and told.after is not None and told.after in sent:
            behind.setdefault(told.after, []).append(_told_message(told))
    return behind


def _told_message(told: Told) -> UserMessage:
    return UserMessage(f"[Notice] {told.text}", told.message_id, is_told=True)


def _is_of_command(ledger: Ledger, record: Assistant) -> bool:
    """Return whether it answers a slash command; those answers are ours, not the model's."""
    turn = ledger.turns.get(record.turn_id)
    return turn is not None and turn.command


def calls_of_record(ledger: Ledger, entries: Iterable[TranscriptEntry]) -> Iterator[ToolCall]:
    """Return the calls that the answers among these entries propose."""
    for said in entries:
        if isinstance(said.record, Assistant) and not said.record.withdrawn:
            for proposed in said.record.calls:
                yield ledger.calls[proposed.call_id]


def _assistant(ledger: Ledger, record: Assistant) -> Iterator[OutMessage]:
    calls = tuple(_outgoing_call(proposed.call_id, proposed.tool, proposed.arguments) for proposed in record.calls)
    yield AssistantMessage(record.text if record.text.strip() else "", calls, record.reasoning, record.sealed)
    for proposed in record.calls:
        call = ledger.calls[proposed.call_id]
        outcome, reason = outcome_of(call)
        state = state_of(outcome or unrecorded_verdict(call) or "unknown")
        is_omitted = call.call_id in ledger.standing.omitted
        yield ReplyMessage(proposed.call_id, _reply_text(call, call.reply, is_omitted), state, reason)


def _reply_text(call: ToolCall, reply: ToolResult | None, is_omitted: bool) -> str:
    if is_omitted:
        return OMITTED_REPLY
    text = reply.text if reply is not None and call.supplied is None else call.supplied  # words once sent stay
    assert text is not None, "missing replies are supplied before the history goes out"
    return text if text.strip() else EMPTY_REPLY


def _outgoing_call(call_id: str, tool: str, arguments: str) -> OutgoingCall:
    """Return the call as it is sent (row T4).

    A tool name or arguments that a provider would reject are replaced by a valid form; the original stays stored.
    """
    sound = _NAME.fullmatch(tool) is not None
    parsed = parse_arguments(arguments)
    return OutgoingCall(call_id, tool if sound else UNNAMED, "{}" if isinstance(parsed, BadArguments) else arguments)
