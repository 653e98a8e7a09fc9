"""Background commands as a person sees and stops them, without the model: in the chat and on the command line (row E5).

What is listed has no end in the journal: it runs in this process, or a crash left it, then with the processes that
carry its mark at this moment. It is ended by that mark with pid and start time, so nobody else's process is meant, and
its end is a `job` record; the model is told by a notice. What it wrote is left for the model's next look.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from steadyhand.core.record import Job, Notice
from steadyhand.core.views import JobState
from steadyhand.ports import Survivor
from steadyhand.session.jobs import left_named_max, stop_job
from steadyhand.session.owner import Owner
from steadyhand.tools.place import one_line

command_chars_max = 80


@attrs.frozen
class ListedJob:
    """`processes`: of one that a crash left; (pid, start time) names each."""

    session_id: str
    job_id: str
    attempt_id: str
    title: str
    state: JobState
    pid: int
    processes: tuple[Survivor, ...] = ()


@attrs.frozen
class StoppedJob:
    """`ended`: nothing of it runs any more."""

    ended: bool
    text: str


async def listed_jobs(owner: Owner) -> tuple[ListedJob, ...]:
    """Every job without an end, oldest first, as it stands now. What a look finds gone is still listed, as untold."""
    return tuple([await _listed(owner, job) for job in owner.ledger.open_jobs()])


async def stop_listed(owner: Owner, job_id: str) -> StoppedJob:
    """End one. Refused: notOwner, journalBroken; an unknown id is a sentence."""
    owner.require_owned()
    known = owner.ledger.jobs.get(job_id)
    if known is None or known.event == "ended":
        return StoppedJob(True, "That background command has ended already." if known else "There is no such job.")
    look = await stop_job(owner, job_id)
    assert look is not None, "the ledger knows it"
    if look.state in ("runs", "left", "untold"):
        why = "whether it still runs cannot be told here" if look.state == "untold" else "it did not end"
        left = f": {', '.join(look.processes)}" if look.processes else ""
        return StoppedJob(False, f"{known.title}: {why}{left}.")
    text = f"The user had the background command “{known.title}” stopped (job {job_id})."
    await owner.append_or_show([Notice(owner.world.ids.new(), text)], barrier=True)
    return StoppedJob(True, f"{known.title}: {'it was gone already' if look.reason == 'gone' else 'stopped'}.")


async def running_on(owner: Owner) -> str | None:
    """What is said of commands that outlive the deletion of their session, which nothing lists afterwards; None: none.

    Where it cannot be told whether one runs, that is said, too."""
    blind = {job_id for job_id, left in owner.left_jobs.items() if left.alive is None}
    listed = [job for job in await listed_jobs(owner) if job.state != "untold" or job.job_id in blind]
    if not listed:
        return None
    return (
        f"Session “{owner.name()}” is deleted, and what it began in the background is listed no more:"
        f" {'; '.join(map(shown_job, listed))}. End it by its process, or let it run."
    )


def shown_jobs(jobs: Sequence[ListedJob]) -> str:
    """A line each."""
    if not jobs:
        return "No background command runs."
    return "\n".join(f"{number}. {shown_job(job)}" for number, job in enumerate(jobs, 1))


def shown_job(job: ListedJob) -> str:
    state = {"runs": "runs", "left": "outlived a crash and runs", "untold": "whether it runs cannot be told"}[job.state]
    named = [f"{one.pid} {one_line(one.command, command_chars_max)}".rstrip() for one in job.processes[:left_named_max]]
    more = f" and {len(job.processes) - left_named_max} more" if len(job.processes) > left_named_max else ""
    return f"{job.job_id[:8]} {job.title}: {state}, process {', '.join(named) or job.pid}{more}, mark {job.attempt_id}"


async def _listed(owner: Owner, job: Job) -> ListedJob:
    bare = ListedJob(owner.session_id, job.job_id, job.attempt_id, job.title, "runs", job.pid)
    if job.job_id in owner.jobs or owner.live.elsewhere:
        return bare
    alive = await owner.world.in_thread(owner.world.processes.survivors, job.attempt_id)
    return attrs.evolve(bare, state="left" if alive else "untold", processes=tuple(alive or ()))
