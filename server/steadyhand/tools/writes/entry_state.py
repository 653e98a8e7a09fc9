"""The state of one directory entry, as evidence describes it: a file by its bytes, a link by its target (rows W1, W2).

A link is never followed here: a move or a deletion means the link itself. The content of a link is its target, as
stored, so it has a digest, a checkpoint and a check like a file. A folder or anything else has none of these.

`read_entry` reads a path for a planned call and refuses what no tool may change; `store_content` stores the content
before. `matches_evidence` compares directly before a change, and trusts only what did not change while it was read.
"""

from __future__ import annotations

import attrs

from steadyhand.domain.records.identity import sha256
from steadyhand.domain.records.record import FileAttributes
from steadyhand.domain.text.decoding import FileText, decode_as
from steadyhand.domain.views.render import display_path
from steadyhand.ports.disk import Disk, EntryStat, Folder
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, Refusal, ToolContext
from steadyhand.tools.workspace.open_documents import DocumentState, open_document, refuse_unsaved
from steadyhand.tools.workspace.paths import ResolvedPath, locate, one_line, open_folder
from steadyhand.tools.writes.blob_store import BlobStore, digest_of, link_content
from steadyhand.tools.writes.kept_attributes import read_attributes
from steadyhand.tools.writes.staleness import FileNow, KnownFiles, judge_replacement
from steadyhand_values import frozen


@frozen
class EntryState:
    """What a path had. `digest` None: nothing was there. `content` None: nothing was there, or it is too large to
    store.
    """

    located: ResolvedPath
    stat: EntryStat | None = None
    digest: str | None = None
    size: int | None = None  # bytes
    content: bytes | None = None
    attributes: FileAttributes | None = None  # of a file
    document: DocumentState | None = None  # a clean document of the file


def read_entry(tool_context: ToolContext, expected: ResolvedPath, is_source: bool = False) -> EntryState | Refusal:
    """Resolve the path again without following its end, and return its state or a refusal. Blocks.

    `is_source`: the entry is to be moved away or removed, so one that is gone is not there, whatever the editor has."""
    shown = one_line(display_path(expected.resolved, tool_context.root))
    located = locate(tool_context, expected.asked, follow=False)
    if isinstance(located, Refusal):
        return located
    if located.resolved != expected.resolved:
        return Refusal("changed", f"The path {shown} now leads somewhere else.")
    if located.is_in_state_directory:
        return Refusal("policy", f"{shown} belongs to Steadyhand itself and cannot be changed by a tool.")
    document = open_document(tool_context, located.asked, located.resolved)
    if is_source and located.kind is None:
        return EntryState(located)
    if document is not None and document.is_dirty:
        return refuse_unsaved(shown, document)
    if located.kind is None:
        return EntryState(located)
    if located.kind == "folder":
        return Refusal("unsupported", f"{shown} is a folder; use a command to move or delete folders.")
    if located.kind == "other":
        return Refusal("unsupported", f"{shown} is neither a file nor a link.")
    try:
        with open_folder(tool_context, located.folders) as folder:
            found = _read_state(tool_context.disk, folder, located)
    except OSError as error:
        return Refusal("io_error", f"{shown} cannot be read: {error.strerror or error}.")
    if found is None:
        return Refusal("changed", f"{shown} changed while it was checked.")
    return attrs.evolve(found, document=document)


def store_content(tool_context: ToolContext, state: EntryState, attempt_id: str) -> str | Refusal | None:
    """Store the content durably and return its digest; None if there is none or it is too large (row W8)."""
    if state.content is None:
        return None
    try:
        return BlobStore(tool_context.disk, tool_context.session_folder, "checkpoints").store(state.content, attempt_id)
    except OSError as error:
        shown = one_line(display_path(state.located.resolved, tool_context.root))
        return Refusal("io_error", f"The present content of {shown} could not be stored: {error.strerror or error}.")


def unstored_content_notes(state: EntryState, shown: str) -> tuple[str, ...]:
    """Return a sentence for the user if the content before is not stored (row W8); else nothing."""
    if state.stat is None or state.content is not None:
        return ()
    sentence = (
        f"The content of {shown} ({state.size} bytes) is larger than {CHECKPOINT_BYTES_MAX} bytes and is not kept."
    )
    return (sentence,)


def refuse_write_protected(tool_context: ToolContext, state: EntryState, shown: str) -> Refusal | None:
    """Refuse a file that its own mode protects, although its folder allows the change (case 58)."""
    if state.stat is None or state.stat.kind != "file":
        return None
    with open_folder(tool_context, state.located.folders) as folder:
        if tool_context.disk.writable(folder, state.located.name):
            return None
    return Refusal("read_only", f"{shown} is read-only (mode {state.stat.mode:04o}).")


def refuse_stale(known: KnownFiles | None, state: EntryState, shown: str) -> Refusal | None:
    """Refuse to remove or replace a file that changed since the model saw it (row V3)."""
    if known is None or state.stat is None or state.stat.kind != "file":
        return None
    reading = known.readings.get(state.located.resolved)
    text = None if state.content is None or reading is None else decode_as(state.content, reading.encoding)
    present = text.text if isinstance(text, FileText) else None
    now = FileNow(state.located.resolved, shown, state.digest, present, state.size or 0)
    judged = judge_replacement(known, now)
    return judged if isinstance(judged, Refusal) else refuse_newer(known, state.document, now)


def refuse_newer(known: KnownFiles, document: DocumentState | None, now: FileNow) -> Refusal | None:
    """Refuse to replace or remove a file that is newer than the clean document of it and that the model never saw."""
    if document is None or document.is_dirty or document.disk != "newer" or now.path in known.readings:
        return None
    return Refusal("stale", f"{now.shown} changed on disk since the editor opened it; read it first.")


def refuse_fixed_name(tool_context: ToolContext, located: ResolvedPath, shown: str) -> Refusal | None:
    """Refuse to remove, move or make a name where the system allows none of it, before anything starts (row W11).

    Raises OSError.
    """
    if located.kind not in ("file", None):
        return None
    folders = located.parts[: len(located.parts) - max(located.missing_count, 1)]
    with open_folder(tool_context, folders) as folder:
        limits = tool_context.disk.replace_limits(folder, located.parts[len(folders)])
    if limits.is_mount:
        return Refusal("unsupported", f"{shown} is a mount point, so nothing else can be done with its name.")
    if limits.is_append_only:
        return Refusal("read_only", f"{shown} can only be appended to.")
    if limits.is_folder_fixed:
        what = "made there" if located.kind is None else "removed, moved or replaced"
        return Refusal("read_only", f"{shown} cannot be {what}: its folder does not let this user change its names.")
    return None


def matches_evidence(disk: Disk, folder: Folder, name: str, kind: str, digest: str | None) -> bool:
    """Whether the entry has exactly this content, and did not change while it was read. Raises OSError."""
    look = disk.look(folder, name)
    if look is None or look.kind != kind:
        return False
    found = sha256(link_content(look)) if kind == "link" else digest_of(disk, folder, name, look.size)[0]
    return found == digest and disk.look(folder, name) == look


def is_same_folder(tool_context: ToolContext, folder: Folder, parts: tuple[str, ...]) -> bool:
    """Whether the path with these components, resolved again, leads to the folder that is open."""
    try:
        with open_folder(tool_context, parts) as anew:
            return tool_context.disk.look_open(folder).identity == tool_context.disk.look_open(anew).identity
    except OSError:
        return False


def _read_state(disk: Disk, folder: Folder, located: ResolvedPath) -> EntryState | None:
    look = disk.look(folder, located.name)
    if look is None or look.kind != located.kind:
        return None
    if look.kind == "link":
        target = link_content(look)
        return EntryState(located, look, sha256(target), len(target), target)
    attributes = read_attributes(disk, folder, located.name, look)
    if look.size > CHECKPOINT_BYTES_MAX:
        found = EntryState(located, look, *digest_of(disk, folder, located.name, look.size), attributes=attributes)
    else:
        content = disk.read(folder, located.name, CHECKPOINT_BYTES_MAX + 1)
        found = EntryState(located, look, sha256(content), len(content), content, attributes)
    return found if found.size == look.size and disk.look(folder, located.name) == look else None
