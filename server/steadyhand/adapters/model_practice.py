"""A model without network, key or opinion: it does what the sentences of the last user message say (row P5).

It keeps nothing between requests. Each answer is derived from the messages: the last user message is parsed,
the calls and replies after it are played through the same plan, and what the plan wants next is the answer.
So the same messages give the same answer in any process, and a request repeated after a cut stream or a crash
goes on where it was. Tokens are words here: those between blanks, of everything that goes in and comes out.
Calls that another model made in the same turn are passed over. The last user message has to be the user's own
text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Generator, Iterable, Mapping, Sequence
from typing import TypeAlias

import anyio
import anyio.lowlevel
import attrs

from steadyhand.core.model import (
    AssistantMessage,
    CallProposed,
    Finish,
    ModelRequest,
    ReplyMessage,
    StreamPart,
    TextPart,
    UsagePart,
    UserMessage,
)
from steadyhand.core.sentences import Batch, NotUnderstood, Say, Sentence, parse
from steadyhand.core.text_lines import whole_text

text_parts_max = 8
"""Parts in which the text of one answer comes."""

ASIDE = "I do not call tools here."
HINT = (
    "I am the practice model: no language model, I only know these sentences, one a line: show FILE · "
    "write FILE with TEXT · append TEXT to FILE · replace A with B in FILE · move A to B · delete FILE · "
    "find PATTERN · search TEXT · run CMD · say TEXT · together:"
)


class PracticeModel:
    """Keeps `ports.Model`. `step_delay_s`: seconds to wait before each part, for those who want to watch."""

    def __init__(self, step_delay_s: float = 0) -> None:
        self._step_delay_s = step_delay_s

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """The answer: text in a few parts, calls, usage, finish. Never fails."""
        answer = _Answer(ASIDE) if not (request.tools and request.may_call) else _next_answer(request)
        parts: list[StreamPart] = [TextPart(delta) for delta in _deltas(answer.text)]
        parts += [CallProposed(call.tool, call.arguments) for call in answer.calls]
        parts.append(UsagePart(input=_words_in(request), output=_words_out(answer)))
        parts.append(Finish("calls" if answer.calls else "stop"))
        for part in parts:
            if self._step_delay_s > 0:
                await anyio.sleep(self._step_delay_s)
            else:
                await anyio.lowlevel.checkpoint()
            yield part


@attrs.frozen
class _Call:
    tool: str
    arguments: str  # canonical JSON


@attrs.frozen
class _Answer:
    text: str
    calls: tuple[_Call, ...] = ()


@attrs.frozen
class _Round:
    """One earlier answer with calls, and what came of them."""

    tools: tuple[str, ...]
    replies: tuple[ReplyMessage, ...]


_NO_REPLY = ReplyMessage("", "", "notRun", "the call was never made")
_Plan: TypeAlias = "Generator[_Answer, tuple[ReplyMessage, ...], None]"


def _next_answer(request: ModelRequest) -> _Answer:
    starts = [place for place, message in enumerate(request.messages) if isinstance(message, UserMessage)]
    start = starts[-1] if starts else len(request.messages)
    prompt = request.messages[start] if starts else None
    plan = _Turn(prompt.text if isinstance(prompt, UserMessage) else "").plan()
    answer = next(plan)
    for made in _rounds(request.messages[start + 1 :]):
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


@attrs.frozen
class _Outcome:
    """What became of a sentence. `state` "" : it is done and counts."""

    state: str = ""
    reason: str | None = None

    def __str__(self) -> str:
        return self.state if self.reason is None else f"{self.state}: {self.reason}"


_DONE = _Outcome()
_NOT_TRIED = _Outcome("not tried")
_NOT_WHOLE = _Outcome("notRun", "the file was not read whole, so I cannot append to it")


class _Turn:
    """The plan of one user message. Sentences are known by their place: two may read alike."""

    def __init__(self, text: str) -> None:
        self._steps = parse(text)
        self._outcomes: dict[int, _Outcome] = {}  # by identity of the sentence within `_steps`
        self._said: list[str] = []  # text of the answer being made
        self._refused: Sentence | None = None
        self._lost = False  # something was not understood

    def plan(self) -> _Plan:
        """Yields each answer, takes the replies to its calls; the last answer has none."""
        for step in self._steps:
            match step:
                case Say(text=text):
                    self._said.append(text)
                case NotUnderstood(line=line):
                    self._said.append(f"I do not understand: {line}")
                    self._lost = True
                case Batch(sentences=sentences):
                    yield from self._batch(sentences)
                    if self._refused is not None:
                        break
        yield _Answer("\n".join([*self._said, *self._ending()]))

    def _batch(self, sentences: tuple[Sentence, ...]) -> _Plan:
        replies = yield from self._ask(sentences, [_first_call(sentence) for sentence in sentences])
        writing: list[tuple[Sentence, _Call]] = []
        for sentence, reply in zip(sentences, replies, strict=True):
            if sentence.verb != "append" or (write := self._appended(sentence, reply)) is None:
                continue
            if _stale(sentence, sentences):
                continue
            writing.append((sentence, write))
        if writing and self._refused is None:
            yield from self._ask([sentence for sentence, _ in writing], [call for _, call in writing])
        for sentence in sentences:
            if self._refused is None and sentence.verb == "append" and _stale(sentence, sentences):
                yield from self._append_again(sentence)

    def _append_again(self, sentence: Sentence) -> _Plan:
        """An append whose file the batch itself changed: its reading is old, so it reads once more."""
        (reply,) = yield from self._ask((sentence,), [_first_call(sentence)])
        write = self._appended(sentence, reply)
        if write is not None and self._refused is None:
            yield from self._ask((sentence,), [write])

    def _ask(
        self, sentences: Sequence[Sentence], calls: Sequence[_Call]
    ) -> Generator[_Answer, tuple[ReplyMessage, ...], tuple[ReplyMessage, ...]]:
        text, self._said = "\n".join(self._said), []
        replies = yield _Answer(text, tuple(calls))
        for sentence, reply in zip(sentences, replies, strict=True):
            done = reply.state == "returned"
            self._outcomes[id(sentence)] = _DONE if done else _Outcome(reply.state, reply.reason)
            if self._refused is None and (reply.state == "refused" or reply.reason == "recovery_required"):
                self._refused = sentence
        return replies

    def _appended(self, sentence: Sentence, reply: ReplyMessage) -> _Call | None:
        """The write that follows the reading of an append; None where there can be none.

        Until that write is asked for, a sentence that was read for has not been tried."""
        text, path = sentence.words
        if _missing(reply):
            old: str | None = ""
        elif reply.state == "returned":
            old = whole_text(reply.text)
        else:
            return None
        if old is None:
            self._outcomes[id(sentence)] = _NOT_WHOLE
            return None
        self._outcomes[id(sentence)] = _NOT_TRIED
        return _call("write_file", {"path": path, "content": _with_line(old, text)})

    def _ending(self) -> list[str]:
        batches = [step for step in self._steps if isinstance(step, Batch)]
        sentences = [sentence for batch in batches for sentence in batch.sentences]
        outcomes = [(sentence.line, self._outcomes.get(id(sentence), _NOT_TRIED)) for sentence in sentences]
        lines = [HINT] if self._lost else []
        if self._refused is not None:
            lines.append(f"stopped: {self._refused.line}: {self._outcomes[id(self._refused)]}")
        lines.append(f"done: {sum(outcome == _DONE for _, outcome in outcomes)} of {len(outcomes)}")
        return lines + [f"{line}: {outcome}" for line, outcome in outcomes if outcome != _DONE]


def _first_call(sentence: Sentence) -> _Call:
    match sentence.verb, sentence.words:
        case "show" | "delete" as verb, (path,):
            return _call("read_file" if verb == "show" else "delete_file", {"path": path})
        case "write", (path, content):
            return _call("write_file", {"path": path, "content": content})
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
        case _:
            raise AssertionError(f"a sentence of another shape: {sentence}")


def _call(tool: str, arguments: Mapping[str, object]) -> _Call:
    return _Call(tool, json.dumps(arguments, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _missing(reply: ReplyMessage) -> bool:
    """Whether a reading found no file. The words are looked for in a failure alone: a file may hold them
    too."""
    if reply.state not in ("failed", "returned"):
        return False
    return reply.reason == "not_found" or (reply.state == "failed" and "does not exist" in reply.text)


def _with_line(old: str, text: str) -> str:
    """The text put behind, with a line end before and after it where one is missing, of the kind of the last
    one."""
    end = "\r\n" if old.rfind("\n") > 0 and old[old.rfind("\n") - 1] == "\r" else "\n"
    before = "" if not old or old.endswith(("\n", "\r")) else end
    return f"{old}{before}{text}{'' if text.endswith(chr(10)) else end}"


_READING = ("show", "find", "search")


def _stale(sentence: Sentence, batch: Sequence[Sentence]) -> bool:
    """Whether another sentence of the batch may change the file an append has read in it."""
    others = [other for other in batch if other is not sentence and other.verb not in _READING]
    return any(other.verb == "run" or sentence.words[-1] in other.words for other in others)


def _deltas(text: str) -> list[str]:
    """The text in pieces that begin with a word."""
    words = _pieces(text)
    size = max(1, -(-len(words) // text_parts_max))
    return ["".join(words[start : start + size]) for start in range(0, len(words), size)]


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    for blank_ended in text.split(" "):
        pieces.append(blank_ended + " ")
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def _words_in(request: ModelRequest) -> int:
    words = len(request.system.split())
    for tool in request.tools:
        words += len(f"{tool.name} {tool.description} {tool.parameters}".split())
    for message in request.messages:
        words += len((message.whole if isinstance(message, UserMessage) else message.text).split())
        if isinstance(message, AssistantMessage):
            words += sum(len(f"{call.tool} {call.arguments}".split()) for call in message.calls)
    return words


def _words_out(answer: _Answer) -> int:
    called = " ".join(f"{call.tool} {call.arguments}" for call in answer.calls)
    return len(f"{answer.text} {called}".split())
