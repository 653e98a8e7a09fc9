"""Background commands of a session: start, watch, stop, end with the session, find after a crash (row E5).

A job is no uncertain effect: its start returned, and `job` records say what its process does, one when it started and
one when it ended. After a crash, opening looks for processes that carry its mark: a job that is gone is recorded as
ended, one that runs is reported to the user and can be stopped. Nothing is ended unasked there [I4].
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from functools import partial

import anyio
import attrs

from steadyhand.domain.records.record import Job, JobEnd
from steadyhand.ports.processes import OrphanProcess, Processes
from steadyhand.session.job import LeftCommand, LeftJob, RunningJob
from steadyhand.session.jobs.stored_output import LOST, read_stored_output
from steadyhand.session.session import Session
from steadyhand.tools.commands.job_output import JobOutput
from steadyhand.tools.commands.sandbox_hints import SandboxHints
from steadyhand.tools.contract import JobCommand, JobStatus, OutputExcerpt, StartedJob
from steadyhand_values import frozen

JOBS_AT_ONCE_MAX = 16
ENDED_KEPT_MAX = 32
"""Ended jobs whose last output can still be read."""
END_WAIT_S_MAX = 10.0
"""How long the end of a job may take to be recorded, once it is asked for."""
LEFT_NAMED_MAX = 5
"""Processes of one job named in a message."""


@frozen
class CallJobs:
    """Implements `tools.contract.Jobs` for one call."""

    session: Session
    attempt_id: str
    call_id: str

    async def start(self, command: JobCommand) -> StartedJob:
        """Start a background command. OSError if it cannot be started or too many run."""
        session = self.session
        if sum(not job.over.is_set() for job in session.jobs.running.values()) >= JOBS_AT_ONCE_MAX:
            raise OSError(errno.EAGAIN, f"{JOBS_AT_ONCE_MAX} background commands of this session are already running")
        context, job_id = session.context, session.context.ids.new()
        output = JobOutput(context.disk, session.path, self.attempt_id)
        hints = SandboxHints(command.text, command.confinement)

        def add(piece: bytes) -> None:
            output.add(piece)
            hints.add(piece)

        started = context.processes.start(
            command.text,
            command.cwd,
            command.environment,
            command.timeout_s,
            add,
            confinement=command.confinement,
        )
        if command.confinement is not None:
            with anyio.CancelScope(shield=True):
                await started.ready()
        running = RunningJob(
            job_id, self.attempt_id, self.call_id, command.title, started, output, clear=command.ended, hints=hints
        )
        session.jobs.add(running)
        context.spawn(partial(_follow, session, running), f"job {job_id}")
        with anyio.CancelScope(shield=True):
            await session.log.append_or_show([_job_record(running, "started")])
        session.feed.notify_changes()
        _forget_oldest(session)
        return StartedJob(job_id, started.pid)

    async def wait_status(self, job_id: str, wait_s: float) -> JobStatus | None:
        """Return how a job is, with its new output, after it ended or after `wait_s`. None: there is no such job."""
        running = self.session.jobs.running.get(job_id)
        if running is None:
            return await check_earlier_job(self.session, job_id)
        with anyio.move_on_after(wait_s):
            await running.over.wait()
        return attrs.evolve(_status_of(running), new_output=running.output.take_new_output())

    async def stop(self, job_id: str) -> JobStatus | None:
        """End a job and return how it is, with its new output. None: there is no such job."""
        look = await stop_job(self.session, job_id)
        running = self.session.jobs.running.get(job_id)
        if look is None or running is None:
            return look
        return attrs.evolve(look, new_output=running.output.take_new_output())


async def stop_job(session: Session, job_id: str) -> JobStatus | None:
    """End a job with its children and record that. None: there is no such job.

    It is not cancelled half-way. Its output stays for the next `look`."""
    running = session.jobs.running.get(job_id)
    if running is not None:
        with anyio.CancelScope(shield=True):
            await _end(running, "stopped")
        return _status_of(running)
    with anyio.CancelScope(shield=True):
        look = await _stop_earlier(session, job_id)
    if look is not None and look.state == "ended":
        session.jobs.forget_left(job_id)
        session.feed.notify_changes()
    return look


async def end_jobs(session: Session) -> None:
    """End every job of the session and wait until that is recorded, bounded (case 98)."""
    async with anyio.create_task_group() as tasks:
        for running in session.jobs.running.values():
            tasks.start_soon(_end, running, "closed")


async def find_left_jobs(session: Session) -> None:
    """After opening an owned session: note earlier jobs that may still run in `session.jobs.left`; record the others as
    ended, once."""
    gone: list[Job] = []
    for job in session.ledger.open_jobs():
        alive = await session.context.in_thread(session.context.processes.survivors, job.attempt_id)
        if alive is None or alive:
            session.jobs.add_left(LeftJob(job, None if alive is None else tuple(alive)))
        else:
            gone.append(attrs.evolve(job, event="ended", reason="gone"))
    if gone:
        await session.log.append_or_show(gone)


async def find_left_commands(session: Session) -> None:
    """After opening an owned session: note uncertain commands of the foreground whose processes still run (case 121).

    Where this system cannot tell, nothing is noted; an inspection says so."""
    found: list[LeftCommand] = []
    for attempt in session.ledger.uncertain():
        if attempt.effect == "writes_files":
            continue
        alive = await session.context.in_thread(session.context.processes.survivors, attempt.attempt_id)
        if alive:
            found.append(LeftCommand(attempt.attempt_id, attempt.title, tuple(alive)))
    session.jobs.keep_left_commands(tuple(found))


def left_command_sentence(session: Session, left: LeftCommand) -> str:
    """Return the sentence that reports a command of the foreground that a crash left running."""
    return (
        f"The command “{left.title}” of session “{session.name}” outlived a crash and still runs:"
        f" {_processes_text(left.alive)}, mark {left.attempt_id}. Inspect its uncertain effect to end it, or say"
        " `/recovery` in its chat."
    )


def left_sentence(session: Session, left: LeftJob) -> str:
    """Return the sentence that reports a job that a crash left."""
    job, alive = left.job, left.alive
    if alive is None:
        return f"Steadyhand cannot check here whether the background command “{job.title}” still runs."
    return (
        f"The background command “{job.title}” of session “{session.name}” outlived a crash and still runs:"
        f" {_processes_text(alive)}, mark {job.attempt_id}. Say `/jobs stop {job.job_id}` in its chat to end it, or let"
        " it run."
    )


def _processes_text(alive: Sequence[OrphanProcess]) -> str:
    more = f" and {len(alive) - LEFT_NAMED_MAX} more" if len(alive) > LEFT_NAMED_MAX else ""
    return f"process {', '.join(str(one.pid) for one in alive[:LEFT_NAMED_MAX])}{more}"


async def _follow(session: Session, running: RunningJob) -> None:
    """Follow the job to its end and record the end. A cancel ends the job."""
    try:
        running.finished = await running.job.follow()
    finally:
        with anyio.CancelScope(shield=True):
            kept = await session.context.in_thread(running.output.finish)
            await session.context.in_thread(running.clear)
            if running.finished is not None and running.finished.timed_out:
                running.ending = "timeout"
            ended = _job_record(running, "ended")
            if kept is not None:
                ended = attrs.evolve(ended, output=kept.digest)
            await session.log.append_or_show([ended])
            running.over.set()
            session.feed.notify_changes()
            await session.log.keep_summary()


async def _end(running: RunningJob, why: JobEnd) -> None:
    if running.over.is_set():
        return
    if running.ending is None:
        running.ending = why
    await running.job.end()
    with anyio.move_on_after(END_WAIT_S_MAX):
        await running.over.wait()


def _forget_oldest(session: Session) -> None:
    """Forget the oldest ended jobs; the ledger still knows that they ended."""
    ended = [job_id for job_id, running in session.jobs.running.items() if running.over.is_set()]
    for job_id in ended[: max(0, len(ended) - ENDED_KEPT_MAX)]:
        session.jobs.forget(job_id)


def _job_record(running: RunningJob, event: str) -> Job:
    job = Job(
        job_id=running.job_id,
        attempt_id=running.attempt_id,
        call_id=running.call_id,
        event="started",
        pid=running.job.pid,
        started=running.job.started,
        title=running.title,
    )
    if event == "started":
        return job
    code = running.finished.exit_code if running.finished is not None else None
    return attrs.evolve(job, event="ended", exit_code=code, reason=running.ending)


def _status_of(running: RunningJob) -> JobStatus:
    if not running.over.is_set():
        return JobStatus(running.title, "runs")
    notes = () if running.finished is None else running.hints.notes(running.finished)
    return JobStatus(running.title, "ended", None, running.finished, reason=running.ending, notes=notes)


async def check_earlier_job(session: Session, job_id: str) -> JobStatus | None:
    """Return how a job is that this process did not start, or has forgotten."""
    job = session.ledger.jobs.get(job_id)
    if job is None:
        return None
    if job.event == "ended":
        news = None if job.output is None else await _stored_excerpt(session, job.output)
        return JobStatus(job.title, "ended", news, exit_code=job.exit_code, reason=job.reason)
    return _status_of_earlier(job, await session.context.in_thread(session.context.processes.survivors, job.attempt_id))


async def _stored_excerpt(session: Session, digest: str) -> OutputExcerpt:
    shown = await read_stored_output(session, digest)
    if shown is None:
        return OutputExcerpt("", 0, False, note=LOST)
    return attrs.evolve(shown, note=f"this is its stored output, {shown.bytes} bytes")


async def _stop_earlier(session: Session, job_id: str) -> JobStatus | None:
    """End the processes that carry its mark, each by its pid and start time."""
    job = session.ledger.jobs.get(job_id)
    if job is None or job.event == "ended":
        return await check_earlier_job(session, job_id)
    processes = session.context.processes
    alive = await session.context.in_thread(processes.survivors, job.attempt_id)
    if alive:
        await end_each(processes, alive)
    left = await session.context.in_thread(processes.survivors, job.attempt_id)
    if left is None or left:
        return _status_of_earlier(job, left)
    ended = attrs.evolve(job, event="ended", reason="stopped" if alive else "gone")
    await session.log.append_or_show([ended], barrier=True)
    return JobStatus(job.title, "ended", reason=ended.reason)


async def end_each(processes: Processes, survivors: Sequence[OrphanProcess]) -> int:
    """End these processes at the same time; return how many of them are gone."""
    gone: list[bool] = []

    async def end(one: OrphanProcess) -> None:
        gone.append(await processes.end(one))

    async with anyio.create_task_group() as tasks:
        for one in survivors:
            tasks.start_soon(end, one)
    return sum(gone)


def _status_of_earlier(job: Job, alive: Sequence[OrphanProcess] | None) -> JobStatus:
    if alive is None:
        return JobStatus(job.title, "untold")
    named = tuple(f"{one.pid} {one.command}".rstrip() for one in alive)
    return JobStatus(job.title, "left" if alive else "over", processes=named)
