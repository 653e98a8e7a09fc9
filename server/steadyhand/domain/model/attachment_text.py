"""Render a prompt's attachments for the model as one text. It is made once and stored unchanged (rows P4, T5).

    [Attached 1 of 2: file src/a.py, lines 3 to 9]
    ```
    …
    ```
    [Attached 2 of 2: file logo.png]
    It is not given: …

Each entry has the attachment's name and, below it, the content in a fence that the content cannot close, or one
sentence that says why there is none. A name is put on one line, so that no name can forge another entry. The contents
of one prompt are bounded together; an attachment that no longer fits is replaced by a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from steadyhand.domain.records.record import Shown
from steadyhand.domain.text.fences import code_block
from steadyhand_values import frozen

GIVEN_BYTES_MAX = 1024 * 1024
"""Bytes of all contents that the attachments of one prompt may give together."""
NAME_CHARS_MAX = 200
"""Characters of a path or name above its content."""

NEVER_READ = "[Attached, but not sent: the turn was cut off before its attachments were read.]"
"""The text for the attachments of a turn that ended before it asked a model."""


@frozen
class RenderedAttachment:
    """One attachment as the model sees it.

    `trouble`: one sentence that says why it has no content, or what is missing.
    """

    name: str
    text: str | None = None
    trouble: str | None = None
    shown: Shown | None = None  # of a file, if its text is given
    content: bytes | None = None  # of that file, whole


def limit_contents(every: Sequence[RenderedAttachment]) -> tuple[RenderedAttachment, ...]:
    """Return the attachments in order; one that exceeds `GIVEN_BYTES_MAX` has a sentence and no content."""
    room = GIVEN_BYTES_MAX
    kept: list[RenderedAttachment] = []
    for given in every:
        size = len(given.text.encode("utf-8", "replace")) if given.text is not None else 0
        if size > room:
            why = f"The attachments of one prompt have at most {GIVEN_BYTES_MAX} bytes in all, and it does not fit."
            kept.append(RenderedAttachment(given.name, None, f"It is not given. {why}"))
        else:
            room -= size
            kept.append(given)
    return tuple(kept)


def render_attachments(every: Sequence[RenderedAttachment]) -> str:
    """Return the whole text for the model; empty if nothing is attached."""
    return "\n".join(_entry(given, number, len(every)) for number, given in enumerate(every, 1))


def _entry(given: RenderedAttachment, number: int, count: int) -> str:
    parts = [f"[Attached {number} of {count}: {one_line_name(given.name)}]"]
    if given.text is not None:
        parts.append(code_block(given.text))
    if given.trouble is not None:
        parts.append(given.trouble)
    return "\n".join(parts)


def one_line_name(name: str) -> str:
    """Return the name on one line of at most `NAME_CHARS_MAX` characters; a longer one loses its middle."""
    line = " ".join(name.split())
    if len(line) <= NAME_CHARS_MAX:
        return line
    half = NAME_CHARS_MAX // 2
    return f"{line[:half]}…{line[half + 1 - NAME_CHARS_MAX :]}"
