"""What stands under one name, as evidence tells it: a file by its bytes, a link by its target (rows W1, W2).

A link is never followed here: who moves or deletes it means the link itself. Its content is its target, as stored, so
that it has a digest, a checkpoint and a check like a file. A folder or anything else has none.

`see` looks at a path for a call that is being planned, and refuses what no tool may touch; `keep` stores the content
before. `stands` compares at the moment of the deed, and believes only what did not change while it was read.
"""

from __future__ import annotations

import attrs

from steadyhand.core.identity import sha256
from steadyhand.ports import Disk, Folder, Look
from steadyhand.tools.content import Contents, digest_of, link_content
from steadyhand.tools.open_document import unsaved_path
from steadyhand.tools.place import Located, display, entered, locate, one_line
from steadyhand.tools.tool import Ground, Refusal, checkpoint_bytes_max


@attrs.frozen
class Standing:
    """What stood under a path. `digest` None: nothing was there. `content` None: also for what is too large to keep."""

    located: Located
    look: Look | None = None
    digest: str | None = None
    size: int | None = None  # bytes
    content: bytes | None = None


def see(ground: Ground, expected: Located) -> Standing | Refusal:
    """The path anew, its end not followed, and all that can be refused about it. Blocks."""
    shown = one_line(display(ground.root, expected.resolved))
    located = locate(ground, expected.asked, follow=False)
    if isinstance(located, Refusal):
        return located
    if located.resolved != expected.resolved:
        return Refusal("changed", f"The path {shown} leads elsewhere now.")
    if located.in_state_directory:
        return Refusal("policy", f"{shown} belongs to Steadyhand itself and is never changed by a tool.")
    unsaved = unsaved_path(ground, located.asked, located.resolved)
    if unsaved is not None:
        return Refusal("unsaved", f"{shown} has unsaved changes in the editor; it must be saved first.", unsaved)
    if located.kind is None:
        return Standing(located)
    if located.kind == "folder":
        return Refusal("unsupported", f"{shown} is a folder; folders are moved and deleted only by a command.")
    if located.kind == "other":
        return Refusal("unsupported", f"{shown} is neither a file nor a link.")
    try:
        with entered(ground, located.folders) as folder:
            found = _read(ground.disk, folder, located)
    except OSError as error:
        return Refusal("io_error", f"{shown} cannot be read: {error.strerror or error}.")
    return found or Refusal("changed", f"{shown} changed while it was looked at.")


def keep(ground: Ground, standing: Standing, attempt_id: str) -> str | Refusal | None:
    """The digest under which its content was kept, durably; None where there is none or it is too large (row W8)."""
    if standing.content is None:
        return None
    try:
        return Contents(ground.disk, ground.session_folder, "checkpoints").keep(standing.content, attempt_id)
    except OSError as error:
        shown = one_line(display(ground.root, standing.located.resolved))
        return Refusal("io_error", f"The content of {shown} before could not be kept: {error.strerror or error}.")


def not_kept(standing: Standing, shown: str) -> tuple[str, ...]:
    """What the person must know where the content before is not kept (row W8); no sentence where it is."""
    if standing.look is None or standing.content is not None:
        return ()
    sentence = f"The content of {shown} ({standing.size} bytes) is above {checkpoint_bytes_max} bytes and is not kept."
    return (sentence,)


def write_protected(ground: Ground, standing: Standing, shown: str) -> Refusal | None:
    """A file that its own mode protects is neither removed nor replaced, though its folder allows it (case 58)."""
    if standing.look is None or standing.look.kind != "file":
        return None
    with entered(ground, standing.located.folders) as folder:
        if ground.disk.writable(folder, standing.located.name):
            return None
    return Refusal("read_only", f"{shown} is read-only (mode {standing.look.mode:04o}).")


def stands(disk: Disk, folder: Folder, name: str, kind: str, digest: str | None) -> bool:
    """Whether exactly this content stands there, and stood there while it was read. Raises OSError."""
    look = disk.look(folder, name)
    if look is None or look.kind != kind:
        return False
    found = sha256(link_content(look)) if kind == "link" else digest_of(disk, folder, name)[0]
    return found == digest and disk.look(folder, name) == look


def same_folder(ground: Ground, folder: Folder, parts: tuple[str, ...]) -> bool:
    """Whether the path of these components, walked anew, leads to the very folder that is open."""
    try:
        with entered(ground, parts) as anew:
            return ground.disk.real_path(folder) == ground.disk.real_path(anew)
    except OSError:
        return False


def _read(disk: Disk, folder: Folder, located: Located) -> Standing | None:
    look = disk.look(folder, located.name)
    if look is None or look.kind != located.kind:
        return None
    if look.kind == "link":
        target = link_content(look)
        return Standing(located, look, sha256(target), len(target), target)
    if look.size > checkpoint_bytes_max:
        found = Standing(located, look, *digest_of(disk, folder, located.name))
    else:
        content = disk.read(folder, located.name, checkpoint_bytes_max + 1)
        found = Standing(located, look, sha256(content), len(content), content)
    return found if found.size == look.size and disk.look(folder, located.name) == look else None
