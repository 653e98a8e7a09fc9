"""A model that calls the tools a prompt names, for tools the practice model has no word for.

Each line of a prompt is a tool's name and its arguments as JSON; ` & ` between two asks for both in one message. They
are carried out one after the other, and the answer is the replies. In arguments `<job>`, `<attempt>` and `<inspection>`
stand for the last such id that a reply of the turn gave. Where the first line is no call, it is all said back.

    run_command {"command": "sleep 300", "background": true}
    command_output {"jobId": "<job>"}

Derived from the messages alone, so that the next life goes on as any model would.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from steadyhand.adapters.model_practice import PracticeModel
from steadyhand.core.model import CallProposed, Finish, ModelRequest, ReplyMessage, StreamPart, TextPart, UserMessage
from steadyhand.ports import Model

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
        last = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
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


def filled(arguments: str, replies: Sequence[str]) -> str:
    """With the ids in it that replies gave; what none gave stays as it is."""
    for word, pattern in _GIVEN.items():
        if word in arguments and (found := re.findall(pattern, "\n".join(replies))):
            arguments = arguments.replace(word, found[-1])
    return arguments


class EitherModel:
    """`ports.Model`: this one where a prompt begins with a call, else the practice model."""

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        texts = [message.text for message in request.messages if isinstance(message, UserMessage)]
        model: Model = CallingModel() if texts and _CALL.match(texts[-1]) else PracticeModel()
        async for part in model.ask(request):
            yield part


def either_models(provider: str, name: str) -> Model:
    return EitherModel()


def calling_models(provider: str, name: str) -> Model:
    return CallingModel()
