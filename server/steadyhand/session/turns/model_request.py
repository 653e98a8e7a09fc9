"""One answer of the model: the request, its stream, and its repeat when a provider fails (rows P3, T1, T6).

The history is validated right before it is sent. A request that was cut, or that the provider says may be sent again,
is repeated a bounded number of times, after the pause that the provider asks for; a tool never is. The part of an
answer that was shown before a repeat is recorded as withdrawn and never sent. A partial answer never counts as whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio

from steadyhand.domain.model.messages import (
    ModelRequest,
    ProviderError,
    ReasoningPart,
    StreamPart,
    TextPart,
    ToolOffer,
    UserMessage,
)
from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.model.transcript import without_told_at_end
from steadyhand.domain.model.usage import known_input_tokens
from steadyhand.domain.records.record import Record
from steadyhand.domain.views.types import TextDelta, Warned
from steadyhand.session.active_turn import ActiveTurn
from steadyhand.session.session import Session
from steadyhand.session.turns import reasoning
from steadyhand.session.turns.budget import require_budget, usage_of
from steadyhand.session.turns.instructions import fix_instructions
from steadyhand.session.turns.steers import take_steers
from steadyhand.session.turns.system_text import system_text

PAUSE_S_FIRST = 1.0
PAUSE_S_MAX = 60.0
"""If the provider asks for a longer pause, the turn ends instead."""
PARTS_HELD_MAX = 32
"""Parts of an answer that are taken in one step of the event loop."""


async def ask_until_whole(session: Session, turn: ActiveTurn, aside: UserMessage | None = None) -> ModelResponse:
    """Return a whole answer, or the last try; its `trouble` is the provider's error.

    `aside`: a quick question, which is sent after the history and may call nothing."""
    await fix_instructions(session, turn)
    await supply_missing(session)
    await session.context.learn_window(session.ledger.model)
    pause_s = PAUSE_S_FIRST
    tries, tries_max = 0, session.context.requests_again_max
    while True:
        thinking = reasoning.should_reason(session, turn)
        answer = await _ask(session, turn, thinking, aside)
        trouble = answer.trouble
        if answer.is_whole and thinking:
            reasoning.reset_refusals(session)
        if answer.is_whole or (trouble is not None and not trouble.retryable and trouble.kind != "reasoning"):
            return answer
        if trouble is not None and trouble.kind == "reasoning":
            if not thinking or not await reasoning.continue_without_reasoning(session, turn, trouble):
                return answer
            await _record_withdrawn(session, turn, answer)
            continue
        wished = trouble.retry_after_s if trouble is not None else None
        if tries >= tries_max or (wished is not None and wished > PAUSE_S_MAX):
            return answer
        tries += 1
        await _ask_again_later(
            session, turn, answer, wished if wished is not None else pause_s, f"{tries} of {tries_max}"
        )
        pause_s = min(pause_s * 2, PAUSE_S_MAX)


async def _ask(session: Session, turn: ActiveTurn, thinking: bool, aside: UserMessage | None) -> ModelResponse:
    require_budget(session, turn)
    if aside is None:
        await take_steers(session, turn)
    answer = ModelResponse(turn.turn_id, session.context.ids.new(), session.epoch, thinking)
    async with session.telling:  # a message that is being recorded goes out with this request
        turn.expect_answer(answer.message_id)
        request = request_of(session, answer, aside)
    await receive(session, turn, answer, request)
    return answer


def request_of(session: Session, answer: ModelResponse, aside: UserMessage | None = None) -> ModelRequest:
    """Return the whole request, validated."""
    ledger = session.ledger
    messages = session.transcript.outgoing_messages(ledger, aside)
    if answer.goes_on:
        messages = without_told_at_end(messages)
    known, counted = known_input_tokens(ledger, messages)
    return ModelRequest(
        system_text(session),
        offers_of(session),
        messages,
        input_tokens=known,
        counted=counted,
        thinking=answer.thinking,
        can_call=aside is None,
        is_continuation=answer.goes_on,
    )


def offers_of(session: Session) -> tuple[ToolOffer, ...]:
    """Return the tools of each request of this session, in their order."""
    tools = session.context.tools_of(session.ledger.model)
    return tuple(tools[name].offer for name in sorted(tools))


async def receive(session: Session, turn: ActiveTurn, answer: ModelResponse, request: ModelRequest) -> None:
    """Send once, and add and show the parts as they arrive. A provider's error becomes `answer.trouble`."""
    ledger = session.ledger
    try:
        model = session.context.models(ledger.model.provider, ledger.model.name)
        answer.sent = True
        async with aclosing(cast("Any", model.ask(request))) as parts:
            unseen = 0
            async for part in parts:
                answer.add(part)
                unseen += 1
                if _show_part(session, answer, part) or unseen >= PARTS_HELD_MAX:
                    unseen = 0
                    await session.context.editor.drain()  # others run, and a cancel takes effect
    except ProviderError as trouble:
        answer.trouble = trouble
    except anyio.get_cancelled_exc_class():
        turn.keep_unfinished(answer)  # the end of the turn records it
        raise
    finally:
        session.feed.end_stream()


def _show_part(session: Session, answer: ModelResponse, part: StreamPart) -> bool:
    """Show a part of the answer as it arrives; return whether anything was sent now."""
    match part:
        case TextPart(delta):
            return session.feed.stream(answer.turn_id, TextDelta(answer.message_id, delta))
        case ReasoningPart(delta) if delta:
            return session.feed.stream(answer.turn_id, TextDelta(answer.message_id, delta, "reasoning"))
        case _:
            return False


async def _ask_again_later(
    session: Session, turn: ActiveTurn, answer: ModelResponse, pause_s: float, which: str
) -> None:
    """Warn that the model is asked again, record what was shown as withdrawn, wait.

    `which`: the number of the repeat. The warnings of a turn replace each other where they are shown (case 114)."""
    why = str(answer.trouble) if answer.trouble is not None else "The answer was cut off."
    what = " The part that was shown is withdrawn." if answer.is_shown else ""
    session.feed.notify(turn.turn_id, Warned("askedAgain", f"{why}{what} Retrying, {which}."))
    await _record_withdrawn(session, turn, answer)
    await session.context.pause(pause_s)


async def _record_withdrawn(session: Session, turn: ActiveTurn, answer: ModelResponse) -> None:
    """Record what was shown as withdrawn, and the usage that may be billed; a quick question records only the usage."""
    kept: list[Record] = [answer.record(withdrawn=True)] if answer.is_shown and not turn.prompt.aside else []
    if answer.may_be_billed:
        kept.append(usage_of(session, turn.turn_id, answer.usage))
    if kept:
        await session.log.append_or_show(kept)


async def supply_missing(session: Session) -> None:
    """Record the words for replies that are missing, before they go out (row T2)."""
    supplied: Sequence[Record] = session.transcript.missing_replies(session.ledger)
    if supplied:
        await session.log.append_or_show(supplied, barrier=True)
