"""`delete_file {path}`: delete one file or link, so that it can be restored (rows W1, W4, W8).

A link itself is deleted, never its target. Folders are refused: only a command deletes them, without evidence. The
content before (of a link: its target) is stored in `checkpoints/` before *started*.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Evidence, FileChange
from steadyhand.domain.text.decoding import FileText
from steadyhand.domain.text.diff import unified_diff
from steadyhand.domain.views.render import display_path
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.file_encoding import decode_file
from steadyhand.tools.workspace.paths import ResolvedPath, locate_for_call, one_line
from steadyhand.tools.workspace.similar_names import missing_note
from steadyhand.tools.writes.entry_state import (
    EntryState,
    read_entry,
    refuse_fixed_name,
    refuse_stale,
    refuse_write_protected,
    store_content,
    unstored_content_notes,
)
from steadyhand.tools.writes.planned_write import (
    DIFF_BYTES_MAX,
    TITLE_CHARS_MAX,
    PlannedFileEffect,
    refuse_own_path,
    temporary_name,
)
from steadyhand.tools.writes.remove import Removed, RemoveOutcome, Untouched, remove
from steadyhand.tools.writes.replace_file import Conflict


class DeleteFile:
    """The tool; see `contract.Tool`."""

    name = "delete_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Delete one file, or a symbolic link itself and not its target. It does not delete folders.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Relative to the workspace, with / between names."},
                },
                "required": ["path"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedDeletion | Refusal:
        try:
            path = ArgumentFields(self.name, arguments.value, ("path",)).text("path")
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, path, follow=False)
        if isinstance(located, Refusal):
            return located
        if located.is_in_state_directory:
            return refuse_own_path(path)
        return PlannedDeletion(tool_context, located)


class PlannedDeletion(PlannedFileEffect):
    """One call; see `contract.Planned`."""

    def __init__(self, tool_context: ToolContext, located: ResolvedPath) -> None:
        super().__init__(tool_context, located)
        self._located = located
        self._shown = one_line(display_path(located.resolved, tool_context.root))

    @property
    def title(self) -> str:
        start = f"{DeleteFile.name}: "
        return start + one_line(self._shown, TITLE_CHARS_MAX - len(start))

    def preview(self) -> Preview | Refusal:
        if self.is_unseen:
            return Preview(" ".join([f"Deletes {self._shown}.", *self.unseen_notes()]))
        return self.preview_content()

    def preview_content(self) -> Preview | Refusal:
        """Return the preview with the content, also of a path that no model may see: the server itself compares it."""
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        if (stale := self._stale(seen)) is not None:
            return stale
        assert seen.stat is not None
        what = f"the link {self._shown} (to {one_line(seen.stat.target or '')})"
        sentences = [f"Deletes {what if seen.stat.kind == 'link' else self._shown} ({seen.size} bytes)."]
        sentences += unstored_content_notes(seen, self._shown)
        is_file = seen.content is not None and seen.stat.kind == "file"
        text = decode_file(self._tool_context, seen.located, seen.content or b"") if is_file else None
        diff = unified_diff(text.content, "", self._shown, DIFF_BYTES_MAX) if isinstance(text, FileText) else None
        return Preview(" ".join(sentences), diff or None, {self._located.resolved: seen.digest})

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        if (stale := self._stale(seen)) is not None:
            return stale
        assert seen.stat is not None
        is_compared = preview is not None and (bool(preview.seen) or not self.is_unseen)
        if is_compared and preview is not None and (self._located.resolved, seen.digest) not in preview.seen.items():
            return Refusal("changed", f"{self._shown} has changed since it was shown; read it again.")
        checkpoint = store_content(self._tool_context, seen, attempt_id)
        if isinstance(checkpoint, Refusal):
            return checkpoint
        evidence = Evidence(
            path=seen.located.asked,
            resolved=seen.located.resolved,
            existed=True,
            before=seen.digest,
            before_bytes=seen.size,
            mode=seen.stat.mode,
            temporary=temporary_name(seen.located.name, attempt_id),
            checkpoint=checkpoint,
            kind="link" if seen.stat.kind == "link" else "file",
            attributes=seen.attributes,
        )
        return EvidenceResult((evidence,))

    def _stale(self, seen: EntryState) -> Refusal | None:
        return refuse_stale(self.known, seen, self._shown)

    def _perform(self, running: CallContext) -> ToolOutcome:
        (evidence,) = running.evidence
        return self._outcome(evidence, remove(self._tool_context, evidence, running.is_cancelled))

    def _outcome(self, evidence: Evidence, removal: RemoveOutcome) -> ToolOutcome:
        match removal:
            case Removed():
                files = (
                    FileChange(
                        path=display_path(evidence.resolved, self._tool_context.root),
                        change="deleted",
                        before=evidence.before,
                    ),
                )
                text = f"{self._shown} was deleted; the path is free now."
                return ToolOutcome("returned", text, files=files, check="satisfied")
            case Untouched(reason="cancelled", text=text):
                return ToolOutcome("stopped", f"{text} {self._shown} is unchanged.", "cancelled")
            case Untouched(reason=why, text=text, kept_files=kept):
                return ToolOutcome("failed", f"{text} Nothing was deleted.", why, kept_files=kept)
            case Conflict(text=text, kept_files=kept):
                return ToolOutcome("unknown", text, "conflict", check="conflict", kept_files=kept)

    def _read_current(self) -> EntryState | Refusal:
        seen = read_entry(self._tool_context, self._located, is_source=True)
        if isinstance(seen, Refusal):
            return seen
        if seen.stat is None:
            note = missing_note(self._tool_context, seen.located)
            return Refusal("not_found", f"{self._shown} does not exist.{note}")
        return (
            refuse_write_protected(self._tool_context, seen, self._shown)
            or refuse_fixed_name(self._tool_context, seen.located, self._shown)
            or seen
        )
