"""Where a conversation can be cut for a compaction, and what is summarised (row K4).

A cut stands where no call is open. It is never behind a message that has not gone out, nor behind the prompt that is
being answered. A stored message stays on the same side as the answer behind which it goes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.ledger.compaction import sent_entries
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import ToolCall, TranscriptEntry
from steadyhand.domain.model.growing_transcript import is_final
from steadyhand.domain.model.messages import AssistantMessage, OutMessage
from steadyhand.domain.model.transcript import OMITTED_REPLY, calls_of_record, messages_of
from steadyhand.domain.records.record import Assistant, Compaction, Notice, Steer, Told, User

SUMMARISED_MESSAGES_MIN = 2
"""Fewer messages are not worth a summary."""
OMITTED_CHARS_MIN = 10 * len(OMITTED_REPLY)
"""A shorter output is not left out."""


def cut_place(ledger: Ledger, kept_turn: str | None) -> int:
    """Return the last place at which the conversation can be cut; the standing one if there is no later.

    `kept_turn`: the turn whose prompt is being answered, or will be sent again; it stays behind the cut."""
    start = ledger.standing.place
    end = _prompt_place(ledger, kept_turn) if kept_turn is not None else len(ledger.said)
    place, crossed = _first_open(ledger, end), _crossings(ledger.said)
    while place > start:
        earlier = min([_first_unsent(ledger, place), *(first for first, last in crossed if first < place <= last)])
        if earlier == place and ledger.said[place - 1].seq > 0:
            return place
        place = min(earlier, place - 1)
    return start


def messages_before(ledger: Ledger, place: int) -> tuple[OutMessage, ...]:
    """Return what the model was sent of the conversation up to a place where it can be cut."""
    return tuple(messages_of(ledger, sent_entries(ledger.said[:place], ledger.standing), ())[0])


def messages_behind(ledger: Ledger, place: int) -> tuple[OutMessage, ...]:
    """Return what the model gets of the conversation behind a place where it can be cut."""
    behind = [entry for entry in ledger.said[place:] if not isinstance(entry.record, Compaction)]
    return tuple(messages_of(ledger, behind, ())[0])


def is_worth_summarising(ledger: Ledger, messages: Sequence[OutMessage]) -> bool:
    """Return whether there is enough besides the standing compaction: an answer of the model among it."""
    new = messages[1:] if ledger.standing.entry is not None else messages
    return len(new) >= SUMMARISED_MESSAGES_MIN and any(isinstance(one, AssistantMessage) for one in new)


def omittable_calls(ledger: Ledger, with_newest: bool) -> tuple[str, ...]:
    """Return the calls behind the cut whose outputs are long and not left out yet, oldest first.

    The words for an unknown outcome are never left out.

    `with_newest`: those of the last answer too."""
    behind = ledger.said[ledger.standing.place :]
    answers = [entry for entry in behind if isinstance(entry.record, Assistant) and entry.record.calls]
    old = answers if with_newest else answers[:-1]
    known = ledger.standing.omitted
    return tuple(
        call.call_id for call in calls_of_record(ledger, old) if call.call_id not in known and _is_long_output(call)
    )


def omitted_behind(ledger: Ledger, place: int) -> tuple[str, ...]:
    """Return the calls behind a place whose outputs are left out already."""
    calls = calls_of_record(ledger, ledger.said[place:])
    return tuple(call.call_id for call in calls if call.call_id in ledger.standing.omitted)


def _is_long_output(call: ToolCall) -> bool:
    reply = call.reply if call.supplied is None else None
    return reply is not None and reply.outcome in ("returned", "failed") and len(reply.text) >= OMITTED_CHARS_MIN


def _prompt_place(ledger: Ledger, turn_id: str) -> int:
    """Return the place of the prompt that a turn answers; a turn that sends another again answers that one's."""
    prompts = {said.record.turn_id: at for at, said in enumerate(ledger.said) if isinstance(said.record, User)}
    records = {turn: ledger.said[at].record for turn, at in prompts.items()}
    seen: set[str] = set()
    while turn_id not in seen:
        seen.add(turn_id)
        record = records.get(turn_id)
        if not isinstance(record, User) or record.again is None or record.again not in prompts:
            break
        turn_id = record.again
    return prompts.get(turn_id, len(ledger.said))


def _first_open(ledger: Ledger, end: int) -> int:
    """Return the place of the first answer with a call that is open."""
    for place in range(ledger.standing.place, end):
        if not all(is_final(call) for call in calls_of_record(ledger, [ledger.said[place]])):
            return place
    return end


def _first_unsent(ledger: Ledger, end: int) -> int:
    """Return the place of the first notice or stored message that does not go out before this place."""
    first, last_answer, is_answered, is_prompt_answered = end, None, False, False
    for place in range(end - 1, ledger.standing.place - 1, -1):
        record = ledger.said[place].record
        match record:
            case Assistant() if not record.withdrawn and _is_in_history(ledger, record.turn_id):
                last_answer, is_answered = last_answer or record.message_id, True
            case User() if not record.command and not record.aside:
                is_prompt_answered = is_answered
            case Steer() if not is_answered:  # the request that took it has no answer yet
                first = place
            case Notice(model=True) | Told(turn_id=None) if not is_prompt_answered:
                first = place
            case Told() if record.turn_id is not None and (not is_answered or record.after == last_answer):
                first = place
            case _:
                pass
    return first


def _is_in_history(ledger: Ledger, turn_id: str) -> bool:
    turn = ledger.turns.get(turn_id)
    return turn is None or turn.is_in_history


def _crossings(said: Sequence[TranscriptEntry]) -> list[tuple[int, int]]:
    """Return the places of what a cut must not part, the earlier first: each stored message and the answer that it
    names, each prompt and the turn that sends it again."""
    answers = {entry.record.message_id: at for at, entry in enumerate(said) if isinstance(entry.record, Assistant)}
    prompts = {entry.record.turn_id: at for at, entry in enumerate(said) if isinstance(entry.record, User)}
    found: list[tuple[int, int]] = []
    for at, entry in enumerate(said):
        other: int | None = None
        if isinstance(entry.record, Told) and entry.record.after is not None:
            other = answers.get(entry.record.after)
        elif isinstance(entry.record, User) and entry.record.again is not None:
            other = prompts.get(entry.record.again)
        if other is not None:
            found.append((min(at, other), max(at, other)))
    return found
