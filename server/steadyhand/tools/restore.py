"""Bringing back the content that stood before an attempt, as a checked effect of its own (row A5).

For every path of the old evidence: what stands there now is kept first, so that a restore can itself be undone; then
the old content before is put there, or what was not there before is removed. The rooms that replace and remove files
and make links do the work, with their gates: what somebody saved since is never overwritten. Paths that get content
come first.

It offers no tool to the model; the session plans it from the evidence of the attempt that it undoes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import anyio.to_thread
import attrs

from steadyhand.core.record import Change, EffectClass, Evidence, FileChange, Scope
from steadyhand.ports import Attributes
from steadyhand.tools.change import temporary_name, title_chars_max
from steadyhand.tools.content import Contents
from steadyhand.tools.place import Located, display, locate, one_line, parts_of
from steadyhand.tools.relink import Linked, relink
from steadyhand.tools.remove import Removed, Untouched, remove
from steadyhand.tools.replace import Conflict, Moving, NotReplaced, Replaced, replace
from steadyhand.tools.standing import Standing, keep, see, write_protected
from steadyhand.tools.tool import Done, Gathered, Ground, Preview, Refusal, Running, checkpoint_bytes_max

NAME = "restore"


def hindrance_to_restore(evidence: Sequence[Evidence]) -> str | None:
    """Why an attempt with this evidence cannot be undone; None if it can, as far as the evidence tells."""
    if not evidence:
        return "it left no evidence of what was there before"
    for one in evidence:
        if one.existed and one.checkpoint is None:
            return f"the content of {one.path} before was not kept"
    return None


@attrs.frozen
class _Path:
    """One path: where it is, and the evidence of the attempt that is undone."""

    located: Located
    old: Evidence


def plan_restore(ground: Ground, evidence: Sequence[Evidence]) -> PlannedRestore | Refusal:
    """The restore of an attempt with this evidence. Reads only; blocks."""
    why = hindrance_to_restore(evidence)
    if why is not None:
        return Refusal("unsupported", f"It cannot be restored: {why}.")
    paths: list[_Path] = []
    for old in evidence:
        located = locate(ground, display(ground.root, old.resolved), follow=False)
        if isinstance(located, Refusal):
            return located
        if located.resolved != old.resolved:
            return Refusal("changed", f"The path {one_line(old.path)} leads elsewhere now.")
        paths.append(_Path(located, old))
    return PlannedRestore(ground, tuple(paths))


class PlannedRestore:
    """See `tool.Planned`. Gathered and run at most once."""

    effect: ClassVar[EffectClass] = "writes_files"
    command: ClassVar[tuple[str, str] | None] = None
    outside: ClassVar[tuple[str, ...]] = ()
    protected: ClassVar[tuple[str, ...]] = ()

    def __init__(self, ground: Ground, paths: tuple[_Path, ...]) -> None:
        self._ground = ground
        self._paths = paths

    @property
    def scope(self) -> Scope:
        return Scope(paths=tuple(path.old.resolved for path in self._paths))

    @property
    def title(self) -> str:
        shown = ", ".join(display(self._ground.root, path.old.resolved) for path in self._paths)
        return f"{NAME}: {one_line(shown, title_chars_max - len(NAME) - 2)}"

    def preview(self) -> Preview | Refusal:
        return Preview(f"Brings back the content before of {self.title.partition(': ')[2]}.")

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        found: list[Evidence] = []
        for path in self._paths:
            standing = see(self._ground, path.located)
            if isinstance(standing, Refusal):
                return standing
            refusal = self._unfit(standing, path.old)
            if refusal is not None:
                return refusal
            checkpoint = keep(self._ground, standing, attempt_id)
            if isinstance(checkpoint, Refusal):
                return checkpoint
            found.append(_evidence(standing, path.old, attempt_id, checkpoint))
        return Gathered(tuple(found))

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._body, running)

    def _unfit(self, standing: Standing, old: Evidence) -> Refusal | None:
        shown = one_line(display(self._ground.root, standing.located.resolved))
        if standing.look is not None and standing.look.kind == "link" and old.kind != "link":
            return Refusal("unsupported", f"{shown} is a link now; it is not replaced by a restore.")
        if standing.look is not None and old.kind == "link" and old.existed and standing.digest != old.before:
            return Refusal("unsupported", f"Something else stands at {shown} now; no link takes its place.")
        if standing.look is not None and standing.content is None:
            return Refusal("too_large", f"{shown} is too large now to be kept, so the restore could not be undone.")
        return write_protected(self._ground, standing, shown)

    def _body(self, running: Running) -> Done:
        ordered = sorted(zip(running.evidence, self._paths, strict=True), key=lambda pair: pair[0].intended is None)
        files: list[FileChange] = []
        for evidence, path in ordered:
            trouble = self._put_back(evidence, path.old, running)
            if trouble is not None:
                return _stopped_at(trouble, bool(files))
            if (change := _change(self._ground, evidence)) is not None:
                files.append(change)
        names = ", ".join(display(self._ground.root, path.old.resolved) for path in self._paths)
        text = f"The content before was brought back: {names}. Read back from disk."
        return Done("returned", text, files=tuple(files), check="satisfied")

    def _put_back(self, evidence: Evidence, old: Evidence, running: Running) -> Done | None:
        """One path. None: it is as it was before that attempt."""
        if (evidence.existed, evidence.before) == (evidence.intended is not None, evidence.intended):
            return None
        if evidence.intended is None:
            removal = remove(self._ground, evidence, running.cancelled)
            return None if isinstance(removal, Removed) else _done(removal)
        assert old.checkpoint is not None, "looked at when it was planned"
        store = Contents(self._ground.disk, self._ground.session_folder, "checkpoints")
        content = store.read(old.checkpoint, checkpoint_bytes_max)
        if content is None:
            return Done("failed", f"The kept content of {old.path} is missing or damaged; nothing was changed.", "lost")
        if evidence.kind == "link":
            linking = relink(self._ground, evidence, content.decode("utf-8", "surrogateescape"), running.cancelled)
            return None if isinstance(linking, Linked) else _done(linking)
        moving = None if evidence.existed or old.mode is None else _with_mode(self._ground, old.mode)
        replacement = replace(self._ground, evidence, content, running.cancelled, moving)
        return None if isinstance(replacement, Replaced) else _done(replacement)


def _evidence(standing: Standing, old: Evidence, attempt_id: str, checkpoint: str | None) -> Evidence:
    return Evidence(
        path=standing.located.asked,
        resolved=standing.located.resolved,
        existed=standing.look is not None,
        before=standing.digest,
        before_bytes=standing.size,
        intended=old.before if old.existed else None,
        intended_bytes=old.before_bytes if old.existed else None,
        mode=standing.look.mode if standing.look is not None else old.mode,
        encoding=old.encoding,
        line_ending=old.line_ending,
        temporary=temporary_name(standing.located.name, attempt_id),
        checkpoint=checkpoint,
        kind=old.kind,
    )


def _with_mode(ground: Ground, mode: int) -> Moving:
    """A file that is gone comes back with its mode, as one of our own."""
    parts = parts_of(ground.session_folder)
    parent = ground.disk.open_folder("/" + "/".join(parts[:-1]))
    try:
        ours = ground.disk.look(parent, parts[-1])
    finally:
        ground.disk.close(parent)
    assert ours is not None, "the session's own folder"
    return Moving(Attributes(mode, ours.uid, ours.gid, {}), lambda: None)


def _change(ground: Ground, evidence: Evidence) -> FileChange | None:
    path = display(ground.root, evidence.resolved)
    if (evidence.existed, evidence.before) == (evidence.intended is not None, evidence.intended):
        return None
    kind: Change = "modified" if evidence.existed else "created"
    if evidence.intended is None:
        return FileChange(path, "deleted", evidence.before)
    return FileChange(path, kind, evidence.before, evidence.intended, evidence.intended_bytes)


def _done(found: NotReplaced | Untouched | Conflict) -> Done:
    """What a room that did not do it says."""
    if isinstance(found, Conflict):
        return Done("unknown", found.text, "conflict", check="conflict", kept=found.kept)
    return Done("stopped" if found.why == "cancelled" else "failed", found.text, found.why, kept=found.kept)


def _stopped_at(trouble: Done, some_done: bool) -> Done:
    """A restore of several paths that got only half way is neither old nor new."""
    if not some_done:
        return trouble
    text = f"{trouble.text} Other paths of it were brought back already, so it is half done."
    return attrs.evolve(trouble, outcome="unknown", text=text, check="conflict")
