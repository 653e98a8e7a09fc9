"""The sentences about a rewind: its prompt, what the model is told, what an opening says after a kill (rows G4, S8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.views.sentences import unknown_reply
from steadyhand.domain.views.types import ChangedFile
from steadyhand_values import frozen

FILES_TOLD_MAX = 200
"""Files that one message names; the rest is counted."""
FileState = Literal["as_left", "removed", "changed", "unreadable"]
STATE_TEXT: dict[FileState, str] = {
    "as_left": "it is as you left it",
    "removed": "it is not there, as you left it",
    "changed": "somebody changed it since",
    "unreadable": "it cannot be read now",
}


@frozen
class FileNow:
    """A file that was changed in what was taken back, and its present state."""

    path: str
    state: FileState


def rewind_prompt(prompt: str) -> str:
    """Return the prompt of a rewind's own turn."""
    return f"Rewind to before “{prompt}”"


def rewind_progress(done: int, files: int) -> str:
    """Return what the next opening says after a kill."""
    return f"Rewind: {done} of {files} files are done."


def files_rewound_text(prompt: str, restored: Sequence[ChangedFile]) -> str | None:
    """Return what the model is told where the files went back and the conversation stays; None: no file did."""
    if not restored:
        return None
    lines = [f"- {one.path}: {one.change}" for one in restored[:FILES_TOLD_MAX]]
    head = f"The user took these files back to what they were before the prompt “{prompt}”:"
    return "\n".join([head, *lines, *_rest(len(restored))])


def conversation_rewound_text(
    prompt: str, files: Sequence[FileNow], uncertain: Iterable[Attempt], elsewhere: Iterable[str] = ()
) -> str | None:
    """Return what the model is told where the conversation went back and files did not; None: there is nothing.

    `elsewhere`: a line for each unresolved effect of the session that this one was forked from."""
    lines = [f"- {one.path}: {STATE_TEXT[one.state]}." for one in files[:FILES_TOLD_MAX]]
    doubts = [f"- {one.title}: {unknown_reply(one)}" for one in uncertain] + [f"- {line}" for line in elsewhere]
    if not lines and not doubts:
        return None
    head = f"The user rewound the conversation to before the prompt “{prompt}”."
    changed = ["Files that you changed in what was removed:", *lines, *_rest(len(files))] if lines else []
    unresolved = ["Effects whose outcome is unknown:", *doubts] if doubts else []
    return "\n".join([head, *changed, *unresolved])


def _rest(count: int) -> list[str]:
    return [f"and {count - FILES_TOLD_MAX} more"] if count > FILES_TOLD_MAX else []
