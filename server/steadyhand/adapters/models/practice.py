"""A model without network or key: it does what the sentences of the last user message say (row P5).

It stores nothing between requests but a count. Each answer is derived from the messages: it parses the last user
message, replays the calls and replies after it through the same plan, and answers with the plan's next step. So the
same messages give the same answer in any process, and a request that is repeated after a cut stream or a crash
continues where it was.
A request for a summary is answered with the number of its messages, one for a title with the first words of the first
prompt (rows K4, K5).
Tokens are words here: those between blanks, in everything that goes in and out. Calls that another model made in the
same turn are ignored, and so are stored messages of the server.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from typing import TypeAlias

import anyio
import anyio.lowlevel

from steadyhand.adapters.models.practice_grammar import Batch, NotUnderstood, Say, Sentence, parse_sentences
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    OutMessage,
    ReplyMessage,
    StreamPart,
    TextPart,
    UsagePart,
    UserMessage,
)
from steadyhand.domain.text.lines import text_of_reply
from steadyhand_values import frozen

TEXT_PARTS_MAX = 8
"""Of the text of one answer."""

TITLE_WORDS = 5
"""Of the first prompt."""
NO_TOOLS_ANSWER = "I do not call tools here."
HINT = (
    "I am the practice model, not a language model. I only know these sentences, one a line: show FILE · "
    "write FILE with TEXT · append TEXT to FILE · replace A with B in FILE · move A to B · delete FILE · "
    "find PATTERN · search TEXT · run CMD · crash · say TEXT · together:"
)


class PracticeModel:
    """`ports.Model`. `step_delay_s`: seconds to wait before each part, for those who want to watch."""

    def __init__(self, step_delay_s: float = 0) -> None:
        self._step_delay_s = step_delay_s
        self._counted: tuple[Sequence[OutMessage], int] = ((), 0)

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the answer: text in a few parts, calls, usage, finish. Never fails."""
        answer = _answer(request)
        parts: list[StreamPart] = [TextPart(delta) for delta in _deltas(answer.text)]
        parts += [CallProposed(call.tool, call.arguments) for call in answer.calls]
        parts.append(UsagePart(input=self._words_in(request), output=_words_out(answer)))
        parts.append(Finish("calls" if answer.calls else "stop"))
        for part in parts:
            if self._step_delay_s > 0:
                await anyio.sleep(self._step_delay_s)
            else:
                await anyio.lowlevel.checkpoint()
            yield part

    def _words_in(self, request: ModelRequest) -> int:
        """Count the words of a request. The messages that begin the request counted last are not counted again."""
        earlier, words = self._counted
        if request.messages[: len(earlier)] != earlier:
            earlier, words = (), 0
        words += sum(map(_words_of_message, request.messages[len(earlier) :]))
        self._counted = (request.messages, words)
        words += len(request.system.split())
        return words + sum(len(f"{one.name} {one.description} {one.parameters}".split()) for one in request.tools)


@frozen
class _PracticeCall:
    tool: str
    arguments: str  # canonical JSON


@frozen
class _PracticeResponse:
    text: str
    calls: tuple[_PracticeCall, ...] = ()


@frozen
class _Round:
    """One earlier answer with calls, and the replies to them."""

    tools: tuple[str, ...]
    replies: tuple[ReplyMessage, ...]


_NO_REPLY = ReplyMessage("", "", "notRun", "the call was never made")
_Plan: TypeAlias = "Generator[_PracticeResponse, tuple[ReplyMessage, ...], None]"


def _answer(request: ModelRequest) -> _PracticeResponse:
    if request.purpose == "summary":
        return _PracticeResponse(f"Summary: {len(request.messages) - 1} messages.")
    if request.purpose == "title":
        return _PracticeResponse(" ".join(_first_prompt(request.messages).split()[:TITLE_WORDS]))
    can_call = bool(request.tools) and request.can_call
    return _next_answer(request) if can_call else _PracticeResponse(NO_TOOLS_ANSWER)


def _first_prompt(messages: Sequence[OutMessage]) -> str:
    prompts = (one.text for one in messages if isinstance(one, UserMessage) and not one.is_told)
    return next(prompts, "")


def _next_answer(request: ModelRequest) -> _PracticeResponse:
    messages = request.messages
    start = len(messages) - 1
    while start >= 0 and (not isinstance(one := messages[start], UserMessage) or one.is_told):
        start -= 1
    prompt = messages[start] if start >= 0 else None
    plan = _Turn(prompt.text if isinstance(prompt, UserMessage) else "").plan()
    answer = next(plan)
    for made in _rounds(messages[start + 1 :] if start >= 0 else ()):
        asked = tuple(call.tool for call in answer.calls)
        if not asked:
            break
        if asked[: len(made.tools)] == made.tools:
            missing = len(asked) - len(made.tools)
            answer = plan.send(made.replies + (_NO_REPLY,) * missing)
    return answer


def _rounds(messages: Sequence[object]) -> Iterable[_Round]:
    replies = {message.call_id: message for message in messages if isinstance(message, ReplyMessage)}
    for message in messages:
        if isinstance(message, AssistantMessage) and message.calls:
            tools = tuple(call.tool for call in message.calls)
            yield _Round(tools, tuple(replies.get(call.call_id, _NO_REPLY) for call in message.calls))


@frozen
class _Outcome:
    """The outcome of a sentence. `state` "": it is done and counts."""

    state: str = ""
    reason: str | None = None

    def __str__(self) -> str:
        return self.state if self.reason is None else f"{self.state}: {self.reason}"


_DONE = _Outcome()
_NOT_TRIED = _Outcome("not tried")
_NOT_READ_WHOLE = _Outcome("notRun", "I did not read the whole file, so I cannot append to it")


class _Turn:
    """The plan of one user message. Sentences are identified by object, because two may have the same text."""

    def __init__(self, text: str) -> None:
        self._steps = parse_sentences(text)
        self._outcomes: dict[int, _Outcome] = {}  # by id() of the sentence in `_steps`
        self._lines: list[str] = []  # text of the present answer
        self._refused_sentence: Sentence | None = None
        self._is_hint_due = False  # a line was not understood

    def plan(self) -> _Plan:
        """Yield each answer and receive the replies to its calls; the last answer has no calls."""
        for step in self._steps:
            match step:
                case Say(text=text):
                    self._lines.append(text)
                case NotUnderstood(line=line):
                    self._lines.append(f"I do not understand: {line}")
                    self._is_hint_due = True
                case Batch(sentences=sentences):
                    yield from self._batch(sentences)
                    if self._refused_sentence is not None:
                        break
        yield _PracticeResponse("\n".join([*self._lines, *self._closing_lines()]))

    def _batch(self, sentences: tuple[Sentence, ...]) -> _Plan:
        replies = yield from self._ask(sentences, [_first_call(sentence) for sentence in sentences])
        writing: list[tuple[Sentence, _PracticeCall]] = []
        for sentence, reply in zip(sentences, replies, strict=True):
            if sentence.verb not in _READ_FIRST or (write := self._write_after(sentence, reply)) is None:
                continue
            if _is_reading_stale(sentence, sentences):
                continue
            writing.append((sentence, write))
        if writing and self._refused_sentence is None:
            yield from self._ask([sentence for sentence, _ in writing], [call for _, call in writing])
        for sentence in sentences:
            is_again = sentence.verb in _READ_FIRST and _is_reading_stale(sentence, sentences)
            if self._refused_sentence is None and is_again:
                yield from self._read_again(sentence)

    def _read_again(self, sentence: Sentence) -> _Plan:
        """Repeat a sentence whose file the batch itself changed: its reading is out of date, so it reads again."""
        (reply,) = yield from self._ask((sentence,), [_first_call(sentence)])
        write = self._write_after(sentence, reply)
        if write is not None and self._refused_sentence is None:
            yield from self._ask((sentence,), [write])

    def _ask(
        self, sentences: Sequence[Sentence], calls: Sequence[_PracticeCall]
    ) -> Generator[_PracticeResponse, tuple[ReplyMessage, ...], tuple[ReplyMessage, ...]]:
        text, self._lines = "\n".join(self._lines), []
        replies = yield _PracticeResponse(text, tuple(calls))
        for sentence, reply in zip(sentences, replies, strict=True):
            done = reply.state == "returned"
            self._outcomes[id(sentence)] = _DONE if done else _Outcome(reply.state, reply.reason)
            if self._refused_sentence is None and (reply.state == "refused" or reply.reason == "recovery_required"):
                self._refused_sentence = sentence
        return replies

    def _write_after(self, sentence: Sentence, reply: ReplyMessage) -> _PracticeCall | None:
        """Return the write that follows the reading of a sentence; None if there can be none.

        Until that write is called, the sentence has not been tried.
        """
        if sentence.verb == "write":
            if reply.state != "returned" and not _is_file_missing(reply):
                return None
            self._outcomes[id(sentence)] = _NOT_TRIED
            path, content = sentence.words
            return _call("write_file", {"path": path, "content": content})
        text, path = sentence.words
        if _is_file_missing(reply):
            old: str | None = ""
        elif reply.state == "returned":
            old = text_of_reply(reply.text)
        else:
            return None
        if old is None:
            self._outcomes[id(sentence)] = _NOT_READ_WHOLE
            return None
        self._outcomes[id(sentence)] = _NOT_TRIED
        return _call("write_file", {"path": path, "content": _append_line(old, text)})

    def _closing_lines(self) -> list[str]:
        batches = [step for step in self._steps if isinstance(step, Batch)]
        sentences = [sentence for batch in batches for sentence in batch.sentences]
        outcomes = [(sentence.line, self._outcomes.get(id(sentence), _NOT_TRIED)) for sentence in sentences]
        lines = [HINT] if self._is_hint_due else []
        if self._refused_sentence is not None:
            lines.append(f"I stopped after this call was refused: {self._refused_sentence.line}")
        lines.append(f"done: {sum(outcome == _DONE for _, outcome in outcomes)} of {len(outcomes)}")
        return lines + [f"{line}: {outcome}" for line, outcome in outcomes if outcome != _DONE]


def _first_call(sentence: Sentence) -> _PracticeCall:
    match sentence.verb, sentence.words:
        case "show" | "delete" as verb, (path,):
            return _call("read_file" if verb == "show" else "delete_file", {"path": path})
        case "write", (path, _):
            return _call("read_file", {"path": path})
        case "append", (_, path):
            return _call("read_file", {"path": path})
        case "replace", (old, new, path):
            return _call("edit_file", {"path": path, "edits": [{"old": old, "new": new}]})
        case "move", (start, goal):
            return _call("move_file", {"from": start, "to": goal})
        case "find" | "search" as verb, (pattern,):
            return _call("find_files" if verb == "find" else "search_text", {"pattern": pattern})
        case "run", (command,):
            return _call("run_command", {"command": command})
        case "crash", ():
            return _call("crash", {})
        case _:
            raise AssertionError(f"a sentence of another shape: {sentence}")


def _call(tool: str, arguments: Mapping[str, object]) -> _PracticeCall:
    return _PracticeCall(tool, json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _is_file_missing(reply: ReplyMessage) -> bool:
    """Whether a read found no file. Only a failure is searched for the words: a file may contain them too."""
    if reply.state not in ("failed", "returned"):
        return False
    return reply.reason == "not_found" or (reply.state == "failed" and "does not exist" in reply.text)


def _append_line(old: str, text: str) -> str:
    """Append the text, with a line end before and after it if one is missing, of the same kind as the last one."""
    end = "\r\n" if old.rfind("\n") > 0 and old[old.rfind("\n") - 1] == "\r" else "\n"
    before = "" if not old or old.endswith(("\n", "\r")) else end
    return f"{old}{before}{text}{'' if text.endswith(chr(10)) else end}"


_READING = ("show", "find", "search")
_READ_FIRST = ("append", "write")
"""Sentences that read their file first, because a file that was not read is not replaced unasked (row V3)."""


def _is_reading_stale(sentence: Sentence, batch: Sequence[Sentence]) -> bool:
    """Whether another sentence of the batch may change the file that this one has read."""
    others = [other for other in batch if other is not sentence and other.verb not in _READING]
    path = sentence.words[0 if sentence.verb == "write" else -1]
    return any(other.verb == "run" or path in other.words for other in others)


def _deltas(text: str) -> list[str]:
    """Split the text into parts that begin with a word."""
    words = _split_words(text)
    size = max(1, -(-len(words) // TEXT_PARTS_MAX))
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _split_words(text: str) -> list[str]:
    pieces: list[str] = []
    for blank_ended in text.split(" "):
        pieces.append(blank_ended + " ")
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def _words_of_message(message: OutMessage) -> int:
    words = len((message.whole if isinstance(message, UserMessage) else message.text).split())
    if isinstance(message, AssistantMessage):
        words += sum(len(f"{call.tool} {call.arguments}".split()) for call in message.calls)
    return words


def _words_out(answer: _PracticeResponse) -> int:
    called = " ".join(f"{call.tool} {call.arguments}" for call in answer.calls)
    return len(f"{answer.text} {called}".split())
