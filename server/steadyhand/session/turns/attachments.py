"""The attachments of a prompt: read when the turn begins and sent to the model from then on (rows G5, P4).

Each attachment is read once, before the first request. The text that the model gets of all of them is one record,
durable before it is sent, so every later request repeats it byte for byte, whatever happens to the files. An
attachment that is not sent has a sentence in the text and is a warning to the user.
"""

from __future__ import annotations

from functools import partial

from steadyhand.domain.model.attachment_text import RenderedAttachment, limit_contents, render_attachments
from steadyhand.domain.permissions.policy import Admit, AskFirst, CallFacts, Deny, decide_admission
from steadyhand.domain.records.prompt import (
    Attachment,
    FileAttachment,
    ProblemsAttachment,
    SelectionAttachment,
    TextAttachment,
    lines_of,
)
from steadyhand.domain.records.record import Attached, Scope
from steadyhand.domain.views.render import display_path
from steadyhand.domain.views.types import Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.calls.user_channel import TurnUserChannel
from steadyhand.session.session import Session
from steadyhand.session.uris import path_of
from steadyhand.tools.workspace.attached_file import INSTEAD, read_attachment

UNSEEN = (
    "Steadyhand does not see what other language servers report: the editor can send it as a text, and the tool"
    " `diagnostics` reports no more than this."
)


async def attach(session: Session, turn: ActiveTurn) -> str:
    """Read the attachments, warn of those that are not sent, record the text for the model and return it.

    Nothing of a quick question is recorded (row S2)."""
    if not turn.prompt.attachments:
        return ""
    every = limit_contents([await _render(session, turn, attached) for attached in turn.prompt.attachments])
    for rendered in every:
        if rendered.trouble is not None:
            session.feed.notify(turn.turn_id, Warned("attachment", f"{rendered.name}: {rendered.trouble}"))
    text = render_attachments(every)
    if not turn.prompt.aside:
        shown = tuple(one.shown for one in every if one.shown is not None)
        session.seen_contents.keep(one.content for one in every if one.content is not None)
        await session.log.append_or_show([Attached(turn_id=turn.turn_id, text=text, shown=shown)], barrier=True)
    return text


async def _render(session: Session, turn: ActiveTurn, attached: Attachment) -> RenderedAttachment:
    match attached:
        case FileAttachment():
            forbidden = partial(reason_not_to_read, session)
            return await session.context.in_thread(
                read_attachment, session.tool_context, attached, turn.prompt.encoding, forbidden
            )
        case SelectionAttachment(uri, place, text):
            name = f"selection in {_document_name(session, uri)}, {lines_of(place)}"
            return RenderedAttachment(name, text) if text else RenderedAttachment(name, None, "The selection is empty.")
        case ProblemsAttachment(uri):
            return _render_problems(session, turn, uri)
        case TextAttachment(name, text):
            return RenderedAttachment(name, text) if text else RenderedAttachment(name, None, "The text is empty.")


def reason_not_to_read(session: Session, path: str) -> str | None:
    """Return why the rules for `read_file` forbid the path. Nobody is asked here, so a question counts as a no."""
    settings, folders = session.context.settings, session.tool_context.folders
    root, others = session.tool_context.root, folders[1:]
    wanted = CallFacts("read_file", "reads", Scope(paths=(path,)), False, False, root=root, others=others)
    match decide_admission(wanted, session.ledger.mode, (), settings.rules, settings.trusted):
        case Admit():
            return None
        case Deny(text):
            return text
        case AskFirst(why):
            return f"Reading it needs your permission: {why}. {INSTEAD}"


def _render_problems(session: Session, turn: ActiveTurn, uri: str | None) -> RenderedAttachment:
    """Return the server's own diagnostics, and that it sees no others."""
    name = "problems" if uri is None else f"problems in {_document_name(session, uri)}"
    path = None if uri is None else path_of(uri)
    known = TurnUserChannel(session, turn.turn_id).known_problems(path) if uri is None or path is not None else ()
    return RenderedAttachment(name, "\n".join(known) or None, UNSEEN)


def _document_name(session: Session, uri: str) -> str:
    """Return a document's path in the workspace, else its URI."""
    path = path_of(uri)
    return uri if path is None else display_path(path, session.tool_context.root)
