"""One answer of a model while it arrives: its parts, merged. It accumulates and notifies nobody."""

from __future__ import annotations

from typing import Any

import attrs

from steadyhand.domain.model.messages import (
    CallProposed,
    Finish,
    FinishReason,
    ProviderError,
    ReasoningPart,
    StreamPart,
    TextPart,
    UsagePart,
)
from steadyhand.domain.records.record import Assistant
from steadyhand_values import define

ANSWER_BYTES_MAX = 16 * 1024 * 1024


@define
class ModelResponse:
    """The parts of one answer. `finish` is None while it arrives, and stays None if the answer was cut off."""

    turn_id: str
    message_id: str
    epoch: str | None  # of the session when the model was asked
    thinking: bool = True  # the request asked for reasoning
    goes_on: bool = False  # it is the rest of the message with this id (row P2)
    texts: list[str] = attrs.field(factory=list)
    reasonings: list[str] = attrs.field(factory=list)
    calls: list[CallProposed] = attrs.field(factory=list)
    sealed: str | None = None
    usage: UsagePart | None = None
    finish: FinishReason | None = None
    finish_word: str = ""  # the provider's own word for it
    trouble: ProviderError | None = None
    sent: bool = False  # the request may have gone out
    proposed: bool = False  # a rest that proposed calls all the same
    _size: int = 0

    @property
    def text(self) -> str:
        """The text that has arrived."""
        return "".join(self.texts)

    @property
    def is_shown(self) -> bool:
        """Whether anything of it was worth showing."""
        return bool(self.calls or any(map(str.strip, (*self.texts, *self.reasonings))))

    @property
    def is_whole(self) -> bool:
        """Whether it came to its end."""
        return self.finish is not None and self.trouble is None

    @property
    def may_be_billed(self) -> bool:
        """Whether tokens may have been billed for it; a provider that only reports an error bills none."""
        return self.is_shown or self.usage is not None or (self.sent and self.trouble is None)

    def add(self, part: StreamPart) -> None:
        """Merge the next part. Raise ProviderError above `ANSWER_BYTES_MAX`."""
        match part:
            case TextPart(delta):
                self.texts.append(delta)
                self._grow(delta)
            case ReasoningPart(delta, sealed):
                self.sealed = sealed or self.sealed
                if delta:
                    self.reasonings.append(delta)
                    self._grow(delta)
            case CallProposed() if self.goes_on:
                self.proposed = True  # a rest is asked for without tools: nothing of it is run
            case CallProposed():
                self.calls.append(part)
                self._grow(part.arguments)
            case UsagePart():
                self.usage = part
            case Finish(reason, word):
                self.finish, self.finish_word = reason, word

    def cut(self) -> None:
        """Take the answer as one that was cut off, so that nothing it proposes is run."""
        self.finish = None

    def record(self, **more: Any) -> Assistant:
        """Return the assistant message without its calls."""
        return Assistant(
            turn_id=self.turn_id,
            message_id=self.message_id,
            text=self.text,
            reasoning="".join(self.reasonings) or None,
            finish=self.finish,
            sealed=self.sealed,
            goes_on=self.goes_on,
            **more,
        )

    def _grow(self, text: str) -> None:
        self._size += len(text)
        if self._size > ANSWER_BYTES_MAX:
            raise ProviderError(f"The answer is longer than {ANSWER_BYTES_MAX} characters, so the rest was not read.")
