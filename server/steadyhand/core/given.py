"""What a model is told of a prompt's attachments: one text, made once and stored as it is (rows P4, T5).

    [Attached 1 of 2: file src/a.py, lines 3 to 9]
    ```
    …
    ```
    [Attached 2 of 2: file logo.png]
    It is not given: …

Each attachment stands under its name, with its content in a fence that it cannot close, or with a sentence in its
place. Names are flattened to one line, so that none can look like another entry. What one prompt's attachments give
is bounded: what does not fit any more is not given, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from steadyhand.core.fences import fenced

given_bytes_max = 1024 * 1024
"""Of the contents that the attachments of one prompt give, in all."""
name_chars_max = 200
"""Of a path or name above its content."""

NEVER_READ = "[Attached, and not given: the turn was cut off before its attachments were read.]"
"""Stands for the attachments of a turn that never asked a model."""


@attrs.frozen
class Given:
    """One attachment as it is told. `trouble`: why it is not given, or what is missing of it; one sentence."""

    name: str
    text: str | None = None
    trouble: str | None = None


def within_bound(every: Sequence[Given]) -> tuple[Given, ...]:
    """The same with what does not fit any more left out, each with its sentence."""
    room = given_bytes_max
    kept: list[Given] = []
    for given in every:
        size = len(given.text.encode("utf-8", "replace")) if given.text is not None else 0
        if size > room:
            why = f"The attachments of one prompt give at most {given_bytes_max} bytes, and it does not fit any more."
            kept.append(Given(given.name, None, f"It is not given. {why}"))
        else:
            room -= size
            kept.append(given)
    return tuple(kept)


def told(every: Sequence[Given]) -> str:
    """The whole text; empty where nothing is attached."""
    return "\n".join(_entry(given, number, len(every)) for number, given in enumerate(every, 1))


def _entry(given: Given, number: int, count: int) -> str:
    parts = [f"[Attached {number} of {count}: {flat(given.name)}]"]
    if given.text is not None:
        parts.append(fenced(given.text))
    if given.trouble is not None:
        parts.append(given.trouble)
    return "\n".join(parts)


def flat(name: str) -> str:
    """On one line, and not too long: what is too much is cut out of its middle."""
    line = " ".join(name.split())
    if len(line) <= name_chars_max:
        return line
    half = name_chars_max // 2
    return f"{line[:half]}…{line[half + 1 - name_chars_max :]}"
