"""The shipped server with a model that calls the tools a prompt names, for tools the practice model has no word for.

Run as `python tests/support/calling_server.py [flags of steadyhand]`. Each line of a prompt is a tool's name and its
arguments as JSON, carried out one after the other; the answer is the replies, one after the other.

    run_command {"command": "sleep 300", "background": true}
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from steadyhand.__main__ import read_flags, run, system_ports
from steadyhand.core.model import CallProposed, Finish, ModelRequest, ReplyMessage, StreamPart, TextPart, UserMessage
from steadyhand.edge.stdio import claim_stdio
from steadyhand.ports import Model

ROOT = Path(__file__).resolve().parents[2]


class CallingModel:
    """`ports.Model`; derived from the messages alone."""

    async def ask(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        last = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
        asked = request.messages[last]
        assert isinstance(asked, UserMessage)
        lines = [line for line in asked.text.split("\n") if line.strip()]
        replies = [message.text for message in request.messages[last:] if isinstance(message, ReplyMessage)]
        if len(replies) < len(lines):
            tool, _, arguments = lines[len(replies)].partition(" ")
            yield CallProposed(tool, arguments)
            yield Finish("calls")
            return
        yield TextPart("\n".join(replies))
        yield Finish("stop")


def calling_models(provider: str, name: str) -> Model:
    return CallingModel()


def command(state: Path) -> tuple[list[str], dict[str, str]]:
    """What starts it, and additions to the environment."""
    paths = [str(ROOT / "server"), str(ROOT / "protocol"), str(ROOT)]
    return [sys.executable, str(Path(__file__)), "--state-dir", str(state)], {"PYTHONPATH": os.pathsep.join(paths)}


def main() -> int:
    stdio = claim_stdio()
    flags = read_flags(sys.argv[1:])
    assert flags is not None, sys.argv
    return run(stdio, system_ports()._replace(models=calling_models), flags)


if __name__ == "__main__":
    sys.exit(main())
