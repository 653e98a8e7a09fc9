"""The three versions of a file of an effect: before, intended, now; for the diff and the virtual documents (row A4).

*before* is the stored checkpoint. *intended* is computed again from it and the stored arguments, and counts only if its
digest is the recorded one. *now* is the content on disk. Arguments shown here never enter the model's prompt. Blocks.
"""

from __future__ import annotations

from typing import Literal

from steadyhand.domain.ledger.ledger import Ledger
from steadyhand.domain.ledger.state import Attempt
from steadyhand.domain.records.record import Evidence
from steadyhand.domain.recovery.postcondition import Present
from steadyhand.domain.text.decoding import FileText, decode, decode_as
from steadyhand.domain.text.diff import unified_diff
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.types import Side
from steadyhand.ports.disk import Folder
from steadyhand.session.uris import quote_path
from steadyhand.tools.contract import CHECKPOINT_BYTES_MAX, FILE_BYTES_MAX, ToolContext
from steadyhand.tools.registry import intended_content
from steadyhand.tools.workspace.paths import open_folder, parts_of
from steadyhand.tools.writes.blob_store import BlobStore
from steadyhand_values import frozen

Which = Literal["before", "intended", "now"]
DIFF_BYTES_MAX = 64 * 1024


@frozen
class ContentVersions:
    """Bytes; None where there is no content or it cannot be read."""

    before: bytes | None
    intended: bytes | None
    now: bytes | None
    encoding: str | None = None  # as the evidence records it


def versions_of(tool_context: ToolContext, ledger: Ledger, attempt: Attempt, evidence: Evidence) -> ContentVersions:
    """Return the three versions of one path."""
    call = ledger.calls.get(attempt.call_id)
    arguments = call.arguments if call is not None else ""
    before = b"" if not evidence.existed else None
    if evidence.checkpoint is not None:
        store = BlobStore(tool_context.disk, tool_context.session_folder, "checkpoints")
        before = store.read(evidence.checkpoint, CHECKPOINT_BYTES_MAX)
    return ContentVersions(
        before,
        intended_content(tool_context, attempt.tool, arguments, evidence),
        read_content_now(tool_context, evidence),
        evidence.encoding,
    )


def read_content_now(tool_context: ToolContext, evidence: Evidence) -> bytes | None:
    """Return the content of the path now; None where it cannot be read or is larger than `FILE_BYTES_MAX`."""
    parts = parts_of(evidence.resolved)
    try:
        with open_folder(tool_context, parts[:-1]) as folder:
            return _read(tool_context, folder, parts[-1])
    except OSError:
        return None


def diff_of(found: ContentVersions, path: str, settled_by_present: bool) -> str | None:
    """Return a unified diff for reading: what the effect changed if it is there, else what is missing of it."""
    first, second = (found.before, found.now) if settled_by_present else (found.now, found.intended)
    old, new = readable_text(first, found.encoding), readable_text(second, found.encoding)
    if old is None or new is None or old == new:
        return None
    return unified_diff(old, new, path, DIFF_BYTES_MAX)


def first_difference(found: ContentVersions) -> tuple[int, str]:
    """Return the first line in which now differs from intended, and its text now; line 0 if they do not differ."""
    now, intended = readable_text(found.now, found.encoding), readable_text(found.intended, found.encoding)
    lines = (now or "").split("\n")
    if now is None or intended is None or now == intended:
        return 0, lines[0]
    meant = intended.split("\n")
    line = next((n for n, text in enumerate(lines) if n >= len(meant) or text != meant[n]), len(lines) - 1)
    return line, lines[line]


def readable_text(content: bytes | None, encoding: str | None = None) -> str | None:
    """Return the text for reading, with LF; None for content that is no text.

    `encoding`: as recorded. Content that is not in it, such as a version that somebody else wrote, is decoded anew."""
    if content is None:
        return None
    found = decode_as(content, encoding)
    if not isinstance(found, FileText):
        found = decode(content)
    return found.text if isinstance(found, FileText) else None


def side_of(which: Which, digest: str | None, size: int | None, attempt: Attempt, path: str, there: bool) -> Side:
    """Return one version of an inspected path, with the URI of its virtual document where it has content."""
    uri = f"steadyhand:/attempt/{attempt.attempt_id}/{which}/{quote_path(path)}" if there else None
    return Side(digest is not None, digest, size, uri)


def sides_of(
    tool_context: ToolContext, attempt: Attempt, evidence: Evidence, now: Present | None, found: ContentVersions
) -> tuple[Side, ...]:
    """Return the three versions in the order before, intended, now."""
    path = display_path(evidence.resolved, tool_context.root)
    return (
        side_of("before", evidence.before, evidence.before_bytes, attempt, path, found.before is not None),
        side_of("intended", evidence.intended, evidence.intended_bytes, attempt, path, found.intended is not None),
        side_of("now", now.digest if now else None, now.bytes if now else None, attempt, path, found.now is not None),
    )


def _read(tool_context: ToolContext, folder: Folder, name: str) -> bytes | None:
    if tool_context.disk.look(folder, name) is None:
        return b""
    content = tool_context.disk.read(folder, name, FILE_BYTES_MAX + 1)
    return content if len(content) <= FILE_BYTES_MAX else None
