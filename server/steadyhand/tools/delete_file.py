"""`delete_file {path}`: remove one file or link, so that it can be brought back (rows W1, W4, W8).

A link is removed itself, never what it leads to. Folders are refused: they are removed only by a command, which leaves
no evidence. The content before, of a link its target, is kept in `checkpoints/` before *started*.
"""

from __future__ import annotations

from typing import ClassVar

import anyio.to_thread

from steadyhand.core.diff import unified
from steadyhand.core.identity import Arguments, canonical_json
from steadyhand.core.model import ToolOffer
from steadyhand.core.record import EffectClass, Evidence, FileChange, Scope
from steadyhand.core.text_edit import FileText, decode
from steadyhand.tools.arguments import Fields, Unfit
from steadyhand.tools.change import diff_bytes_max, temporary_name, title_chars_max
from steadyhand.tools.place import Located, display, locate, one_line
from steadyhand.tools.remove import Removal, Removed, Untouched, remove
from steadyhand.tools.replace import Conflict
from steadyhand.tools.standing import Standing, keep, not_kept, see, write_protected
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running


class DeleteFile:
    """The tool; see `tool.Tool`."""

    name = "delete_file"
    effect: EffectClass = "writes_files"
    offer = ToolOffer(
        name,
        "Delete one file, or a symbolic link itself and not what it leads to. Folders are not deleted.",
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

    def prepare(self, arguments: Arguments, ground: Ground) -> PlannedDeletion | Refusal:
        try:
            path = Fields(self.name, arguments.value, ("path",)).text("path")
        except Unfit as unfit:
            return unfit.refusal
        located = locate(ground, path, follow=False)
        return located if isinstance(located, Refusal) else PlannedDeletion(ground, located)


class PlannedDeletion:
    """One call; see `tool.Planned`."""

    effect: ClassVar[EffectClass] = "writes_files"
    command: ClassVar[tuple[str, str] | None] = None

    def __init__(self, ground: Ground, located: Located) -> None:
        self._ground = ground
        self._located = located
        self._shown = one_line(display(ground.root, located.resolved))

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self._located.resolved,))

    @property
    def title(self) -> str:
        start = f"{DeleteFile.name}: "
        return start + one_line(self._shown, title_chars_max - len(start))

    @property
    def outside(self) -> tuple[str, ...]:
        return () if self._located.inside else (self._located.resolved,)

    @property
    def protected(self) -> tuple[str, ...]:
        return (self._located.resolved,) if self._located.protected else ()

    def preview(self) -> Preview | Refusal:
        seen = self._see()
        if isinstance(seen, Refusal):
            return seen
        assert seen.look is not None
        what = f"the link {self._shown} (to {one_line(seen.look.target or '')})"
        sentences = [f"Deletes {what if seen.look.kind == 'link' else self._shown} ({seen.size} bytes)."]
        if not self._located.inside:
            sentences.append("It lies outside the workspace.")
        sentences += not_kept(seen, self._shown)
        text = decode(seen.content) if seen.content is not None and seen.look.kind == "file" else None
        diff = unified(text.content, "", self._shown, diff_bytes_max) if isinstance(text, FileText) else None
        return Preview(" ".join(sentences), diff or None, {self._located.resolved: seen.digest})

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        seen = self._see()
        if isinstance(seen, Refusal):
            return seen
        assert seen.look is not None
        if preview is not None and (self._located.resolved, seen.digest) not in preview.seen.items():
            return Refusal("changed", f"{self._shown} is no longer what was shown; look at it again.")
        checkpoint = keep(self._ground, seen, attempt_id)
        if isinstance(checkpoint, Refusal):
            return checkpoint
        evidence = Evidence(
            path=seen.located.asked,
            resolved=seen.located.resolved,
            existed=True,
            before=seen.digest,
            before_bytes=seen.size,
            mode=seen.look.mode,
            temporary=temporary_name(seen.located.name, attempt_id),
            checkpoint=checkpoint,
            kind="link" if seen.look.kind == "link" else "file",
        )
        return Gathered((evidence,))

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._body, running)

    def _body(self, running: Running) -> Done:
        (evidence,) = running.evidence
        return self._done(evidence, remove(self._ground, evidence, running.cancelled))

    def _done(self, evidence: Evidence, removal: Removal) -> Done:
        match removal:
            case Removed():
                files = (FileChange(display(self._ground.root, evidence.resolved), "deleted", evidence.before),)
                text = f"{self._shown} was deleted: nothing stands there now."
                return Done("returned", text, files=files, check="satisfied")
            case Untouched(why="cancelled", text=text):
                return Done("stopped", f"{text} {self._shown} was not touched.", "cancelled")
            case Untouched(why=why, text=text, kept=kept):
                return Done("failed", f"{text} Nothing was deleted.", why, kept=kept)
            case Conflict(text=text, kept=kept):
                return Done("unknown", text, "conflict", check="conflict", kept=kept)

    def _see(self) -> Standing | Refusal:
        seen = see(self._ground, self._located)
        if isinstance(seen, Refusal):
            return seen
        if seen.look is None:
            return Refusal("not_found", f"{self._shown} does not exist.")
        return write_protected(self._ground, seen, self._shown) or seen
