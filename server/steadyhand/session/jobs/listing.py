"""Background commands as the user lists and stops them, in the chat and on the command line (row E5).

A listed job has no end in the journal: it runs in this process, or a crash left it; then the processes that carry its
mark now are listed. A job is ended by mark, pid and start time, so no other program is ended. Its end is a `job`
record, and a notice tells the model. Its output stays for the model's next `look`.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from steadyhand.domain.records.record import Job, Notice
from steadyhand.domain.views.types import JobState
from steadyhand.ports.processes import OrphanProcess
from steadyhand.session.jobs.jobs import LEFT_NAMED_MAX, stop_job
from steadyhand.session.session import Session
from steadyhand.tools.workspace.paths import one_line
from steadyhand_values import frozen

COMMAND_CHARS_MAX = 80

_STATE_TEXT = {"runs": "running", "left": "still running after a crash", "untold": "cannot be checked here"}


@frozen
class ListedJob:
    """`processes`: of one that a crash left; (pid, start time) names each."""

    session_id: str
    job_id: str
    attempt_id: str
    title: str
    state: JobState
    pid: int
    processes: tuple[OrphanProcess, ...] = ()


@frozen
class StoppedJob:
    """`ended`: nothing of it runs any more."""

    ended: bool
    text: str


async def list_jobs(session: Session) -> tuple[ListedJob, ...]:
    """Return every job without an end, oldest first. One whose processes are gone is listed as `untold`."""
    return tuple([await _listed_job(session, job) for job in session.ledger.open_jobs()])


async def stop_listed_job(session: Session, job_id: str) -> StoppedJob:
    """End one. Raise Refused, notOwner or journalBroken; an unknown id is answered by a sentence."""
    session.require_owned()
    known = session.ledger.jobs.get(job_id)
    if known is None or known.event == "ended":
        return StoppedJob(True, "That background command has ended already." if known else "There is no such job.")
    look = await stop_job(session, job_id)
    assert look is not None, "the ledger knows it"
    if look.state in ("runs", "left", "untold"):
        why = "Steadyhand cannot check here whether it still runs" if look.state == "untold" else "it did not end"
        left = f": {', '.join(look.processes)}" if look.processes else ""
        return StoppedJob(False, f"{known.title}: {why}{left}.")
    text = f"The user stopped the background command “{known.title}” (job {job_id})."
    await session.log.append_or_show([Notice(message_id=session.context.ids.new(), text=text)], barrier=True)
    return StoppedJob(True, f"{known.title}: {'it had already ended' if look.reason == 'gone' else 'stopped'}.")


async def outliving_sentence(session: Session) -> str | None:
    """Return a sentence on commands that outlive the deletion of their session; nothing lists them afterwards.

    A job counts, too, where this system cannot tell whether it runs. None: there are none."""
    blind = {job_id for job_id, left in session.jobs.left.items() if left.alive is None}
    listed = [job for job in await list_jobs(session) if job.state != "untold" or job.job_id in blind]
    if not listed:
        return None
    return (
        f"Session “{session.name}” is deleted, and its background commands are no longer listed:"
        f" {'; '.join(map(job_text, listed))}. End each by its process ID, or let it run."
    )


def jobs_text(jobs: Sequence[ListedJob]) -> str:
    """Return a line for each."""
    if not jobs:
        return "No background command runs."
    return "\n".join(f"{number}. {job_text(job)}" for number, job in enumerate(jobs, 1))


def job_text(job: ListedJob) -> str:
    """Return one job for reading."""
    state = _STATE_TEXT[job.state]
    named = [f"{one.pid} {one_line(one.command, COMMAND_CHARS_MAX)}".rstrip() for one in job.processes[:LEFT_NAMED_MAX]]
    more = f" and {len(job.processes) - LEFT_NAMED_MAX} more" if len(job.processes) > LEFT_NAMED_MAX else ""
    return f"{job.job_id[:8]} {job.title}: {state}, process {', '.join(named) or job.pid}{more}, mark {job.attempt_id}"


async def _listed_job(session: Session, job: Job) -> ListedJob:
    bare = ListedJob(session.session_id, job.job_id, job.attempt_id, job.title, "runs", job.pid)
    if job.job_id in session.jobs.running or session.live.elsewhere:
        return bare
    alive = await session.context.in_thread(session.context.processes.survivors, job.attempt_id)
    return attrs.evolve(bare, state="left" if alive else "untold", processes=tuple(alive or ()))
