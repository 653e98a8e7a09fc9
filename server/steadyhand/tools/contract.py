"""The contract of a tool. The session calls these steps in this order:

    prepare   arguments → a `Planned` call or a refusal. Reads only. Names effect class, scope and title.
    preview   what would happen, for the user: text, diff, and the digests it was made from. Reads only.
    gather    after permission, directly before *started*: the evidence for every path. The content before is stored.
              Refuses with `changed` if a path is not what the preview showed.
    run       the effect; only after *started* is durable [I1]. `ToolOutcome` states what was observed, never what was
              intended.

A refusal is a value. An exception out of `run` means that nothing is known: the session answers it with a check. A tool
with an effect gives evidence or offers a `Verifier`; otherwise its uncertain attempts stay unknown (commands).
Deliberately absent: tools that write records or know sessions. A tool reaches the user through `CallContext.person`.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments
from steadyhand.domain.records.record import (
    ChangedDuring,
    Check,
    EffectClass,
    Evidence,
    FileChange,
    JobEnd,
    Scope,
    Shown,
)
from steadyhand.domain.settings import SandboxSettings
from steadyhand.domain.views.types import PlanItem
from steadyhand.ports.disk import Disk
from steadyhand.ports.editor import EditAnswer, OpenDocument
from steadyhand.ports.encodings import NO_SOURCES, EncodingSources
from steadyhand.ports.processes import Finished, Processes
from steadyhand.ports.sandbox import Confinement
from steadyhand.ports.system import TextFilter
from steadyhand.tools.prepared_command import PreparedCommand
from steadyhand_values import frozen

REPLY_BYTES_MAX = 30_000
"""At most this much of a reply goes to the model; the whole reply goes to `outputs/`."""
CHECKPOINT_BYTES_MAX = 64 * 1024 * 1024
"""Larger content is not stored before a change, and the question for permission says so (row W8)."""
FILE_BYTES_MAX = 64 * 1024 * 1024
"""Larger files are not edited, and are read only in pieces."""


NOT_CONFINED = SandboxSettings(mode="off")

Contents: TypeAlias = "tuple[bytes, ...]"

RefusalReason = Literal[
    "bad_arguments",
    "policy",
    "denied",
    "not_answered",
    "recovery_required",
    "changed",
    "stale",
    "unsaved",
    "unsupported",
    "read_only",
    "not_found",
    "too_large",
    "io_error",
    "sandbox",
    "encoding",
]


@frozen
class UnsavedDocument:
    """An open document with unsaved changes, and its file against what the editor opened or last saved (row V1)."""

    path: str  # absolute, as the editor has it
    resolved: str  # absolute, after links
    disk: Literal["same", "newer", "gone"]


@frozen
class Refusal:
    """The call does not run. `reason` is a word of the states table in docs/protocol.md, `text` a sentence for model
    and user.
    """

    reason: RefusalReason
    text: str
    document: UnsavedDocument | None = None  # of `unsaved`


@frozen
class OtherFolder:
    """A folder of the client beside the session's own, as it was when the turn began (row S11)."""

    name: str  # as the client calls it; `@name/…` is a path in it
    path: str  # absolute, links resolved, as its file system spells it


@frozen
class ToolContext:
    """What a tool works with: the workspace of one session, and the ports through which it acts.

    The workspace is the session's folder (`root`) and the client's others. Relative paths are those of `root`."""

    disk: Disk
    processes: Processes
    root: str | None  # absolute, links resolved; None: no folder is open (row S7)
    state_directory: str  # absolute, links resolved; never a tool's target
    session_folder: str  # absolute; `checkpoints/` and `outputs/` are in it
    document: Callable[[str], OpenDocument | None]  # the open document of an absolute path
    unsaved_paths: Callable[[], Sequence[str]]  # of documents that may be unsaved, as the editor spells them
    environment: Callable[[Mapping[str, str]], Mapping[str, str]]  # own variables → a child's whole environment (E1)
    open_paths: Callable[[], Sequence[str]] = tuple  # of all open documents, as the editor spells them
    allows_secret: Callable[[str], bool] = lambda path: False  # whether a rule allows to read this secret file
    text_filter: TextFilter | None = None  # None: not available; the result of a search is the same
    sandbox: Callable[[], SandboxSettings] = lambda: NOT_CONFINED
    trusts: Callable[[str], bool] = lambda folder: True  # whether the user trusts this folder of the workspace (row G2)
    others: tuple[OtherFolder, ...] = ()  # none of them is `root`
    own_name: str | None = None  # the client's name of `root`; None where the workspace has no other folder
    window_folders: Callable[[], Sequence[str]] = tuple  # absolute paths of the workspace folders that are open now
    missing: str | None = None  # absolute path of the session's folder if nothing is there; then `root` is None
    applies: Callable[[], bool] = lambda: False  # whether the editor changes open documents on request
    saves: Callable[[], bool] = lambda: False  # whether the editor saves documents on request
    own_folders: tuple[str, ...] = ()  # `Processes.own_folders`; their files ask in every mode (row O4)
    encodings: EncodingSources = NO_SOURCES

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the workspace, the session's first; none where the session has none."""
        return () if self.root is None else (self.root, *(other.path for other in self.others))

    def folder_of(self, path: str) -> str | None:
        """Return the folder of the workspace that an absolute path is in: the session's, else the longest; or None."""
        around = [folder for folder in self.folders if f"{path}/".startswith(f"{folder.rstrip('/')}/")]
        return self.root if self.root in around else max(around, key=len, default=None)

    def is_trusted(self) -> bool:
        """Return whether the user trusts every folder of the workspace (row G2)."""
        return all(map(self.trusts, self.folders))

    def workspace_folders(self) -> tuple[str, ...]:
        """Return every workspace folder, this session's first: the server starts no program that is in one of them."""
        return tuple(dict.fromkeys((*self.folders, *self.window_folders())))


@frozen
class Preview:
    """What would happen, shown before permission. `seen`: resolved path → digest it was made from (None: no file).

    `note`: a clause that the user should know too, unless it is why they are asked."""

    text: str
    diff: str | None = None
    seen: Mapping[str, str | None] = attrs.field(factory=dict)
    note: str | None = None


@frozen
class EvidenceResult:
    """The evidence for every path of a call; of a command, how it is confined."""

    evidence: tuple[Evidence, ...] = ()
    command: PreparedCommand = PreparedCommand()


@frozen
class UserAnswer:
    """The answer to a question. `answer` None: dismissed or not answered; `was_asked` false: there is no user."""

    answer: str | None
    was_asked: bool = True


@frozen
class StepResult:
    """The result of a step, as a sentence for the model. `reason`: a word, if the step was not done."""

    is_done: bool
    text: str
    reason: str | None = None


class UserChannel(Protocol):
    """What a tool may do with the user, and what the server knows for them. Only few tools need it."""

    async def ask(self, question: str, options: tuple[str, ...]) -> UserAnswer:
        """Ask the user and wait; the turn is parked. A cancel withdraws the question."""
        ...

    def show_plan(self, items: tuple[PlanItem, ...]) -> None:
        """Show the model's plan, which replaces the previous one."""
        ...

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        """Return the server's own diagnostics at an absolute path and below it (None: all), one sentence each."""
        ...

    async def inspect(self, attempt_id: str) -> StepResult:
        """Inspect an uncertain effect; the turn counts as parked (row B5)."""
        ...

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> StepResult:
        """Settle an effect in the model's name, on the basis of that inspection."""
        ...


class NoUser:
    """The user channel of a call that runs without a user."""

    async def ask(self, question: str, options: tuple[str, ...]) -> UserAnswer:
        return UserAnswer(None, was_asked=False)

    def show_plan(self, items: tuple[PlanItem, ...]) -> None:
        pass

    def known_problems(self, path: str | None) -> tuple[str, ...]:
        return ()

    async def inspect(self, attempt_id: str) -> StepResult:
        return StepResult(False, "There is no session to inspect.", "not_found")

    async def settle(self, attempt_id: str, inspection_id: str, action: Literal["confirm", "waive"]) -> StepResult:
        return StepResult(False, "There is no session to settle in.", "not_found")


@frozen
class OutputExcerpt:
    """The output of a command as the model gets it. `note`: where the rest is; empty if nothing is missing."""

    text: str
    bytes: int  # of the whole output
    is_cut: bool
    digest: str | None = None  # of what is stored in `outputs/`
    note: str = ""


@frozen
class JobCommand:
    """A background command that is to be started. `ended` is called in a thread when nothing of it runs any more."""

    text: str
    cwd: str
    environment: Mapping[str, str]
    title: str
    timeout_s: float | None  # None: no limit
    confinement: Confinement | None = None
    ended: Callable[[], None] = lambda: None


@frozen
class StartedJob:
    """A background command that was started."""

    job_id: str
    pid: int


@frozen
class JobStatus:
    """The present state of a background command.

    `runs`, `ended`: a job of this process, with the output since the last call. The others were started by an earlier
    process: `left` still runs, and its output is not read; `over` has ended; `untold`: this system cannot say which.
    """

    title: str
    state: Literal["runs", "ended", "left", "over", "untold"]
    new_output: OutputExcerpt | None = None
    finished: Finished | None = None
    exit_code: int | None = None
    reason: JobEnd | None = None
    processes: tuple[str, ...] = ()  # "pid command" of each that still runs
    notes: tuple[str, ...] = ()  # what its sandbox may have to do with its end


class Jobs(Protocol):
    """The background commands of the session."""

    async def start(self, command: JobCommand) -> StartedJob:
        """Start a command and record it. Raises OSError if it cannot be started, SandboxFailed if its sandbox cannot
        be set up. Not interrupted by a cancel."""
        ...

    async def wait_status(self, job_id: str, wait_s: float) -> JobStatus | None:
        """Wait until the job ends, at most `wait_s`, and return its status; None: there is no such job."""
        ...

    async def stop(self, job_id: str) -> JobStatus | None:
        """End the job and what it started, and return its status. Not interrupted by a cancel."""
        ...


class NoJobs:
    """The jobs of a call that runs without a session."""

    async def start(self, command: JobCommand) -> StartedJob:
        raise OSError(errno.ENOTSUP, "no background command can be started without a session")

    async def wait_status(self, job_id: str, wait_s: float) -> JobStatus | None:
        return None

    async def stop(self, job_id: str) -> JobStatus | None:
        return None


class Buffers(Protocol):
    """The open documents of the editor, for a change that goes through it (row V2)."""

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        """Give the document this text if it still has this version. Bounded in time."""
        ...

    async def save(self, path: str, version: int) -> bool:
        """Save the document if it still has this version. False: it is not saved, or nobody knows."""
        ...


class NoBuffers:
    """The open documents of a call that runs without an editor."""

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        return EditAnswer("refused", "there is no editor")

    async def save(self, path: str, version: int) -> bool:
        return False


@frozen
class CallContext:
    """What `run` gets. It must ask `is_cancelled` directly before the point of no return, in the thread of the
    effect: a turn that is stopped, or a session that was taken away, has no effect any more.
    """

    attempt_id: str
    key: str
    session_id: str
    evidence: tuple[Evidence, ...]
    is_cancelled: Callable[[], bool]
    person: UserChannel = attrs.field(factory=NoUser)
    jobs: Jobs = attrs.field(factory=NoJobs)
    command: PreparedCommand = PreparedCommand()
    buffers: Buffers = attrs.field(factory=NoBuffers)


@frozen
class ToolOutcome:
    """What a tool observed. `text` is for the model, at most `REPLY_BYTES_MAX`; `bytes` is the size of the whole
    reply.
    """

    outcome: Literal["returned", "failed", "stopped", "unknown"]
    text: str
    reason: str | None = None
    bytes: int | None = None  # of the whole reply; None: those of `text` count
    is_truncated: bool = False
    output: str | None = None  # digest of the whole reply in `outputs/`
    files: tuple[FileChange, ...] = ()
    check: Check | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    left_processes: tuple[str, ...] = ()
    kept_files: tuple[str, ...] = ()
    during: ChangedDuring | None = None  # files that changed while a command ran
    protected: tuple[str, ...] = ()  # protected names that are new or changed after a confined command
    protected_new: tuple[str, ...] = ()  # of those, the new ones
    shown: tuple[Shown, ...] = ()  # files that the text shows (row V3)
    contents: Contents = ()  # whole contents that the model knows from now on; kept in memory alone


class Planned(Protocol):
    """One validated call. The methods block (disk) and are called in a thread; `run` is async."""

    @property
    def effect(self) -> EffectClass:
        """The effect class of this call."""
        ...

    @property
    def scope(self) -> Scope:
        """What the effect may touch."""
        ...

    @property
    def title(self) -> str:
        """Tool and path; for a command only the program's name; at most 80 characters."""
        ...

    @property
    def outside(self) -> tuple[str, ...]:
        """Paths outside the workspace; they need permission in every mode (row E3)."""
        ...

    @property
    def protected(self) -> tuple[str, ...]:
        """Paths that ask in every mode: `.git/`, `.vscode/`, `.env*`, shell start files (row G2)."""
        ...

    @property
    def command(self) -> tuple[str, str] | None:
        """(command, cwd) of a `run_command`: a grant can allow exactly this command."""
        ...

    def preview(self) -> Preview | Refusal:
        """Return what would happen, or why the call is refused. Reads only."""
        ...

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        """Store the content before and return the evidence, or refuse because a path has changed since the preview."""
        ...

    async def run(self, running: CallContext) -> ToolOutcome:
        """Carry out the effect and return what was observed."""
        ...


class Tool(Protocol):
    """One tool. It is stateless; `prepare` blocks (it resolves paths) and is called in a thread."""

    @property
    def name(self) -> str:
        """The name that the model calls."""
        ...

    @property
    def offer(self) -> ToolOffer:
        """The description that the model gets."""
        ...

    @property
    def effect(self) -> EffectClass:
        """The strongest effect class a call can have; a command may turn out to be a read."""
        ...

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> Planned | Refusal:
        """Validate the arguments and resolve the paths. Reads only."""
        ...


@frozen
class Verified:
    """What a verifier found out about one intention, by its idempotency key (row F4).

    `present`: the other side knows the key, so the effect happened; `absent`: it does not know the key. `is_fenced`: no
    earlier try can arrive any more. Absence that is not fenced proves nothing.
    """

    state: Literal["present", "absent", "unknown"]
    is_fenced: bool
    summary: str  # one sentence for a person


@runtime_checkable
class Verifier(Protocol):
    """What a tool may offer besides `Tool`, for an effect that leaves nothing to check on disk.

    Only the uncertain attempts of such a tool can be tried again. Its `run` must send `CallContext.key` to the other
    side.
    """

    async def verify(self, evidence: tuple[Evidence, ...], key: str, arguments: Arguments) -> Verified:
        """Ask the other side about the key. Reads only, except that it may exclude earlier tries.

        `arguments` are the stored ones. The session stops waiting after `VERIFY_S_MAX` and treats an exception as
        `unknown`.
        """
        ...
