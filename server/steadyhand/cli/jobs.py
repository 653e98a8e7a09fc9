"""`steadyhand jobs …`: list and end background commands that a crash left, without an editor or a model (row E5).

A session that no process owns is opened as an editor would open it, which records jobs that are gone. A session that
another process owns is only read; `/jobs stop` in its chat stops its jobs.
"""

from __future__ import annotations

from steadyhand.cli.arguments import CommandArguments
from steadyhand.cli.commands import ID_DIGITS_MIN
from steadyhand.cli.terminal import Terminal
from steadyhand.domain.errors import Refused
from steadyhand.session.jobs.listing import ListedJob, job_text, list_jobs, stop_listed_job
from steadyhand.session.service.read_only_view import owner_sentence, read_session
from steadyhand.session.service.registry import SessionRegistry
from steadyhand.session.session import Session
from steadyhand.session.storage import directory


async def jobs(registry: SessionRegistry, flags: CommandArguments, terminal: Terminal) -> int:
    """List jobs, or stop one. `stop` returns 1 if a process of it is still running."""
    found = await _find_jobs(registry)
    if flags.subcommand == "stop":
        return await _stop(found, flags, terminal)
    if flags.is_json:
        terminal.write_json({"jobs": [job for _, listed in found for job in listed]})
        return 0
    lines = [f"{job_text(job)}, {_owner_note(session)}" for session, listed in found for job in listed]
    terminal.write_line("\n".join(lines) if lines else "No background command runs.")
    return 0


async def _stop(found: list[tuple[Session, tuple[ListedJob, ...]]], flags: CommandArguments, terminal: Terminal) -> int:
    given = (flags.id or "").lower()
    if len(given) < ID_DIGITS_MIN:
        raise Refused("notOffered", f"Give at least {ID_DIGITS_MIN} digits of the ID.")
    meant = [(session, job) for session, listed in found for job in listed if job.job_id.startswith(given)]
    if len(meant) != 1:
        which = "No" if not meant else "More than one"
        raise Refused("notOffered", f"{which} background command begins with that ID; see `steadyhand jobs`.")
    session, job = meant[0]
    if (owned := owner_sentence(session)) is not None:
        raise Refused("notOwner", owned)
    stopped = await stop_listed_job(session, job.job_id)
    if flags.is_json:
        terminal.write_json({"jobId": job.job_id, "ended": stopped.ended})
    else:
        terminal.write_line(stopped.text)
    return 0 if stopped.ended else 1


async def _find_jobs(registry: SessionRegistry) -> list[tuple[Session, tuple[ListedJob, ...]]]:
    """Return every session with open jobs, and the jobs; a session that cannot be read is skipped (row S6)."""
    context = registry.context
    found: list[tuple[Session, tuple[ListedJob, ...]]] = []
    for session_id in await context.in_thread(directory.names, context):
        try:
            summary = await context.in_thread(directory.summary, context, session_id)
            if summary is None or not summary.open_jobs:
                continue
            seen = await read_session(registry, session_id)
            session = seen if owner_sentence(seen) else await registry.open_session(session_id)
        except (OSError, Refused):
            continue
        if listed := await list_jobs(session):
            found.append((session, listed))
    return found


def _owner_note(session: Session) -> str:
    return owner_sentence(session) or f"session “{session.name}”"
