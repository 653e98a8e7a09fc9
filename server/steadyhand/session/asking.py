"""One answer of the model: the request, its stream, and its repeat when a provider fails (rows P3, T1, T6).

The history is validated right before it leaves. A request that was cut, or that the provider says may be sent again,
is repeated, bounded, with the pause it asks for; never a tool. What was shown of an answer that is asked for again is
marked withdrawn: it stays in the journal and goes out nowhere. Nothing partial is taken for complete.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, cast

import anyio
import attrs

from steadyhand.core.model import (
    CallProposed,
    Finish,
    FinishReason,
    ModelRequest,
    ModelTrouble,
    ReasoningPart,
    StreamPart,
    TextPart,
    UsagePart,
    UserMessage,
)
from steadyhand.core.record import Assistant, Record
from steadyhand.core.transcript import missing_replies, outgoing, validate
from steadyhand.core.usage import known_input
from steadyhand.core.views import TextDelta, Warned
from steadyhand.session import reasoning
from steadyhand.session.budget import require_budget, usage_of
from steadyhand.session.instructions import fix_instructions
from steadyhand.session.owner import Owner, RunningTurn

pause_s_first = 1.0
pause_s_max = 60.0
"""A longer wish of the provider ends the turn instead; the person may come back later."""
answer_bytes_max = 16 * 1024 * 1024

SYSTEM = (
    "You are Steadyhand, a coding agent inside an editor. You work on the files of one workspace through tools, and"
    " paths are relative to it. Say what you really did and nothing else. A call whose outcome is unknown is never"
    " repeated before its effect was inspected."
)
SYSTEM_WITHOUT_FILES = " No folder is open, so there are no files to work on: say so when files are asked for."


@attrs.define
class Answer:
    """Parts of one answer, merged; what arrives is told at once. `finish` None: it was cut."""

    owner: Owner
    turn_id: str
    message_id: str
    texts: list[str] = attrs.field(factory=list)
    reasonings: list[str] = attrs.field(factory=list)
    calls: list[CallProposed] = attrs.field(factory=list)
    sealed: str | None = None
    usage: UsagePart | None = None
    finish: FinishReason | None = None
    trouble: ModelTrouble | None = None
    size: int = 0
    thinking: bool = True  # whether it was asked for with reasoning
    goes_on: bool = False  # it is the rest of the message with this id (row P2)
    sent: bool = False  # the request may have gone out
    proposed: bool = False  # a rest that proposed calls all the same
    epoch: str | None = None  # of the session when it was asked for

    def __attrs_post_init__(self) -> None:
        self.epoch = self.owner.epoch

    @property
    def perhaps_billed(self) -> bool:
        """Whether tokens may have been billed for it; a provider that only said what is wrong bills none."""
        return self.shown or self.usage is not None or (self.sent and self.trouble is None)

    @property
    def shown(self) -> bool:
        """Whether anything of it was worth telling."""
        return bool(self.calls or any(map(str.strip, (*self.texts, *self.reasonings))))

    @property
    def whole(self) -> bool:
        return self.finish is not None and self.trouble is None

    async def take(self, part: StreamPart) -> None:
        match part:
            case TextPart(delta):
                self.texts.append(delta)
                self._grow(delta)
                self.owner.tell(self.turn_id, TextDelta(self.message_id, delta))
            case ReasoningPart(delta, sealed):
                self.sealed = sealed or self.sealed
                if delta:
                    self.reasonings.append(delta)
                    self._grow(delta)
                    self.owner.tell(self.turn_id, TextDelta(self.message_id, delta, "reasoning"))
            case CallProposed() if self.goes_on:
                self.proposed = True  # a rest is asked for without tools: nothing of it is run
            case CallProposed():
                self.calls.append(part)
                self._grow(part.arguments)
            case UsagePart():
                self.usage = part
            case Finish(reason):
                self.finish = reason
        await self.owner.world.editor.drain()

    def record(self, **more: Any) -> Assistant:
        """The message without its calls."""
        return Assistant(
            self.turn_id, self.message_id, "".join(self.texts), reasoning="".join(self.reasonings) or None,
            finish=self.finish, sealed=self.sealed, goes_on=self.goes_on, **more,
        )  # fmt: skip

    def _grow(self, text: str) -> None:
        self.size += len(text)
        if self.size > answer_bytes_max:
            raise ModelTrouble(f"The answer is longer than {answer_bytes_max} characters and is not read further.")


async def ask_until_whole(owner: Owner, turn: RunningTurn, aside: UserMessage | None = None) -> Answer:
    """A whole answer, or the last try at one; `trouble` says what the provider said.

    `aside`: a quick question, which goes out behind the history and may call nothing."""
    await fix_instructions(owner, turn)
    await _supply_missing(owner)
    await owner.world.learn_window(owner.ledger.model)
    pause_s = pause_s_first
    tries = owner.world.requests_again_max
    while True:
        thinking = reasoning.thinks(owner, turn)
        answer = await _ask(owner, turn, thinking, aside)
        trouble = answer.trouble
        if answer.whole and thinking:
            reasoning.taken(owner)
        if answer.whole or (trouble is not None and not trouble.retryable and trouble.kind != "reasoning"):
            return answer
        if trouble is not None and trouble.kind == "reasoning":
            if not thinking or not await reasoning.goes_on_without(owner, turn, trouble):
                return answer
            await _set_aside(owner, turn, answer)
            continue
        wished = trouble.retry_after_s if trouble is not None else None
        if tries <= 0 or (wished is not None and wished > pause_s_max):
            return answer
        tries -= 1
        await _withdraw(owner, turn, answer, wished if wished is not None else pause_s)
        pause_s = min(pause_s * 2, pause_s_max)


async def _ask(owner: Owner, turn: RunningTurn, thinking: bool, aside: UserMessage | None) -> Answer:
    require_budget(owner, turn)
    answer = Answer(owner, turn.turn_id, owner.world.ids.new(), thinking=thinking)
    await hear(owner, turn, answer, request_of(owner, answer, aside))
    return answer


def request_of(owner: Owner, answer: Answer, aside: UserMessage | None = None) -> ModelRequest:
    """The whole outgoing view, validated right before it leaves."""
    world, ledger = owner.world, owner.ledger
    messages = outgoing(ledger, aside)
    validate(messages)
    offers = tuple(world.tools[name].offer for name in sorted(world.tools))
    system = (SYSTEM if owner.workspace is not None else SYSTEM + SYSTEM_WITHOUT_FILES) + (ledger.instructions or "")
    known, counted = known_input(ledger, messages)
    return ModelRequest(
        system, offers, messages, input_tokens=known, counted=counted, thinking=answer.thinking, may_call=aside is None,
        continues=answer.goes_on,
    )  # fmt: skip


async def hear(owner: Owner, turn: RunningTurn, answer: Answer, request: ModelRequest) -> None:
    """Send once and take what comes, told as it comes; what a provider says against it is `answer.trouble`."""
    ledger = owner.ledger
    try:
        model = owner.world.models(ledger.model.provider, ledger.model.name)
        answer.sent = True
        async with aclosing(cast("Any", model.ask(request))) as parts:
            async for part in parts:
                await answer.take(part)
    except ModelTrouble as trouble:
        answer.trouble = trouble
    except anyio.get_cancelled_exc_class():
        turn.unfinished = answer  # what was shown is kept; its calls do not run
        raise
    if answer.finish == "unknown" and answer.calls:
        answer.finish = None  # why it ended is not known, so its calls are not taken for whole


async def _withdraw(owner: Owner, turn: RunningTurn, answer: Answer, pause_s: float) -> None:
    """Say that it is asked again, mark what was shown, wait."""
    why = str(answer.trouble) if answer.trouble is not None else "The answer was cut off."
    what = " What was shown of it is withdrawn." if answer.shown else ""
    owner.tell(turn.turn_id, Warned("askedAgain", f"{why}{what} The model is asked again."))
    await _set_aside(owner, turn, answer)
    await owner.world.pause(pause_s)


async def _set_aside(owner: Owner, turn: RunningTurn, answer: Answer) -> None:
    """Mark what was shown as withdrawn, and count what was perhaps billed; of a quick question nothing else is kept."""
    kept: list[Record] = [answer.record(withdrawn=True)] if answer.shown and not turn.prompt.aside else []
    if answer.perhaps_billed:
        kept.append(usage_of(owner, turn.turn_id, answer.usage))
    if kept:
        await owner.append_or_show(kept)


async def _supply_missing(owner: Owner) -> None:
    supplied: Sequence[Record] = missing_replies(owner.ledger)
    if supplied:
        await owner.append_or_show(supplied, barrier=True)
