"""The contract of a tool: what the session asks of it, in this order.

    prepare   arguments → a `Planned` call or a refusal. Reads only. Names effect class, scope and title.
    preview   what would happen, for the person: text, diff, and the digests it was made from. Reads only.
    gather    after permission, right before *started*: the evidence for every path, with the content before kept.
              Refused as `changed` if a path is not what the preview showed.
    run       the body; only after *started* is durable [I1]. Its `Done` tells what was observed, never what was meant.

A refusal is a value. An exception out of `run` means that nothing is known: the session answers it by the check.
A tool with an effect gives evidence or offers a `Verifier`, or its uncertain attempts stay unknown for ever (commands).
Deliberately absent: tools that write records or know sessions. The person is reached through `Running.person` alone.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, runtime_checkable

import attrs

from steadyhand.core.identity import Arguments
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import Check, EffectClass, Evidence, FileChange, JobEnd, Scope
from steadyhand.core.views import PlanItem
from steadyhand.ports import Disk, Finished, OpenDocument, Processes, TextFilter

reply_bytes_max = 30_000
"""What of a reply goes to the model; the whole goes to `outputs/`."""
checkpoint_bytes_max = 64 * 1024 * 1024
"""Larger content before is not kept, and the permission says so (row W8)."""
file_bytes_max = 64 * 1024 * 1024
"""Larger files are not edited and are read only in pieces."""


RefusalReason = Literal[
    "bad_arguments",
    "policy",
    "denied",
    "not_answered",
    "recovery_required",
    "changed",
    "unsaved",
    "unsupported",
    "read_only",
    "not_found",
    "too_large",
    "io_error",
]


@attrs.frozen
class Refusal:
    """The call does not run. `reason` is a word of wire.md's states table, `text` a sentence for the model and user."""

    reason: RefusalReason
    text: str
    document: str | None = None  # of `unsaved`: the open document, by the path under which the editor has it


@attrs.frozen
class Ground:
    """Where tools stand: one session's workspace and what they may reach the world through."""

    disk: Disk
    processes: Processes
    root: str | None  # absolute, links resolved; None: no folder is open (row S7)
    state_directory: str  # absolute, links resolved; never a tool's target
    session_folder: str  # absolute; `checkpoints/` and `outputs/` are in it
    document: Callable[[str], OpenDocument | None]  # the open document of an absolute path
    unsaved_paths: Callable[[], Sequence[str]]  # those that may hold what is not on disk, as the editor spells them
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]  # own variables → a child's whole environment (E1)
    text_filter: TextFilter | None = None  # where there is one; what is found never hangs on it


@attrs.frozen
class Preview:
    """What would happen, shown before permission. `seen`: resolved path → digest (None: no file) it was made from."""

    text: str
    diff: str | None = None
    seen: Mapping[str, str | None] = attrs.field(factory=dict)


@attrs.frozen
class Gathered:
    evidence: tuple[Evidence, ...] = ()


@attrs.frozen
class Asked:
    """What came of a question. `answer` None: dismissed or not answered; `asked` false: nobody is there."""

    answer: str | None
    asked: bool = True


@attrs.frozen
class Said:
    """What came of a step, in words for the model. `reason`: a word, where it was not done."""

    done: bool
    text: str
    reason: str | None = None


class Person(Protocol):
    """What a body may do with the person, and what the server knows for them. For tools whose very sense that is."""

    async def ask(self, question: str, options: tuple[str, ...]) -> Asked:
        """Parks the turn; a cancel withdraws the question."""
        ...

    def plan(self, items: tuple[PlanItem, ...]) -> None: ...

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        """The server's own marks at an absolute path (at what is below it too), or all of them; a sentence each."""
        ...

    async def inspect(self, attempt_id: str) -> Said:
        """Look at an uncertain effect; a step of the turn that counts as parked (row B5)."""
        ...

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> Said:
        """Settle one as the model's, on that inspection."""
        ...


class Nobody:
    """The person of a call that is carried out without one."""

    async def ask(self, question: str, options: tuple[str, ...]) -> Asked:
        return Asked(None, asked=False)

    def plan(self, items: tuple[PlanItem, ...]) -> None:
        pass

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        return ()

    async def inspect(self, attempt_id: str) -> Said:
        return Said(False, "Nothing can be inspected here.", "not_found")

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> Said:
        return Said(False, "Nothing can be settled here.", "not_found")


@attrs.frozen
class Shown:
    """The output of a command as the model gets it. `note`: what became of the rest; empty if there is none."""

    text: str
    bytes: int  # of the whole output
    cut: bool
    digest: str | None = None  # of what is kept in `outputs/`
    note: str = ""


@attrs.frozen
class StartedJob:
    job_id: str
    pid: int


@attrs.frozen
class JobLook:
    """A background command as it stands.

    `runs`, `ended`: a job of this process, with what it wrote since the last look; `left`: an earlier process started
    it and it still runs, unheard; `over`: an earlier one did, and it is over; `untold`: that cannot be told here."""

    title: str
    state: Literal["runs", "ended", "left", "over", "untold"]
    news: Shown | None = None
    finished: Finished | None = None
    exit_code: int | None = None
    reason: JobEnd | None = None
    processes: tuple[str, ...] = ()  # "pid command" of each that still runs


class Jobs(Protocol):
    """The background commands of the session."""

    async def start(
        self, command: str, cwd: str, environment: Mapping[str, str], title: str, timeout_s: float | None
    ) -> StartedJob:
        """Start one and record it; OSError if it cannot be started. Not cancelled half-way."""
        ...

    async def look(self, job_id: str, wait_s: float) -> JobLook | None:
        """Look at it when it has ended, `wait_s` from now at the latest; None: there is no such job."""
        ...

    async def stop(self, job_id: str) -> JobLook | None:
        """End it and what it started, and look at it. Not cancelled half-way."""
        ...


class NoJobs:
    """The jobs of a call that is carried out without a session."""

    async def start(
        self, command: str, cwd: str, environment: Mapping[str, str], title: str, timeout_s: float | None
    ) -> StartedJob:
        raise OSError(errno.ENOTSUP, "no background command can be started here")

    async def look(self, job_id: str, wait_s: float) -> JobLook | None:
        return None

    async def stop(self, job_id: str) -> JobLook | None:
        return None


@attrs.frozen
class Running:
    """What a body is given. `cancelled` is looked at directly before the point of no return, in the body's thread."""

    attempt_id: str
    key: str
    session_id: str
    evidence: tuple[Evidence, ...]
    cancelled: Callable[[], bool]
    person: Person = attrs.field(factory=Nobody)
    jobs: Jobs = attrs.field(factory=NoJobs)


@attrs.frozen
class Done:
    """What a body observed. `text` is for the model, bounded by `reply_bytes_max`; `bytes` is of the whole reply."""

    outcome: Literal["returned", "failed", "stopped", "unknown"]
    text: str
    reason: str | None = None
    bytes: int | None = None  # of the whole, where `text` is `truncated`; else those of `text` count
    truncated: bool = False
    output: str | None = None  # digest of the whole reply in `outputs/`
    files: tuple[FileChange, ...] = ()
    check: Check | None = None
    exit_code: int | None = None
    left: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Planned(Protocol):
    """One validated call. Its methods block (disk) and are called in a thread, but `run`, which is async."""

    @property
    def effect(self) -> EffectClass: ...
    @property
    def scope(self) -> Scope: ...
    @property
    def title(self) -> str:
        """Tool and path; for a command only the program's name; ≤ 80 characters."""
        ...

    @property
    def outside(self) -> tuple[str, ...]:
        """Paths that leave the workspace; they need permission in every mode (row E3)."""
        ...

    @property
    def protected(self) -> tuple[str, ...]:
        """Paths that ask in every mode: `.git/`, `.vscode/`, `.env*`, shell start files (row G2)."""
        ...

    @property
    def command(self) -> tuple[str, str] | None:
        """(command, cwd) of a `run_command`, for a grant that holds for this very command."""
        ...

    def preview(self) -> Preview | Refusal: ...

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal: ...

    async def run(self, running: Running) -> Done: ...


class Tool(Protocol):
    """One tool. Stateless; `prepare` blocks (it resolves paths) and is called in a thread."""

    @property
    def name(self) -> str: ...
    @property
    def offer(self) -> ToolOffer: ...
    @property
    def effect(self) -> EffectClass:
        """The class a call of it has at most; a command may turn out to be a read."""
        ...

    def prepare(self, arguments: Arguments, ground: Ground) -> Planned | Refusal: ...


@attrs.frozen
class Verified:
    """What a verifier found out about one intention, by its idempotency key (row F4).

    `present`: that very key is known on the other side, so it happened; `absent`: it is not known there. `fenced`: no
    earlier try can arrive any more. Absence that is not fenced proves nothing."""

    state: Literal["present", "absent", "unknown"]
    fenced: bool
    summary: str  # one sentence for a person


@runtime_checkable
class Verifier(Protocol):
    """What a tool may offer beside `Tool`, for an effect that leaves nothing to check on disk.

    Only such a tool's uncertain attempts can be tried again; its body must carry `Running.key` to where it acts."""

    async def verify(self, evidence: tuple[Evidence, ...], key: str, arguments: Arguments) -> Verified:
        """Ask the other side about the key. Reads only, as far as its effect goes; it may shut out earlier tries.

        `arguments` are the stored ones. Given up after `verify_s_max` (session/verifying.py); an exception is as
        `unknown`."""
        ...
