"""Background commands of a session in a test: start one, ask its tools, read what the journal has of it."""

from __future__ import annotations

from steadyhand.domain.records.record import Job
from steadyhand.domain.views.render import answer_text
from steadyhand.session.session import Session
from tests.support.fakes import FakeProcesses, Script
from tests.support.in_process_server import InProcessServer
from tests.support.model import asks, call, run
from tests.support.session_state import on_disk, replies

ID = "0" * 31 + "1"


def hanging_processes(*output: bytes) -> FakeProcesses:
    """Every command writes this output and runs until it is ended."""
    return FakeProcesses(otherwise=Script(output=output, hangs=True))


async def start_job(stage: InProcessServer, command: str = "serve", **more: object) -> tuple[Session, str]:
    """A session with a job in it: (session, job id)."""
    stage.model.answers.insert(0, asks(run(command, background=True, **more)))
    session = await stage.session("auto")
    await stage.say(session)
    (job_id,) = session.ledger.jobs
    return session, job_id


async def call_job_tool(stage: InProcessServer, session: Session, tool: str, job_id: str, **more: object) -> str:
    """The reply to one call of the tool."""
    stage.model.answers.insert(0, asks(call(tool, jobId=job_id, **more)))
    await stage.say(session)
    return replies(session)[-1]


async def slash_answer(stage: InProcessServer, session: Session, line: str) -> str:
    """The answer to a slash command."""
    turn_id = (await stage.send(session, line)).turn_id
    await stage.ended(session, turn_id)
    return answer_text(session.ledger, turn_id)


def job_events(session: Session) -> list[tuple[str, str | None]]:
    return [(record.event, record.reason) for record in on_disk(session) if isinstance(record, Job)]
