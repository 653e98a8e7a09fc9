"""Outputs that are kept beside the journal, shown again (row J12).

A reply that was too large names the digest of the whole. What is shown is compared with its digest first; what is
missing or damaged is said to be so, and nothing is invented in its place.
"""

from __future__ import annotations

from collections.abc import Iterator

from steadyhand.core.folded import Call
from steadyhand.session.owner import Owner
from steadyhand.tools.content import Contents
from steadyhand.tools.output import both_ends, half_bytes_max, shown_bytes_max, visible
from steadyhand.tools.tool import Shown

read_bytes_max = 64 * 1024 * 1024
"""A larger one is not read; its file is named."""
LOST = "what it wrote was kept, and is missing or damaged now, or above 64 MiB"
listed_max = 50
id_shown_digits = 8
id_digits_min = 4


async def kept(owner: Owner, digest: str) -> Shown | None:
    """The beginning and end of it, or the whole; None: it is not there as it was kept."""
    contents = Contents(owner.world.disk, owner.path, "outputs")
    content = await owner.world.in_thread(contents.read, digest, read_bytes_max)
    if content is None:
        return None
    cut = len(content) > shown_bytes_max
    text = both_ends(content[:half_bytes_max], content[-half_bytes_max:]) if cut else visible(content)
    return Shown(text.removesuffix("\n"), len(content), cut, digest)


async def said_of_outputs(owner: Owner, words: list[str]) -> str:
    """The answer to `/output [ID]`: a list, or one of them."""
    found = list(_kept_by(owner))
    if not words:
        lines = [f"{call.call_id[:id_shown_digits]} {_title(call)}" for call, _ in found[-listed_max:]]
        return "\n".join(lines) or "No output is kept beside this session."
    if len(words) != 1 or len(words[0]) < id_digits_min:
        return f"Say /output, or /output and at least {id_digits_min} digits of an ID."
    meant = [(call, digest) for call, digest in found if call.call_id.startswith(words[0].lower())]
    if len(meant) != 1:
        return f"{'No' if not meant else 'More than one'} kept output begins with that ID."
    call, digest = meant[0]
    shown = await kept(owner, digest)
    where = f"{owner.path}/outputs/{digest}"
    if shown is None:
        return f"{_title(call)}: {LOST} ({where}). Nothing stands for it."
    return f"{shown.text}\n[{shown.bytes} bytes, whole in {where}]"


def _kept_by(owner: Owner) -> Iterator[tuple[Call, str]]:
    """Calls with a kept output, oldest first; of a background command that of its job."""
    jobs = {job.call_id: job.output for job in owner.ledger.jobs.values() if job.output is not None}
    for call in owner.ledger.calls.values():
        digest = call.reply.output if call.reply is not None else None
        digest = digest or jobs.get(call.call_id)
        if digest is not None:
            yield call, digest


def _title(call: Call) -> str:
    return call.attempt.title if call.attempt is not None else call.tool
