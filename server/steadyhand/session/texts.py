"""The three texts of a file effect: before, intended, now; for the diff and the virtual documents (row A4).

*before* is the kept checkpoint; *intended* is computed again from it and the stored arguments and counts only if its
digest is the recorded one; *now* is what stands on disk. Arguments shown here never enter the model's prompt. Blocks.
"""

from __future__ import annotations

from typing import Literal

import attrs

from steadyhand.core.diff import unified
from steadyhand.core.folded import Attempt
from steadyhand.core.ledger import Ledger
from steadyhand.core.postcondition import Present
from steadyhand.core.record import Evidence
from steadyhand.core.text_edit import FileText, decode
from steadyhand.core.views import Side
from steadyhand.ports import Folder
from steadyhand.session.uris import quoted
from steadyhand.tools.catalogue import intended_content
from steadyhand.tools.content import Contents
from steadyhand.tools.place import display, entered, parts_of
from steadyhand.tools.tool import Ground, checkpoint_bytes_max, file_bytes_max

Which = Literal["before", "intended", "now"]
diff_bytes_max = 64 * 1024


@attrs.frozen
class Texts:
    """Bytes; None where there is none or it cannot be told."""

    before: bytes | None
    intended: bytes | None
    now: bytes | None


def texts(ground: Ground, ledger: Ledger, attempt: Attempt, evidence: Evidence) -> Texts:
    call = ledger.calls.get(attempt.call_id)
    arguments = call.arguments if call is not None else ""
    before = b"" if not evidence.existed else None
    if evidence.checkpoint is not None:
        store = Contents(ground.disk, ground.session_folder, "checkpoints")
        before = store.read(evidence.checkpoint, checkpoint_bytes_max)
    return Texts(before, intended_content(ground, attempt.tool, arguments, evidence), content_now(ground, evidence))


def content_now(ground: Ground, evidence: Evidence) -> bytes | None:
    """What stands under the resolved path now; None where it cannot be read or is larger than `file_bytes_max`."""
    parts = parts_of(evidence.resolved)
    try:
        with entered(ground, parts[:-1]) as folder:
            return _read(ground, folder, parts[-1])
    except OSError:
        return None


def difference(found: Texts, path: str, settled_by_present: bool) -> str | None:
    """A unified diff for reading: what the effect changed where it is there, else what now lacks of the intention."""
    first, second = (found.before, found.now) if settled_by_present else (found.now, found.intended)
    old, new = shown(first), shown(second)
    if old is None or new is None or old == new:
        return None
    return unified(old, new, path, diff_bytes_max)


def first_difference(found: Texts) -> tuple[int, str]:
    """(line, its text now) of the first line in which now differs from the intended text; line 0 if they do not."""
    now, intended = shown(found.now), shown(found.intended)
    lines = (now or "").split("\n")
    if now is None or intended is None or now == intended:
        return 0, lines[0]
    meant = intended.split("\n")
    line = next((n for n, text in enumerate(lines) if n >= len(meant) or text != meant[n]), len(lines) - 1)
    return line, lines[line]


def shown(content: bytes | None) -> str | None:
    """The text for reading, with LF; None for what is no text."""
    if content is None:
        return None
    found = decode(content)
    return found.text if isinstance(found, FileText) else None


def side(which: Which, digest: str | None, size: int | None, attempt: Attempt, path: str, there: bool) -> Side:
    """One side of an inspected path, with the address of its virtual document where it has a text."""
    uri = f"steadyhand:/attempt/{attempt.attempt_id}/{which}/{quoted(path)}" if there else None
    return Side(digest is not None, digest, size, uri)


def sides(ground: Ground, attempt: Attempt, evidence: Evidence, now: Present | None, found: Texts) -> tuple[Side, ...]:
    """Before, intended, now."""
    path = display(ground.root, evidence.resolved)
    return (
        side("before", evidence.before, evidence.before_bytes, attempt, path, found.before is not None),
        side("intended", evidence.intended, evidence.intended_bytes, attempt, path, found.intended is not None),
        side("now", now.digest if now else None, now.bytes if now else None, attempt, path, found.now is not None),
    )


def _read(ground: Ground, folder: Folder, name: str) -> bytes | None:
    if ground.disk.look(folder, name) is None:
        return b""
    content = ground.disk.read(folder, name, file_bytes_max + 1)
    return content if len(content) <= file_bytes_max else None
