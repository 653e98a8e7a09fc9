"""Golden journals: what they have to contain, and what the ledger makes of each.

A *golden journal* is a committed journal that a released version wrote. Its bytes never change, so it shows whether
today's code still reads them. This module has no list of kinds, members or words: it reads them from the record
classes, so that a kind, a member or a word that somebody adds is missing until a new golden journal contains it.

An *observation* is a text such as `result`, `result.exitCode absent`, `result.exitCode present` or
`result.outcome = failed`; its names are the names on disk.
"""

from __future__ import annotations

import hashlib
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

from steadyhand.domain.ledger.ledger import Ledger, fold
from steadyhand.domain.ledger.state import Attempt, ToolCall, TranscriptEntry
from steadyhand.domain.records.record import KINDS, Assistant, Queue, Record, Scope, Stamped, Steer
from steadyhand.domain.views.render import LiveState, call_state
from steadyhand.domain.views.sentences import outcome_of
from steadyhand.domain.views.serialize import camel_case
from steadyhand.journal.format import read_journal

GOLDEN = Path(__file__).parent / "golden"
TEXT_LENGTH_MAX = 100


def golden_journals() -> list[Path]:
    """Every committed golden journal, in the order of their names."""
    return sorted(GOLDEN.glob("*.jsonl"))


# What the record classes declare, and what one record shows.


def declared_observations() -> set[str]:
    """All that the record classes allow: each has to stand in some golden journal."""
    return {found for kind, cls in KINDS.items() for found in (kind, *_declared_by_class(cls, kind))}


def observations_in(record: Record) -> set[str]:
    """What one record shows of them."""
    return {record.kind, *_shown_by_object(record, record.kind)}


def fields_of(cls: type) -> Iterator[tuple[attrs.Attribute, typing.Any]]:  # type: ignore[type-arg]  # of any type
    """Each member of an attrs class, with its resolved type."""
    hints = typing.get_type_hints(cls)
    for field in attrs.fields(cls):
        yield field, hints[field.name]


def is_optional(field: attrs.Attribute, hint: object) -> bool:  # type: ignore[type-arg]  # of any type
    """Whether the codec may leave the member out. A member with one possible word is always written."""
    return field.default is not attrs.NOTHING and len(words_of(hint)) != 1


def words_of(hint: object) -> tuple[str, ...]:
    """The words of a closed set; none for any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) is typing.Literal else ()


def alternatives_of(hint: object) -> tuple[object, ...]:
    """The members of a union without None; of any other type itself."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(part for part in typing.get_args(hint) if part is not types.NoneType)
    return (hint,)


def item_of(hint: object) -> object | None:
    """The type of the items of a tuple; None for any other type."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is tuple else None


def _path_of(cls: type, path: str) -> str:
    """Classes that share a place, such as attachments, tell themselves apart by the one word of their `kind`."""
    own = [words_of(hint) for field, hint in fields_of(cls) if field.name == "kind"]
    return f"{path}.{own[0][0]}" if own and len(own[0]) == 1 else path


def _declared_by_class(cls: type, path: str) -> Iterator[str]:
    for field, hint in fields_of(cls):
        member = f"{path}.{camel_case(field.name)}"
        if is_optional(field, hint):
            yield from (f"{member} absent", f"{member} present")
        elif hint is bool:
            yield from (f"{member} = False", f"{member} = True")
        yield from _declared_by_type(hint, member)


def _declared_by_type(hint: object, path: str) -> Iterator[str]:
    for part in alternatives_of(hint):
        yield from (f"{path} = {word}" for word in words_of(part))
        item = item_of(part)
        if item is not None:
            yield from _declared_by_type(item, path)
        if isinstance(part, type) and attrs.has(part):
            yield from _declared_by_class(part, _path_of(part, path))


def _shown_by_object(value: object, path: str) -> Iterator[str]:
    for field, hint in fields_of(type(value)):
        member, inner = f"{path}.{camel_case(field.name)}", getattr(value, field.name)
        if is_optional(field, hint):
            yield f"{member} {'absent' if inner == field.default else 'present'}"
        elif hint is bool:
            yield f"{member} = {inner}"
        yield from _shown_by_value(inner, hint, member)


def _shown_by_value(value: object, hint: object, path: str) -> Iterator[str]:
    if isinstance(value, tuple):
        item = next(found for part in alternatives_of(hint) if (found := item_of(part)) is not None)
        for one in value:
            yield from _shown_by_value(one, item, path)
    elif attrs.has(type(value)):
        yield from _shown_by_object(value, _path_of(type(value), path))
    elif any(value in words_of(part) for part in alternatives_of(hint)):
        yield f"{path} = {value}"


# What the ledger makes of a journal, as plain values under names of their own: renaming the code changes none of them.


def ledger_state(content: bytes) -> dict[str, object]:
    """The state that an opening reads from these bytes, before it records anything."""
    loaded = read_journal(content)
    ledger = fold(loaded.records, loaded.breaks, torn_starts=loaded.torn_starts)
    epochs = _epochs_of_queued(loaded.records)
    return {
        "journal": {
            "bytes": loaded.size,
            "records": len(loaded.records),
            "damaged": loaded.damaged,
            "breaks": sorted(loaded.breaks),
            "tail": loaded.tail,
            "next seq": loaded.next_seq,
            "last sum": loaded.last_sum,
        },
        "session": _session(ledger),
        "messages": [_message(said) for said in ledger.said],
        "turns": [
            {
                "id": turn.turn_id,
                "prompt": turn.client_message_id,
                "command": turn.command,
                "aside": turn.prompt.aside,
                "attachments": len(turn.prompt.attachments),
                "attached": _text(turn.attached),
                "cancelled": turn.cancelled,
                "ended": turn.ended.reason if turn.ended else None,
            }
            for turn in ledger.turns.values()
        ],
        "calls": [_call(call) for call in ledger.calls.values()],
        "attempts": [_attempt(attempt) for attempt in ledger.attempts.values()],
        "queue": [
            {
                "prompt": waiting.client_message_id,
                "text": _text(waiting.text),
                "attachments": len(waiting.prompt.attachments),
                "aside": waiting.prompt.aside,
                "epoch": epochs[waiting.client_message_id],
                **({"steers": waiting.steers} if waiting.steers is not None else {}),
            }
            for waiting in ledger.queue.values()
        ],
        "jobs": [{"id": job.job_id, "event": job.event, "reason": job.reason} for job in ledger.jobs.values()],
        "grants": [grant.attempt_id for grant in ledger.grants],
        "refused records": len(ledger.refused),
    }


def _epochs_of_queued(records: Sequence[Stamped]) -> dict[str, str | None]:
    """Client message id of what was queued → the epoch in which it was."""
    found: dict[str, str | None] = {}
    before = Ledger()
    for stamped in records:
        if isinstance(stamped.record, Queue | Steer):
            found.setdefault(stamped.record.client_message_id, before.epoch)
        before.apply(stamped)
    return found


def _session(ledger: Ledger) -> dict[str, object]:
    return {
        "title": _text(ledger.title),
        "title source": ledger.title_source,
        "created": ledger.created,
        "updated": ledger.updated,
        "mode": ledger.mode,
        "model": f"{ledger.model.provider}/{ledger.model.name}",
        "epoch": ledger.epoch,
        "workspace": ledger.session.workspace if ledger.session else None,
        "instructions": _text(ledger.instructions),
        "turns begun": ledger.turns_begun,
        "held back": ledger.held_back,
        "prompts": {name: turn_id for name, (turn_id, _) in ledger.prompts.items()},
        "usage": [[usage.input, usage.output, usage.cost] for usage in ledger.usage],
        "open calls": [call.call_id for call in ledger.open_calls()],
        "uncertain": [attempt.attempt_id for attempt in ledger.uncertain()],
        "open jobs": [job.job_id for job in ledger.open_jobs()],
    }


def _message(said: TranscriptEntry) -> dict[str, object]:
    record = said.record
    found: dict[str, object] = {"at": said.at, "turn": said.turn_id, "id": record.message_id, "from": record.kind}
    if isinstance(record, Assistant):
        found |= {
            "calls": [call.call_id for call in record.calls],
            "reasoning": _text(record.reasoning),
            "finish": record.finish,
            "withdrawn": record.withdrawn,
        }
    return {**found, "text": _text(record.text)}


def _call(call: ToolCall) -> dict[str, object]:
    outcome, reason = outcome_of(call)
    reply = call.reply
    return {
        "id": call.call_id,
        "turn": call.turn_id,
        "tool": call.tool,
        "arguments": _text(call.arguments),
        "attempts": [attempt.attempt_id for attempt in call.attempts],
        "state": call_state(call, LiveState()),
        "outcome": outcome,
        "reason": reason,
        "reply": [_text(reply.text), reply.bytes, reply.truncated] if reply else None,
        "supplied": _text(call.supplied),
        "joint broken": call.broken,
    }


def _attempt(attempt: Attempt) -> dict[str, object]:
    evidence = attempt.started.evidence if attempt.started else ()
    return {
        "id": attempt.attempt_id,
        "call": attempt.call_id,
        "tool": attempt.tool,
        "title": attempt.title,
        "effect": attempt.effect,
        "scope": _scope(attempt.scope),
        "key": [attempt.key, attempt.occurrence],
        "stage": attempt.stage,
        "at": [attempt.at, attempt.started_at, attempt.result_at],
        "evidence": [[one.path, one.before, one.intended] for one in evidence],
        "outcome": attempt.result.outcome if attempt.result else None,
        "files": [[one.change, one.path] for one in attempt.result.files] if attempt.result else [],
        "permission": attempt.permission.answer if attempt.permission else None,
        "inspected": attempt.inspection.state if attempt.inspection else None,
        "check": attempt.check,
        "settled": attempt.settlement.settled if attempt.settlement else None,
        "settled in": attempt.settled_epoch,
        "retry of": attempt.retry_of,
        "restore of": attempt.restore_of,
        **{
            name: True
            for name, holds in (
                ("rejected", attempt.rejected),
                ("joint broken", attempt.broken),
                ("notice recorded", attempt.told),
                ("asked again", attempt.was_repeated),
                ("restorable", attempt.is_restorable),
                ("retriable", attempt.is_retriable),
                ("undoable", attempt.is_undoable),
            )
            if holds
        },
    }


def _scope(scope: Scope) -> object:
    return "everything" if scope.everything else [*scope.paths, *scope.identities]


def _text(text: str | None) -> str | None:
    """The text; a long one as its beginning and the digest of the whole."""
    if text is None or len(text) <= TEXT_LENGTH_MAX:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:40]}… {len(text)} characters, sha256 {digest[:16]}"
