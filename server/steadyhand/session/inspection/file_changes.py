"""What every session did to files, and what the files have now: the input of a path's chain (row V5).

The open sessions of this process are read from their ledgers, all others of the state directory from their journals. A
journal that did not grow since it was read is not read again. One that cannot be read tells nothing: what it did counts
as somebody else's change, so it is spared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from steadyhand.domain.changes.chain import Chain, SessionChanges, chain_of, changes_of
from steadyhand.domain.errors import Refused
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.recovery.postcondition import Absent, Now, Present
from steadyhand.journal.journal import JOURNAL, load
from steadyhand.session.context import SessionContext
from steadyhand.session.session import Session
from steadyhand.session.storage import directory
from steadyhand.session.storage.loaded_ledger import ledger_of
from steadyhand.tools.contract import ToolContext
from steadyhand.tools.writes.postcondition_check import read_path


async def read_changes(session: Session) -> list[SessionChanges]:
    """Return the changes of every session of the state directory, this one's first. Raise Refused if it is unusable."""
    context, owned = session.context, _owned(session)
    here = frozenset(one.session_id for one in owned)
    context.file_changes = await context.in_thread(_read_closed, context, here, dict(context.file_changes))
    own = [changes_of(one.session_id, one.ledger.file_events) for one in owned]
    return [*own, *(changes for _, changes in context.file_changes.values())]


def closed_author(session: Session) -> Callable[[str, str | None], str | None]:
    """Return what finds the session that is not open here and last gave a path its content, by (path, digest).

    It returns the session's id, or None, and reads the journals of all such sessions: it blocks."""
    return partial(_find_author, session.context, frozenset(one.session_id for one in _owned(session)))


async def read_present(session: Session, links: Mapping[str, Evidence]) -> dict[str, Now]:
    """Return what each path has now. `links`: absolute path → evidence of some attempt on it."""
    return await session.context.in_thread(_read_present, session.tool_context, links)


def chains_of(paths: Iterable[str], sessions: Sequence[SessionChanges], present: Mapping[str, Now]) -> dict[str, Chain]:
    """Return the chain of each path. What cannot be read is nobody's."""
    found: dict[str, Chain] = {}
    for path in paths:
        now = present[path]
        if isinstance(now, Present | Absent):
            found[path] = chain_of(path, sessions, now.digest if isinstance(now, Present) else None)
        else:
            found[path] = Chain(path)
    return found


def _owned(session: Session) -> list[Session]:
    return [one for one in session.neighbours() if one is session or one.epoch is not None]


def _find_author(context: SessionContext, here: frozenset[str], path: str, digest: str | None) -> str | None:
    """Of several sessions, the one whose journal was written last."""
    with suppress(Refused):
        context.file_changes = _read_closed(context, here, dict(context.file_changes))
        found = [
            (modified_ns, session_id)
            for session_id, ((_, modified_ns), changes) in context.file_changes.items()
            if (links := changes.links.get(path)) and links[-1].after == digest
        ]
        return max(found)[1] if found else None
    return None


def _read_present(tool_context: ToolContext, links: Mapping[str, Evidence]) -> dict[str, Now]:
    return {path: read_path(tool_context, evidence) for path, evidence in links.items()}


def _read_closed(
    context: SessionContext, here: frozenset[str], known: Mapping[str, tuple[tuple[int, int], SessionChanges]]
) -> dict[str, tuple[tuple[int, int], SessionChanges]]:
    """Return the changes of the sessions that are not open here, each with the size and time of its journal. Blocks."""
    found: dict[str, tuple[tuple[int, int], SessionChanges]] = {}
    for session_id in directory.names(context):
        if session_id in here:
            continue
        with suppress(OSError, Refused):
            folder = context.private_state.open_session(session_id)
            try:
                context.private_state.check_session(folder, session_id)
                look = context.disk.look(folder, JOURNAL)
                if look is None:
                    continue
                stamp = (look.size, look.modified_ns)
                if session_id in known and known[session_id][0] == stamp:
                    found[session_id] = known[session_id]
                else:
                    events = ledger_of(load(context.disk, folder)).file_events
                    found[session_id] = (stamp, changes_of(session_id, events))
            finally:
                context.disk.close(folder)
    return found
