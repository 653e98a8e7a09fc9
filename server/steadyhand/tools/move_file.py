"""`move_file {from, to, overwrite?}`: give one file or link another path; one effect over two paths (rows W1, W3, W8).

`to` is the whole new path, never a folder to put it into. What stands there is replaced only with `overwrite`, and only
a file by a file. A link is moved as a link, with its target as stored; folders are refused, as for `delete_file`. The
content of both paths before is kept in `checkpoints/` before *started*, and each has its evidence and its check.
"""

from __future__ import annotations

from typing import ClassVar

import anyio.to_thread
import attrs

from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass, Evidence, FileChange, Scope
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import temporary_name, title_chars_max
from steadyhand.tools.place import Located, display, locate, one_line
from steadyhand.tools.relocate import Move, Moved, relocate
from steadyhand.tools.remove import Untouched
from steadyhand.tools.replace import Conflict
from steadyhand.tools.standing import Standing, keep, not_kept, see, write_protected
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running


class MoveFile:
    """The tool; see `tool.Tool`."""

    name = "move_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Move or rename one file or symbolic link (the link itself). `to` is the whole new path, not a folder; missing"
        " folders are created. An existing file there is replaced only if `overwrite` is true. Folders are not moved.",
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

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedMove | Refusal:
        try:
            fields = Fields(self.name, arguments.value, ("from", "to", "overwrite"))
            start, goal, overwrite = fields.text("from"), fields.text("to"), fields.optional_yes("overwrite")
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, start, follow=False)
        if isinstance(located, Refusal):
            return located
        there = locate(ground, goal, follow=False)
        if isinstance(there, Refusal):
            return there
        if located.resolved == there.resolved:
            return Refusal("bad_arguments", "move_file: `from` and `to` are the same path.")
        return PlannedMove(ground, located, there, overwrite)


@attrs.frozen
class _Both:
    """What stands under the two paths."""

    start: Standing
    goal: Standing


class PlannedMove:
    """One call; see `tool.Planned`. It is gathered and run at most once."""

    effect: ClassVar[EffectClass] = "writes_files"
    command: ClassVar[tuple[str, str] | None] = None

    def __init__(self, ground: Ground, start: Located, goal: Located, overwrite: bool) -> None:
        self._ground = ground
        self._start, self._goal = start, goal
        self._overwrite = overwrite
        self._old = one_line(display(ground.root, start.resolved))
        self._new = one_line(display(ground.root, goal.resolved))
        self._content: bytes | None = None

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self._start.resolved, self._goal.resolved))

    @property
    def title(self) -> str:
        begin, arrow = f"{MoveFile.name}: ", " → "
        room = title_chars_max - len(begin) - len(arrow)
        old = one_line(self._old, max(room // 2, room - len(self._new)))
        return begin + old + arrow + one_line(self._new, room - len(old))

    @property
    def outside(self) -> tuple[str, ...]:
        return tuple(one.resolved for one in (self._start, self._goal) if not one.inside)

    @property
    def protected(self) -> tuple[str, ...]:
        return tuple(one.resolved for one in (self._start, self._goal) if one.protected)

    def preview(self) -> Preview | Refusal:
        seen = self._see()
        if isinstance(seen, Refusal):
            return seen
        start, goal = seen.start, seen.goal
        link = "the link " if start.look is not None and start.look.kind == "link" else ""
        sentences = [f"Moves {link}{self._old} to {self._new} ({start.size} bytes)."]
        if goal.look is not None:
            sentences.append(f"Replaces the file there ({goal.size} bytes).")
        sentences += [f"{shown} lies outside the workspace." for shown in self._shown_outside()]
        if goal.located.missing > 1:
            sentences.append("Folders on its way are made too.")
        sentences += [*not_kept(start, self._old), *not_kept(goal, self._new)]
        return Preview(" ".join(sentences), None, self._digests(seen))

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        seen = self._see()
        if isinstance(seen, Refusal):
            return seen
        if preview is not None and dict(preview.seen) != self._digests(seen):
            return Refusal("changed", f"{self._old} or {self._new} is no longer what was shown; look again.")
        kept: list[str | None] = []
        for one in (seen.start, seen.goal):
            checkpoint = keep(self._ground, one, attempt_id)
            if isinstance(checkpoint, Refusal):
                return checkpoint
            kept.append(checkpoint)
        self._content = seen.start.content
        return Gathered(_evidence(seen, attempt_id, *kept))

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._body, running)

    def _body(self, running: Running) -> Done:
        start, goal = running.evidence
        return self._done(start, goal, relocate(self._ground, start, goal, self._content, running.cancelled))

    def _done(self, start: Evidence, goal: Evidence, move: Move) -> Done:
        match move:
            case Moved(not_given=not_given):
                root = self._ground.root
                text = f"{self._old} was moved to {self._new}: {goal.intended_bytes} bytes, SHA-256 {goal.intended}."
                if not_given:
                    text += f" Not kept, since the system did not allow it: {', '.join(not_given)}."
                files = (
                    FileChange(
                        display(root, goal.resolved), "moved", goal.before, goal.intended, goal.intended_bytes,
                        display(root, start.resolved),
                    ),
                )  # fmt: skip
                return Done("returned", text, files=files, check="satisfied")
            case Untouched(why="cancelled", text=text, kept=kept):
                return Done("stopped", f"{text} Nothing was moved.", "cancelled", kept=kept)
            case Untouched(why=why, text=text, kept=kept):
                return Done("failed", f"{text} Nothing was moved.", why, kept=kept)
            case Conflict(text=text, kept=kept):
                return Done("unknown", text, "conflict", check="conflict", kept=kept)

    def _see(self) -> _Both | Refusal:
        """Both paths anew, and all that can be refused about the move."""
        start = see(self._ground, self._start)
        if isinstance(start, Refusal):
            return start
        if start.look is None:
            return Refusal("not_found", f"{self._old} does not exist.")
        goal = see(self._ground, self._goal)
        if isinstance(goal, Refusal):
            return goal
        if goal.look is None:
            return _Both(start, goal)
        if not self._overwrite:
            return Refusal("bad_arguments", f"{self._new} exists already; say `overwrite` to replace it.")
        if goal.look.identity == start.look.identity:
            return Refusal("unsupported", f"{self._old} and {self._new} are two names of the same file.")
        if "link" in (goal.look.kind, start.look.kind):
            return Refusal("unsupported", "A link neither replaces nor is replaced; delete what is there first.")
        return write_protected(self._ground, goal, self._new) or self._copied(start, goal)

    def _copied(self, start: Standing, goal: Standing) -> _Both | Refusal:
        if start.content is None:
            return Refusal("too_large", f"{self._old} is too large ({start.size} bytes) to replace another file.")
        return _Both(start, goal)

    def _digests(self, seen: _Both) -> dict[str, str | None]:
        return {self._start.resolved: seen.start.digest, self._goal.resolved: seen.goal.digest}

    def _shown_outside(self) -> list[str]:
        pairs = ((self._start, self._old), (self._goal, self._new))
        return [shown for located, shown in pairs if not located.inside]


def _evidence(seen: _Both, attempt_id: str, start_kept: str | None, goal_kept: str | None) -> tuple[Evidence, Evidence]:
    """The old path and the new one, in this order."""
    start, goal = seen.start, seen.goal
    assert start.look is not None
    old = Evidence(
        path=start.located.asked,
        resolved=start.located.resolved,
        existed=True,
        before=start.digest,
        before_bytes=start.size,
        mode=start.look.mode,
        temporary=temporary_name(start.located.name, attempt_id),
        checkpoint=start_kept,
        kind="link" if start.look.kind == "link" else "file",
    )
    new = Evidence(
        path=goal.located.asked,
        resolved=goal.located.resolved,
        existed=goal.look is not None,
        before=goal.digest,
        before_bytes=goal.size,
        intended=old.before,
        intended_bytes=old.before_bytes,
        mode=old.mode,
        temporary=temporary_name(goal.located.name, attempt_id),
        checkpoint=goal_kept,
        kind=old.kind,
    )
    return old, new
