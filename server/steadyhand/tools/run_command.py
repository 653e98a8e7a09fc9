"""`run_command {command, cwd?, timeoutMs?, background?}`: one shell command, run to its end (rows B2, C6, E1, E5, J12).

It may do anything, so it is opaque and touches everything; only what `core.reading_commands` knows, whose paths stay in
the workspace, is a reading. What its process left running is ended and named; that it ended is its result, whatever its
exit code. A timeout or a cancel is `stopped`, and `unknown` where something of it could not be ended (but a reading
leaves no doubt: it is `stopped`). A cancel is not raised out of `run`: what it ended is a fact, and is returned; the
cancel is delivered at the caller's next checkpoint. In the background it has returned once it is spawned: what runs on
is a job of the session, and never a reading.

Both outputs are one stream. Its beginning and end go to the model; what does not fit goes to `outputs/` as it comes,
so that memory stays bounded (case 65).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import anyio
import anyio.to_thread
import attrs

from steadyhand.core.environment import attempt_mark_name, idempotency_key_name, session_name
from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.reading_commands import READING_ENVIRONMENT
from steadyhand.core.record import EffectClass, Scope
from steadyhand.core.scope import EVERYTHING, NOTHING
from steadyhand.ports import Finished
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import title_chars_max
from steadyhand.tools.output import Output
from steadyhand.tools.place import Located, display, locate, one_line
from steadyhand.tools.reads_only import only_reads
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running, Shown

timeout_ms_default = 120_000
timeout_ms_max = 600_000
command_bytes_max = 64 * 1024
left_told_max = 20
"""Processes named in the reply."""
process_chars_max = 120
"""Of one of them."""


class RunCommand:
    """The tool; see `tool.Tool`."""

    name = "run_command"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "Run one shell command in the workspace and wait for its end. Its standard and error output come back as one"
        " text, the exit code after it. It has no input. What it leaves running is ended with it. Long output is cut in"
        " the middle. With `background` it returns at once with a job id for command_output and stop_command; the job"
        " is ended with the session.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "For the shell."},
                    "cwd": {"type": "string", "description": "The folder it runs in; the workspace if left out."},
                    "timeoutMs": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": timeout_ms_max,
                        "description": f"It is ended after so many milliseconds; {timeout_ms_default} if left out, and"
                        " in the background no limit.",
                    },
                    "background": {"type": "boolean", "description": "For what runs long, such as a server."},
                },
                "required": ["command"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedCommand | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("command", "cwd", "timeoutMs", "background"))
            command = fields.text("command")
            cwd = fields.optional_text("cwd")
            background = fields.optional_yes("background")
            timeout_ms = fields.optional_whole("timeoutMs", 1, timeout_ms_max)
            if not command.strip() or "\0" in command:
                raise Unfit("run_command: the field `command` is empty or holds a NUL character.")
            if len(command.encode("utf-8")) > command_bytes_max:
                raise Unfit(f"run_command: the field `command` is longer than {command_bytes_max} bytes.")
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, "." if cwd is None else cwd)
        if isinstance(located, Refusal):
            return located
        if located.kind != "folder":
            return Refusal("bad_arguments", f"run_command: `cwd`: there is no folder {one_line(located.asked)}.")
        if located.in_state_directory:
            return Refusal("policy", "The state directory belongs to Steadyhand itself; no command runs in it.")
        if background:
            return PlannedCommand(ground, command, located, timeout_ms, reading=False, background=True)
        reading = only_reads(ground, command, located)
        return PlannedCommand(ground, command, located, timeout_ms or timeout_ms_default, reading)


@attrs.frozen
class PlannedCommand:
    """One call; see `tool.Planned`."""

    ground: Ground
    text: str
    folder: Located
    timeout_ms: int | None  # None: no limit, in the background
    reading: bool
    background: bool = False

    protected: ClassVar[tuple[str, ...]] = ()

    @property
    def effect(self) -> EffectClass:
        return "reads" if self.reading else "opaque"

    @property
    def scope(self) -> Scope:
        return NOTHING if self.reading else EVERYTHING

    @property
    def title(self) -> str:
        """Only the program's name: arguments may hold what a list should not show."""
        return "run_command: " + one_line(_program(self.text), title_chars_max - len("run_command: "))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self.folder.inside else (self.folder.resolved,)

    @property
    def command(self) -> tuple[str, str] | None:
        return self.text, self.folder.resolved

    def preview(self) -> Preview | Refusal:
        where = display(self.ground.root, self.folder.resolved)
        limit = "" if self.timeout_ms is None else f", at most {self.timeout_ms} ms"
        if self.background:
            limit += ", in the background until it ends, is stopped, or the session is closed"
        return Preview(f"Runs in {one_line(where)}{limit}:\n{self.text}")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        located = locate(self.ground, self.folder.asked)
        if isinstance(located, Refusal) or located.resolved != self.folder.resolved:
            return Refusal("changed", "The folder the command was to run in leads elsewhere now.")
        return Gathered()

    async def run(self, running: Running) -> Done:
        if self.timeout_ms is None or self.background:
            return await self._in_background(running)
        output = Output(self.ground.disk, self.ground.session_folder, running.attempt_id)
        ends: list[Finished] = []
        trouble: Exception | None = None
        cancelled = False
        try:
            await self.ground.processes.run(
                self.text,
                self.folder.resolved,
                self._environment(running),
                self.timeout_ms / 1000,
                output.take,
                ended=ends.append,
            )
        except anyio.get_cancelled_exc_class():
            # Swallowed here alone (see above); what cancelled us does it again at the next checkpoint.
            cancelled = True
        except Exception as error:
            if not ends and not isinstance(error, OSError):
                raise
            trouble = error
        with anyio.CancelScope(shield=True):
            shown = await anyio.to_thread.run_sync(output.shown)
        if not ends:
            return _not_spawned(trouble)
        return self._done(ends[0], shown, trouble, cancelled)

    async def _in_background(self, running: Running) -> Done:
        """The start is all there is to this call; it is not cancelled half-way."""
        limit_s = None if self.timeout_ms is None else self.timeout_ms / 1000
        environment = self._environment(running)
        try:
            job = await running.jobs.start(self.text, self.folder.resolved, environment, self.title, limit_s)
        except OSError as error:
            return _not_spawned(error)
        runs = f"It runs in the background as job {job.job_id} (process {job.pid})."
        return Done("returned", f"{runs} command_output reads what it writes.")

    def _environment(self, running: Running) -> dict[str, str]:
        own = {
            attempt_mark_name: running.attempt_id,
            idempotency_key_name: running.key,
            session_name: running.session_id,
        }
        return {**self.ground.environment(own), **(READING_ENVIRONMENT if self.reading else {})}

    def _done(self, end: Finished, shown: Shown, trouble: Exception | None, cancelled: bool) -> Done:
        notes = list(notes_of(end, shown))
        reason: str | None = None
        if end.timed_out:
            reason = "timeout"
            notes.append(f"It was ended after {self.timeout_ms} ms and may be half done.")
        elif cancelled:
            reason = "cancelled"
            notes.append("It was cancelled and ended, and may be half done.")
        elif trouble is not None:
            reason = "output_lost"
            notes.append(f"It was ended, since its output could not be read ({trouble}), and may be half done.")
        if not end.group_empty:
            notes.append("Something it started may still run: it could not be ended, or that cannot be told here.")
        surely_over = reason is None or end.group_empty or self.reading
        return Done(
            "returned" if reason is None else "stopped" if surely_over else "unknown",
            shown.text + "".join(f"\n[{note}]" for note in notes),
            reason,
            bytes=shown.bytes,
            truncated=shown.cut,
            output=shown.digest,
            exit_code=end.exit_code,
            left=end.left,
        )


def _not_spawned(trouble: Exception | None) -> Done:
    if trouble is None:
        return Done("stopped", "It was cancelled before the command was started; nothing ran.", "cancelled")
    why = trouble.strerror if isinstance(trouble, OSError) else None
    return Done("failed", f"The command could not be started: {why or trouble}. Nothing ran.", "not_started")


def notes_of(end: Finished, shown: Shown) -> Iterator[str]:
    """What is said after an output: what became of it, and how the command ended."""
    if shown.note:
        yield shown.note
    if end.exit_code is not None:
        yield f"exit code {end.exit_code}"
    elif end.signal is not None:
        yield f"ended by signal {end.signal}"
    if end.left:
        told = ", ".join(one_line(one, process_chars_max) for one in end.left[:left_told_max])
        more = f" and {len(end.left) - left_told_max} more" if len(end.left) > left_told_max else ""
        yield f"left running, and ended now: {told}{more}"


SHELL = "sh"
"""What runs a command that is more than one program with its words."""
_SHELL_WORDS = frozenset(
    {".", "alias", "case", "eval", "export", "for", "function", "if", "select", "set", "source", "trap", "umask"}
    | {"unset", "until", "while"}
)
_BEFORE_A_PROGRAM = frozenset({"builtin", "command", "exec", "nohup", "time"})
_WALKED_IN = re.compile(r"\s*cd\s+[\w./+-]+\s*(?:&&|;)\s*")


def _program(command: str) -> str:
    """The name of the program, where the words say it plainly; else the shell's, which is what runs then."""
    for word in command[found.end() if (found := _WALKED_IN.match(command)) else 0 :].split():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=[^'\"$`\\(]*", word) or word in _BEFORE_A_PROGRAM:
            continue  # a variable before it, whose value is nobody's business
        name = word.rstrip("/").rpartition("/")[2] if re.fullmatch(r"[\w./+-]+", word) else ""
        return SHELL if name in _SHELL_WORDS or not name.lstrip("._")[:1].isalnum() else name
    return SHELL
