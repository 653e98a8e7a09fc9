"""The user at a terminal: `ports.Editor` without an editor.

Results go to stdout, everything else to stderr. A question can be asked only if stdin is a terminal. No answer, the end
of input and an option that was not offered are never a permission. Control characters are shown as pictures, so no text
of a model or a file moves the cursor.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

import anyio
import anyio.lowlevel

from steadyhand.domain.text.hidden_characters import show_hidden
from steadyhand.domain.views.notifications import EditorNotification, MessageNotification
from steadyhand.domain.views.questions import Choice, HeldBackQuestion, Option, PermissionQuestion, UserQuestion
from steadyhand.domain.views.serialize import to_plain
from steadyhand.domain.views.types import CallChanged, CallView, TextDelta, TurnEvent, Warned
from steadyhand.ports.editor import EditAnswer, OpenDocument
from steadyhand.tools.commands.output_buffer import make_visible

LINE_BYTES_MAX = 64 * 1024
"""Of a typed answer."""
TRIES_MAX = 3  # invalid answers to one question
_END_STATES = ("returned", "failed", "stopped", "refused", "notRun", "unknown")


class Terminal:
    """`keyboard`: the descriptor of the input; None: there is no user. `is_streaming`: the text of a turn is shown as
    it comes.

    `tell` continues after nobody reads the output any more: a turn does not depend on it.
    """

    def __init__(self, out: TextIO, err: TextIO, keyboard: int | None) -> None:
        self._out = out
        self._err = err
        self._keyboard = keyboard
        self._typed = b""
        self._is_line_open = False
        self.is_streaming = False

    # Output.

    def write_line(self, text: str) -> None:
        """Write lines of the result."""
        self._write(show_hidden(make_visible(text.encode("utf-8", "replace"))) + "\n")

    def write_text(self, text: str) -> None:
        """Write a text for a file; control characters are replaced only on a terminal."""
        self._write(make_visible(text.encode("utf-8", "replace")) if self._out.isatty() else text)

    def write_json(self, value: object) -> None:
        """Write a value in the wire's shapes, as JSON."""
        self._write(json.dumps(to_plain(value), indent=2) + "\n")

    def write_note(self, text: str) -> None:
        """Write a sentence to stderr."""
        self._end_line()
        self._err.write(show_hidden(make_visible(text.encode("utf-8", "replace"))) + "\n")
        self._err.flush()

    def end_stream(self) -> None:
        """End the line that a stream left open."""
        self._end_line()

    # ports.Editor

    def tell(self, notification: EditorNotification) -> None:
        with suppress(OSError):
            self._write_notification(notification)

    def _write_notification(self, notification: EditorNotification) -> None:
        match notification:
            case MessageNotification(level, text) if level != "log":
                self.write_note(f"steadyhand: {text}")
            case TurnEvent(event=TextDelta(delta=delta, kind="text")) if self.is_streaming:
                self._write(make_visible(delta.encode("utf-8", "replace")))
                self._is_line_open = not delta.endswith("\n")
            case TurnEvent(event=CallChanged(call=call)) if self.is_streaming and call.state in _END_STATES:
                self.write_note(_call_line(call))
            case TurnEvent(event=Warned(text=text)):
                self.write_note(f"steadyhand: {text}")
            case _:
                pass

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    def attached(self) -> bool:
        return self._keyboard is not None

    async def ask_permission(self, question: PermissionQuestion) -> Choice | None:
        return await self.choose(f"{question.text}\n{question.diff or ''}".rstrip(), question.short_options)

    async def ask_held_back(self, question: HeldBackQuestion) -> Choice | None:
        return await self.choose(question.text, question.options)

    async def ask_user(self, question: UserQuestion) -> str | None:
        """Return the chosen option, or the typed text."""
        options = [f"  {number}. {text}" for number, text in enumerate(question.options, 1)]
        self.write_note("\n".join([question.question, *options]))
        typed = await self._read_line("> ")
        chosen = _option_at(typed, question.options) if typed else None
        return chosen or typed or None

    def document(self, path: str) -> OpenDocument | None:
        return None

    async def encoding(self, path: str) -> str | None:
        return None

    def unsaved_paths(self) -> tuple[str, ...]:
        return ()

    def open_paths(self) -> tuple[str, ...]:
        return ()

    def saves(self) -> bool:
        return False

    def applies(self) -> bool:
        return False

    async def apply(self, path: str, version: int, text: str) -> EditAnswer:
        return EditAnswer("refused", "there is no editor")

    def pid(self) -> int | None:
        return None

    async def save(self, path: str, version: int) -> bool:
        return False

    async def choose(self, text: str, options: Sequence[Option]) -> Choice | None:
        """Return the option with the typed number; None: not answered."""
        if self._keyboard is None:
            return None
        self.write_note("\n".join([text, *(f"  {number}. {option.label}" for number, option in enumerate(options, 1))]))
        for _ in range(TRIES_MAX):
            typed = await self._read_line(f"1-{len(options)}> ")
            if typed is None:
                return None
            chosen = _option_at(typed, [option.id for option in options])
            if chosen is not None:
                return Choice(chosen)
        return None

    # Internal.

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _end_line(self) -> None:
        if self._is_line_open:
            self._write("\n")
            self._is_line_open = False

    async def _read_line(self, prompt: str) -> str | None:
        """Return one typed line without its end; None at the end of input."""
        if self._keyboard is None:
            return None
        self._err.write(prompt)
        self._err.flush()
        while b"\n" not in self._typed and len(self._typed) < LINE_BYTES_MAX:
            await anyio.wait_readable(self._keyboard)
            piece = os.read(self._keyboard, LINE_BYTES_MAX)
            if not piece:
                return None
            self._typed += piece
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode("utf-8", "replace").strip()


def _option_at(typed: str, options: Sequence[str]) -> str | None:
    """Return the option with that number."""
    if not typed.isascii() or not typed.isdecimal() or len(typed) > 3:
        return None
    number = int(typed)
    return options[number - 1] if 1 <= number <= len(options) else None


def _call_line(call: CallView) -> str:
    return f"[{call.title}: {call.state}{f', {call.reason}' if call.reason else ''}]"
