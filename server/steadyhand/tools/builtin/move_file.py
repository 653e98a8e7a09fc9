"""`move_file {from, to, overwrite?}`: give one file or link another path; one effect on two paths (rows W1, W3, W8).

`to` is the whole new path, never a folder to move into. What exists there is replaced only with `overwrite`, and only a
file by a file. A link is moved as a link, with its target as stored. Folders are refused, as for `delete_file`. The
content before of both paths is stored in `checkpoints/` before *started*, and each path has its evidence and check.
"""

from __future__ import annotations

from steadyhand.domain.model.messages import ToolOffer
from steadyhand.domain.records.identity import Arguments, canonical_json
from steadyhand.domain.records.record import EffectClass, Evidence, FileChange
from steadyhand.domain.views.render import display_path
from steadyhand.tools.arguments import ArgumentFields, InvalidArguments
from steadyhand.tools.contract import CallContext, EvidenceResult, Preview, Refusal, ToolContext, ToolOutcome
from steadyhand.tools.workspace.paths import ResolvedPath, locate_for_call, one_line
from steadyhand.tools.workspace.similar_names import missing_note, refuse_other_form, twins_note
from steadyhand.tools.writes.entry_state import (
    EntryState,
    read_entry,
    refuse_fixed_name,
    refuse_stale,
    refuse_write_protected,
    store_content,
    unstored_content_notes,
)
from steadyhand.tools.writes.move import Moved, MoveOutcome, move_entry
from steadyhand.tools.writes.planned_write import TITLE_CHARS_MAX, PlannedFileEffect, refuse_own_path, temporary_name
from steadyhand.tools.writes.remove import Untouched
from steadyhand.tools.writes.replace_file import Conflict
from steadyhand_values import frozen


class MoveFile:
    """The tool; see `contract.Tool`."""

    name = "move_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Move or rename one file or symbolic link (the link itself). `to` is the whole new path, not a folder; missing"
        " folders are created. It replaces an existing file only if `overwrite` is true. It does not move folders.",
        canonical_json(
            {
                "type": "object",
                "properties": {
                    "from": {"type": "string", "description": "Relative to the workspace, with / between names."},
                    "to": {"type": "string", "description": "The whole new path."},
                    "overwrite": {"type": "boolean", "description": "Replace an existing file."},
                },
                "required": ["from", "to"],
                "additionalProperties": False,
            }
        ),
    )

    def prepare(self, arguments: Arguments, tool_context: ToolContext) -> PlannedMove | Refusal:
        try:
            fields = ArgumentFields(self.name, arguments.value, ("from", "to", "overwrite"))
            start, goal, overwrite = fields.text("from"), fields.text("to"), fields.optional_bool("overwrite")
        except InvalidArguments as invalid:
            return invalid.refusal
        located = locate_for_call(tool_context, start, follow=False)
        if isinstance(located, Refusal):
            return located
        there = locate_for_call(tool_context, goal, follow=False)
        if isinstance(there, Refusal):
            return there
        for one in (located, there):
            if one.is_in_state_directory:
                return refuse_own_path(one.asked)
        if located.resolved == there.resolved:
            return Refusal("bad_arguments", f"move_file: `from` and `to` are the same path.{_spelling_note(there)}")
        return PlannedMove(tool_context, located, there, overwrite)


@frozen
class _MoveState:
    """What the two paths have now."""

    start: EntryState
    goal: EntryState


class PlannedMove(PlannedFileEffect):
    """One call; see `contract.Planned`."""

    def __init__(self, tool_context: ToolContext, start: ResolvedPath, goal: ResolvedPath, overwrite: bool) -> None:
        super().__init__(tool_context, start, goal)
        self._start, self._goal = start, goal
        self._overwrite = overwrite
        self._old = one_line(display_path(start.resolved, tool_context.root))
        self._new = one_line(display_path(goal.resolved, tool_context.root))
        self._content: bytes | None = None
        self._twins_note = ""

    @property
    def title(self) -> str:
        begin, arrow = f"{MoveFile.name}: ", " → "
        room = TITLE_CHARS_MAX - len(begin) - len(arrow)
        old = one_line(self._old, max(room // 2, room - len(self._new)))
        return begin + old + arrow + one_line(self._new, room - len(old))

    def preview(self) -> Preview | Refusal:
        if self.is_unseen:
            replaces = " Replaces a file that is there." if self._overwrite else ""
            return Preview(" ".join([f"Moves {self._old} to {self._new}.{replaces}", *self.unseen_notes()]))
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        start, goal = seen.start, seen.goal
        link = "the link " if start.stat is not None and start.stat.kind == "link" else ""
        sentences = [f"Moves {link}{self._old} to {self._new} ({start.size} bytes)."]
        if goal.stat is not None:
            sentences.append(f"Replaces the file there ({goal.size} bytes).")
        if goal.located.missing_count > 1:
            sentences.append("Missing folders are created too.")
        sentences += [*unstored_content_notes(start, self._old), *unstored_content_notes(goal, self._new)]
        return Preview(" ".join(sentences), None, self._digests(seen))

    def gather(self, attempt_id: str, preview: Preview | None) -> EvidenceResult | Refusal:
        seen = self._read_current()
        if isinstance(seen, Refusal):
            return seen
        if not self.is_unseen and preview is not None and dict(preview.seen) != self._digests(seen):
            return Refusal("changed", f"{self._old} or {self._new} has changed since it was shown; read it again.")
        kept: list[str | None] = []
        for one in (seen.start, seen.goal):
            checkpoint = store_content(self._tool_context, one, attempt_id)
            if isinstance(checkpoint, Refusal):
                return checkpoint
            kept.append(checkpoint)
        self._content = seen.start.content
        if seen.goal.stat is None:
            besides = seen.start.located.resolved
            self._twins_note = twins_note(self._tool_context, seen.goal.located, besides)
        return EvidenceResult(_make_evidence(seen, attempt_id, *kept))

    def _perform(self, running: CallContext) -> ToolOutcome:
        start, goal = running.evidence
        moved = move_entry(self._tool_context, start, goal, self._content, running.is_cancelled)
        return self._outcome(start, goal, moved)

    def _outcome(self, start: Evidence, goal: Evidence, move: MoveOutcome) -> ToolOutcome:
        match move:
            case Moved(missing_attributes=missing):
                root = self._tool_context.root
                text = f"{self._old} was moved to {self._new}: {goal.intended_bytes} bytes, SHA-256 {goal.intended}."
                if missing:
                    text += f" Not preserved, because the system did not allow it: {', '.join(missing)}."
                text += self._twins_note
                files = (
                    FileChange(
                        path=display_path(goal.resolved, root),
                        change="moved",
                        before=goal.before,
                        after=goal.intended,
                        bytes=goal.intended_bytes,
                        from_=display_path(start.resolved, root),
                    ),
                )
                return ToolOutcome("returned", text, files=files, check="satisfied")
            case Untouched(reason="cancelled", text=text, kept_files=kept):
                return ToolOutcome("stopped", f"{text} Nothing was moved.", "cancelled", kept_files=kept)
            case Untouched(reason=why, text=text, kept_files=kept):
                return ToolOutcome("failed", f"{text} Nothing was moved.", why, kept_files=kept)
            case Conflict(text=text, kept_files=kept):
                return ToolOutcome("unknown", text, "conflict", check="conflict", kept_files=kept)

    def _read_current(self) -> _MoveState | Refusal:
        """Resolve both paths again, and return their state or a refusal."""
        found = self._read_both()
        if isinstance(found, Refusal):
            return found
        return (
            refuse_fixed_name(self._tool_context, found.start.located, self._old)
            or refuse_fixed_name(self._tool_context, found.goal.located, self._new)
            or found
        )

    def _read_both(self) -> _MoveState | Refusal:
        start = read_entry(self._tool_context, self._start, is_source=True)
        if isinstance(start, Refusal):
            return start
        if start.stat is None:
            note = missing_note(self._tool_context, start.located)
            return Refusal("not_found", f"{self._old} does not exist.{note}")
        goal = read_entry(self._tool_context, self._goal)
        if isinstance(goal, Refusal):
            return goal
        if goal.stat is None:
            besides = start.located.resolved
            return refuse_other_form(self._tool_context, goal.located, besides) or _MoveState(start, goal)
        if not self._overwrite:
            return Refusal("bad_arguments", f"{self._new} already exists; set `overwrite` to replace it.")
        if goal.stat.identity == start.stat.identity:
            return Refusal("unsupported", f"{self._old} and {self._new} are two names of the same file.")
        if "link" in (goal.stat.kind, start.stat.kind):
            return Refusal("unsupported", "A move with a link never replaces anything; delete what is there first.")
        if (stale := refuse_stale(self.known, goal, self._new)) is not None:
            return stale
        return refuse_write_protected(self._tool_context, goal, self._new) or self._require_content(start, goal)

    def _require_content(self, start: EntryState, goal: EntryState) -> _MoveState | Refusal:
        """Refuse if the content is too large for the copy that replaces another file."""
        if start.content is None:
            return Refusal("too_large", f"{self._old} is too large ({start.size} bytes) to replace another file.")
        return _MoveState(start, goal)

    def _digests(self, seen: _MoveState) -> dict[str, str | None]:
        return {self._start.resolved: seen.start.digest, self._goal.resolved: seen.goal.digest}


def _spelling_note(there: ResolvedPath) -> str:
    """Return what to do if only the spelling of the name was to change, on a file system that folds."""
    wanted = there.asked.rstrip("/").rpartition("/")[2]
    if wanted in ("", ".", "..", there.name):
        return ""
    return " The file system takes both spellings for one name; a command (mv) can change the spelling."


def _make_evidence(
    seen: _MoveState, attempt_id: str, start_kept: str | None, goal_kept: str | None
) -> tuple[Evidence, Evidence]:
    """The old path and the new one, in this order."""
    start, goal = seen.start, seen.goal
    assert start.stat is not None
    old = Evidence(
        path=start.located.asked,
        resolved=start.located.resolved,
        existed=True,
        before=start.digest,
        before_bytes=start.size,
        mode=start.stat.mode,
        temporary=temporary_name(start.located.name, attempt_id),
        checkpoint=start_kept,
        kind="link" if start.stat.kind == "link" else "file",
        attributes=start.attributes,
    )
    new = Evidence(
        path=goal.located.asked,
        resolved=goal.located.resolved,
        existed=goal.stat is not None,
        before=goal.digest,
        before_bytes=goal.size,
        intended=old.before,
        intended_bytes=old.before_bytes,
        mode=old.mode,
        temporary=temporary_name(goal.located.name, attempt_id),
        checkpoint=goal_kept,
        kind=old.kind,
        attributes=goal.attributes,
    )
    return old, new
