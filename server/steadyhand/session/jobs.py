"""Background commands of a session: started, looked at, stopped, ended with it, looked for after a crash (row E5).

A job is no uncertain effect: its start returned, and what its process does is told by `job` records, one when it
started and one when it ended. After a crash the processes that carry its mark are looked for at opening: what is gone
is recorded as ended, what runs is told to the person and can be stopped. Nothing is ended unasked there [I4].
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import attrs

from steadyhand.core.record import Job, JobEnd
from steadyhand.ports import Processes, Survivor
from steadyhand.session.job import LeftJob, RunningJob
from steadyhand.session.kept_output import LOST, kept
from steadyhand.session.owner import Owner
from steadyhand.tools.job_output import JobOutput
from steadyhand.tools.tool import JobLook, Shown, StartedJob

jobs_at_once_max = 16
ended_kept_max = 32
"""Ended jobs whose last output can still be read."""
end_wait_s_max = 10.0
"""How long the end of a job may take to be recorded, once it is asked for."""
left_named_max = 5
"""Processes of one job named in a message."""


@attrs.frozen
class CallJobs:
    """Keeps `tools.tool.Jobs` for one call."""

    owner: Owner
    attempt_id: str
    call_id: str

    async def start(
        self, command: str, cwd: str, environment: Mapping[str, str], title: str, timeout_s: float | None
    ) -> StartedJob:
        owner = self.owner
        if sum(not job.over.is_set() for job in owner.jobs.values()) >= jobs_at_once_max:
            raise OSError(errno.EAGAIN, f"{jobs_at_once_max} background commands of this session run already")
        world, job_id = owner.world, owner.world.ids.new()
        output = JobOutput(world.disk, owner.path, self.attempt_id)
        started = world.processes.start(command, cwd, environment, timeout_s, output.take)
        running = RunningJob(job_id, self.attempt_id, self.call_id, title, started, output)
        owner.jobs[job_id] = running
        world.spawn(partial(_follow, owner, running), f"job {job_id}")
        with anyio.CancelScope(shield=True):
            await owner.append_or_show([_record(running, "started")])
        owner.tell_changes()
        _forget(owner)
        return StartedJob(job_id, started.pid)

    async def look(self, job_id: str, wait_s: float) -> JobLook | None:
        running = self.owner.jobs.get(job_id)
        if running is None:
            return await look_at_earlier(self.owner, job_id)
        with anyio.move_on_after(wait_s):
            await running.over.wait()
        return attrs.evolve(_stands(running), news=running.output.news())

    async def stop(self, job_id: str) -> JobLook | None:
        look = await stop_job(self.owner, job_id)
        running = self.owner.jobs.get(job_id)
        return look if look is None or running is None else attrs.evolve(look, news=running.output.news())


async def stop_job(owner: Owner, job_id: str) -> JobLook | None:
    """End it and what it started, whoever started it, and record that; None: there is no such job. Not cancelled
    half-way. What it wrote is left for the next look."""
    running = owner.jobs.get(job_id)
    if running is not None:
        with anyio.CancelScope(shield=True):
            await _end(running, "stopped")
        return _stands(running)
    with anyio.CancelScope(shield=True):
        look = await _stop_earlier(owner, job_id)
    if look is not None and look.state == "ended":
        owner.left_jobs.pop(job_id, None)
        owner.tell_changes()
    return look


async def end_jobs(owner: Owner) -> None:
    """End every job of the session and wait until that is recorded, bounded (case 98)."""
    async with anyio.create_task_group() as tasks:
        for running in owner.jobs.values():
            tasks.start_soon(_end, running, "closed")


async def look_for_left(owner: Owner) -> None:
    """After an opening: what of earlier jobs still runs is noted in `owner.left_jobs`; what is gone is recorded as
    ended, once. `owner` holds the journal."""
    gone: list[Job] = []
    for job in owner.ledger.open_jobs():
        alive = await owner.world.in_thread(owner.world.processes.survivors, job.attempt_id)
        if alive is None or alive:
            owner.left_jobs[job.job_id] = LeftJob(job, None if alive is None else tuple(alive))
        else:
            gone.append(attrs.evolve(job, event="ended", reason="gone"))
    if gone:
        await owner.append_or_show(gone)


def left_sentence(owner: Owner, left: LeftJob) -> str:
    """What is said of a job that a crash left."""
    job, alive = left.job, left.alive
    if alive is None:
        return f"Whether the background command “{job.title}” still runs cannot be told here."
    pids = ", ".join(str(one.pid) for one in alive[:left_named_max])
    more = f" and {len(alive) - left_named_max} more" if len(alive) > left_named_max else ""
    return (
        f"The background command “{job.title}” of session “{owner.name()}” outlived a crash and still runs: process"
        f" {pids}{more}, mark {job.attempt_id}. Say `/jobs stop {job.job_id}` in its chat to end it, or let it run."
    )


async def _follow(owner: Owner, running: RunningJob) -> None:
    """Hear the job to its end and record it. A cancel ends the job."""
    try:
        running.finished = await running.job.follow()
    finally:
        with anyio.CancelScope(shield=True):
            kept = await owner.world.in_thread(running.output.finish)
            if running.finished is not None and running.finished.timed_out:
                running.ending = "timeout"
            ended = _record(running, "ended")
            if kept is not None:
                ended = attrs.evolve(ended, output=kept.digest)
            await owner.append_or_show([ended])
            running.over.set()
            owner.tell_changes()
            await owner.keep_summary()


async def _end(running: RunningJob, why: JobEnd) -> None:
    if running.over.is_set():
        return
    if running.ending is None:
        running.ending = why
    await running.job.end()
    with anyio.move_on_after(end_wait_s_max):
        await running.over.wait()


def _forget(owner: Owner) -> None:
    """Let the oldest ended jobs go; the ledger still knows that they ended."""
    ended = [job_id for job_id, running in owner.jobs.items() if running.over.is_set()]
    for job_id in ended[: max(0, len(ended) - ended_kept_max)]:
        del owner.jobs[job_id]


def _record(running: RunningJob, event: str) -> Job:
    job = Job(
        running.job_id, running.attempt_id, running.call_id, "started", running.job.pid, running.job.started,
        running.title,
    )  # fmt: skip
    if event == "started":
        return job
    code = running.finished.exit_code if running.finished is not None else None
    return attrs.evolve(job, event="ended", exit_code=code, reason=running.ending)


def _stands(running: RunningJob) -> JobLook:
    if not running.over.is_set():
        return JobLook(running.title, "runs")
    return JobLook(running.title, "ended", None, running.finished, reason=running.ending)


async def look_at_earlier(owner: Owner, job_id: str) -> JobLook | None:
    """A job that this process did not start, or has forgotten."""
    job = owner.ledger.jobs.get(job_id)
    if job is None:
        return None
    if job.event == "ended":
        news = None if job.output is None else await _as_kept(owner, job.output)
        return JobLook(job.title, "ended", news, exit_code=job.exit_code, reason=job.reason)
    return _earlier(job, await owner.world.in_thread(owner.world.processes.survivors, job.attempt_id))


async def _as_kept(owner: Owner, digest: str) -> Shown:
    shown = await kept(owner, digest)
    if shown is None:
        return Shown("", 0, False, note=LOST)
    return attrs.evolve(shown, note=f"this is what it wrote, {shown.bytes} bytes, as it was kept")


async def _stop_earlier(owner: Owner, job_id: str) -> JobLook | None:
    """End what carries its mark, each by its pid and start time."""
    job = owner.ledger.jobs.get(job_id)
    if job is None or job.event == "ended":
        return await look_at_earlier(owner, job_id)
    processes = owner.world.processes
    alive = await owner.world.in_thread(processes.survivors, job.attempt_id)
    if alive:
        await end_each(processes, alive)
    left = await owner.world.in_thread(processes.survivors, job.attempt_id)
    if left is None or left:
        return _earlier(job, left)
    ended = attrs.evolve(job, event="ended", reason="stopped" if alive else "gone")
    await owner.append_or_show([ended], barrier=True)
    return JobLook(job.title, "ended", reason=ended.reason)


async def end_each(processes: Processes, survivors: Sequence[Survivor]) -> int:
    """End these very processes, side by side; how many of them are gone."""
    gone: list[bool] = []

    async def end(one: Survivor) -> None:
        gone.append(await processes.end(one))

    async with anyio.create_task_group() as tasks:
        for one in survivors:
            tasks.start_soon(end, one)
    return sum(gone)


def _earlier(job: Job, alive: Sequence[Survivor] | None) -> JobLook:
    if alive is None:
        return JobLook(job.title, "untold")
    named = tuple(f"{one.pid} {one.command}".rstrip() for one in alive)
    return JobLook(job.title, "left" if alive else "over", processes=named)
