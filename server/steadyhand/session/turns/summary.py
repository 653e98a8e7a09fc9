"""Ask a model for the summary of a part of the conversation (row K4).

The request is the session's own view and tools, so its beginning is in the provider's cache. A call in the answer is
not run. A model of another provider gets the view as text. What is too long goes out without outputs, then in pieces.
Every request is counted apart, whether or not the summary is used. At the cap nothing is
asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import attrs

from steadyhand.domain.model.first_message import ASSUMED_WINDOW_TOKENS, SUMMARY_BYTES_MAX, cut_text
from steadyhand.domain.model.messages import ModelRequest, OutMessage, ProviderError, ReplyMessage, UserMessage
from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.model.token_estimate import BYTES_PER_TOKEN
from steadyhand.domain.model.transcript import OMITTED_REPLY
from steadyhand.domain.model.usage import usage_view
from steadyhand.domain.model.view_text import pieces_of, view_text
from steadyhand.domain.records.record import ModelName
from steadyhand.domain.views.types import UsageChanged
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.turns.budget import known_window, require_budget, usage_of
from steadyhand.session.turns.model_request import PAUSE_S_FIRST, PAUSE_S_MAX, offers_of
from steadyhand.session.turns.system_text import system_text

TOO_LONG = ("window", "tooLarge")
"""The kinds of a provider's trouble that a shorter request may help."""
GO_ON = "Say /compact to try again, or choose another model in the setting steadyhand.compaction.model."
PIECES_MAX = 64
PIECE_BYTES_MIN = 1024
OUTPUT_KEPT_CHARS_MAX = 10 * len(OMITTED_REPLY)
"""A longer output is left out where the request was too long."""

REQUEST = (
    "Summarise the conversation above for an agent that goes on with it and sees nothing else of it. Say what the user"
    " wants, what was done and found out, what was decided and why, which files matter, and what is still open. State"
    f" only what the conversation shows. Use at most {SUMMARY_BYTES_MAX // 1024 // 4 * 1000} characters. Do not call a"
    " tool, and answer with the summary alone."
)
FOCUS = " The user wants it to keep in particular: {focus}"
SYSTEM = "You summarise conversations between a user and a coding agent."
SO_FAR = "The summary of the parts before:\n{summary}\n\nThe next part:\n{piece}"


class SummaryRefused(Exception):
    """There is no summary. The text is one sentence."""


class _TooLong(Exception):
    """The provider says that the request is too long."""


async def summarise(session: Session, turn: ActiveTurn, messages: Sequence[OutMessage], focus: str | None) -> str:
    """Return a summary. Raise CapReached, or SummaryRefused where the model gives none."""
    asked = session.context.settings.compaction.model or session.ledger.model
    order = UserMessage(REQUEST + (FOCUS.format(focus=focus) if focus else ""))
    short = tuple(map(_without_output, messages))
    is_own = asked.provider == session.ledger.model.provider
    for view in (messages, short):
        try:
            return await _ask(session, turn, asked, _request(session, view, order, is_own))
        except _TooLong:
            continue
    return await _in_pieces(session, turn, asked, view_text(short), order)


def _request(session: Session, view: Sequence[OutMessage], order: UserMessage, is_own: bool) -> ModelRequest:
    if not is_own:
        return _text_request(view_text(view), order)
    thinking = not session.reasoning.given_up
    return ModelRequest(
        system_text(session),
        offers_of(session),
        (*view, order),
        thinking=thinking,
        can_call=False,
        purpose="summary",
    )


def _text_request(text: str, order: UserMessage) -> ModelRequest:
    return ModelRequest(SYSTEM, (), (UserMessage(text), order), can_call=False, purpose="summary")


def _without_output(message: OutMessage) -> OutMessage:
    if isinstance(message, ReplyMessage) and len(message.text) > OUTPUT_KEPT_CHARS_MAX and message.state != "unknown":
        return attrs.evolve(message, text=OMITTED_REPLY)
    return message


async def _in_pieces(session: Session, turn: ActiveTurn, asked: ModelName, text: str, order: UserMessage) -> str:
    """Summarise piece after piece. One that is too long is halved; of more than `PIECES_MAX` the last count."""
    window = known_window(session, asked) or await session.context.learn_window(asked) or ASSUMED_WINDOW_TOKENS
    size = max(PIECE_BYTES_MIN, window * BYTES_PER_TOKEN // 2)
    pieces, summary = pieces_of(text, size)[-PIECES_MAX:], ""
    while pieces:
        piece = pieces[0]
        so_far = cut_text(summary, SUMMARY_BYTES_MAX)
        part = SO_FAR.format(summary=so_far, piece=piece) if summary else piece
        try:
            summary = await _ask(session, turn, asked, _text_request(part, order))
            pieces = pieces[1:]
        except _TooLong:
            size = len(piece.encode("utf-8", "surrogatepass")) // 2
            if size < PIECE_BYTES_MIN:
                raise SummaryRefused("The conversation is too long to be summarised.") from None
            pieces = [*pieces_of(piece, size), *pieces[1:]][-PIECES_MAX:]
    return summary


async def _ask(session: Session, turn: ActiveTurn, asked: ModelName, request: ModelRequest) -> str:
    """Return the text of one answer. A request that broke off is sent again, as those of a turn are (row P3)."""
    pause_s, tries = PAUSE_S_FIRST, 0
    while True:
        answer = await _ask_once(session, turn, asked, request)
        trouble = answer.trouble
        if trouble is not None and trouble.kind in TOO_LONG:
            raise _TooLong
        if trouble is not None and trouble.kind == "reasoning" and request.thinking:
            request = attrs.evolve(request, thinking=False)
            continue
        wished = trouble.retry_after_s if trouble is not None else None
        is_final = answer.is_whole or (trouble is not None and not trouble.retryable)
        if is_final or tries >= session.context.requests_again_max or (wished or 0) > PAUSE_S_MAX:
            break
        tries += 1
        await session.context.pause(wished if wished is not None else pause_s)
        pause_s = min(pause_s * 2, PAUSE_S_MAX)
    if answer.trouble is not None:
        raise SummaryRefused(f"The model gave no summary. {answer.trouble} {GO_ON}")
    if answer.finish in (None, "filtered") or not answer.text.strip():
        raise SummaryRefused(f"The model gave no summary. {GO_ON}")
    return answer.text


async def _ask_once(session: Session, turn: ActiveTurn, asked: ModelName, request: ModelRequest) -> ModelResponse:
    """Send once. Nothing of the answer is shown; its usage is recorded even if it is cut off."""
    require_budget(session, turn, asked)
    answer = ModelResponse(turn.turn_id, session.context.ids.new(), session.epoch, request.thinking)
    try:
        model = session.context.models(asked.provider, asked.name)
        answer.sent = True
        async with aclosing(cast("Any", model.ask(request))) as parts:
            async for part in parts:
                answer.add(part)
    except ProviderError as trouble:
        answer.trouble = trouble
    finally:
        if answer.may_be_billed:
            with anyio.CancelScope(shield=True):
                used = usage_of(session, turn.turn_id, answer.usage, asked, auxiliary=True)
                await session.log.append_or_show([used])
                session.feed.notify(turn.turn_id, UsageChanged(usage_view(session.ledger)))
    return answer
