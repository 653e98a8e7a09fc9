"""The workspace's AGENTS.md, as part of the system text that is fixed for a session (rows G5, P4).

Read once, before the first request of a session to a model, and recorded before it goes out; every later request
repeats it byte for byte, whatever became of the file. A session that was asked before without it goes on without. It
is the workspace's word and no setting: nothing is allowed by it. What is not taken, or does not fit, is said. A
workspace that is not trusted gives none.
"""

from __future__ import annotations

from steadyhand.core.given import Given
from steadyhand.core.ledger import Ledger
from steadyhand.core.prompt import FileAttachment
from steadyhand.core.record import Assistant, Instructions
from steadyhand.core.views import Warned
from steadyhand.session.attaching import kept_back
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.tools.attached_file import is_there, read_attached, whole_bytes_max
from steadyhand.tools.output import whole_characters

AGENTS = "AGENTS.md"
instructions_bytes_max = 32 * 1024
"""Of AGENTS.md in the system text."""

_HEAD = (
    "\n\nThe workspace has a file AGENTS.md with instructions for agents. They hold where the user says nothing else,"
    " and allow nothing that needs permission. It says:\n\n"
)


async def fix_instructions(owner: Owner, turn: RunningTurn) -> None:
    """Before the first request: what AGENTS.md says from now on."""
    if owner.ledger.instructions is not None or _asked_before(owner.ledger) or owner.ground.root is None:
        return
    given = await owner.world.in_thread(_look, owner)
    if given is None:
        return
    if given.text is None:
        why = (given.trouble or "").removeprefix("It is not given. ")
        owner.tell(turn.turn_id, Warned("instructions", f"{AGENTS} is not used. {why}"))
        return
    text, cut = _fitted(given.text)
    if cut is not None:
        owner.tell(turn.turn_id, Warned("instructions", f"{AGENTS} is used in part: {cut}"))
    mark = "" if cut is None else f"\n[{cut} Read the file for the rest.]"
    await owner.append_or_show([Instructions(f"{_HEAD}{text}{mark}")], barrier=True)


def _asked_before(ledger: Ledger) -> bool:
    if ledger.usage:
        return True
    commands = {turn.turn_id for turn in ledger.turns.values() if turn.command}
    return any(isinstance(said.record, Assistant) and said.turn_id not in commands for said in ledger.said)


def _look(owner: Owner) -> Given | None:
    """The file's content or why it is not taken; None where there is no such file. Blocks."""
    if not is_there(owner.ground, AGENTS):
        return None
    if not owner.world.settings.trusted:
        return Given(AGENTS, None, "The workspace is not trusted: trust it, then begin a new session.")
    return read_attached(
        owner.ground, FileAttachment(AGENTS), "utf-16", lambda path: kept_back(owner, path), whole_bytes_max
    )


def _fitted(text: str) -> tuple[str, str | None]:
    """The text up to the bound, whole lines where there are any, and a sentence on what is missing."""
    raw = text.encode("utf-8")
    if len(raw) <= instructions_bytes_max:
        return text, None
    kept = whole_characters(raw[:instructions_bytes_max])
    kept = kept[: kept.rfind(b"\n") + 1] or kept
    return kept.decode("utf-8"), f"it has {len(raw)} bytes, and the first {len(kept)} are taken."
