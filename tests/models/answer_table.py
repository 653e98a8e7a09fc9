"""A table of answers: what a provider sends, and what must become of it. One line a row, in tests/models/answers.

    NAME | OUTCOME | BODY        a line that begins with `#`, and an empty line, say nothing

The file's name is the dialect; `status.txt` has answers with an HTTP status, for every dialect. To add an answer that
was seen, add a line.

BODY    `whole OBJECT`           one JSON object instead of a stream
        `text TEXT`              any text; `\\n` is a line end
        `422 OBJECT or TEXT`     an answer with this status
        EVENT ;; EVENT ;; …      a stream
EVENT   `{…}`                    any object
        `DONE`                   the text `[DONE]`
        `raw TEXT`               a line of the stream as it is
        `CUT`                    the connection breaks
  chat      `delta {…}` `message {…}` `choice {…}` `end WORD` (a finish reason)
  messages  `block {…}` (begins one) `d {…}` (its delta) `stop` `over WORD` (a stop reason and the last event)
  responses `item {…}` (begins one) `text TEXT` (its delta) `args TEXT` (its delta) `done {…}` (ends it)
            `completed {…}` `incomplete REASON` `failed {…}`
OUTCOME `say TEXT; think TEXT; call TOOL ARGUMENTS; end REASON`, with `cut` in place of the end if it was cut, or
        `error KIND again|final WORDS`: the kind, whether the request is repeated, and the provider's words that reach
        the person; `-` if it has no words
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import attrs

from steadyhand.adapters.models.stream_parser import ResponseParser
from steadyhand.domain.model.messages import CallProposed, Finish, ProviderError, ReasoningPart, TextPart, UsagePart
from tests.models.streams import DIALECTS, KEY, Dialect, Event, Heard, event_text, merged, remote

FOLDER = Path(__file__).parent / "answers"


@attrs.frozen
class Row:
    """One line of the table."""

    dialect: Dialect
    name: str
    outcome: str
    body: str

    def __str__(self) -> str:
        return f"{self.dialect}: {self.name}"

    @property
    def fails(self) -> bool:
        return self.outcome.split("; ")[-1].startswith("error ")

    @property
    def words(self) -> str:
        """The provider's words that a person must see."""
        words = self.outcome.split("; ")[-1].split(" ", 3)[3]
        return "" if words == "-" else words

    @property
    def status(self) -> int:
        head = self.body.split(" ", 1)[0]
        return int(head) if head.isdigit() else 200

    @property
    def is_cut(self) -> bool:
        return self.body.endswith("CUT")

    @property
    def bytes(self) -> bytes:
        """The body as it goes over the connection."""
        head, _, rest = self.body.partition(" ")
        if head.isdigit() or head in ("whole", "text"):
            return rest.replace("\\n", "\n").encode() if head != "whole" else rest.encode()
        steps = [step for step in self.body.split(" ;; ") if step != "CUT"]
        return "".join(_Writer(self.dialect).events(steps)).encode("utf-8", "surrogatepass")


def rows() -> list[Row]:
    """Every row of every file."""
    found: list[Row] = []
    for path in sorted(FOLDER.glob("*.txt")):
        dialects = DIALECTS if path.stem == "status" else (cast("Dialect", path.stem),)
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                name, outcome, body = line.split(" | ", 2)
                found += [Row(dialect, name.strip(), outcome.strip(), body.strip()) for dialect in dialects]
    return found


class _Writer:
    """Turns the steps of a row into lines of a stream; it counts blocks and items."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._index = -1

    def events(self, steps: list[str]) -> Iterator[str]:
        for step in steps:
            verb, _, rest = step.partition(" ")
            if verb == "raw":
                yield rest.replace("\\n", "\n") + "\n\n"
            elif verb == "DONE":
                yield event_text(("", "[DONE]"))
            elif step.startswith("{"):
                told = json.loads(step)
                yield event_text((str(told.get("type", "")) if self._dialect != "chat" else "", told))
            else:
                yield from map(event_text, getattr(self, f"_{self._dialect}")(verb, rest))

    def _chat(self, verb: str, rest: str) -> Iterator[Event]:
        match verb:
            case "delta" | "message":
                choice = {"index": 0, verb: json.loads(rest), "finish_reason": None}
            case "choice":
                choice = json.loads(rest)
            case "end":
                choice = {"index": 0, "delta": {}, "finish_reason": rest}
            case _:
                raise AssertionError(verb)
        yield "", {"object": "chat.completion.chunk", "choices": [choice]}

    def _messages(self, verb: str, rest: str) -> Iterator[Event]:
        match verb:
            case "block":
                self._index += 1
                yield _typed("content_block_start", index=self._index, content_block=json.loads(rest))
            case "d":
                yield _typed("content_block_delta", index=self._index, delta=json.loads(rest))
            case "stop":
                yield _typed("content_block_stop", index=self._index)
            case "over":
                yield _typed("message_delta", delta={"stop_reason": rest})
                yield _typed("message_stop")
            case _:
                raise AssertionError(verb)

    def _responses(self, verb: str, rest: str) -> Iterator[Event]:
        match verb:
            case "item":
                self._index += 1
                yield _typed("response.output_item.added", output_index=self._index, item=json.loads(rest))
            case "text":
                yield _typed("response.output_text.delta", output_index=self._index, delta=rest)
            case "args":
                yield _typed("response.function_call_arguments.delta", output_index=self._index, delta=rest)
            case "done":
                yield _typed("response.output_item.done", output_index=self._index, item=json.loads(rest))
            case "completed" | "failed":
                yield _typed(f"response.{verb}", response={"status": verb, **json.loads(rest or "{}")})
            case "incomplete":
                details = {"reason": rest}
                yield _typed("response.incomplete", response={"status": verb, "incomplete_details": details})
            case _:
                raise AssertionError(verb)


def _typed(kind: str, **members: Any) -> Event:
    return kind, {"type": kind, **members}


def read_row(row: Row, size: int = 1 << 30) -> Heard:
    """What becomes of a row in this process; `size`: of the pieces in which it arrives."""
    model = remote(row.dialect)
    model.errors.secrets = (KEY,)  # as after a request
    heard = Heard()
    if row.status != 200:
        heard.trouble = model.errors.of_status(row.status, {}, row.bytes)
        return heard
    answer = ResponseParser(model.make_reader(), model.errors)
    stream = row.bytes
    try:
        for at in range(0, len(stream), size):
            heard.parts += answer.feed(stream[at : at + size])
        heard.parts += answer.finish(row.is_cut)
        answer.raise_trouble()
        heard.trouble = answer.failure()
    except ProviderError as trouble:
        heard.trouble = trouble
    return heard


def outcome_of(heard: Heard, words: str = "") -> str:
    """The outcome in the notation of the table; `words`: those that the row expects in the sentence."""
    told: list[str] = []
    is_whole = False
    for part in merged(heard.parts):
        match part:
            case TextPart(delta):
                told.append("say " + delta.replace("\n", "\\n"))
            case ReasoningPart(delta):
                told.append("think " + delta.replace("\n", "\\n"))
            case CallProposed(tool, arguments):
                told.append(f"call {tool} {arguments}")
            case Finish(reason):
                told.append(f"end {reason}")
                is_whole = True
            case UsagePart():
                pass
    if heard.trouble is not None:
        again = "again" if heard.trouble.retryable else "final"
        said = words if words and words in str(heard.trouble) else "-"
        told.append(f"error {heard.trouble.kind} {again} {said}")
    elif not is_whole:
        told.append("cut")
    return "; ".join(told)
