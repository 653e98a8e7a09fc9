"""Fork: a new session with the history of another one, up to and including a turn (row S3).

The origin is only read, whoever owns it: from memory where this process owns it, else from its files without its lock.
What is unresolved there is named in the fork, and `origin_doubts` reads it again before each effect. Nothing else of
the origin's work comes along: no permission, no attempt, no queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.errors import Refused, invalid_params
from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.model.copied_history import copied_history
from steadyhand.domain.records.record import Epoch, Mode, Origin, Record, SessionHeader, TitleSource
from steadyhand.domain.views.types import ReadOnly, SessionView
from steadyhand.journal.journal import load
from steadyhand.session.context import SessionContext
from steadyhand.session.private_state import UnsafeSession
from steadyhand.session.recovery.open import open_read_only
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.service.session_settings import TITLE_CHARS_MAX, clean_title
from steadyhand.session.storage import directory
from steadyhand.session.storage.forked import FORK_BYTES_MAX, ForkTooLarge, try_to_write, write_fork
from steadyhand.session.storage.state_directory import refusal_of
from steadyhand_values import frozen

STRICTEST_FIRST: tuple[Mode, ...] = ("plan", "ask", "edits", "auto")
SUFFIX = " (fork)"
ONLY_READ = ReadOnly("disk", "It is only read.")


@frozen
class _Source:
    """The origin as it was read. `running`: its turns that run somewhere."""

    ledger: Ledger
    running: frozenset[str]


async def fork(registry: SessionRegistry, session_id: str, turn_id: str | None, title: str | None) -> SessionView:
    """Make the fork, open it and return it. `turn_id` None: the whole history.

    Raise Refused in this order: params, unknownSession, journalBroken, no such turn."""
    wanted = clean_title(title or "")
    context = registry.context
    if not await context.in_thread(directory.exists, context, session_id):
        raise Refused("unknownSession", "There is no such session.")
    source = await _read_source(registry, session_id)
    if turn_id is not None and (turn_id in source.running or not source.ledger.has_conversation_of(turn_id)):
        await context.in_thread(_require_writable, context)
        raise invalid_params("$.turnId", "no such turn, or it was rewound or still runs")
    new_id = context.ids.new()
    copied = copied_history(source.ledger, turn_id, source.running)
    header, epoch = _first_records(context, source.ledger, new_id, wanted)
    first = (header, epoch, *_origins(source.ledger, session_id, turn_id))
    try:
        await context.in_thread(write_fork, context, session_id, new_id, epoch, first, copied)
    except ForkTooLarge as large:
        text = f"the history up to there has more than {FORK_BYTES_MAX >> 20} MiB; name an earlier turn"
        raise invalid_params("$.turnId", text) from large
    except OSError as error:
        raise await context.in_thread(refusal_of, context, error) from error
    return (await registry.open_session(new_id)).view()


async def _read_source(registry: SessionRegistry, session_id: str) -> _Source:
    """Return the origin's history. Raise Refused, journalBroken, if it cannot be read."""
    live = registry.sessions.get(session_id)
    if live is not None and live.can_record:
        running = {live.turn.turn_id} if live.turn is not None else set[str]()
        return _Source(live.ledger, frozenset(running | live.side_turns))
    return await registry.context.in_thread(_read_files, registry.context, session_id, registry.reading_tools)


def _read_files(context: SessionContext, session_id: str, reading_tools: frozenset[str]) -> _Source:
    """Read a session that this process does not own. Blocks."""
    free = directory.is_free(context, session_id)
    try:
        folder = context.private_state.open_session(session_id)
        try:
            context.private_state.check_session(folder, session_id)
            loaded = load(context.disk, folder)
        finally:
            context.disk.close(folder)
    except UnsafeSession:
        raise
    except OSError as error:
        raise _unreadable("disk", f"its journal cannot be read ({error.strerror or error})") from error
    if loaded.newer:
        raise _unreadable("newer", "a newer version of Steadyhand wrote it")
    free = free and directory.is_free(context, session_id)
    ledger = open_read_only(loaded, reading_tools, context.ids, ONLY_READ, classified=free).ledger
    if ledger.session is None or ledger.session.session_id != session_id:
        raise _unreadable("damaged", "the first record of its journal is damaged, or is that of another session")
    running = () if free else (one for one in ledger.turns.values() if one.ended is None and one.epoch == ledger.epoch)
    return _Source(ledger, frozenset(one.turn_id for one in running))


def _require_writable(context: SessionContext) -> None:
    """Raise Refused, journalBroken, if no fork can be written. Blocks."""
    try:
        try_to_write(context)
    except OSError as error:
        raise refusal_of(context, error) from error


def _unreadable(reason: str, why: str) -> Refused:
    text = f"The session cannot be forked, because {why}."
    return Refused("journalBroken", text, {"readOnly": {"reason": reason, "text": text}})


def _first_records(context: SessionContext, origin: Ledger, session_id: str, title: str) -> tuple[SessionHeader, Epoch]:
    pid, host, boot = context.processes.here()
    source: TitleSource = "user" if title else "auto" if origin.title else "none"
    made = f"{origin.title[: TITLE_CHARS_MAX - len(SUFFIX)]}{SUFFIX}" if origin.title else ""
    return (
        SessionHeader(
            session_id=session_id,
            mode=min(origin.mode, context.settings.mode, key=STRICTEST_FIRST.index),
            model=origin.model,
            created_by=context.version,
            workspace=origin.workspace,
            title=title or made or None,
            title_source=source,
        ),
        Epoch(epoch=context.ids.new(), pid=pid, host=host, boot=boot),
    )


def _origins(origin: Ledger, session_id: str, turn_id: str | None) -> Sequence[Record]:
    """Return what names the origin, and what that one was forked from, if something was unresolved there."""
    own = Origin(session_id=session_id, turn_id=turn_id, attempts=tuple(one.attempt_id for one in origin.uncertain()))
    return (own, *(one for one in origin.origins if one.attempts))
