"""Read a file that the user attached to a prompt, when its turn begins (rows E3, G5, V1).

It is confined like `read_file`, and more: nobody is asked, so the content is withheld if the file is outside the
workspace (also through a link), is protected, has a name like a secret's, belongs to Steadyhand, or a rule denies it.
The user can attach such content as a text. A file with unsaved changes is read from the editor, any other from disk. A
range counts as in the editor. A file that is missing, is not text, or is too large is not given either. In each case a
sentence says why. Reads only; blocks.
"""

from __future__ import annotations

from collections.abc import Callable

from steadyhand.domain.model.attachment_text import RenderedAttachment
from steadyhand.domain.permissions.protected_paths import NOT_ATTACHED_KINDS
from steadyhand.domain.records.prompt import FileAttachment, lines_of
from steadyhand.domain.records.record import Shown
from steadyhand.domain.text.decoding import FileText, NotText, text_in_editor
from steadyhand.domain.text.lines import count_lines
from steadyhand.domain.text.positions import PositionEncoding, text_in_range
from steadyhand.domain.views.render import display_path
from steadyhand.tools.contract import Refusal, ToolContext
from steadyhand.tools.shown_lines import shown_range
from steadyhand.tools.workspace.file_encoding import decode_file
from steadyhand.tools.workspace.open_documents import unsaved_document
from steadyhand.tools.workspace.paths import ResolvedPath, locate, locate_for_call, one_line, open_folder

ATTACHED_BYTES_MAX = 256 * 1024
"""Of the content that one attached file gives."""
WHOLE_BYTES_MAX = 8 * 1024 * 1024
"""A larger file is not read, not even for a range."""

INSTEAD = "Attach the part that the model needs as a text."


def read_attachment(
    tool_context: ToolContext,
    attached: FileAttachment,
    encoding: PositionEncoding,
    forbidden: Callable[[str], str | None],
    bytes_max: int = ATTACHED_BYTES_MAX,
) -> RenderedAttachment:
    """Return the content, or a sentence in its place; never raises OSError.

    `forbidden`: absolute path → why a rule denies it, or None.
    """
    located = locate_for_call(tool_context, attached.path)
    if isinstance(located, Refusal):
        return _without_content(_label(attached.path, attached), located.text)
    name = _label(one_line(display_path(located.resolved, tool_context.root)), attached)
    why = _withholding_reason(tool_context, located) or forbidden(located.resolved)
    if why is not None:
        return _without_content(name, why)
    document = unsaved_document(tool_context, located.asked, located.resolved)
    if document is not None:
        name = f"{name}, with the unsaved changes in the editor{_BESIDES[document.disk]}"
        file = text_in_editor(document.document.text)
        return _render_content(name, file, attached, encoding, bytes_max, located.resolved)
    if located.kind != "file":
        return _without_content(name, _NO_FILE.get(located.kind, "It is not a regular file."))
    try:
        with open_folder(tool_context, located.folders) as folder:
            raw = tool_context.disk.read(folder, located.name, WHOLE_BYTES_MAX + 1)
    except OSError as error:
        return _without_content(name, f"It cannot be read: {error.strerror or error}.")
    if len(raw) > WHOLE_BYTES_MAX:
        return _without_content(name, f"It is larger than {WHOLE_BYTES_MAX} bytes; the model can read it in parts.")
    return _render_content(
        name, decode_file(tool_context, located, raw), attached, encoding, bytes_max, located.resolved
    )


def is_there(tool_context: ToolContext, path: str) -> bool:
    """Whether anything has that path, on disk or only in the editor."""
    located = locate(tool_context, path)
    if isinstance(located, Refusal):
        return False
    return located.kind is not None or unsaved_document(tool_context, located.asked, located.resolved) is not None


_BESIDES = {"same": "", "newer": ", whose file changed on disk too", "gone": ", whose file is gone from the disk"}
_NO_FILE: dict[str | None, str] = {None: "It does not exist.", "folder": "It is a folder."}


def _withholding_reason(tool_context: ToolContext, located: ResolvedPath) -> str | None:
    """Return why the content is withheld although it could be read; None if it is not."""
    if located.is_in_state_directory:
        return "It belongs to Steadyhand itself."
    if not located.is_inside:
        return f"It is outside the workspace. {INSTEAD}"
    if located.is_secret:
        allowed = tool_context.allows_secret(located.resolved)
        return None if allowed else f"Its name looks like a secret's. {INSTEAD}"
    if located.protected_kind in NOT_ATTACHED_KINDS:
        return f"It is a protected file. {INSTEAD}"
    return None


def _render_content(
    name: str, file: FileText | NotText, attached: FileAttachment, encoding: PositionEncoding, bytes_max: int, path: str
) -> RenderedAttachment:
    if isinstance(file, NotText):
        return _without_content(name, file.reason)
    text = file.text if attached.range is None else text_in_range(file.text, attached.range, encoding)
    size = len(text.encode("utf-8"))
    if size > bytes_max:
        why = f"It has {size} bytes, and the limit is {bytes_max}; attach a part of it."
        return _without_content(name, why)
    if text:
        return RenderedAttachment(name, text, None, _shown(path, file, attached), file.raw)
    return RenderedAttachment(
        name, None, "The file is empty." if not file.text else "The file has no text in that range."
    )


def _shown(path: str, file: FileText, attached: FileAttachment) -> Shown:
    """Return which whole lines are given."""
    place, lines = attached.range, count_lines(file.text)
    if place is None:
        return shown_range(path, file, 1, lines, whole=True)
    first = place.start.line + (1 if place.start.character == 0 else 2)
    return shown_range(path, file, first, max(min(place.end.line, lines), first - 1), whole=False)


def _label(path: str, attached: FileAttachment) -> str:
    if attached.range is None:
        return f"file {path}"
    return f"file {path}, {lines_of(attached.range)}"


def _without_content(name: str, why: str) -> RenderedAttachment:
    return RenderedAttachment(name, None, f"It is not given. {why}")
