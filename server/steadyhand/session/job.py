"""One background command: of this process, with what it wrote and how it ended; or left by a crash, as it was found."""

from __future__ import annotations

import anyio
import attrs

from steadyhand.core import record
from steadyhand.core.record import JobEnd
from steadyhand.ports import Finished, Job, Survivor
from steadyhand.tools.job_output import JobOutput


@attrs.define(eq=False)
class RunningJob:
    """`over` is set when its end is recorded; `finished` None then: what followed it failed."""

    job_id: str
    attempt_id: str
    call_id: str
    title: str
    job: Job
    output: JobOutput
    over: anyio.Event = attrs.field(factory=anyio.Event)
    finished: Finished | None = None
    ending: JobEnd | None = None  # why we end it; None: nobody does


@attrs.frozen
class LeftJob:
    """`alive`: the processes that carry its mark; None: it cannot be told here."""

    job: record.Job
    alive: tuple[Survivor, ...] | None
