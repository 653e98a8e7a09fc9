"""The turn that runs in a session: what it was asked, how it is stopped, what it must not do twice."""

from __future__ import annotations

import anyio
import attrs

from steadyhand.domain.model.response import ModelResponse
from steadyhand.domain.records.prompt import Prompt
from steadyhand.domain.records.record import EndReason
from steadyhand.domain.views.types import CompactResult
from steadyhand_values import define


@define(eq=False)
class ActiveTurn:
    """One running turn. Only its own methods change it."""

    turn_id: str
    client_message_id: str
    prompt: Prompt
    scope: anyio.CancelScope = attrs.field(factory=anyio.CancelScope)
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    stopping: EndReason | None = None  # set before its scope is cancelled, never after
    open_questions: int = 0  # to the user
    asks_for_reasoning: bool = True  # False: the provider refused this conversation for its reasoning
    unfinished: ModelResponse | None = None  # an answer that a stop cut off
    not_kept: bool = False  # the journal broke: what follows is shown and not kept
    why: str | None = None  # one sentence on why it ended, where its reason needs one
    compacted: CompactResult | None = None  # of a turn that compacts on request, once it is known
    asked: str | None = None  # message id of the answer that was asked for last
    _calls: dict[tuple[str, str], int] = attrs.field(factory=dict)  # (tool, digest of the arguments) → times asked
    _warned: set[str] = attrs.field(factory=set)  # codes of warnings that are given once a turn

    @property
    def is_parked(self) -> bool:
        """Whether it waits for an answer of the user."""
        return self.open_questions > 0

    def begin_stopping(self, reason: EndReason) -> bool:
        """Note why the turn is being stopped. False if it is being stopped already; the first reason stays."""
        if self.stopping is not None:
            return False
        self.stopping = reason
        return True

    def open_question(self) -> None:
        """A question to the user is open from now on."""
        self.open_questions += 1

    def close_question(self) -> None:
        """A question to the user is answered or withdrawn."""
        self.open_questions -= 1

    def stop_reasoning(self) -> None:
        """Ask the model without reasoning for the rest of this turn."""
        self.asks_for_reasoning = False

    def expect_answer(self, message_id: str) -> None:
        """The model is being asked for this answer."""
        self.asked = message_id

    def count_call(self, tool: str, arguments_digest: str) -> int:
        """Count a call and return how often this turn asked for the same."""
        same = (tool, arguments_digest)
        self._calls[same] = self._calls.get(same, 0) + 1
        return self._calls[same]

    def keep_unfinished(self, response: ModelResponse) -> None:
        """Keep an answer that a stop cut off; the end of the turn records it."""
        self.unfinished = response

    def mark_not_kept(self) -> bool:
        """Note that the journal does not keep this turn. False if that was noted before."""
        if self.not_kept:
            return False
        self.not_kept = True
        return True

    def explain_end(self, text: str) -> None:
        """Note the sentence that is recorded with the end."""
        self.why = text

    def note_compaction(self, result: CompactResult) -> None:
        """Note what the compaction of this turn came to."""
        self.compacted = result

    def first_warning(self, code: str) -> bool:
        """Return whether this warning was not given in this turn yet, and count it as given."""
        if code in self._warned:
            return False
        self._warned.add(code)
        return True
