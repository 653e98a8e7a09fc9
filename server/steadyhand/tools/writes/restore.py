"""Bring back the content before an attempt, as a checked effect of its own (row A5).

For every path of the old evidence, the present content is stored first, so a restore can itself be undone. Then the
content before is put back, or a file that did not exist before is removed. `replace_file`, `remove` and `create_link`
do this with their checks, so a later save is never overwritten. Paths that get content come first. A move to a free
path is undone by a move back, so the entry keeps everything; a file that is made again gets its recorded attributes.
A file that was written in place is restored in place (row W11).

It is not a tool of the model; the session plans it from the evidence of the attempt that it undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from steadyhand.domain.records.record import Change, Evidence, FileChange
from steadyhand.domain.views.render import display_path
from steadyhand.tools.contract import (
    CHECKPOINT_BYTES_MAX,
    CallContext,
    EvidenceResult,
    Preview,
    Refusal,
    ToolContext,
    ToolOutcome,
)
from steadyhand.tools.workspace.open_documents import refuse_unsaved, unsaved_document
from steadyhand.tools.workspace.paths import ResolvedPath, locate, one_line
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand.tools.writes.create_link import LinkCreated, create_link
from steadyhand.tools.writes.entry_state import (
    EntryState,
    read_entry,
    refuse_fixed_name,
    refuse_write_protected,
    store_content,
)
from steadyhand.tools.writes.in_place_plan import plan_again
from steadyhand.tools.writes.kept_attributes import (
    attributes_to_give,
    is_movable_back,
    moved_pair,
    replaces_moved,
)
from steadyhand.tools.writes.move import Moved, move_entry
from steadyhand.tools.writes.planned_write import TITLE_CHARS_MAX, PlannedFileEffect, temporary_name
from steadyhand.tools.writes.remove import Removed, Untouched, remove
from steadyhand.tools.writes.replace_file import Conflict, MoveSource, NotReplaced, Replaced, replace_file
from steadyhand.tools.writes.write_in_place import write_in_place
from steadyhand_values import frozen

NAME = "restore"
TAKE_BACKS = (NAME, "undo", "rewind")
"""The names of attempts that bring earlier content back; none is a tool of the model."""


def restore_obstacle(evidence: Sequence[Evidence]) -> str | None:
    """Return why an attempt with this evidence cannot be undone; None if it can, as far as the evidence says."""
    if not evidence:
        return "it left no evidence of what was there before"
    for one in evidence:
        if one.is_only_in_buffer:
            return f"{one.path} was changed in the editor and not on the disk; undo it there"
        if one.existed and one.checkpoint is None:
            return f"the earlier content of {one.path} was not stored"
    return None


@frozen
class _RestoreTarget:
    """One path: where it leads, and the evidence of the attempt that is undone."""

    located: ResolvedPath
    old: Evidence


def plan_restore(tool_context: ToolContext, evidence: Sequence[Evidence], tool: str = NAME) -> PlannedRestore | Refusal:
    """Plan to bring back the content before, by this evidence. `tool`: the title names it. Reads only; blocks."""
    why = restore_obstacle(evidence)
    if why is not None:
        return Refusal("unsupported", f"It cannot be restored: {why}.")
    paths: list[_RestoreTarget] = []
    for old in evidence:
        located = locate(tool_context, display_path(old.resolved, tool_context.root), follow=False)
        if isinstance(located, Refusal):
            return located
        if located.resolved != old.resolved:
            return Refusal("changed", f"The path {one_line(old.path)} now leads somewhere else.")
        paths.append(_RestoreTarget(located, old))
    planned = PlannedRestore(tool_context, tuple(paths), tool)
    return planned.find_in_place() or planned


class PlannedRestore(PlannedFileEffect):
    """The restore of one attempt; see `contract.Planned`."""

    def __init__(self, tool_context: ToolContext, targets: tuple[_RestoreTarget, ...], tool: str) -> None:
        super().__init__(tool_context, *(target.located for target in targets))
        self._targets = targets
        self._tool = tool

    def find_in_place(self) -> Refusal | None:
        """Plan to write in place what was written in place and is still there.

        Refused where other paths come back with it: their names may belong to the same file."""
        written = [target for target in self._targets if target.old.in_place]
        if written and len(self._targets) > 1:
            shown = one_line(display_path(written[0].old.resolved, self._tool_context.root))
            why = f"{shown} was written in place, and other paths would come back with it. Bring them back by hand."
            return Refusal("unsupported", why)
        for target in written:
            if target.located.kind == "file":
                try:
                    found = plan_again(self._tool_context, target.located)
                except OSError as error:
                    shown = one_line(display_path(target.old.resolved, self._tool_context.root))
                    return Refusal("io_error", f"{shown} cannot be read: {error.strerror or error}.")
                if isinstance(found, Refusal):
                    return found
                self.in_place = found
        return None

    @property
    def outside(self) -> tuple[str, ...]:
        """None: the effect that is undone had permission for these paths."""
        return ()

    @property
    def protected(self) -> tuple[str, ...]:
        """None: the effect that is undone had permission for these paths."""
        return ()

    @property
    def title(self) -> str:
        shown = ", ".join(display_path(path.old.resolved, self._tool_context.root) for path in self._targets)
        return f"{self._tool}: {one_line(shown, TITLE_CHARS_MAX - len(self._tool) - 2)}"

    def preview(self) -> Preview | Refusal:
        return Preview(f"Restores the earlier content of {self.title.partition(': ')[2]}.")

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        found: list[Evidence] = []
        for path in self._targets:
            state = read_entry(self._tool_context, path.located)
            if isinstance(state, Refusal):
                return state
            refusal = self._refuse_unsaved_names(state) or self._refuse_state(state, path.old)
            if refusal is not None:
                return refusal
            checkpoint = store_content(self._tool_context, state, attempt_id)
            if isinstance(checkpoint, Refusal):
                return checkpoint
            found.append(_make_evidence(state, path.old, attempt_id, checkpoint, self.in_place is not None))
        return EvidenceResult(tuple(found))

    def _refuse_unsaved_names(self, state: EntryState) -> Refusal | None:
        """Refuse to write in place while the editor has unsaved changes under another name of the file (row W11)."""
        for name in self.in_place.names if self.in_place is not None else ():
            unsaved = unsaved_document(self._tool_context, state.located.asked, name)
            if unsaved is not None:
                return refuse_unsaved(one_line(display_path(name, self._tool_context.root)), unsaved)
        return None

    def _refuse_state(self, state: EntryState, old: Evidence) -> Refusal | None:
        shown = one_line(display_path(state.located.resolved, self._tool_context.root))
        if state.stat is not None and state.stat.kind == "link" and old.kind != "link":
            return Refusal("unsupported", f"{shown} is a link now, and a restore does not replace a link.")
        if state.stat is not None and old.kind == "link" and old.existed and state.digest != old.before:
            return Refusal(
                "unsupported", f"{shown} is something else now, and a restore does not replace it with a link."
            )
        if state.stat is not None and state.content is None:
            return Refusal("too_large", f"{shown} is too large to be stored now, so the restore could not be undone.")
        if self.in_place is not None and (state.stat is None or state.stat.identity != self.in_place.identity):
            return Refusal("changed", f"{shown} was replaced in the meantime; inspect it again.")
        if self.in_place is not None:
            return refuse_write_protected(self._tool_context, state, shown)
        is_replaced = state.stat is not None and old.existed and state.digest != old.before
        if is_replaced and state.stat is not None and state.stat.links > 1:
            why = f"{shown} has {state.stat.links} names (hard links) now, and a restore would part them."
            return Refusal("unsupported", why)
        return refuse_write_protected(self._tool_context, state, shown) or refuse_fixed_name(
            self._tool_context, state.located, shown
        )

    def _perform(self, running: CallContext) -> ToolOutcome:
        moved = self._move_back(running)
        if isinstance(moved, ToolOutcome):
            return moved
        ordered = sorted(zip(running.evidence, self._targets, strict=True), key=lambda pair: pair[0].intended is None)
        files: list[FileChange] = []
        missing: list[str] = []
        for evidence, path in ordered if not moved else ():
            trouble = self._restore_path(evidence, path.old, running, missing)
            if trouble is not None:
                return _partial_outcome(trouble, bool(files))
            if (change := _file_change(self._tool_context, evidence)) is not None:
                files.append(change)
        if moved:
            changes = [_file_change(self._tool_context, evidence) for evidence, _ in ordered]
            files = [change for change in changes if change is not None]
        names = ", ".join(display_path(path.old.resolved, self._tool_context.root) for path in self._targets)
        text = f"The earlier content was restored and read back from disk: {names}."
        if missing:
            text += f" Not brought back, because the system did not allow it: {', '.join(missing)}."
        return ToolOutcome("returned", text, files=tuple(files), check="satisfied")

    def _move_back(self, running: CallContext) -> ToolOutcome | bool:
        """Undo a move by a move, if what was moved is still there. False: restore each path for itself."""
        old = [target.old for target in self._targets]
        pair = moved_pair(old)
        if pair is None or not is_movable_back(old, [one.before for one in running.evidence]):
            return False
        free, taken = (running.evidence[position] for position in pair)
        store = BlobStore(self._tool_context.disk, self._tool_context.session_folder, "checkpoints")
        content = store.read(taken.checkpoint, CHECKPOINT_BYTES_MAX) if taken.checkpoint is not None else None
        moved = move_entry(self._tool_context, taken, free, content, running.is_cancelled)
        if isinstance(moved, Moved):
            return True
        # Links are not moved to another file system, and a content that is too large is not copied there.
        return False if isinstance(moved, Untouched) and moved.reason == "unsupported" else _failure_outcome(moved)

    def _restore_path(
        self, evidence: Evidence, old: Evidence, running: CallContext, missing: list[str]
    ) -> ToolOutcome | None:
        """Restore one path. None: it is as it was before that attempt, except for attributes that become `missing`."""
        if (evidence.existed, evidence.before) == (evidence.intended is not None, evidence.intended):
            return None
        if evidence.intended is None:
            removal = remove(self._tool_context, evidence, running.is_cancelled)
            return None if isinstance(removal, Removed) else _failure_outcome(removal)
        assert old.checkpoint is not None, "plan_restore refuses evidence without a checkpoint"
        store = BlobStore(self._tool_context.disk, self._tool_context.session_folder, "checkpoints")
        content = store.read(old.checkpoint, CHECKPOINT_BYTES_MAX)
        if content is None:
            return ToolOutcome(
                "failed", f"The stored content of {old.path} is missing or damaged; nothing was changed.", "lost"
            )
        if evidence.kind == "link":
            linking = create_link(
                self._tool_context, evidence, content.decode("utf-8", "surrogateescape"), running.is_cancelled
            )
            return None if isinstance(linking, LinkCreated) else _failure_outcome(linking)
        if self.in_place is not None:
            written = write_in_place(
                self._tool_context, evidence, content, self.in_place.identity, running.is_cancelled
            )
            return None if isinstance(written, Replaced) else _failure_outcome(written)
        attributes = None
        if not evidence.existed or (old.attributes and replaces_moved([one.old for one in self._targets], old)):
            attributes = attributes_to_give(self._tool_context, old)
        source = None if attributes is None else MoveSource(attributes, lambda: None)
        replacement = replace_file(self._tool_context, evidence, content, running.is_cancelled, source)
        if not isinstance(replacement, Replaced):
            return _failure_outcome(replacement)
        missing += [name for name in replacement.missing_attributes if name not in missing]
        return None


def _make_evidence(
    state: EntryState, old: Evidence, attempt_id: str, checkpoint: str | None, in_place: bool
) -> Evidence:
    return Evidence(
        path=state.located.asked,
        resolved=state.located.resolved,
        existed=state.stat is not None,
        before=state.digest,
        before_bytes=state.size,
        intended=old.before if old.existed else None,
        intended_bytes=old.before_bytes if old.existed else None,
        mode=state.stat.mode if state.stat is not None else old.mode,
        encoding=old.encoding,
        line_ending=old.line_ending,
        temporary=None if in_place else temporary_name(state.located.name, attempt_id),
        checkpoint=checkpoint,
        kind=old.kind,
        attributes=state.attributes,
        in_place=in_place,
    )


def _file_change(tool_context: ToolContext, evidence: Evidence) -> FileChange | None:
    path = display_path(evidence.resolved, tool_context.root)
    if (evidence.existed, evidence.before) == (evidence.intended is not None, evidence.intended):
        return None
    kind: Change = "modified" if evidence.existed else "created"
    if evidence.intended is None:
        return FileChange(path=path, change="deleted", before=evidence.before)
    return FileChange(
        path=path, change=kind, before=evidence.before, after=evidence.intended, bytes=evidence.intended_bytes
    )


def _failure_outcome(found: NotReplaced | Untouched | Conflict) -> ToolOutcome:
    """Return the outcome if a path was not restored."""
    if isinstance(found, Conflict):
        return ToolOutcome("unknown", found.text, "conflict", check="conflict", kept_files=found.kept_files)
    outcome: Literal["stopped", "failed"] = "stopped" if found.reason == "cancelled" else "failed"
    return ToolOutcome(outcome, found.text, found.reason, kept_files=found.kept_files)


def _partial_outcome(trouble: ToolOutcome, some_done: bool) -> ToolOutcome:
    """Return the outcome if some paths are restored: the whole is neither old nor new."""
    if not some_done:
        return trouble
    text = f"{trouble.text} Other paths were already restored, so it is half done."
    return attrs.evolve(trouble, outcome="unknown", text=text, check="conflict")
