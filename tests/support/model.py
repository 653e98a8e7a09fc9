"""Models of the tests: one that plays a script, and one that calls the tools that a prompt names.

`ScriptedModel` plays answers step by step. It streams a part, waits at a `Gate` and raises an exception. An answer
without `Finish` is a stream that is cut off.

`CallingModel` is for tools that the practice model has no word for. Each line of a prompt is the name of a tool and its
arguments as JSON; ` & ` between two calls puts both into one message. The model makes the calls in order and answers
with the replies. In arguments, `<job>`, `<attempt>` and `<inspection>` stand for the last such id in a reply of the
turn. If the first line is no call, the model repeats the prompt.

    run_command {"command": "sleep 300", "background": true}
    command_output {"jobId": "<job>"}

It derives everything from the messages, so that it continues after a restart of the server as any model would.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeAlias

import anyio.lowlevel

from steadyhand.adapters.models.practice import PracticeModel
from steadyhand.domain.model.messages import (
    AssistantMessage,
    CallProposed,
    Finish,
    FinishReason,
    ModelRequest,
    OutMessage,
    ReplyMessage,
    StreamPart,
    TextPart,
    UsagePart,
    UserMessage,
)
from steadyhand.ports.model import Model
from tests.support.waiting import Gate

# A model that plays a script.

Step: TypeAlias = "StreamPart | Gate | Exception"
Play: TypeAlias = Sequence[Step]
some_usage = UsagePart(input=10, output=5)


class ScriptedModel:
    """`ports.Models` and `ports.Model` in one; `requests` are those that came. With no answer left it says "done"."""

    def __init__(self, *answers: Play) -> None:
        self.answers: list[Play] = list(answers)
        self.requests: list[ModelRequest] = []

    def __call__(self, provider: str, name: str) -> ScriptedModel:
        return self

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        for step in self.answers.pop(0) if self.answers else says("done"):
            match step:
                case Gate():
                    await step.passed()
                case Exception():
                    raise step
                case _:
                    await anyio.lowlevel.checkpoint()
                    yield step


def says(*texts: str, finish: FinishReason | None = "stop") -> list[Step]:
    """An answer of text alone; `finish` None: the stream is cut off."""
    return [*map(TextPart, texts), some_usage, *([Finish(finish)] if finish else [])]


def asks(*calls: CallProposed, text: str = "", finish: FinishReason | None = "calls") -> list[Step]:
    """An answer with calls."""
    return [*([TextPart(text)] if text else []), *calls, some_usage, *([Finish(finish)] if finish else [])]


def call(tool: str, **arguments: Any) -> CallProposed:
    return CallProposed(tool, json.dumps(arguments))


def write(path: str, content: str) -> CallProposed:
    return call("write_file", path=path, content=content)


def read(path: str) -> CallProposed:
    return call("read_file", path=path)


def run(command: str, **more: Any) -> CallProposed:
    return call("run_command", command=command, **more)


# A model that calls the tools that a prompt names.

TOGETHER = " & "
_GIVEN = {
    "<job>": r"as job ([0-9a-f]{32})",
    "<attempt>": r"attempt (?:is )?([0-9a-f]{32})",
    "<inspection>": r"Inspection ([0-9a-f]{32})",
}

_CALL = re.compile(r"\w+ \{")


class CallingModel:
    """`ports.Model`."""

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        last = max(at for at, message in enumerate(request.messages) if is_prompt(message))
        asked = request.messages[last]
        assert isinstance(asked, UserMessage)
        replies = [message.text for message in request.messages[last:] if isinstance(message, ReplyMessage)]
        done = 0
        for line in asked.text.split("\n"):
            calls = [call for call in line.split(TOGETHER) if _CALL.match(call)]
            if calls and done >= len(replies):
                for call in calls:
                    tool, _, arguments = call.partition(" ")
                    yield CallProposed(tool, filled(arguments, replies))
                yield Finish("calls")
                return
            done += len(calls)
        yield TextPart("\n".join(replies) or asked.text)
        yield Finish("stop")


def is_prompt(message: OutMessage) -> bool:
    """Whether it is the user's own text, or a notice before it, and no stored message of the server (row G15)."""
    return isinstance(message, UserMessage) and not message.is_told


def filled(arguments: str, replies: Sequence[str]) -> str:
    """Replace the placeholders by ids from the replies; a placeholder without an id stays."""
    for word, pattern in _GIVEN.items():
        if word in arguments and (found := re.findall(pattern, "\n".join(replies))):
            arguments = arguments.replace(word, found[-1])
    return arguments


class EitherModel:
    """`ports.Model`: a `CallingModel` if the prompt begins with a call, else the practice model."""

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        texts = [message.text for message in request.messages if is_prompt(message)]
        model: Model = CallingModel() if texts and _CALL.match(texts[-1]) else PracticeModel()
        async for part in model.ask(request):
            yield part


def either_models(provider: str, name: str) -> Model:
    return EitherModel()


def calling_models(provider: str, name: str) -> Model:
    return CallingModel()


def history(model_messages: object) -> list[str]:
    """The outgoing messages in short: the role, and for a reply its state."""
    assert isinstance(model_messages, tuple)
    names = {UserMessage: "user", AssistantMessage: "assistant"}
    return [m.state if isinstance(m, ReplyMessage) else names[type(m)] for m in model_messages]
