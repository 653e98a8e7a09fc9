"""A provider that plays scripted answers: real HTTP on 127.0.0.1, in the event loop of the test.

A `Scripted` answer is a status, headers and steps. Each bytes step is one write, so that the client sees the same
pieces; an `anyio.Event` holds the answer back until it is set; `CUT` closes the connection, `RESET` aborts it. Without
a closing step the body ends in order. The provider keeps every request. `gone` is set when a client leaves before the
end of its answer, `stalled` when an answer is held back. Everything has a limit: `request_bytes_max` for a request,
`wait_s_max` for a wait.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Literal, TypeAlias

import anyio
import attrs

request_bytes_max = 8 * 1024 * 1024
wait_s_max = 60.0

CUT: Final = "cut"
RESET: Final = "reset"
Framing = Literal["length", "chunked", "close"]
Step: TypeAlias = "bytes | anyio.Event | Literal['cut', 'reset']"


@attrs.frozen
class Asked:
    """A request as it came; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@attrs.frozen
class Scripted:
    """One answer. `raw`: only the steps go out; they include the head."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=lambda: {"content-type": "text/event-stream"})
    framing: Framing = "close"
    raw: bool = False


Answering = Callable[[Asked], Scripted]


class ScriptedProvider:
    """`async with ScriptedProvider(...) as provider`: the answers in order, the last one forever; or a function."""

    def __init__(self, *answers: Scripted, answering: Answering | None = None) -> None:
        self.asked: list[Asked] = []
        self.gone = anyio.Event()
        self.stalled = anyio.Event()
        self._answers = list(answers)
        self._answering = answering
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> ScriptedProvider:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with anyio.move_on_after(wait_s_max):
                await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone.set()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer; then the connection closes."""
        asked = await _read_request(reader)
        if asked is None:
            return
        self.asked.append(asked)
        if self._answering is not None:
            scripted = self._answering(asked)
        else:
            scripted = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        leaving = asyncio.ensure_future(_until_gone(reader))
        try:
            await self._play(scripted, writer, leaving)
        finally:
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)

    async def _play(self, scripted: Scripted, writer: asyncio.StreamWriter, leaving: asyncio.Future[None]) -> None:
        if not scripted.raw:
            writer.write(_head(scripted))
        for step in scripted.steps:
            if isinstance(step, anyio.Event):
                await writer.drain()
                self.stalled.set()
                waiting = asyncio.ensure_future(step.wait())
                await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if leaving.done():
                    raise ConnectionResetError
                continue
            if isinstance(step, str):
                await writer.drain()
                if step == RESET:
                    _reset(writer)
                return
            framed = scripted.framing == "chunked" and not scripted.raw
            writer.write(b"%x\r\n%s\r\n" % (len(step), step) if framed else step)
            await writer.drain()
            await asyncio.sleep(0)
        if scripted.framing == "chunked" and not scripted.raw:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    length = int(headers.get("content-length", "0"))
    assert length <= request_bytes_max
    return Asked(method, target, headers, await reader.readexactly(length))


async def _until_gone(reader: asyncio.StreamReader) -> None:
    """Return when the client closes; it sends nothing while it waits for an answer."""
    while await reader.read(1):
        pass


def _head(scripted: Scripted) -> bytes:
    headers = dict(scripted.headers)
    if scripted.framing == "chunked":
        headers["transfer-encoding"] = "chunked"
    elif scripted.framing == "length":
        headers["content-length"] = str(sum(len(step) for step in scripted.steps if isinstance(step, bytes)))
    headers["connection"] = "close"
    lines = [f"HTTP/1.1 {scripted.status} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
