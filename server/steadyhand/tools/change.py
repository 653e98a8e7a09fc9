"""A change of one file, planned, shown, proved and done; `write_file` and `edit_file` are two recipes for it.

A recipe makes the intended bytes from the bytes before, and nothing else goes into them, so that recovery can make
them again from the stored arguments and the checkpoint. Everything that can be refused is refused before *started*:
what is no regular file, not writable by its own mode (case 58), has several names or an access list, is no UTF-8 text
or has unsaved changes in the editor, and what is no longer what the preview showed. The content before is kept, synced,
before `gather` returns (row W8).

Missing parent folders are made by the body, after *started*; being there proves nothing and is checked nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, TypeAlias

import anyio.to_thread
import attrs

from steadyhand.core.diff import unified
from steadyhand.core.identity import sha256
from steadyhand.core.record import Change, EffectClass, Evidence, FileChange, Scope
from steadyhand.core.text_edit import FileText, NotText, decode, describe
from steadyhand.ports import Look
from steadyhand.tools.content import Contents, digest_of
from steadyhand.tools.open_document import unsaved_path
from steadyhand.tools.place import Located, display, entered, locate, name_bytes_max, one_line
from steadyhand.tools.replace import Conflict, NotReplaced, Replaced, Replacement, replace
from steadyhand.tools.tool import (
    Done,
    Gathered,
    Ground,
    Preview,
    Refusal,
    Running,
    checkpoint_bytes_max,
    file_bytes_max,
)

diff_bytes_max = 64 * 1024
title_chars_max = 80
access_list_name = "system.posix_acl_access"


@attrs.frozen
class Intended:
    """What a recipe makes. `note` says how, for the reply."""

    content: bytes
    note: str = ""


Recipe: TypeAlias = Callable[["FileText | None"], "Intended | Refusal"]
"""From the text before (None: there is no file, or it is above `file_bytes_max`)."""


@attrs.frozen
class _Seen:
    """What stands under the path now. `text` is None for what is not there and for what is too large to be kept."""

    located: Located
    look: Look | None
    digest: str | None = None
    size: int | None = None
    text: FileText | None = None


class PlannedChange:
    """One call of a tool that changes one file; see `tool.Planned`. It is gathered and run at most once."""

    effect: ClassVar[EffectClass] = "writes_files"
    command: ClassVar[tuple[str, str] | None] = None

    def __init__(self, tool: str, ground: Ground, located: Located, recipe: Recipe, creates: bool) -> None:
        """`creates`: whether the file may be missing."""
        self._tool = tool
        self._ground = ground
        self._located = located
        self._recipe = recipe
        self._creates = creates
        self._shown = one_line(display(ground.root, located.resolved))
        self._made: Intended | None = None

    @property
    def scope(self) -> Scope:
        return Scope(paths=(self._located.resolved,))

    @property
    def title(self) -> str:
        start = f"{self._tool}: "
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
        made = self._recipe(seen.text)
        if isinstance(made, Refusal):
            return made
        diff: str | None = None
        if seen.look is None or seen.text is not None:
            before = "" if seen.text is None else seen.text.content
            after = decode(made.content)
            new = after.content if isinstance(after, FileText) else made.content.decode("utf-8", "replace")
            diff = unified(before, new, self._shown, diff_bytes_max) or None
        return Preview(" ".join(self._sentences(seen, made)), diff, {self._located.resolved: seen.digest})

    def gather(self, attempt_id: str, preview: Preview | None) -> Gathered | Refusal:
        seen = self._see()
        if isinstance(seen, Refusal):
            return seen
        resolved = seen.located.resolved
        if preview is not None and (resolved, seen.digest) not in preview.seen.items():
            return Refusal("changed", f"{self._shown} is no longer what was shown; read it again.")
        made = self._recipe(seen.text)
        if isinstance(made, Refusal):
            return made
        checkpoint: str | None = None
        if seen.text is not None and len(seen.text.raw) <= checkpoint_bytes_max:
            store = Contents(self._ground.disk, self._ground.session_folder, "checkpoints")
            try:
                checkpoint = store.keep(seen.text.raw, attempt_id)
            except OSError as error:
                why = error.strerror or error
                return Refusal("io_error", f"The content of {self._shown} before could not be kept: {why}.")
        self._made = made
        return Gathered((_evidence(seen, made.content, attempt_id, checkpoint),))

    async def run(self, running: Running) -> Done:
        return await anyio.to_thread.run_sync(self._body, running)

    def _body(self, running: Running) -> Done:
        made, (evidence,) = self._made, running.evidence
        assert made is not None, "gathered before it runs"
        assert sha256(made.content) == evidence.intended, "what was gathered is what runs"
        if evidence.existed and evidence.before == evidence.intended:
            return self._left_alone(evidence)
        return self._done(evidence, made, replace(self._ground, evidence, made.content, running.cancelled))

    def _left_alone(self, evidence: Evidence) -> Done:
        """What is already there is not written again; the file keeps its times."""
        located = locate(self._ground, evidence.path)
        if isinstance(located, Located) and located.resolved == evidence.resolved and located.kind == "file":
            with entered(self._ground, located.folders) as folder:
                digest, size = digest_of(self._ground.disk, folder, located.name)
            if digest == evidence.intended:
                text = f"{self._shown} has exactly this content already ({size} bytes); nothing was written."
                return Done("returned", text, check="satisfied")
        return Done("failed", f"{self._shown} was changed by somebody else in the meantime.", "changed")

    def _done(self, evidence: Evidence, made: Intended, replacement: Replacement) -> Done:
        match replacement:
            case Replaced(digest=digest, bytes=size, not_given=not_given):
                change: Change = "modified" if evidence.existed else "created"
                text = f"{self._shown} was {change}{made.note}: {size} bytes on disk, SHA-256 {digest}."
                if not_given:
                    text += f" Not kept, since the system did not allow it: {', '.join(not_given)}."
                path = display(self._ground.root, evidence.resolved)
                files = (FileChange(path, change, evidence.before, digest, size),)
                return Done("returned", text, files=files, check="satisfied")
            case NotReplaced(why="cancelled", text=text, kept=kept):
                return Done("stopped", f"{text} {self._shown} was not touched.{_left(kept)}", "cancelled", kept=kept)
            case NotReplaced(why=why, text=text, kept=kept):
                return Done("failed", f"{text} Nothing was replaced.{_left(kept)}", why, kept=kept)
            case Conflict(text=text, kept=kept):
                return Done("unknown", text, "conflict", check="conflict", kept=kept)

    def _see(self) -> _Seen | Refusal:
        """The path anew, and all that can be refused about it."""
        located = locate(self._ground, self._located.asked)
        if isinstance(located, Refusal):
            return located
        if located.resolved != self._located.resolved:
            return Refusal("changed", f"The path {self._shown} leads elsewhere now.")
        if located.in_state_directory:
            return Refusal("policy", f"{self._shown} belongs to Steadyhand itself and is never changed by a tool.")
        unsaved = unsaved_path(self._ground, located.asked, located.resolved)
        if unsaved is not None:
            return Refusal(
                "unsaved", f"{self._shown} has unsaved changes in the editor; it must be saved first.", unsaved
            )
        if located.kind is None:
            if not self._creates:
                return Refusal("not_found", f"{self._shown} does not exist.")
            return _Seen(located, None)
        if located.kind != "file":
            what = "a folder" if located.kind == "folder" else "not a regular file"
            return Refusal("unsupported", f"{self._shown} is {what}.")
        try:
            return self._see_file(located)
        except OSError as error:
            return Refusal("io_error", f"{self._shown} cannot be read: {error.strerror or error}.")

    def _see_file(self, located: Located) -> _Seen | Refusal:
        disk, name = self._ground.disk, located.name
        with entered(self._ground, located.folders) as folder:
            look = disk.look(folder, name)
            if look is None or look.kind != "file":
                return Refusal("changed", f"{self._shown} changed while it was looked at.")
            if not disk.writable(folder, name):
                return Refusal("read_only", f"{self._shown} is read-only (mode {look.mode:04o}).")
            if look.links > 1:
                why = (
                    f"has {look.links} names (hard links), and replacing it would leave the others with the old content"
                )
                return Refusal("unsupported", f"{self._shown} {why}.")
            if access_list_name in disk.attributes(folder, name).extended:
                return Refusal("unsupported", f"{self._shown} has an access control list, which is not kept yet.")
            if look.size > file_bytes_max and not self._creates:
                return Refusal("too_large", f"{self._shown} is larger than {file_bytes_max} bytes and is not edited.")
            if look.size > file_bytes_max:
                return _Seen(located, look, *digest_of(disk, folder, name))
            raw = disk.read(folder, name, file_bytes_max + 1)
            if len(raw) != look.size or disk.look(folder, name) != look:
                return Refusal("changed", f"{self._shown} changed while it was read.")
        text = decode(raw)
        if isinstance(text, NotText):
            return Refusal("unsupported", f"{self._shown}: {text.reason}")
        return _Seen(located, look, sha256(raw), len(raw), text)

    def _sentences(self, seen: _Seen, made: Intended) -> list[str]:
        """What the person should know before it is allowed."""
        before = f"from {seen.size} " if seen.look is not None else ""
        sentences = [
            f"{'Creates' if seen.look is None else 'Changes'} {self._shown}{made.note}"
            f" ({before}{'to ' if before else ''}{len(made.content)} bytes)."
        ]
        if seen.digest == sha256(made.content):
            sentences = [f"{self._shown} has exactly this content already; nothing will be written."]
        if not seen.located.inside:
            sentences.append("It lies outside the workspace.")
        if seen.located.missing > 1:
            sentences.append("Folders on its way are made too.")
        if seen.look is not None and seen.text is None:
            sentences.append(
                f"Its content before ({seen.size} bytes) is above {checkpoint_bytes_max} bytes and is not kept:"
                " it cannot be brought back."
            )
        return sentences


def temporary_name(name: str, attempt_id: str) -> str:
    """Of the file beside the target while it is written: hidden, one per attempt, never too long."""
    end = f".{attempt_id}.steadyhand"
    kept = name.encode("utf-8")[: name_bytes_max - len(end) - 1].decode("utf-8", "ignore")
    return f".{kept}{end}"


def _evidence(seen: _Seen, content: bytes, attempt_id: str, checkpoint: str | None) -> Evidence:
    encoding, line_ending = describe(content)
    return Evidence(
        path=seen.located.asked,
        resolved=seen.located.resolved,
        existed=seen.look is not None,
        before=seen.digest,
        before_bytes=seen.size,
        intended=sha256(content),
        intended_bytes=len(content),
        # A new file's mode is what the umask leaves, known only when it is there.
        mode=None if seen.look is None else seen.look.mode,
        encoding=encoding,
        line_ending=line_ending,
        temporary=temporary_name(seen.located.name, attempt_id),
        checkpoint=checkpoint,
    )


def _left(kept: tuple[str, ...]) -> str:
    return f" Left beside it: {', '.join(kept)}." if kept else ""
