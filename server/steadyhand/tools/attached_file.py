"""A file that a person attached to a prompt, read when its turn begins (rows E3, G5, V1).

Confined as `read_file` is, and more: nobody is asked, so what leaves the workspace (by a link too), is protected,
looks like a secret by its name, belongs to Steadyhand or is kept back by a rule is not given; the person can put it as
a text. What is open
in the editor with unsaved changes is read from there, else from disk. A range counts as in the editor. What is
missing, no text, or too large is not given either. Each time a sentence says why. Reads only; blocks.
"""

from __future__ import annotations

from collections.abc import Callable

from steadyhand.core.given import Given
from steadyhand.core.prompt import FileAttachment, lines_of
from steadyhand.core.secret_names import looks_secret
from steadyhand.core.text_edit import NotText, decode
from steadyhand.core.text_positions import PositionEncoding, stretch
from steadyhand.tools.open_document import unsaved_document
from steadyhand.tools.place import Located, display, entered, locate, one_line
from steadyhand.tools.tool import Ground, Refusal

attached_bytes_max = 256 * 1024
"""Of what one attached file gives."""
whole_bytes_max = 8 * 1024 * 1024
"""A larger file is not searched for a range."""

INSTEAD = "Attach what the model needs of it as a text."


def read_attached(
    ground: Ground,
    attached: FileAttachment,
    encoding: PositionEncoding,
    forbidden: Callable[[str], str | None],
    bytes_max: int = attached_bytes_max,
) -> Given:
    """Its content, or a sentence in its place; never raises OSError.

    `forbidden`: why rules keep back what is at an absolute path, or None."""
    located = locate(ground, attached.path)
    if isinstance(located, Refusal):
        return _not_given(_name(attached.path, attached), located.text)
    name = _name(one_line(display(ground.root, located.resolved)), attached)
    why = _withheld(located) or forbidden(located.resolved)
    if why is not None:
        return _not_given(name, why)
    document = unsaved_document(ground, located.asked, located.resolved)
    if document is not None:
        raw = document.text.encode("utf-8", "replace")
        name = f"{name}, as it stands in the editor with unsaved changes"
        return _content(name, raw, attached, encoding, bytes_max)
    if located.kind != "file":
        return _not_given(name, _NO_FILE.get(located.kind, "It is not a regular file."))
    try:
        with entered(ground, located.folders) as folder:
            raw = ground.disk.read(folder, located.name, whole_bytes_max + 1)
    except OSError as error:
        return _not_given(name, f"It cannot be read: {error.strerror or error}.")
    return _content(name, raw, attached, encoding, bytes_max)


def is_there(ground: Ground, path: str) -> bool:
    """Whether anything is under that path, on disk or in the editor alone."""
    located = locate(ground, path)
    if isinstance(located, Refusal):
        return False
    return located.kind is not None or unsaved_document(ground, located.asked, located.resolved) is not None


_NO_FILE: dict[str | None, str] = {None: "It does not exist.", "folder": "It is a folder."}


def _withheld(located: Located) -> str | None:
    """Why a content is kept back that could be read."""
    if located.in_state_directory:
        return "It belongs to Steadyhand itself."
    if not located.inside:
        return f"It lies outside the workspace. {INSTEAD}"
    if looks_secret(located.parts) or looks_secret(located.asked.split("/")):
        return f"Its name looks like that of a secret. {INSTEAD}"
    if located.protected:
        return f"It is a protected file. {INSTEAD}"
    return None


def _content(name: str, raw: bytes, attached: FileAttachment, encoding: PositionEncoding, bytes_max: int) -> Given:
    if len(raw) > whole_bytes_max:
        return _not_given(name, f"It is larger than {whole_bytes_max} bytes; let it be read in parts.")
    file = decode(raw)
    if isinstance(file, NotText):
        return _not_given(name, file.reason)
    text = file.text if attached.range is None else stretch(file.text, attached.range, encoding)
    size = len(text.encode("utf-8"))
    if size > bytes_max:
        why = f"It has {size} bytes, and at most {bytes_max} are given; attach a part of it."
        return _not_given(name, why)
    if text:
        return Given(name, text)
    return Given(name, None, "The file is empty." if not file.text else "There is nothing at that place of the file.")


def _name(path: str, attached: FileAttachment) -> str:
    if attached.range is None:
        return f"file {path}"
    return f"file {path}, {lines_of(attached.range)}"


def _not_given(name: str, why: str) -> Given:
    return Given(name, None, f"It is not given. {why}")
