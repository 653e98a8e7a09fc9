"""A server with nothing behind its protocol layer: each method does what a word in its params says.

Run as `python tests/support/edge_probe.py [--clientProcessId=N] [stop=slow|raise|hard] [mark=FILE] [flights=N]`. The
text of `steadyhand/turn/start` and of the command `steadyhand.ask` is one line of `play`: `sleep`, `stubborn`, `hang`,
`boom`, `refuse`, `group`, `unshaped`, `print`, `flood N`, `ask N`, `user`, `document URI`, `client`. The command
answers with the result of the line. `mark`: the stop appends a line to that file.
"""

from __future__ import annotations

from steadyhand.lsp.rpc.stdio import claim_stdio

STDIO = claim_stdio()  # before anything else is imported, as in the real program

from steadyhand.lsp.rpc.greeting import greet  # noqa: E402

greet(STDIO)

import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from functools import partial  # noqa: E402
from typing import Any  # noqa: E402

import anyio  # noqa: E402

from steadyhand.domain.errors import Refused  # noqa: E402
from steadyhand.lsp import lsp_types as types  # noqa: E402
from steadyhand.lsp.rpc import in_flight  # noqa: E402
from steadyhand.lsp.rpc import server as server_module  # noqa: E402
from steadyhand.lsp.rpc.pending_requests import EditorError  # noqa: E402
from steadyhand.lsp.rpc.server import Server  # noqa: E402
from steadyhand_protocol import approval, commands, methods, session, turn  # noqa: E402

ID = "0" * 32
slow_stop_s_max = 0.5


def say(server: Server, text: str) -> None:
    """Send the client a log message."""
    server.notify(types.WINDOW_LOG_MESSAGE, types.LogMessageParams(types.MessageType.Log, text))


async def play(server: Server, line: str) -> str:
    """Do what a line says and return its result."""
    word, _, rest = line.partition(" ")
    match word:
        case "sleep" | "stubborn" | "hang":
            return await rest_a_while(server, word)
        case "boom" | "refuse" | "group" | "unshaped":
            return await fail(word)
        case "print":
            return write_astray()
        case "flood":
            for number in range(int(rest)):
                say(server, f"{number} " + "x" * 1000)
                await server.drain()
            return "flooded"
        case "ask" | "user":
            return await question(server, word, float(rest or 5))
        case "document":
            document = server.documents.by_uri(rest)
            return json.dumps(
                document and [document.path, document.version, document.text, document.has_changed_since_save]
            )
        case "client":
            client = server.client
            flags = [client.permission, client.user_ask, client.save, client.secret]
            return json.dumps([flags, [folder.path for folder in client.folders], client.encoding])
        case _:
            return line


async def rest_a_while(server: Server, word: str) -> str:
    """`sleep` ends only by a cancel, and needs a moment for it; `stubborn` completes in spite of a cancel."""
    if word == "hang":
        with anyio.CancelScope(shield=True):
            await anyio.Event().wait()
    if word == "stubborn":
        say(server, "begun")
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.3)
        return "finished"
    try:
        say(server, "begun")
        await anyio.Event().wait()
        return "never"
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.2)
            say(server, "unwound")


async def fail(word: str) -> str:
    """Fail in one of the ways in which a request may fail."""

    async def refuse() -> None:
        raise Refused("staleEpoch", "The session was bound anew.", {"epoch": ID})

    match word:
        case "boom":
            raise ValueError("/a/secret/path")
        case "unshaped":
            raise Refused("staleEpoch", "It carries what has no shape.", {"epoch": object()})
        case "group":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(refuse)
        case _:
            await refuse()
    return word


def write_astray() -> str:
    """Do everything that may write to stdout or read from stdin by mistake; return what a child could read."""
    print("a stray print", flush=True)  # noqa: T201
    os.write(1, b"a stray write\n")
    ours = f"{STDIO.source} {STDIO.sink}"
    script = f"echo a child; cat; for n in {ours}; do [ ! -e /proc/$$/fd/$n ] || echo $n >&2; done"
    child = subprocess.run(["/bin/sh", "-c", script], check=True, timeout=10, stderr=subprocess.PIPE, close_fds=False)
    return "inherited: " + child.stderr.decode()


async def question(server: Server, word: str, limit_s: float) -> str:
    """Ask the editor, by lsprotocol's types or by our own; return its answer, or why there is none."""
    try:
        if word == "user":
            params = approval.UserAskParams(ask_id=ID, session_id=ID, turn_id=ID, question="Which?")
            return repr(await server.request("steadyhand/user/ask", params, limit_s))
        actions = [types.MessageActionItem("Yes")]
        asked = types.ShowMessageRequestParams(types.MessageType.Info, "Really?", actions)
        chosen = await server.request(types.WINDOW_SHOW_MESSAGE_REQUEST, asked, limit_s)
        return repr(chosen and chosen.title)
    except EditorError as error:
        return f"no answer: {error} ({error.code})"


async def start_turn(server: Server, params: turn.TurnStartParams) -> turn.TurnStartResult:
    """A turn that plays its text."""
    await play(server, params.text)
    return turn.TurnStartResult(turn_id=ID, duplicate=False, queued=False)


async def ask(server: Server, argument: commands.AskArguments) -> commands.AskResult:
    """The same for the command."""
    return commands.AskResult(session_id=ID, turn_id=ID, text=await play(server, argument.text))


async def no_sessions(_: object) -> session.SessionListResult:
    """Answer the one request that always succeeds."""
    return session.SessionListResult(sessions=())


async def unknown(_: object) -> object:
    """Refuse every other method with valid params."""
    raise Refused("unknownSession", "There is no such session.")


async def stop(how: str, mark: str) -> None:
    """Stop as a composition root would."""
    if mark:
        with open(mark, "a", encoding="utf-8") as file:  # noqa: ASYNC230
            file.write("stopped\n")
    if how == "slow":
        await anyio.sleep_forever()
    if how == "raise":
        raise RuntimeError("the stop failed")


async def nothing_found(_: object) -> list[Any]:
    """Return no code actions and no lenses."""
    return []


def main() -> int:
    """The exit code of one connection."""
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    client = options.get("--clientProcessId")
    server = Server(STDIO, client_process_id=None if client is None else int(client))
    for row in methods.METHODS:
        if row.direction == "to_server" and row.built:
            server.on(row.name, unknown)
    for command in methods.COMMANDS:
        server.on_command(command.name, unknown)
    server.on("steadyhand/session/list", no_sessions)
    server.on("steadyhand/turn/start", partial(start_turn, server))
    server.on_command("steadyhand.ask", partial(ask, server))
    server.on_lsp(types.TEXT_DOCUMENT_CODE_ACTION, nothing_found)
    server.on_lsp(types.TEXT_DOCUMENT_CODE_LENS, nothing_found)
    server.on_initialized(partial(initialized, server))
    if options.get("stop") == "slow":
        server_module.STOP_S_MAX = slow_stop_s_max
    if options.get("stop") == "hard":
        server_module.UNWIND_S_MAX = slow_stop_s_max / 2
        server_module.LAST_RESORT_S = slow_stop_s_max
    in_flight.REQUESTS_IN_FLIGHT_MAX = int(options.get("flights", 100))
    server.on_stop(partial(stop, options.get("stop", ""), options.get("mark", "")))
    return server.run()


async def initialized(server: Server) -> None:
    """Report that it was called."""
    say(server, "ready")


if __name__ == "__main__":
    sys.exit(main())
