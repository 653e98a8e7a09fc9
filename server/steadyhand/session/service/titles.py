"""A title by the model: one request after the first turn, if the setting asks for it (rows K3, K5).

It runs beside whatever comes next. It is committed only if the title is still automatic, the epoch is the same and the
session is still owned here; the user's title is never replaced. It is never asked twice, and it says nothing if it
fails: the first line of the prompt stays the title.
"""

from __future__ import annotations

import contextlib
from contextlib import aclosing
from functools import partial
from typing import Any, cast

import anyio

from steadyhand.domain.ledger.state import Turn
from steadyhand.domain.model.first_message import cut_text
from steadyhand.domain.model.messages import ModelRequest, ProviderError, UserMessage
from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.records.record import Title, Usage
from steadyhand.domain.views import render
from steadyhand.journal.journal import JournalBroken, TooLong
from steadyhand.session.session import Session
from steadyhand.session.turns.budget import CapReached, require_budget, usage_of

TITLE_S_MAX = 60.0
ASKED_BYTES_MAX = 8 * 1024
"""Of the prompt, and of the answer, that the model gets."""
ENDS = ("done", "length", "bound")
"""The ends of a first turn that has something to be named."""
SYSTEM = "You name conversations between a user and a coding agent."
REQUEST = "Answer with a title for this conversation, of two to six words, in its language, and with nothing else."


def ask_for_title(session: Session, turn_id: str) -> None:
    """Ask for a title in the background, if the turn that has ended is the session's first."""
    turn = session.ledger.turns.get(turn_id)
    if session.context.settings.titles != "model" or turn is None or not _is_first(session, turn):
        return
    if session.ledger.title_source == "auto" and session.can_record and session.epoch is not None:
        session.context.spawn(partial(_ask_and_commit, session, turn, session.epoch), f"title {session.session_id}")


def _is_first(session: Session, turn: Turn) -> bool:
    first = next((one for one in session.ledger.turns.values() if one.is_in_history), None)
    return first is turn and turn.ended is not None and turn.ended.reason in ENDS


async def _ask_and_commit(session: Session, turn: Turn, epoch: str) -> None:
    answer = ModelResponse(turn.turn_id, session.context.ids.new(), epoch)
    try:
        require_budget(session, None)
    except CapReached:
        return
    with anyio.move_on_after(TITLE_S_MAX):
        await _receive(session, answer, _request(session, turn))
    title = render.short_title(answer.text.strip().split("\n")[0].strip("\"'“”# "))
    used = usage_of(session, turn.turn_id, answer.usage, auxiliary=True)
    if answer.may_be_billed:
        await _append(session, epoch, used)
    if answer.is_whole and answer.finish != "filtered" and title.strip():
        await _append(session, epoch, Title(title=title, source="auto"))
    session.feed.notify_changes()


async def _receive(session: Session, answer: ModelResponse, request: ModelRequest) -> None:
    model = session.ledger.model
    try:
        found = session.context.models(model.provider, model.name)
        answer.sent = True
        async with aclosing(cast("Any", found.ask(request))) as parts:
            async for part in parts:
                answer.add(part)
    except ProviderError as trouble:
        answer.trouble = trouble


def _request(session: Session, turn: Turn) -> ModelRequest:
    said = cut_text(turn.text, ASKED_BYTES_MAX)
    answered = cut_text(render.answer_text(session.ledger, turn.turn_id), ASKED_BYTES_MAX)
    messages = [UserMessage(said)]
    if answered.strip():
        messages.append(UserMessage(f"The agent answered:\n{answered}", is_told=True))
    order = UserMessage(REQUEST)
    return ModelRequest(SYSTEM, (), (*messages, order), thinking=False, can_call=False, purpose="title")


async def _append(session: Session, epoch: str, record: Title | Usage) -> None:
    """Record unless the session was released or has another epoch; a title only where it is still automatic."""

    def is_late() -> bool:
        is_unwanted = isinstance(record, Title) and session.ledger.title_source != "auto"
        return session.epoch != epoch or is_unwanted

    with contextlib.suppress(JournalBroken, TooLong):
        await session.log.append([record], barrier=False, unless=is_late)
