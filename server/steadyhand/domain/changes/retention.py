"""Which stored contents of a session nobody needs any more: the rule of row K6 over its ledger.

A content is removed when every turn that refers to it is older than a time and is not among the newest ones. It stays
while an effect needs it that is unresolved, shown as settled, restorable or not reviewed. A content that no readable
record refers to stays too, because nobody can tell what it is for. What goes to a model is in the journal itself, and a
fork has its own copies, so neither needs a stored content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steadyhand.domain.changes.chain import Link, changes_of
from steadyhand.domain.changes.review import is_reviewed
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand_values import frozen, pattern

TURNS_KEPT = 200
"""The newest turns of a session, slash commands and quick questions not counted, keep what they refer to."""
_TIME = pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@frozen
class Unneeded:
    """Digests of contents that may be removed, by store."""

    checkpoints: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()


def unneeded_contents(ledger: Ledger, before: str, turns_kept: int) -> Unneeded:
    """Return what only turns refer to that began before a time (RFC 3339, UTC, milliseconds) and are not the newest."""
    old = frozenset(_old_turns(ledger, before, turns_kept))
    if not old:
        return Unneeded()
    stored, kept = set[str](), set(_kept_under_review(ledger))
    needed = frozenset(_needed_attempts(ledger))
    for attempt in ledger.attempts.values():
        stored |= set(_checkpoints(attempt))
        if not _is_old(attempt, old, before) or attempt.attempt_id in needed:
            kept |= set(_contents(attempt))
    replies, used = set[str](), set[str]()
    for digest, turn_id in _outputs(ledger):
        (replies if turn_id in old else used).add(digest)
    return Unneeded(frozenset(stored - kept), frozenset(replies - used))


def _old_turns(ledger: Ledger, before: str, turns_kept: int) -> Iterator[str]:
    turns = list(ledger.turns.values())
    prompts = [at for at, turn in enumerate(turns) if turn.is_in_history]
    if len(prompts) <= turns_kept:
        return
    for turn in turns[: prompts[-turns_kept]]:
        if _is_before(turn.at, before):
            yield turn.turn_id


def _is_old(attempt: Attempt, old: frozenset[str], before: str) -> bool:
    """Whether it is of an old turn and started then: a restore belongs to the turn of what it undoes."""
    return attempt.turn_id in old and _is_before(attempt.started_at or attempt.at, before)


def _is_before(at: str, before: str) -> bool:
    return _TIME.fullmatch(at) is not None and at < before


def _needed_attempts(ledger: Ledger) -> Iterator[str]:
    for attempt in ledger.attempts.values():
        is_shown = attempt.settled_epoch is not None and attempt.settled_epoch == ledger.epoch
        if attempt.open or attempt.uncertain or is_shown or attempt.stage == "checked" or attempt.is_undoable:
            yield attempt.attempt_id
    for links in _under_review(ledger):
        yield from (link.attempt_id for link in links)


def _under_review(ledger: Ledger) -> Iterator[Sequence[Link]]:
    """Yield the links of each path on which something was neither kept nor taken back."""
    for links in changes_of("", ledger.file_events).links.values():
        if not is_reviewed("", links):
            yield links


def _kept_under_review(ledger: Ledger) -> Iterator[str]:
    for links in _under_review(ledger):
        yield from (link.kept.base for link in links if link.kept is not None and link.kept.base is not None)


def _checkpoints(attempt: Attempt) -> Iterator[str]:
    """Yield the digests that it stored a content under."""
    for evidence in attempt.started.evidence if attempt.started is not None else ():
        if evidence.checkpoint is not None:
            yield evidence.checkpoint
        if evidence.buffer is not None and evidence.buffer.checkpoint is not None:
            yield evidence.buffer.checkpoint


def _contents(attempt: Attempt) -> Iterator[str]:
    """Yield the digests of every content that its records name."""
    yield from _checkpoints(attempt)
    for evidence in attempt.started.evidence if attempt.started is not None else ():
        buffer = evidence.buffer
        named = (evidence.before, evidence.intended, *((buffer.before, buffer.intended) if buffer is not None else ()))
        yield from (digest for digest in named if digest is not None)
    review = attempt.review_of
    if review is not None and review.base is not None:
        yield review.base
    if review is not None and review.spared is not None:
        yield from (review.spared.before, review.spared.after)


def _outputs(ledger: Ledger) -> Iterable[tuple[str, str]]:
    """Yield digest and turn of each whole reply, and of each output of a background command."""
    for call in ledger.calls.values():
        if call.reply is not None and call.reply.output is not None:
            yield call.reply.output, call.turn_id
    for job in ledger.jobs.values():
        if job.output is not None:
            attempt = ledger.attempts.get(job.attempt_id)
            yield job.output, attempt.turn_id if attempt is not None else ""
