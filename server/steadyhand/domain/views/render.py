"""Make views from the ledger: the call, the conversation, the queue, the changed files.

`LiveState` tells what the ledger cannot: which turns run in this process now. Making a view runs nothing and reads no
file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import attrs

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import QueuedPrompt, ToolCall, TranscriptEntry
from steadyhand.domain.records.identity import BadArguments, parse_arguments
from steadyhand.domain.records.record import (
    Assistant,
    ChangedDuring,
    Compaction,
    EndReason,
    FileChange,
    Notice,
    SandboxUse,
    Scope,
    Steer,
    Told,
    ToolResult,
    User,
)
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.views.changed_files import net_changes
from steadyhand.domain.views.sentences import outcome_of, state_of, unrecorded_verdict
from steadyhand.domain.views.types import (
    AfterCompaction,
    BeforeCompaction,
    CallState,
    CallView,
    ChangedDuringView,
    ChangedFile,
    ChangedInCall,
    CompactionNote,
    ExitView,
    FileView,
    MessageView,
    QueuedView,
    ReplyView,
    SandboxView,
    ScopeEverything,
    ScopePaths,
    ScopeView,
    SeenChangeView,
    SessionOriginView,
    TurnEnded,
)
from steadyhand_values import frozen

TITLE_LENGTH_MAX = 80
DURING_SHOWN_MAX = 200
"""Files that changed while commands of one turn ran, at its end."""


@frozen
class LiveState:
    """Which turns run now. `elsewhere`: another process owns the session, so open turns run there."""

    turns: frozenset[str] = frozenset()
    elsewhere: bool = False

    def runs(self, turn_id: str) -> bool:
        """Return whether the turn runs in this process or may run in another."""
        return self.elsewhere or turn_id in self.turns


def short_title(text: str) -> str:
    """Return the text on one line of at most `TITLE_LENGTH_MAX` characters, each of which can be seen."""
    flat = show_hidden_in_value(" ".join(text.split()))
    return flat if len(flat) <= TITLE_LENGTH_MAX else flat[: TITLE_LENGTH_MAX - 1] + "…"


def display_path(path: str, root: str | None) -> str:
    """Return the path relative to the workspace with `/`, or absolute if it is outside."""
    if root is None:
        return path
    if path == root:
        return "."
    inside = root.rstrip("/") + "/"
    return path[len(inside) :] if path.startswith(inside) else path


def origin_of(ledger: Ledger) -> SessionOriginView | None:
    """Return what the session was forked from; None: it is no fork."""
    first = ledger.origins[0] if ledger.origins else None
    return SessionOriginView(first.session_id, first.turn_id) if first is not None else None


def scope_view(scope: Scope, root: str | None) -> ScopeView:
    """Return the scope with its paths as they are shown."""
    if scope.everything:
        return ScopeEverything()
    return ScopePaths(tuple(display_path(path, root) for path in scope.paths))


def call_state(call: ToolCall, live: LiveState) -> CallState:
    """Return the call's state on the wire (docs/recovery.md, "The words for an end")."""
    outcome, _ = outcome_of(call)
    if outcome is not None:
        return state_of(outcome)
    attempt = call.attempt
    if not live.runs(call.turn_id):
        return state_of(unrecorded_verdict(call) or "unknown")
    if attempt is None:
        return "proposed"
    return "waiting" if attempt.stage == "intended" and attempt.effect != "reads" else "running"


VERDICTS = ("interrupted_before_execution", "interrupted", "unknown_after_restart")
"""Outcomes that are their own reason (row C5).

Only recovery gives them, and the state alone does not tell them apart.
"""


def call_view(call: ToolCall, live: LiveState, root: str | None, title: str | None = None) -> CallView:
    """Return the view of a call. `title` is used until there is an attempt with a title."""
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
        arguments=display_arguments(call.arguments),
        scope=scope_view(attempt.scope, root) if attempt else ScopePaths(()),
        state=call_state(call, live),
        attempt_id=attempt.attempt_id if attempt else None,
        reason=reason or (outcome if outcome in VERDICTS else None),
        started=attempt.started_at if attempt else None,
        ended=attempt.result_at if attempt else None,
        reply=ReplyView(reply.text, reply.truncated, reply.bytes) if reply else None,
        files=files,
        settled=attempt.settlement.settled if attempt and attempt.settlement else None,
        sandbox=_sandbox_view(attempt.sandbox) if attempt and attempt.sandbox else None,
        unconfined=True if attempt and attempt.unconfined else None,
        changed_during=_during_view(result.during) if result and result.during else None,
        exit=_exit_view(reply) if reply else None,
    )


def _exit_view(reply: ToolResult) -> ExitView | None:
    if reply.exit_code is None and reply.exit_signal is None:
        return None
    return ExitView(reply.exit_code, reply.exit_signal)


def display_arguments(text: str) -> str:
    """Return the canonical text; if there is none, the text as it was proposed."""
    parsed = parse_arguments(text)
    return text if isinstance(parsed, BadArguments) else parsed.canonical


def message_view(ledger: Ledger, said: TranscriptEntry, live: LiveState, root: str | None) -> MessageView:
    """Return the view of one entry of the conversation."""
    record = said.record
    match record:
        case User():
            return MessageView(
                record.message_id,
                said.turn_id,
                "user",
                said.at,
                record.text,
                attachments=record.attachments or None,
                client_message_id=record.client_message_id,
                again=record.again,
            )
        case Steer():
            return MessageView(
                record.message_id,
                said.turn_id,
                "user",
                said.at,
                record.text,
                client_message_id=record.client_message_id,
            )
        case Notice() | Told():
            return MessageView(record.message_id, said.turn_id, "notice", said.at, record.text)
        case Compaction():
            note = compaction_note(record)
            return MessageView(record.message_id, said.turn_id, "notice", said.at, record.text, compaction=note)
        case Assistant():
            calls = tuple(call_view(ledger.calls[call.call_id], live, root) for call in record.calls)
            return MessageView(
                record.message_id,
                said.turn_id,
                "assistant",
                said.at,
                record.text,
                record.reasoning,
                calls=calls or None,
            )


def compaction_note(record: Compaction) -> CompactionNote:
    """Return what a compaction made of the conversation."""
    before = BeforeCompaction(record.before.messages, record.before.context_tokens)
    return CompactionNote(before, AfterCompaction(record.after.messages), record.automatic)


def message_views(ledger: Ledger, tail: int, live: LiveState, root: str | None) -> tuple[tuple[MessageView, ...], bool]:
    """Return the last `tail` messages, and whether there are earlier ones."""
    shown = [said for said in ledger.said if not _hidden(said.record)]
    last = shown[-tail:] if tail else []
    views = (message_view(ledger, said, live, root) for said in last)
    turn_ids = _turns_of(shown)[-len(last) :]
    return tuple(map(_in_turn, views, turn_ids)), len(shown) > len(last)


def _turns_of(shown: Sequence[TranscriptEntry]) -> list[str]:
    """Return the turn of each entry; of one outside a turn the latest before it, else the first, else its own id."""
    latest = next((said.turn_id for said in shown if said.turn_id), "")
    found: list[str] = []
    for said in shown:
        latest = said.turn_id or latest
        found.append(latest or said.record.message_id)
    return found


def _in_turn(view: MessageView, turn_id: str) -> MessageView:
    return view if view.turn_id else attrs.evolve(view, turn_id=turn_id)


def _hidden(record: User | Assistant | Notice | Told | Steer | Compaction) -> bool:
    """Return whether nobody who opens the session sees it: withdrawn text, and quick questions."""
    match record:
        case Assistant():
            return record.withdrawn
        case User():
            return record.aside
        case Notice() | Told() | Steer():
            return False
        case Compaction():
            return not record.text


def queue_view(ledger: Ledger, ready: Collection[str]) -> tuple[QueuedView, ...]:
    """Return the queue in order. `ready`: client message ids of what is not paused (rows S4, S9)."""
    return tuple(_queued_view(item, item.client_message_id not in ready) for item in ledger.queue.values())


def _queued_view(item: QueuedPrompt, paused: bool) -> QueuedView:
    prompt = item.prompt
    return QueuedView(
        item.client_message_id,
        item.text,
        item.at,
        paused,
        prompt.attachments or None,
        prompt.aside or None,
        item.steers,
    )


def files_changed_in_turn(ledger: Ledger, turn_id: str) -> tuple[ChangedFile, ...]:
    """Return the files that a turn really changed, one entry for each path, from the journal (row G6)."""
    of_turn = ledger.attempts_of_turn(turn_id)
    return net_changes(change for attempt in of_turn if attempt.result is not None for change in attempt.result.files)


def files_changed_during_commands(ledger: Ledger, turn_id: str) -> tuple[ChangedInCall, ...]:
    """Return the files that changed while commands of a turn ran, at most `DURING_SHOWN_MAX`, in order (case 124)."""
    found = [
        ChangedInCall(seen.path, seen.change, attempt.call_id)
        for attempt in ledger.attempts_of_turn(turn_id)
        if attempt.result is not None and attempt.result.during is not None
        for seen in _during_view(attempt.result.during).files
    ]
    return tuple(found[:DURING_SHOWN_MAX])


def protected_after_commands(ledger: Ledger, turn_id: str) -> tuple[str, ...]:
    """Return the protected names that were new or changed after commands of a turn, each once (row O1)."""
    of_turn = [attempt.result for attempt in ledger.attempts_of_turn(turn_id)]
    return tuple(dict.fromkeys(path for result in of_turn if result is not None for path in result.protected))


def turn_ended(ledger: Ledger, turn_id: str, reason: EndReason) -> TurnEnded:
    """Return how a turn ended, with what really changed in it; what its answer falsely claims is not looked for."""
    return TurnEnded(
        reason,
        files_changed_in_turn(ledger, turn_id),
        during=files_changed_during_commands(ledger, turn_id) or None,
        protected=protected_after_commands(ledger, turn_id) or None,
    )


def answer_text(ledger: Ledger, turn_id: str) -> str:
    """Return the texts of a turn's answer, joined by line ends."""
    texts: list[str] = []
    for entry in reversed(ledger.said):
        record = entry.record
        if entry.turn_id != turn_id:
            continue
        if isinstance(record, User):  # the turn begins here
            break
        if isinstance(record, Assistant) and record.text and not record.withdrawn:
            texts.append(record.text)
    return "\n".join(reversed(texts))


def _sandbox_view(use: SandboxUse) -> SandboxView | None:
    """Return the view; None for a kind of a later version."""
    kinds: Mapping[str, Literal["bubblewrap", "landlock"]] = {"bubblewrap": "bubblewrap", "landlock": "landlock"}
    return SandboxView(kinds[use.kind], use.sealed) if use.kind in kinds else None


def _during_view(during: ChangedDuring) -> ChangedDuringView:
    words: Mapping[str, Literal["created", "modified", "deleted"]] = {"created": "created", "deleted": "deleted"}
    files = tuple(
        SeenChangeView(show_hidden_in_value(seen.path), words.get(seen.change, "modified")) for seen in during.files
    )
    return ChangedDuringView(files, during.more, during.exact)


def _file(change: FileChange) -> FileView:
    path = show_hidden_in_value(change.path)
    moved_from = None if change.from_ is None else show_hidden_in_value(change.from_)
    return FileView(path, change.change, change.before, change.after, moved_from)
