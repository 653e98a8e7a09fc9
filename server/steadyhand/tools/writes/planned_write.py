"""A change of one file: planned, shown, checked and carried out. `write_file` and `edit_file` differ in the transform.

A transform makes the intended bytes from the bytes before and from the arguments alone, so recovery can make them again
from the stored arguments and the checkpoint. Everything that can be refused is refused before *started*: a path that is
not a regular file, is not writable by its own mode (case 58), is not text, has unsaved changes in the editor, or is not
what the preview showed. The content before is stored and synced before `gather` returns (row W8). A file that a
replacement by name would damage is written in place (row W11).

Missing parent folders are created after *started*; their existence proves nothing and is not checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

import anyio.to_thread
import attrs

from steadyhand.domain.records.identity import Arguments, sha256
from steadyhand.domain.records.record import Change, EffectClass, Evidence, FileAttributes, FileChange, Scope
from steadyhand.domain.text.decoding import FileText, NewText, NotText, line_ending_of, text_in_editor, to_lf
from steadyhand.domain.text.diff import unified_diff
from steadyhand.domain.text.encodings import UTF_8, TextEncoding
from steadyhand.domain.text.splices import unfit_text
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import EntryStat
from steadyhand.tools.arguments import InvalidArguments
from steadyhand.tools.contract import (
    CHECKPOINT_BYTES_MAX,
    FILE_BYTES_MAX,
    CallContext,
    EvidenceResult,
    Preview,
    Refusal,
    ToolContext,
    ToolOutcome,
)
from steadyhand.tools.workspace.file_encoding import decode_file, new_text_at
from steadyhand.tools.workspace.open_documents import (
    DocumentState,
    open_document,
    refuse_unsaved,
    unsaved_document,
)
from steadyhand.tools.workspace.paths import (
    NAME_BYTES_MAX,
    ResolvedPath,
    locate,
    locate_for_call,
    one_line,
    open_folder,
)
from steadyhand.tools.workspace.similar_names import missing_note, refuse_other_form, twins_note
from steadyhand.tools.writes.blob_store import BlobStore, digest_of
from steadyhand.tools.writes.buffer_write import BufferWrite, evidence_in_buffer, evidence_through_editor
from steadyhand.tools.writes.entry_state import refuse_fixed_name, refuse_newer
from steadyhand.tools.writes.in_place_plan import IN_PLACE_TITLE, InPlacePlan, plan_in_place
from steadyhand.tools.writes.kept_attributes import read_attributes
from steadyhand.tools.writes.postcondition_check import text_digest
from steadyhand.tools.writes.replace_file import Conflict, NotReplaced, Replaced, ReplaceOutcome, replace_file
from steadyhand.tools.writes.staleness import FRESH, FileNow, Freshness, KnownFiles, judge_edit, judge_replacement
from steadyhand.tools.writes.write_in_place import write_in_place
from steadyhand_values import frozen

UNSEEN_NOTE = "Nothing of it is looked at before you allow the call, so the diff shows only what the call says."
DIFF_BYTES_MAX = 64 * 1024
TITLE_CHARS_MAX = 80  # as `Planned.title` promises


@frozen
class IntendedContent:
    """The result of a transform. `note` says how it was made, for the reply."""

    content: bytes
    text: str  # of the content, with its own line ends
    note: str = ""


Pieces: TypeAlias = "tuple[tuple[str, str], ...]"
"""What the arguments alone show: each text before (empty: not known) with the text that replaces it."""

ContentTransform: TypeAlias = Callable[["FileText | NewText"], "IntendedContent | Refusal"]
"""From the text before (`NewText`: there is no file, or it is above `FILE_BYTES_MAX`)."""


@frozen
class _CurrentContent:
    """What the path has now. `text` is `NewText` if there is no file, or it is too large to store."""

    located: ResolvedPath
    stat: EntryStat | None
    text: FileText | NewText
    digest: str | None = None
    size: int | None = None
    attributes: FileAttributes | None = None
    document: DocumentState | None = None  # of the file, if it is open
    disk: _DiskHalf | None = None  # of a dirty document: what the file has; `text` and `digest` are the editor's then


@frozen
class _DiskHalf:
    """The file under a dirty document. `digest` None: there is none."""

    digest: str | None = None
    size: int | None = None
    encoding: TextEncoding = UTF_8
    recorded_encoding: str = UTF_8.name


class PlannedFileEffect:
    """One call that changes files at known paths; see `contract.Planned`. It is gathered and run at most once."""

    effect: ClassVar[EffectClass] = "writes_files"
    command: ClassVar[tuple[str, str] | None] = None
    known: KnownFiles | None = None
    """What the model knows of its files; None: it is not judged by that (a retry, a person's own change)."""
    is_permitted = False
    """Whether somebody permitted the call, so that a path may be looked at which must not be before."""

    def why_ask(self) -> str | Refusal | None:
        """Return why the user is asked in every mode, or why the call is refused as stale (row V3). Blocks."""
        return None

    def __init__(self, tool_context: ToolContext, *paths: ResolvedPath) -> None:
        self._tool_context = tool_context
        self._paths = paths
        self.in_place: InPlacePlan | None = None  # None: every file is replaced, removed or moved by name

    @property
    def scope(self) -> Scope:
        paths = tuple(path.resolved for path in self._paths)
        return Scope(paths=paths) if self.in_place is None else self.in_place.scope(paths)

    @property
    def outside(self) -> tuple[str, ...]:
        paths = tuple(path.resolved for path in self._paths if not path.is_inside)
        if self.in_place is None or not self.in_place.counts_as_outside:
            return paths
        return paths or self.in_place.outside or tuple(path.resolved for path in self._paths)

    @property
    def is_unseen(self) -> bool:
        """Whether a path must not be looked at before somebody permits the call (cases 125 and 137)."""
        return any(not path.is_inside or path.is_secret for path in self._paths)

    def unseen_notes(self) -> list[str]:
        """Return what the user should know about paths that were not looked at."""
        outside = [one_line(path.resolved) for path in self._paths if not path.is_inside]
        notes = (
            [f"{' and '.join(outside)} {'are' if len(outside) > 1 else 'is'} outside the workspace."] if outside else []
        )
        return [*notes, UNSEEN_NOTE]

    @property
    def protected(self) -> tuple[str, ...]:
        own = tuple(path.resolved for path in self._paths if path.is_protected or path.is_secret)
        return own if self.in_place is None else (*own, *self.in_place.protected(self._tool_context))

    def find_in_place(self) -> Refusal | None:
        """Look whether the file must be written in place. Called before the question, or, for a path that must not be
        looked at before, after it. Reads only; blocks."""
        return None

    async def run(self, running: CallContext) -> ToolOutcome:
        return await anyio.to_thread.run_sync(self._perform, running)

    def _perform(self, running: CallContext) -> ToolOutcome:
        """Carry out the effect. It blocks, and is called in a thread."""
        raise NotImplementedError


class PlannedChange(PlannedFileEffect):
    """One call of a tool that changes the content of one file."""

    def __init__(
        self,
        tool: str,
        tool_context: ToolContext,
        located: ResolvedPath,
        transform: ContentTransform,
        pieces: Pieces,
        can_create: bool,
    ) -> None:
        """`can_create`: whether the file may be missing."""
        super().__init__(tool_context, located)
        self._tool = tool
        self._located = located
        self._transform = transform
        self._pieces = pieces
        self._can_create = can_create
        self._shown = one_line(display_path(located.resolved, tool_context.root))
        self._intended: IntendedContent | None = None
        self._note = ""
        self._was_dirty = False
        self._twins_note = ""

    @property
    def title(self) -> str:
        start = f"{self._tool}: " if self.in_place is None else IN_PLACE_TITLE
        return start + one_line(self._shown, TITLE_CHARS_MAX - len(start))

    def find_in_place(self) -> Refusal | None:
        if self._located.kind != "file":
            return None
        try:
            found = plan_in_place(self._tool_context, self._located)
        except OSError:
            return None  # the preview says what is wrong with the file
        if isinstance(found, Refusal):
            return found
        self.in_place = found
        return None

    def preview(self) -> Preview | Refusal:
        if self.is_unseen and not self.is_permitted:
            return self._unseen_preview()
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        judged = self._judge(seen)
        if isinstance(judged, Refusal):
            return judged
        made, fresh = judged
        diff: str | None = None
        if seen.stat is None or isinstance(seen.text, FileText):
            before = seen.text.content if isinstance(seen.text, FileText) else ""
            diff = unified_diff(before, made.text, self._shown, DIFF_BYTES_MAX) or None
        text = " ".join(self._preview_sentences(seen, made))
        return Preview(text, diff, {self._located.resolved: seen.digest}, fresh.asks)

    def why_ask(self) -> str | Refusal | None:
        if self.known is None or not self._can_create or (self.is_unseen and not self.is_permitted):
            return None
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        judged = self._judge(seen)
        return judged if isinstance(judged, Refusal) else judged[1].asks

    def _judge(self, seen: _CurrentContent) -> tuple[IntendedContent, Freshness] | Refusal:
        """Make the intended content, and compare the file with what the model knows of it (row V3)."""
        made = self._transform(seen.text)
        if seen.disk is not None and not isinstance(made, Refusal):
            unfit = unfit_text([made.text], seen.disk.encoding)
            made = made if unfit is None else Refusal("encoding", unfit)
        fresh: Freshness | Refusal = FRESH
        if self.known is not None and not (isinstance(made, Refusal) and made.reason != "bad_arguments"):
            text = seen.text.text if isinstance(seen.text, FileText) else None
            resolved, encoding = self._located.resolved, seen.text.recorded_encoding
            now = FileNow(resolved, self._shown, seen.digest, text, seen.size or 0, encoding)
            if not self._can_create:
                fresh = judge_edit(self.known, now, None if isinstance(made, Refusal) else to_lf(made.text))
            elif not isinstance(made, Refusal):
                fresh = judge_replacement(self.known, now, made.content)
                if fresh.asks is not None if isinstance(fresh, Freshness) else False:
                    fresh = refuse_newer(self.known, seen.document, now) or fresh
        if isinstance(fresh, Refusal):
            return fresh
        return made if isinstance(made, Refusal) else (made, fresh)

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        resolved = seen.located.resolved
        is_compared = preview is not None and (bool(preview.seen) or not self.is_unseen)
        if is_compared and preview is not None and (resolved, seen.digest) not in preview.seen.items():
            return Refusal("changed", f"{self._shown} has changed since it was shown; read it again.")
        judged = self._judge(seen)
        if isinstance(judged, Refusal):
            return judged
        made, fresh = judged
        if fresh.asks is not None and (preview is None or not preview.seen):
            return Refusal("stale", f"{self._shown} exists, and {fresh.asks}; read it first.")
        self._note = fresh.note
        checkpoint: str | None = None
        if isinstance(seen.text, FileText) and len(seen.text.raw) <= CHECKPOINT_BYTES_MAX:
            store = BlobStore(self._tool_context.disk, self._tool_context.session_folder, "checkpoints")
            try:
                checkpoint = store.store(seen.text.raw, attempt_id)
            except OSError as error:
                why = error.strerror or error
                return Refusal(
                    "io_error", f"The content of {self._shown} before the change could not be stored: {why}."
                )
        self._intended = made
        self._was_dirty = seen.disk is not None
        self._twins_note = (
            twins_note(self._tool_context, seen.located) if seen.stat is None and seen.disk is None else ""
        )
        is_in_place = self.in_place is not None
        evidence = _make_evidence(seen, made, attempt_id, checkpoint, is_in_place)
        return EvidenceResult((self._with_buffer(evidence, seen, made),))

    def _with_buffer(self, evidence: Evidence, seen: _CurrentContent, made: IntendedContent) -> Evidence:
        """Return the evidence with the half of the editor's text, if the change goes through it (row V2)."""
        state = seen.document
        if state is None or evidence.checkpoint is None or self.in_place is not None or state.disk != "same":
            return evidence
        if state.is_dirty:
            return evidence_in_buffer(evidence, state, made.text, evidence.checkpoint)
        is_same_text = isinstance(seen.text, FileText) and text_digest(seen.text.content) == text_digest(
            state.document.text
        )
        if not is_same_text or evidence.before == evidence.intended or not self._tool_context.applies():
            return evidence
        if self._tool_context.saves():
            return evidence_through_editor(evidence, state, made.text)
        return evidence_in_buffer(evidence, state, made.text, evidence.checkpoint)

    def _unseen_preview(self) -> Preview:
        """Return what the arguments alone show. The file is first read after the permission."""
        verb = "Creates or replaces" if self._can_create else "Changes"
        diffs = (unified_diff(before, after, self._shown, DIFF_BYTES_MAX) for before, after in self._pieces)
        diff = "".join(diffs).encode("utf-8", "replace")[:DIFF_BYTES_MAX].decode("utf-8", "ignore")
        return Preview(" ".join([f"{verb} {self._shown}.", *self.unseen_notes()]), diff or None)

    async def run(self, running: CallContext) -> ToolOutcome:
        made, (evidence,) = self._intended, running.evidence
        if made is None or evidence.buffer is None:
            return await super().run(running)
        write = BufferWrite(self._tool_context, evidence, self._shown, made.text, self._was_dirty, made.note)
        done = await write.run(running)
        return attrs.evolve(done, text=self._note + done.text) if done.outcome == "returned" else done

    def _perform(self, running: CallContext) -> ToolOutcome:
        made, (evidence,) = self._intended, running.evidence
        assert made is not None, "gather comes before run"
        assert sha256(made.content) == evidence.intended, "run writes what gather recorded"
        if evidence.existed and evidence.before == evidence.intended:
            return self._report_unchanged(evidence)
        context, plan = self._tool_context, self.in_place
        if plan is not None:
            done = write_in_place(context, evidence, made.content, plan.identity, running.is_cancelled)
        else:
            done = replace_file(context, evidence, made.content, running.is_cancelled)
        return self._outcome(evidence, made, done)

    def _report_unchanged(self, evidence: Evidence) -> ToolOutcome:
        """Report that the file already has the intended content. It is not written, so it keeps its times."""
        located = locate(self._tool_context, evidence.path)
        if isinstance(located, ResolvedPath) and located.resolved == evidence.resolved and located.kind == "file":
            with open_folder(self._tool_context, located.folders) as folder:
                expected = evidence.intended_bytes or 0
                digest, size = digest_of(self._tool_context.disk, folder, located.name, expected)
            if digest == evidence.intended:
                text = f"{self._shown} already has exactly this content ({size} bytes); nothing was written."
                contents = () if self._intended is None else (self._intended.content,)
                return ToolOutcome("returned", text, check="satisfied", contents=contents)
        return ToolOutcome("failed", f"{self._shown} was changed by somebody else in the meantime.", "changed")

    def _outcome(self, evidence: Evidence, made: IntendedContent, replacement: ReplaceOutcome) -> ToolOutcome:
        match replacement:
            case Replaced(digest=digest, bytes=size, missing_attributes=missing):
                change: Change = "modified" if evidence.existed else "created"
                how = f"{change} in place" if evidence.in_place else change
                text = f"{self._note}{self._shown} was {how}{made.note}: {size} bytes on disk, SHA-256 {digest}."
                if missing:
                    text += f" Not preserved, because the system did not allow it: {', '.join(missing)}."
                text += self._twins_note
                path = display_path(evidence.resolved, self._tool_context.root)
                files = (FileChange(path=path, change=change, before=evidence.before, after=digest, bytes=size),)
                return ToolOutcome("returned", text, files=files, check="satisfied", contents=(made.content,))
            case NotReplaced(reason="cancelled", text=text, kept_files=kept):
                text = f"{text} {self._shown} is unchanged.{_kept_files_note(kept)}"
                return ToolOutcome("stopped", text, "cancelled", kept_files=kept)
            case NotReplaced(reason=why, text=text, kept_files=kept):
                text = f"{text} Nothing was replaced.{_kept_files_note(kept)}"
                return ToolOutcome("failed", text, why, kept_files=kept)
            case Conflict(text=text, kept_files=kept):
                return ToolOutcome("unknown", text, "conflict", check="conflict", kept_files=kept)

    def _read_current(self) -> _CurrentContent | Refusal:
        """Resolve the path again, and return its content or a refusal."""
        located = locate(self._tool_context, self._located.asked)
        if isinstance(located, Refusal):
            return located
        if located.resolved != self._located.resolved:
            return Refusal("changed", f"The path {self._shown} now leads somewhere else.")
        if located.is_in_state_directory:
            return Refusal("policy", f"{self._shown} belongs to Steadyhand itself and cannot be changed by a tool.")
        for name in self.in_place.names if self.in_place is not None else ():
            unsaved = unsaved_document(self._tool_context, located.asked, name)
            if unsaved is not None:
                return refuse_unsaved(self._shown, unsaved)
        document = open_document(self._tool_context, located.asked, located.resolved)
        if document is not None and document.is_dirty:
            if not self._can_edit_in_editor(document, located):
                return refuse_unsaved(self._shown, document)
            return self._read_document(located, document)
        if located.kind is None and self.in_place is not None:
            return Refusal("changed", f"{self._shown} was removed in the meantime.")
        if located.kind is None:
            if not self._can_create:
                note = missing_note(self._tool_context, located)
                return Refusal("not_found", f"{self._shown} does not exist.{note}")
            return (
                refuse_other_form(self._tool_context, located)
                or refuse_fixed_name(self._tool_context, located, self._shown)
                or _CurrentContent(located, None, new_text_at(self._tool_context, located))
            )
        if located.kind != "file":
            what = "a folder" if located.kind == "folder" else "not a regular file"
            return Refusal("unsupported", f"{self._shown} is {what}.")
        try:
            found = self._read_file(located)
            return found if isinstance(found, Refusal) else attrs.evolve(found, document=document)
        except OSError as error:
            return Refusal("io_error", f"{self._shown} cannot be read: {error.strerror or error}.")

    def _can_edit_in_editor(self, document: DocumentState, located: ResolvedPath) -> bool:
        """Whether an edit goes into the unsaved text (row V1): the file is as the editor opened or last saved it."""
        is_edit = not self._can_create and self.in_place is None and located.kind in ("file", None)
        return is_edit and document.disk == "same" and self._tool_context.applies()

    def _read_document(self, located: ResolvedPath, document: DocumentState) -> _CurrentContent | Refusal:
        """Return the unsaved text, with what the file under it has."""
        file = text_in_editor(document.document.text)
        if isinstance(file, NotText):
            return Refusal("unsupported", f"{self._shown}: {file.reason}")
        half, stat = _DiskHalf(), None
        if located.kind == "file":
            try:
                under = self._read_file(located)
            except OSError as error:
                return Refusal("io_error", f"{self._shown} cannot be read: {error.strerror or error}.")
            if isinstance(under, Refusal):
                return under
            stat = under.stat
            half = _DiskHalf(under.digest, under.size, under.text.encoding, under.text.recorded_encoding)
        digest, size = sha256(file.raw), len(file.raw)
        return _CurrentContent(located, stat, file, digest, size, None, document, half)

    def _read_file(self, located: ResolvedPath) -> _CurrentContent | Refusal:
        disk, name = self._tool_context.disk, located.name
        with open_folder(self._tool_context, located.folders) as folder:
            look = disk.look(folder, name)
            if look is None or look.kind != "file":
                return Refusal("changed", f"{self._shown} changed while it was checked.")
            if not disk.writable(folder, name):
                return Refusal("read_only", f"{self._shown} is read-only (mode {look.mode:04o}).")
            plan = plan_in_place(self._tool_context, located, search=False)
            if isinstance(plan, Refusal):
                return plan
            if plan is not self.in_place and not (self.in_place is not None and self.in_place.is_same_file(plan)):
                return Refusal("changed", f"{self._shown} has other names or attributes than a moment ago; try again.")
            attributes = read_attributes(disk, folder, name, look)
            if look.size > FILE_BYTES_MAX and not self._can_create:
                return Refusal(
                    "too_large", f"{self._shown} is larger than {FILE_BYTES_MAX} bytes, the limit for edits."
                )
            if look.size > FILE_BYTES_MAX:
                digest, size = digest_of(disk, folder, name, look.size)
                if size != look.size or disk.look(folder, name) != look:
                    return Refusal("changed", f"{self._shown} changed while it was read.")
                text = new_text_at(self._tool_context, located)
                return _CurrentContent(located, look, text, digest, size, attributes)
            raw = disk.read(folder, name, FILE_BYTES_MAX + 1)
            if len(raw) != look.size or disk.look(folder, name) != look:
                return Refusal("changed", f"{self._shown} changed while it was read.")
        found = decode_file(self._tool_context, located, raw)
        if isinstance(found, NotText):
            return Refusal("unsupported", f"{self._shown}: {found.reason}")
        return _CurrentContent(located, look, found, sha256(raw), len(raw), attributes)

    def _preview_sentences(self, seen: _CurrentContent, made: IntendedContent) -> list[str]:
        """Return what the user should know before allowing the change."""
        before = f"from {seen.size} " if seen.stat is not None else ""
        sentences = [
            f"{'Creates' if seen.stat is None and seen.disk is None else 'Changes'} {self._shown}{made.note}"
            f" ({before}{'to ' if before else ''}{len(made.content)} bytes)."
        ]
        if self.in_place is not None:
            sentences = [*self.in_place.sentences(self._tool_context.root), *sentences]
        if seen.digest == sha256(made.content):
            sentences = [f"{self._shown} already has exactly this content; nothing will be written."]
        if seen.text.encoding is not UTF_8:
            sentences.append(f"Its text is written as {seen.text.encoding.word}.")
        if seen.disk is not None:
            sentences.append("It goes into the editor's unsaved text and is not saved.")
        if seen.located.missing_count > 1:
            sentences.append("Missing folders are created too.")
        if seen.stat is not None and isinstance(seen.text, NewText):
            sentences.append(
                f"Its present content ({seen.size} bytes) is larger than {CHECKPOINT_BYTES_MAX} bytes and is not kept:"
                " it cannot be restored."
            )
        return sentences


class FileChangeTool:
    """What the tools that change the content of one file share. A subclass reads the arguments."""

    name: ClassVar[str]
    effect: ClassVar[EffectClass] = "writes_files"
    can_create: ClassVar[bool]  # whether the file may be missing

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedChange | Refusal:
        try:
            path, transform, pieces = self._read_arguments(arguments)
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, path)
        if isinstance(located, Refusal):
            return located
        if located.is_in_state_directory:
            return refuse_own_path(path)
        planned = PlannedChange(self.name, tool_context, located, transform, pieces, self.can_create)
        return (None if planned.is_unseen else planned.find_in_place()) or planned

    def content_transform(self, arguments: Arguments) -> ContentTransform | None:
        """The transform alone, to make the intended bytes again; None for invalid arguments."""
        try:
            return self._read_arguments(arguments)[1]
        except InvalidArguments:
            return None

    def _read_arguments(self, arguments: Arguments) -> tuple[str, ContentTransform, Pieces]:
        """The path, the transform, and what the arguments show of it. Raises InvalidArguments."""
        raise NotImplementedError


def refuse_own_path(path: str) -> Refusal:
    """Return the refusal of a path in the state directory, which is never a tool's target."""
    return Refusal("policy", f"{one_line(path)} belongs to Steadyhand itself and cannot be changed by a tool.")


def temporary_name(name: str, attempt_id: str) -> str:
    """Return the name of the file beside the target while it is written: hidden, one per attempt, never too long."""
    end = f".{attempt_id}.steadyhand"
    kept = name.encode("utf-8")[: NAME_BYTES_MAX - len(end) - 1].decode("utf-8", "ignore")
    return f".{kept}{end}"


def _make_evidence(
    seen: _CurrentContent, made: IntendedContent, attempt_id: str, checkpoint: str | None, in_place: bool
) -> Evidence:
    half = seen.disk
    return Evidence(
        path=seen.located.asked,
        resolved=seen.located.resolved,
        existed=seen.stat is not None,
        before=seen.digest if half is None else half.digest,
        before_bytes=seen.size if half is None else half.size,
        intended=sha256(made.content),
        intended_bytes=len(made.content),
        # The umask decides the mode of a new file, so it is known only afterwards.
        mode=None if seen.stat is None else seen.stat.mode,
        encoding=seen.text.recorded_encoding if half is None else half.recorded_encoding,
        line_ending=line_ending_of(made.text),
        temporary=None if in_place else temporary_name(seen.located.name, attempt_id),
        checkpoint=checkpoint,
        attributes=seen.attributes,
        in_place=in_place,
    )


def _kept_files_note(kept: tuple[str, ...]) -> str:
    return f" Kept beside it: {', '.join(kept)}." if kept else ""
