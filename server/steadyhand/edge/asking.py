"""Requests to the editor that are waiting for their answer.

Each ends in exactly one way: its answer, an `EditorError` (an error answer, none in time, the connection
lost), or a cancel. One that is given up is withdrawn with `$/cancelRequest`; an answer that comes later, or
twice, or to nothing, is ignored. JSON in, JSON out: shapes are the protocol's matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import anyio
import attrs

from steadyhand.edge.messages import ABSENT, Response

open_questions_max = 1_000
text_chars_max = 500


class EditorError(Exception):
    """The editor gave no answer that can be used; `code` is that of its error answer, if it gave one."""

    def __init__(self, text: str, code: int | None = None) -> None:
        super().__init__(text)
        self.code = code


@attrs.define(eq=False)
class _Question:
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    outcome: object = ABSENT  # JSON of the result, or an EditorError


class Asking:
    """All open questions of one connection."""

    def __init__(self, send: Callable[[Mapping[str, object]], None]) -> None:
        self._send = send
        self._numbers = itertools.count(1)
        self._open: dict[str, _Question] = {}
        self._lost: str | None = None

    async def ask(self, method: str, params: object, timeout_s: float) -> object:
        """The result, as JSON. Raises EditorError."""
        if self._lost is not None:
            raise EditorError(self._lost)
        if len(self._open) >= open_questions_max:
            raise EditorError("too many questions are open")
        id = f"steadyhand-{next(self._numbers)}"
        question = self._open[id] = _Question()
        message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not ABSENT:
            message["params"] = params
        try:
            self._send(message)
            with anyio.move_on_after(timeout_s):
                await question.ended.wait()
        finally:
            del self._open[id]
            if not question.ended.is_set():
                self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": id}})
        if not question.ended.is_set():
            raise EditorError(f"the editor did not answer {method} within {timeout_s:g} s")
        if isinstance(question.outcome, EditorError):
            raise question.outcome
        return question.outcome

    def answered(self, response: Response) -> None:
        """Take an answer; one that nobody waits for is ignored."""
        question = self._open.get(response.id) if isinstance(response.id, str) else None
        if question is None or question.ended.is_set():
            return
        question.outcome = _outcome(response)
        question.ended.set()

    def lose(self, why: str) -> None:
        """The connection has gone: every question ends with `why`, and so do later ones."""
        self._lost = why
        for question in self._open.values():
            if not question.ended.is_set():
                question.outcome = EditorError(why)
                question.ended.set()


def _outcome(response: Response) -> object:
    if response.error is ABSENT or (response.error is None and response.result is not ABSENT):
        return response.result
    match response.error:
        case {"code": int(code), "message": str(text)}:
            return EditorError(f"the editor answered: {text[:text_chars_max]}", code)
        case _:
            return EditorError("the editor answered with an error")
