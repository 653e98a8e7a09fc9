"""Views made from the ledger: the call, the conversation, the queue, the changed files.

`Live` says what the ledger cannot: which turns run in this process now. Nothing is run or looked at for a view.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from steadyhand.core.changed import summed_up
from steadyhand.core.folded import Call, Said, Waiting
from steadyhand.core.identity import BadArguments, parse_arguments
from steadyhand.core.ledger import Ledger
from steadyhand.core.record import Assistant, FileChange, Notice, Scope, User
from steadyhand.core.views import (
    CallState,
    CallView,
    ChangedFile,
    FileView,
    MessageView,
    QueuedView,
    ReplyView,
    ScopeEverything,
    ScopePaths,
    ScopeView,
)
from steadyhand.core.words import outcome_of, state_of, unrecorded

title_length_max = 80


@attrs.frozen
class Live:
    """`elsewhere`: another process owns the session, so what is open runs there."""

    turns: frozenset[str] = frozenset()
    elsewhere: bool = False

    def runs(self, turn_id: str) -> bool:
        return self.elsewhere or turn_id in self.turns


def short_title(text: str) -> str:
    """One line of at most `title_length_max` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= title_length_max else flat[: title_length_max - 1] + "…"


def shown_path(path: str, root: str | None) -> str:
    """Relative to the workspace with `/`; absolute if outside."""
    if root is None:
        return path
    if path == root:
        return "."
    inside = root.rstrip("/") + "/"
    return path[len(inside) :] if path.startswith(inside) else path


def scope_view(scope: Scope, root: str | None) -> ScopeView:
    if scope.everything:
        return ScopeEverything()
    return ScopePaths(tuple(shown_path(path, root) for path in scope.paths))


def call_state(call: Call, live: Live) -> CallState:
    """wire.md, "States": from journal to screen."""
    outcome, _ = outcome_of(call)
    if outcome is not None:
        return state_of(outcome)
    attempt = call.attempt
    if not live.runs(call.turn_id):
        return state_of(unrecorded(call) or "unknown")
    if attempt is None:
        return "proposed"
    return "waiting" if attempt.stage == "intended" and attempt.effect != "reads" else "running"


VERDICTS = ("interrupted_before_execution", "interrupted", "unknown_after_restart")
"""Outcomes that say why by themselves: only recovery gives them, and the state alone would not tell (row C5)."""


def call_view(call: Call, live: Live, root: str | None, title: str | None = None) -> CallView:
    attempt = call.attempt
    outcome, reason = outcome_of(call)
    result = attempt.result if attempt else None
    reply = call.reply
    files = tuple(_file(change) for change in result.files) if result and result.files else None
    return CallView(
        call_id=call.call_id,
        turn_id=call.turn_id,
        tool=call.tool,
        title=short_title(attempt.title if attempt else title or call.tool),
        arguments=shown_arguments(call.arguments),
        scope=scope_view(attempt.scope, root) if attempt else ScopePaths(()),
        state=call_state(call, live),
        attempt_id=attempt.attempt_id if attempt else None,
        reason=reason or (outcome if outcome in VERDICTS else None),
        started=attempt.started_at if attempt else None,
        ended=attempt.result_at if attempt else None,
        reply=ReplyView(reply.text, reply.truncated, reply.bytes) if reply else None,
        files=files,
        settled=attempt.settlement.settled if attempt and attempt.settlement else None,
    )


def shown_arguments(text: str) -> str:
    """Canonical text where there is one, else the text as it was proposed."""
    parsed = parse_arguments(text)
    return text if isinstance(parsed, BadArguments) else parsed.canonical


def message_view(ledger: Ledger, said: Said, live: Live, root: str | None) -> MessageView:
    record = said.record
    match record:
        case User():
            return MessageView(
                record.message_id, said.turn_id, "user", said.at, record.text,
                attachments=record.attachments or None, client_message_id=record.client_message_id,
            )  # fmt: skip
        case Notice():
            return MessageView(record.message_id, said.turn_id, "notice", said.at, record.text)
        case Assistant():
            calls = tuple(call_view(ledger.calls[call.call_id], live, root) for call in record.calls)
            return MessageView(
                record.message_id, said.turn_id, "assistant", said.at, record.text, record.reasoning,
                calls=calls or None,
            )  # fmt: skip


def messages(ledger: Ledger, tail: int, live: Live, root: str | None) -> tuple[tuple[MessageView, ...], bool]:
    """The last `tail` messages, and whether there are more."""
    shown = [said for said in ledger.said if not _hidden(said.record)]
    last = shown[-tail:] if tail else []
    return tuple(message_view(ledger, said, live, root) for said in last), len(shown) > len(last)


def _hidden(record: User | Assistant | Notice) -> bool:
    """What was withdrawn, and quick questions: nobody who opens the session is shown them."""
    match record:
        case Assistant():
            return record.withdrawn
        case User():
            return record.aside
        case Notice():
            return False


def queue_view(ledger: Ledger, epoch: str | None, resumed: bool) -> tuple[QueuedView, ...]:
    """In order. What was queued in an earlier epoch is paused until it is resumed (row S4)."""
    return tuple(_queued(item, item.epoch != epoch and not resumed) for item in ledger.queue.values())


def _queued(item: Waiting, paused: bool) -> QueuedView:
    prompt = item.prompt
    return QueuedView(
        item.client_message_id, item.text, item.at, paused, prompt.attachments or None, prompt.aside or None
    )


def changed_in_turn(ledger: Ledger, turn_id: str) -> tuple[ChangedFile, ...]:
    """The files really changed in a turn, one entry a path, from the journal (row G6)."""
    of_turn = [attempt for attempt in ledger.attempts.values() if attempt.turn_id == turn_id]
    return summed_up(change for attempt in of_turn if attempt.result is not None for change in attempt.result.files)


def last_text(ledger: Ledger, turn_id: str) -> str:
    """The texts of a turn's answer, joined."""
    return "\n".join(_texts(ledger.said, turn_id))


def _texts(said: Iterable[Said], turn_id: str) -> Iterable[str]:
    for entry in said:
        record = entry.record
        if entry.turn_id == turn_id and isinstance(record, Assistant) and record.text and not record.withdrawn:
            yield record.text


def _file(change: FileChange) -> FileView:
    return FileView(change.path, change.change, change.before, change.after, change.from_)
