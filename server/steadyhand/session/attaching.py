"""What a turn's prompt has attached, read when the turn begins and told to the model from then on (rows G5, P4).

Each attachment is read once, before the first request, and what the model is told of all of them is one record,
durable before it goes out; so every later request repeats it byte for byte, whatever became of the files. What is
not given has its sentence in the text and is a warning to the person, never silence.
"""

from __future__ import annotations

from functools import partial

from steadyhand.core.admission import Admit, AskFirst, Deny, Wanted, permit
from steadyhand.core.given import Given, told, within_bound
from steadyhand.core.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    SelectionAttachment,
    TextAttachment,
    lines_of,
)
from steadyhand.core.record import Attached, Scope
from steadyhand.core.show import shown_path
from steadyhand.core.views import Warned
from steadyhand.session.owner import Owner, RunningTurn
from steadyhand.session.person import TurnPerson
from steadyhand.session.uris import path_of
from steadyhand.tools.attached_file import INSTEAD, read_attached

UNSEEN = (
    "What other language servers report is not seen here: the editor can send it as a text, and the tool `diagnostics`"
    " tells no more than this."
)


async def attach(owner: Owner, turn: RunningTurn) -> str:
    """Read what is attached, tell what is not given, keep what the model is told; that text, empty for none.

    Of a quick question nothing is kept (row S2)."""
    if not turn.prompt.attachments:
        return ""
    every = within_bound([await _given(owner, turn, attached) for attached in turn.prompt.attachments])
    for given in every:
        if given.trouble is not None:
            owner.tell(turn.turn_id, Warned("attachment", f"{given.name}: {given.trouble}"))
    text = told(every)
    if not turn.prompt.aside:
        await owner.append_or_show([Attached(turn.turn_id, text)], barrier=True)
    return text


async def _given(owner: Owner, turn: RunningTurn, attached: Attachment) -> Given:
    match attached:
        case FileAttachment():
            forbidden = partial(kept_back, owner)
            return await owner.world.in_thread(read_attached, owner.ground, attached, turn.prompt.encoding, forbidden)
        case SelectionAttachment(uri, place, text):
            name = f"selection in {_document(owner, uri)}, {lines_of(place)}"
            return Given(name, text) if text else Given(name, None, "The selection is empty.")
        case ProblemsAttachment(uri):
            return _problems(owner, turn, uri)
        case TextAttachment(name, text):
            return Given(name, text) if text else Given(name, None, "The text is empty.")


def kept_back(owner: Owner, path: str) -> str | None:
    """Why the rules for `read_file` keep back what is there: nobody is asked here, so a question counts as a no."""
    settings = owner.world.settings
    wanted = Wanted("read_file", "reads", Scope(paths=(path,)), outside=False, protected=False, root=owner.ground.root)
    match permit(wanted, owner.ledger.mode, (), settings.rules, settings.trusted):
        case Admit():
            return None
        case Deny(text):
            return text
        case AskFirst(why):
            return f"Reading it is asked about first: {why}. {INSTEAD}"


def _problems(owner: Owner, turn: RunningTurn, uri: str | None) -> Given:
    """The server's own marks, and that it sees no others."""
    name = "problems" if uri is None else f"problems in {_document(owner, uri)}"
    path = None if uri is None else path_of(uri)
    known = TurnPerson(owner, turn.turn_id).known_problems(path) if uri is None or path is not None else ()
    return Given(name, "\n".join(known) or None, UNSEEN)


def _document(owner: Owner, uri: str) -> str:
    """A document's path in the workspace, else its URI."""
    path = path_of(uri)
    return uri if path is None else shown_path(path, owner.ground.root)
