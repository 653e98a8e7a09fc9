"""`run_command {command, cwd?, timeoutMs?, background?, unconfined?, why?}`: run one shell command to its end (rows B2,
C6, E1, E5, J12).

A command may do anything, so it is opaque and touches everything. Only a command that
`domain.permissions.readonly_commands` knows, and whose paths are in the workspace, is a read. Processes that it leaves
running are ended and named. A command that has ended has returned, whatever its exit code. A timeout or a cancel makes
it `stopped`, or `unknown` if a process could not be ended (a read is always `stopped`: it leaves nothing uncertain). A
cancel is not raised out of `run`: that it ended the command is a fact and is returned, and the caller gets the cancel
at its next checkpoint. With `background` the call has returned when the process is started; the process is a job of the
session, and never a read.

Standard and error output are one stream. Its beginning and end go to the model; the rest goes to `outputs/` as it
comes, so memory stays bounded (case 65).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import anyio
import anyio.to_thread
import attrs

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.permissions.child_environment import ATTEMPT_MARK_NAME, IDEMPOTENCY_KEY_NAME, SESSION_NAME
from steadyhand.domain.permissions.git_reading import READING_ENVIRONMENT
from steadyhand.domain.permissions.readonly_commands import AnsweredCommand
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Scope, Shown
from steadyhand.domain.records.scope import EVERYTHING, NOTHING
from steadyhand.domain.text.hidden_characters import show_hidden_in_value
from steadyhand.domain.views.render import display_path
from steadyhand.ports.processes import Finished
from steadyhand.ports.sandbox import Confinement, SandboxFailed
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.commands.answered import answer
from steadyhand.tools.commands.confinement import SANDBOX_FAILED, prepare_command
from steadyhand.tools.commands.end_notes import notes_of
from steadyhand.tools.commands.git_asking import configured_for_reading, replaced_protected_files, would_replace_text
from steadyhand.tools.commands.named_secrets import names_secret
from steadyhand.tools.commands.output_buffer import OutputBuffer
from steadyhand.tools.commands.own_temporary import make_own_temporary, remove_own_temporary
from steadyhand.tools.commands.program_name import program_name
from steadyhand.tools.commands.readonly import Reading, plan_reading
from steadyhand.tools.commands.sandbox_hints import SandboxHints
from steadyhand.tools.commands.seen_changes import see_changes
from steadyhand.tools.contract import (
    CallContext,
    EvidenceResult,
    JobCommand,
    OutputExcerpt,
    Preview,
    Refusal,
    ToolContext,
    ToolOutcome,
)
from steadyhand.tools.workspace.open_documents import unsaved_sentence
from steadyhand.tools.workspace.paths import ResolvedPath, locate, locate_for_call, one_line
from steadyhand.tools.workspace.walk import count_phrase
from steadyhand.tools.writes.planned_write import TITLE_CHARS_MAX
from steadyhand_values import frozen

TIMEOUT_MS_DEFAULT = 120_000
TIMEOUT_MS_MAX = 600_000
COMMAND_BYTES_MAX = 64 * 1024
WHY_CHARS_MAX = 500
"""Characters of the model's words why a command should leave the sandbox."""
OUTSIDE_TITLE = "Run outside the sandbox: "
"""The fixed beginning of such a title (row O3)."""
ANSWERED = "answered by the server"
"""The fixed last line of a reply for which no program ran (row O2)."""
OWN_NETWORK = "Only this command reaches its own network."
"""A fixed sentence (row O1)."""
_FIELDS = ("command", "cwd", "timeoutMs", "background", "unconfined", "why")
NOTHING_RAN = ("not_started", "sandbox")
"""Reasons of an end before the command ran."""


class RunCommand:
    """The tool; see `contract.Tool`."""

    name = "run_command"
    effect: EffectClass = "opaque"
    offer = ToolOffer(
        name,
        "Run one shell command in the workspace and wait for its end. It returns standard and error output as one"
        " text, and then the exit code. The command has no input. Processes that it leaves running are ended. Long"
        " output is cut in the middle. With `background` it returns at once with a job id for command_output and"
        " stop_command; the job ends with the session. Commands may run in a sandbox: they can write only in the"
        " workspace and in /tmp, and may have no network. If the sandbox stops what you need, propose the command again"
        " with `unconfined` and say why; the user is asked each time.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "A command line for the shell."},
                    "cwd": {"type": "string", "description": "The folder it runs in; the default is the workspace."},
                    "timeoutMs": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": TIMEOUT_MS_MAX,
                        "description": f"The time limit in milliseconds; the default is {TIMEOUT_MS_DEFAULT}, and no"
                        " limit in the background.",
                    },
                    "background": {"type": "boolean", "description": "For a command that runs long, such as a server."},
                    "unconfined": {"type": "boolean", "description": "Run it outside the sandbox; the user is asked."},
                    "why": {
                        "type": "string",
                        "maxLength": WHY_CHARS_MAX,
                        "description": "With `unconfined`: why it needs that, for the user.",
                    },
                },
                "required": ["command"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedCommand | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, _FIELDS)
            command = fields.text("command")
            cwd = fields.optional_text("cwd")
            background = fields.optional_bool("background")
            timeout_ms = fields.optional_integer("timeoutMs", 1, TIMEOUT_MS_MAX)
            unconfined, why = fields.optional_bool("unconfined"), fields.optional_text("why") or ""
            if not command.strip() or "\0" in command:
                raise InvalidArguments("run_command: the field `command` is empty or contains a NUL character.")
            if len(command.encode("utf-8")) > COMMAND_BYTES_MAX:
                raise InvalidArguments(f"run_command: the field `command` is longer than {COMMAND_BYTES_MAX} bytes.")
            if len(why) > WHY_CHARS_MAX:
                raise InvalidArguments(f"run_command: the field `why` is longer than {WHY_CHARS_MAX} characters.")
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, "." if cwd is None else cwd)
        if isinstance(located, Refusal):
            return located
        if located.is_inside and located.kind != "folder":
            return Refusal("bad_arguments", f"run_command: `cwd`: there is no folder {one_line(located.asked)}.")
        if located.is_in_state_directory:
            return Refusal("policy", "The state directory belongs to Steadyhand itself; no command runs in it.")
        secret = names_secret(tool_context, located, command)
        asked = PlannedCommand(tool_context, command, located, timeout_ms, unconfined, why, secret)
        if background:
            return attrs.evolve(asked, is_background=True)
        reading = None if unconfined else plan_reading(tool_context, command, located)
        return attrs.evolve(asked, reading=reading, timeout_ms=timeout_ms or TIMEOUT_MS_DEFAULT)


@frozen
class PlannedCommand:
    """One call; see `contract.Planned`."""

    tool_context: ToolContext
    text: str
    folder: ResolvedPath
    timeout_ms: int | None  # None: no limit, in the background
    unconfined: bool = False  # it asks to run outside the sandbox (row O3)
    why: str = ""  # the model's words for that
    names_secret: bool = False  # it names a file with a secret's name (case 137)
    reading: Reading | None = None  # how it is carried out as a read; None: it may do anything
    is_background: bool = False

    protected: ClassVar[tuple[str, ...]] = ()

    @property
    def is_reading(self) -> bool:
        """Whether it only reads."""
        return self.reading is not None

    @property
    def reading_confinement(self) -> Confinement | None:
        """What confines a command that only reads; None: nothing is started, or it is another command."""
        return self.reading.confinement if self.reading is not None else None

    @property
    def effect(self) -> EffectClass:
        return "reads" if self.is_reading else "opaque"

    @property
    def scope(self) -> Scope:
        return NOTHING if self.is_reading else EVERYTHING

    @property
    def title(self) -> str:
        """Only the program's name: arguments may hold what a list should not show."""
        start = OUTSIDE_TITLE if self.unconfined else "run_command: "
        return start + one_line(program_name(self.text), TITLE_CHARS_MAX - len(start))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self.folder.is_inside else (self.folder.resolved,)

    @property
    def command(self) -> tuple[str, str] | None:
        return self.text, self.folder.resolved

    def preview(self) -> Preview | Refusal:
        path = display_path(self.folder.resolved, self.tool_context.root)
        where = "the workspace folder" if path == "." else f"the folder {one_line(path)}"
        limit = "" if self.timeout_ms is None else f", for up to {_duration_text(self.timeout_ms)}"
        if self.is_background:
            limit += ", in the background until it ends, is stopped, or the session is closed"
        command = show_hidden_in_value(self.text)
        if not self.unconfined:
            return Preview(f"Runs in {where}{limit}:\n{command}")
        why = show_hidden_in_value(self.why.strip())
        said = f"The model says why: {why}" if why else "The model does not say why."
        return Preview(f"Runs in {where}{limit}, outside the sandbox and with your rights:\n{command}\n{said}")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        located = locate(self.tool_context, self.folder.asked)
        if isinstance(located, Refusal) or located.resolved != self.folder.resolved:
            return Refusal("changed", "The folder of the command now leads somewhere else.")
        if located.kind != "folder":
            return Refusal("not_found", f"run_command: `cwd`: there is no folder {one_line(located.asked)}.")
        prepared = prepare_command(self.tool_context, attempt_id, located.resolved, self.unconfined)
        return prepared if isinstance(prepared, Refusal) else EvidenceResult(command=prepared)

    async def run(self, running: CallContext) -> ToolOutcome:
        try:
            kept = await replaced_protected_files(
                self.tool_context, self.text, self.folder.resolved, running.command.confinement
            )
            limits = await self._limits(running)
        except anyio.get_cancelled_exc_class():
            return _not_started_outcome(None)  # as for a cancel of the command itself; git was only asked
        if kept:
            return ToolOutcome("failed", would_replace_text(self.tool_context, kept), "not_started")
        if self.timeout_ms is None or self.is_background:
            return await self._start_in_background(running)
        if self.reading is not None and self.reading.answer is not None:
            return await anyio.to_thread.run_sync(self._answer, self.reading.answer, running.attempt_id)
        try:
            await self._make_temporary(running)
        except SandboxFailed as error:
            return _not_started_outcome(error)
        try:
            ended = await self._run_to_end(running, self.timeout_ms, *limits)
            return ended if self.is_reading else await self._with_changes(running, ended)
        finally:
            await self._clear_temporary(running)

    async def _run_to_end(
        self, running: CallContext, timeout_ms: int, variables: Mapping[str, str], confinement: Confinement | None
    ) -> ToolOutcome:
        output = OutputBuffer(self.tool_context.disk, self.tool_context.session_folder, running.attempt_id)
        hints = SandboxHints(self.text, confinement, running.command.causes)
        ends: list[Finished] = []
        trouble: Exception | None = None

        def add(piece: bytes) -> None:
            output.add(piece)
            hints.add(piece)

        cancelled = False
        try:
            await self.tool_context.processes.run(
                self.text if self.reading is None else self.reading.text,
                self.folder.resolved,
                self._environment(running, variables),
                timeout_ms / 1000,
                add,
                ended=ends.append,
                confinement=confinement,
            )
        except anyio.get_cancelled_exc_class():
            # Only here a cancel is not raised (see above); it is delivered again at the next checkpoint.
            cancelled = True
        except Exception as error:
            if not ends and not isinstance(error, OSError):
                raise
            trouble = error
        with anyio.CancelScope(shield=True):
            shown = await anyio.to_thread.run_sync(output.finish)
        if not ends:
            return _not_started_outcome(trouble)
        return self._outcome(ends[0], shown, trouble, cancelled, hints.notes(ends[0]))

    async def _limits(self, running: CallContext) -> tuple[Mapping[str, str], Confinement | None]:
        """Return the variables of a reading, and what confines the command."""
        reading = self.reading
        if reading is None or reading.confinement is None:
            return {}, running.command.confinement
        if not reading.configuration_text:
            return {**READING_ENVIRONMENT, **reading.environment}, reading.confinement
        variables, confinement = await configured_for_reading(
            self.tool_context, reading.configuration_text, self.folder.resolved, reading.confinement
        )
        return {**variables, **reading.environment}, confinement

    def _answer(self, command: AnsweredCommand, attempt_id: str) -> ToolOutcome:
        """Answer a plain reading command without starting a program. Blocks."""
        output = OutputBuffer(self.tool_context.disk, self.tool_context.session_folder, attempt_id)
        noted: list[tuple[Shown, bytes]] = []
        code = answer(self.tool_context, self.folder, command, output.add, lambda *one: noted.append(one))
        end = Finished(exit_code=code, signal=None, timed_out=False, left=(), group_empty=True)
        excerpt = output.finish()
        ended = self._outcome(end, excerpt, None, cancelled=False, of_sandbox=(ANSWERED,))
        if excerpt.is_cut:  # which lines are missing is not known
            return ended
        shown, contents = tuple(one for one, _ in noted), tuple(raw for _, raw in noted)
        return attrs.evolve(ended, shown=shown, contents=contents)

    async def _start_in_background(self, running: CallContext) -> ToolOutcome:
        """Start the job. The start is the whole call, and a cancel does not interrupt it."""
        confinement = running.command.confinement
        wanted = JobCommand(
            self.text,
            self.folder.resolved,
            self._environment(running, {}),
            self.title,
            None if self.timeout_ms is None else self.timeout_ms / 1000,
            confinement,
            partial(self._remove_temporary, running),
        )
        try:
            await self._make_temporary(running)
            job = await running.jobs.start(wanted)
        except OSError as error:
            await self._clear_temporary(running)
            return _not_started_outcome(error)
        runs = f"It runs in the background as job {job.job_id} (process {job.pid})."
        alone = confinement is not None and confinement.kind == "bubblewrap" and confinement.network == "deny"
        network = f"\n[{OWN_NETWORK}]" if alone else ""
        return ToolOutcome("returned", f"{runs} Read its output with command_output.{network}")

    async def _make_temporary(self, running: CallContext) -> None:
        """Make the command's own folder for temporary files, if it has one. Not interrupted by a cancel."""
        if not _has_temporary(running):
            return
        context = self.tool_context
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(
                    make_own_temporary, context.disk, context.session_folder, running.attempt_id
                )
            except OSError as error:
                raise SandboxFailed(f"Its folder for temporary files cannot be made ({error.strerror}).") from error

    async def _clear_temporary(self, running: CallContext) -> None:
        if _has_temporary(running):
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._remove_temporary, running)

    def _remove_temporary(self, running: CallContext) -> None:
        if _has_temporary(running):
            remove_own_temporary(self.tool_context.disk, self.tool_context.session_folder, running.attempt_id)

    async def _with_changes(self, running: CallContext, ended: ToolOutcome) -> ToolOutcome:
        """Add which files changed while the command ran, and which protected names are new or changed."""
        if ended.reason in NOTHING_RAN:
            return ended
        with anyio.CancelScope(shield=True):
            seen = await anyio.to_thread.run_sync(see_changes, self.tool_context, running.command)
            unsaved = await anyio.to_thread.run_sync(unsaved_sentence, self.tool_context)
        notes = [unsaved, seen.sentence, *([seen.protected_sentence] if seen.protected else [])]
        return attrs.evolve(
            ended,
            text=ended.text + "".join(f"\n[{note}]" for note in reversed(notes) if note),
            during=seen.during,
            protected=seen.protected,
            protected_new=seen.protected_new,
        )

    def _environment(self, running: CallContext, reading: Mapping[str, str]) -> dict[str, str]:
        own = {
            ATTEMPT_MARK_NAME: running.attempt_id,
            IDEMPOTENCY_KEY_NAME: running.key,
            SESSION_NAME: running.session_id,
        }
        return {**self.tool_context.environment(own), **reading}

    def _outcome(
        self,
        end: Finished,
        shown: OutputExcerpt,
        trouble: Exception | None,
        cancelled: bool,
        of_sandbox: Sequence[str],
    ) -> ToolOutcome:
        notes = list(notes_of(end, shown, of_sandbox))
        reason: str | None = None
        if end.timed_out:
            reason = "timeout"
            notes.append(f"It was ended after {_duration_text(self.timeout_ms or 0)} and may be half done.")
        elif cancelled:
            reason = "cancelled"
            notes.append("It was cancelled and ended, and may be half done.")
        elif trouble is not None:
            reason = "output_lost"
            notes.append(f"It was ended because its output could not be read ({trouble}), and may be half done.")
        if not end.group_empty:
            notes.append("A process that it started may still run: it could not be ended, or this system cannot say.")
        surely_over = reason is None or end.group_empty or self.is_reading
        return ToolOutcome(
            "returned" if reason is None else "stopped" if surely_over else "unknown",
            shown.text + "".join(f"\n[{note}]" for note in notes),
            reason,
            bytes=shown.bytes,
            is_truncated=shown.is_cut,
            output=shown.digest,
            exit_code=end.exit_code,
            exit_signal=end.signal,
            left_processes=end.left,
        )


def _has_temporary(running: CallContext) -> bool:
    confinement = running.command.confinement
    return confinement is not None and confinement.temporary is not None


def _duration_text(duration_ms: int) -> str:
    """Return a time limit in the largest unit that gives a whole number."""
    for unit, unit_ms in (("minute", 60_000), ("second", 1000)):
        if duration_ms and duration_ms % unit_ms == 0:
            return count_phrase(duration_ms // unit_ms, unit, f"{unit}s")
    return f"{duration_ms} ms"


def _not_started_outcome(trouble: Exception | None) -> ToolOutcome:
    if trouble is None:
        return ToolOutcome("stopped", "It was cancelled before the command was started; nothing ran.", "cancelled")
    if isinstance(trouble, SandboxFailed):
        return ToolOutcome("failed", f"{SANDBOX_FAILED} {one_line(str(trouble))}".rstrip(), "sandbox")
    why = trouble.strerror if isinstance(trouble, OSError) else None
    return ToolOutcome("failed", f"The command could not be started: {why or trouble}. Nothing ran.", "not_started")
