"""The person at a terminal: keeps `ports.Editor` without an editor.

Answers go to stdout, everything else to stderr. Somebody can be asked only where stdin is a terminal; no answer, the
end of input and a word that is not offered are no permission. What is written to people has its control characters as
pictures, so that no text of a model or a file moves the cursor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import anyio
import anyio.lowlevel

from steadyhand.core.plain import plain
from steadyhand.core.questions import Answer, HeldBackQuestion, Option, PermissionQuestion, UserQuestion
from steadyhand.core.told import MessageTold, Told
from steadyhand.core.views import CallChanged, CallView, TextDelta, TurnEvent, Warned
from steadyhand.ports import OpenDocument
from steadyhand.tools.output import visible

line_bytes_max = 64 * 1024
"""Of an answer that is typed."""
tries_max = 3
_END_STATES = ("returned", "failed", "stopped", "refused", "notRun", "unknown")


class Terminal:
    """`keyboard`: the descriptor answers are read from; None: nobody is there. `streaming`: a turn is shown as it goes.

    `tell` goes on when nobody reads any more: a turn does not depend on it."""

    def __init__(self, out: TextIO, err: TextIO, keyboard: int | None) -> None:
        self._out = out
        self._err = err
        self._keyboard = keyboard
        self._typed = b""
        self._open_line = False
        self.streaming = False

    # What is written.

    def say(self, text: str) -> None:
        """Lines of the answer."""
        self._write(visible(text.encode("utf-8", "replace")) + "\n")

    def raw(self, text: str) -> None:
        """A text for a file; cleaned only where a person sees it."""
        self._write(visible(text.encode("utf-8", "replace")) if self._out.isatty() else text)

    def answer(self, value: object) -> None:
        """A value in the wire's shapes, as JSON."""
        self._write(json.dumps(plain(value), indent=2) + "\n")

    def note(self, text: str) -> None:
        """A sentence beside the answer."""
        self._end_line()
        self._err.write(visible(text.encode("utf-8", "replace")) + "\n")
        self._err.flush()

    def finish(self) -> None:
        """End the line that a stream left open."""
        self._end_line()

    # ports.Editor

    def tell(self, told: Told) -> None:
        with suppress(OSError):
            self._tell(told)

    def _tell(self, told: Told) -> None:
        match told:
            case MessageTold(level, text) if level != "log":
                self.note(f"steadyhand: {text}")
            case TurnEvent(event=TextDelta(delta=delta, kind="text")) if self.streaming:
                self._write(visible(delta.encode("utf-8", "replace")))
                self._open_line = not delta.endswith("\n")
            case TurnEvent(event=CallChanged(call=call)) if self.streaming and call.state in _END_STATES:
                self.note(_of_call(call))
            case TurnEvent(event=Warned(text=text)):
                self.note(f"steadyhand: {text}")
            case _:
                pass

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def attached(self) -> bool:
        return self._keyboard is not None

    async def ask_permission(self, question: PermissionQuestion) -> Answer | None:
        return await self.choose(f"{question.text}\n{question.diff or ''}".rstrip(), question.short_options)

    async def ask_held_back(self, question: HeldBackQuestion) -> Answer | None:
        return await self.choose(question.text, question.options)

    async def ask_user(self, question: UserQuestion) -> str | None:
        """A number of an option, or any words."""
        self.note("\n".join([question.question, *(f"  {n}. {text}" for n, text in enumerate(question.options, 1))]))
        typed = await self._line("> ")
        chosen = _numbered(typed, question.options) if typed else None
        return chosen or typed or None

    def document(self, path: str) -> OpenDocument | None:
        return None

    def unsaved_paths(self) -> tuple[str, ...]:
        return ()

    def saves(self) -> bool:
        return False

    async def save(self, path: str, version: int) -> bool:
        return False

    async def choose(self, text: str, options: Sequence[Option]) -> Answer | None:
        """One of the options, by its number; None: not answered."""
        if self._keyboard is None:
            return None
        self.note("\n".join([text, *(f"  {number}. {option.label}" for number, option in enumerate(options, 1))]))
        for _ in range(tries_max):
            typed = await self._line(f"1-{len(options)}> ")
            if typed is None:
                return None
            chosen = _numbered(typed, [option.id for option in options])
            if chosen is not None:
                return Answer(chosen)
        return None

    # Inside.

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _end_line(self) -> None:
        if self._open_line:
            self._write("\n")
            self._open_line = False

    async def _line(self, prompt: str) -> str | None:
        """One typed line without its end; None at the end of input."""
        if self._keyboard is None:
            return None
        self._err.write(prompt)
        self._err.flush()
        while b"\n" not in self._typed and len(self._typed) < line_bytes_max:
            await anyio.wait_readable(self._keyboard)
            piece = os.read(self._keyboard, line_bytes_max)
            if not piece:
                return None
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()


def _numbered(typed: str, options: Sequence[str]) -> str | None:
    """The option of that number."""
    if not typed.isascii() or not typed.isdecimal() or len(typed) > 3:
        return None
    number = int(typed)
    return options[number - 1] if 1 <= number <= len(options) else None


def _of_call(call: CallView) -> str:
    return f"[{call.title}: {call.state}{f', {call.reason}' if call.reason else ''}]"
