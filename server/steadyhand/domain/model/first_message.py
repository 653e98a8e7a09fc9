"""The first message after the cut of a compaction: what the journal knows, then the model's summary (row K4).

The lines before the summary are made from the journal and not by a model, so a summary cannot remove a receipt or state
a falsehood that nothing contradicts. The message is bounded by a share of the model's window. What does not fit is cut
and counted; unresolved effects are given room first, the summary keeps a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt, TranscriptEntry
from steadyhand.domain.model.token_estimate import BYTES_PER_TOKEN
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.domain.records.prompt import attachment_name
from steadyhand.domain.records.record import Assistant, FileChange, Steer, Told, User
from steadyhand.domain.recovery.postcondition import intended_changes
from steadyhand.domain.views.changed_files import net_changes
from steadyhand.domain.views.sentences import outcome_of, reject_notice, settlement_notice, unknown_reply
from steadyhand_values import define

MESSAGE_WINDOW_SHARE_MAX = 0.4
PERSON_WINDOW_SHARE_MAX = 0.2
MESSAGE_BYTES_MAX = 256 * 1024
"""Of the whole message, however large the window is."""
SUMMARY_BYTES_MAX = 16 * 1024
ASSUMED_WINDOW_TOKENS = 32_768
"""Of a model whose window nobody tells."""
SETTLED_TURNS_MAX = 5
LINES_MAX = 200
"""Of each list."""

HEAD = "[The earlier part of this conversation is left out. The lines up to the summary are from Steadyhand's journal.]"
BY_MODEL = "Summary by the model:"
END = "Where the summary and the lines above disagree, the lines above are right."
TODO_TOOL = "todo"
CUT_BYTES_MIN = 64
"""With less room a message is left out and not cut."""


def first_message(
    ledger: Ledger,
    said: Sequence[TranscriptEntry],
    running_turn: str | None,
    window: int | None,
    summary: str,
    elsewhere: Sequence[str] = (),
) -> str:
    """Return the message. `said`: the conversation up to the cut; `running_turn`: its changes are behind the cut.

    `elsewhere`: a line for each unresolved effect of the session that this one was forked from."""
    tokens = window if window is not None else ASSUMED_WINDOW_TOKENS
    whole = min(MESSAGE_BYTES_MAX, int(tokens * MESSAGE_WINDOW_SHARE_MAX) * BYTES_PER_TOKEN)
    frame = [HEAD, BY_MODEL, END]
    room = _Room(whole - sum(map(_size, frame)) - 8)
    kept = min(SUMMARY_BYTES_MAX, _size(summary), room.left // 4)
    room.left -= kept
    unresolved = [*_unresolved(ledger), *elsewhere]
    effects = _section(room, "Effects whose outcome is unknown:", unresolved, "unresolved effects")
    settled = _section(room, "Effects that were settled:", _settled(ledger), "settled effects")
    files = _section(room, "Files changed so far:", _files(ledger, running_turn), "files")
    todo = _section(room, "The plan:", _todo(ledger, said), "items")
    attached = _section(room, "Attachments so far:", _attachments(said), "attachments")
    told = _messages(room, room.left, "What was told about the workspace:", _told(ledger, said), "messages")
    share = min(room.left, int(tokens * PERSON_WINDOW_SHARE_MAX) * BYTES_PER_TOKEN)
    person = _messages(room, share, "Messages of the user, newest first:", _prompts(said), "older messages")
    room.left += kept
    told_summary = cut_text(summary.strip(), min(SUMMARY_BYTES_MAX, room.left))
    parts = [HEAD, told, person, effects, settled, todo, files, attached, f"{BY_MODEL}\n{told_summary}", END]
    return "\n\n".join(part for part in parts if part)


@define
class _Room:
    """Bytes that are left."""

    left: int


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def cut_text(text: str, bytes_max: int) -> str:
    """Return the text, or as much of it as fits together with a mark that says so."""
    size = _size(text)
    if size <= bytes_max:
        return text
    mark = f" [cut: it has {size} bytes]"
    raw = text.encode("utf-8", "surrogatepass")[: max(0, bytes_max - len(mark))]
    return raw.decode("utf-8", "ignore") + mark


def _section(room: _Room, head: str, lines: Sequence[str], what: str) -> str:
    """Return a list of lines that fits; what is left out is counted."""
    if not lines:
        return ""

    def more(count: int) -> str:
        return f"- and {count} more {what}"

    return _fit(room, head, [f"- {line}" for line in lines[:LINES_MAX]], len(lines), more)


def _fit(room: _Room, head: str, lines: Sequence[str], count: int, more: Callable[[int], str]) -> str:
    taken = [head]
    left = room.left - _size(head) - 2 - _size(more(count)) - 1
    if left < 0:
        return ""
    for line in lines:
        if _size(line) + 1 > left:
            break
        left -= _size(line) + 1
        taken.append(line)
    if count >= len(taken):
        taken.append(more(count - len(taken) + 1))
    text = "\n".join(taken)
    room.left = max(0, room.left - _size(text) - 2)
    return text


def _messages(room: _Room, share: int, head: str, texts: Sequence[str], what: str) -> str:
    """Return whole texts, word for word, as long as they fit; the first that does not is cut, the others counted."""
    if not texts:
        return ""
    taken = [head]
    left = share - _size(head) - 2 - len(f"[{len(texts)} {what} are left out]") - 1
    if left < 0:
        return ""
    for number, text in enumerate(texts, 1):
        title = f"[{number} of {len(texts)}]\n"
        fits = left - len(title) - 1
        if fits < CUT_BYTES_MIN:
            break
        taken.append(title + cut_text(text, fits))
        left -= _size(taken[-1]) + 1
        if _size(text) > fits:
            break
    if len(texts) >= len(taken):
        taken.append(f"[{len(texts) - len(taken) + 1} {what} are left out]")
    whole = "\n".join(taken)
    room.left = max(0, room.left - _size(whole) - 2)
    return whole


def _told(ledger: Ledger, said: Sequence[TranscriptEntry]) -> list[str]:
    """Return what was told and stays true: instructions, and the folders of the workspace."""
    told = (entry.record for entry in said if isinstance(entry.record, Told))
    return [one.text for one in told if ledger.stays_told(one.message_id)]


def _prompts(said: Sequence[TranscriptEntry]) -> list[str]:
    texts = (entry.record for entry in reversed(said) if isinstance(entry.record, User | Steer))
    return [
        one.text
        for one in texts
        if one.text.strip() and not (isinstance(one, User) and (one.command or one.aside or one.again))
    ]


def _unresolved(ledger: Ledger) -> list[str]:
    return [
        f"{one.title}: {unknown_reply(one)}{f' {reject_notice(one.title)}' if one.rejected else ''}"
        for one in ledger.uncertain()
    ]


def _settled(ledger: Ledger) -> list[str]:
    """Return a line for each effect that was settled in the last turns."""
    since = ledger.turns_begun - SETTLED_TURNS_MAX
    return [
        f"{settlement_notice(one, one.settlement.settled, one.settlement.by)} Its attempt is {one.attempt_id}."
        for one in ledger.doubted()
        if one.settlement is not None and one.settled_turns > since
    ]


def _todo(ledger: Ledger, said: Sequence[TranscriptEntry]) -> list[str]:
    """Return the items of the latest plan."""
    for entry in reversed(said):
        if not isinstance(entry.record, Assistant) or entry.record.withdrawn:
            continue
        for proposed in reversed(entry.record.calls):
            if proposed.tool == TODO_TOOL and outcome_of(ledger.calls[proposed.call_id])[0] == "returned":
                return _items(proposed.arguments)
    return []


def _items(arguments: str) -> list[str]:
    parsed = parse_arguments(arguments)
    items = None if isinstance(parsed, BadArguments) else parsed.value.get("items")
    return [f"{one.get('state')}: {one.get('text')}" for one in items] if isinstance(items, list) else []


def _files(ledger: Ledger, running_turn: str | None) -> list[str]:
    """Return the files that the session changed and how its last change left each. One that has its first content
    again, because a change was taken back, is not named."""
    changes = [
        change
        for attempt in ledger.attempts.values()
        if attempt.turn_id != running_turn
        for change in _changes_of(attempt)
    ]
    first = {change.path: change for change in reversed(changes)}
    last = {change.path: change for change in changes}
    found: list[str] = []
    for one in net_changes(changes):
        if one.change == "modified" and None is not first[one.path].before == last[one.path].after:
            continue
        size = last[one.path].bytes
        moved = f" from {one.from_}" if one.from_ is not None else ""
        state = "not there" if one.change == "deleted" else f"{size} bytes" if size is not None else "there"
        found.append(f"{one.path}: {one.change}{moved}, {state}")
    return found


def _changes_of(attempt: Attempt) -> Sequence[FileChange]:
    if not attempt.has_certainly_happened:
        return ()
    recorded = attempt.result.files if attempt.result is not None else ()
    return recorded or intended_changes(attempt.started.evidence if attempt.started is not None else ())


def _attachments(said: Sequence[TranscriptEntry]) -> list[str]:
    prompts = (entry.record for entry in said if isinstance(entry.record, User) and not entry.record.aside)
    return list(
        dict.fromkeys(" ".join(attachment_name(one).split()) for prompt in prompts for one in prompt.attachments)
    )
