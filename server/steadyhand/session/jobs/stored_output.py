"""Show outputs again that are stored beside the journal (row J12).

A reply that was too large names the digest of the whole output. The output is compared with its digest before it is
shown; a missing or damaged one is reported as that.
"""

from __future__ import annotations

from collections.abc import Iterator

from steadyhand.domain.ledger.state import ToolCall
from steadyhand.session.session import Session
from steadyhand.tools.commands.output_buffer import HALF_BYTES_MAX, SHOWN_BYTES_MAX, join_ends
from steadyhand.tools.commands.terminal_text import terminal_text
from steadyhand.tools.contract import OutputExcerpt
from steadyhand.tools.writes.blob_store import BlobStore

READ_BYTES_MAX = 64 * 1024 * 1024
"""A larger one is not read; its file is named."""
LOST = "the stored output is missing, damaged or larger than 64 MiB"
LISTED_MAX = 50
ID_SHOWN_DIGITS = 8
ID_DIGITS_MIN = 4


async def read_stored_output(session: Session, digest: str) -> OutputExcerpt | None:
    """Return the output, or its beginning and end. None: it is missing or damaged."""
    contents = BlobStore(session.context.disk, session.path, "outputs")
    content = await session.context.in_thread(contents.read, digest, READ_BYTES_MAX)
    if content is None:
        return None
    cut = len(content) > SHOWN_BYTES_MAX
    text = join_ends(content[:HALF_BYTES_MAX], content[-HALF_BYTES_MAX:]) if cut else terminal_text(content)
    return OutputExcerpt(text.removesuffix("\n"), len(content), cut, digest)


async def answer_output_command(session: Session, words: list[str]) -> str:
    """Return the answer to `/output [ID]`: the list of outputs, or one of them."""
    found = list(_stored_outputs(session))
    if not words:
        lines = [f"{call.call_id[:ID_SHOWN_DIGITS]} {_title(call)}" for call, _ in found[-LISTED_MAX:]]
        return "\n".join(lines) or "This session has no stored output."
    if len(words) != 1 or len(words[0]) < ID_DIGITS_MIN:
        return f"Say /output, or /output and at least {ID_DIGITS_MIN} digits of an ID."
    meant = [(call, digest) for call, digest in found if call.call_id.startswith(words[0].lower())]
    if len(meant) != 1:
        return f"{'No' if not meant else 'More than one'} stored output has an ID that begins so."
    call, digest = meant[0]
    shown = await read_stored_output(session, digest)
    where = f"{session.path}/outputs/{digest}"
    if shown is None:
        return f"{_title(call)}: {LOST} ({where}). There is no other copy."
    return f"{shown.text}\n[{shown.bytes} bytes; the whole output is in {where}]"


def _stored_outputs(session: Session) -> Iterator[tuple[ToolCall, str]]:
    """Yield calls with a stored output, oldest first; a background command has the output of its job."""
    jobs = {job.call_id: job.output for job in session.ledger.jobs.values() if job.output is not None}
    for call in session.ledger.calls.values():
        digest = call.reply.output if call.reply is not None else None
        digest = digest or jobs.get(call.call_id)
        if digest is not None:
            yield call, digest


def _title(call: ToolCall) -> str:
    return call.attempt.title if call.attempt is not None else call.tool
