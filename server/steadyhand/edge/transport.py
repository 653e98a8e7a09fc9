"""Frames on descriptors: `Content-Length` headers and bodies, in and out.

`Reader.next` gives one body, an `Oversized` (drained already, the connection lives on) or None at the end of
input; `Garbage` means that the peer's framing cannot be followed any more. `Writer.write` never blocks and
never raises; what the peer has not taken is kept up to `unsent_bytes_max`, then the connection is given up.
`Writer.drain` is where a stream waits for the peer. This room knows nothing of JSON.

Descriptors are waited for with the loop's own selector and stay as they are found, but for the sink: there a
pipe or a socket is set non-blocking, which nobody shares with us.
"""

from __future__ import annotations

import os
import re
import select
import stat
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs

from steadyhand.edge.stdio import Stdio, claim_stdio

body_bytes_max = 64 << 20
header_bytes_max = 64 << 10
chunk_bytes_max = 64 << 10
unsent_bytes_max = 256 << 20
high_water_bytes = 256 << 10  # above it `drain` waits
write_bytes_max = 1 << 20  # given to the system at once

_LENGTH = re.compile(rb"[0-9]{1,18}")

Source = Callable[[], Awaitable[bytes]]
"""The next bytes of the peer, at most `chunk_bytes_max`; empty at the end."""


class Garbage(Exception):
    """The peer's framing cannot be followed: no message can be told from the next one."""


@attrs.frozen
class Oversized:
    """A body above `body_bytes_max`. Its bytes are passed over by the next call of `next`."""

    size: int  # bytes, as announced


def source_of(descriptor: int) -> Source:
    """How to read a descriptor: with the selector where it can wait for it, else in a thread."""
    mode = os.fstat(descriptor).st_mode
    waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)

    async def when_ready() -> bytes:
        while True:
            await anyio.wait_readable(descriptor)
            try:
                return _read(descriptor)
            except BlockingIOError:  # woken for nothing; a socket may be non-blocking through the sink
                continue

    async def in_thread() -> bytes:
        return await anyio.to_thread.run_sync(_read, descriptor, abandon_on_cancel=True)

    return when_ready if waitable else in_thread


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, chunk_bytes_max)
    except BlockingIOError:
        raise
    except OSError:  # reset by the peer, terminal hung up: the end of input
        return b""


class Reader:
    """Frames of one source, one at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = bytearray()
        self._left_over = 0  # bytes of an oversized body still to be passed over

    async def next(self) -> bytes | Oversized | None:
        """The next body; None at the end of input. Raises Garbage."""
        if not await self._pass_over():
            return None
        length = await self._header()
        if length is None:
            return None
        if length > body_bytes_max:
            self._left_over = length
            return Oversized(length)
        while len(self._buffer) < length:
            if not await self._fill():
                return None
        body = bytes(memoryview(self._buffer)[:length])
        del self._buffer[:length]
        return body

    async def _fill(self) -> bool:
        chunk = await self._source()
        self._buffer += chunk
        return bool(chunk)

    async def _pass_over(self) -> bool:
        while self._left_over:
            if not self._buffer and not await self._fill():
                return False
            taken = min(self._left_over, len(self._buffer))
            del self._buffer[:taken]
            self._left_over -= taken
        return True

    async def _header(self) -> int | None:
        """The length that the next header announces; None at the end of input."""
        length: int | None = None
        seen_bytes = 0
        fields = 0
        while True:
            line = await self._line(header_bytes_max - seen_bytes)
            if line is None:
                return None
            seen_bytes += len(line)
            text = line.strip()
            if text:
                fields += 1
                length = _announced(text, length)
            elif length is not None:
                return length
            elif fields:
                raise Garbage("a header without Content-Length")
            # else: an empty line between messages, which some clients send

    async def _line(self, bytes_max: int) -> bytes | None:
        """One line with its end (a bare line feed is one too); None at the end of input."""
        looked = 0
        while True:
            found = self._buffer.find(b"\n", looked)
            if found > bytes_max or (found < 0 and len(self._buffer) > bytes_max):
                raise Garbage("a header of more than 64 KiB")
            if found >= 0:
                line = bytes(self._buffer[: found + 1])
                del self._buffer[: found + 1]
                return line
            looked = len(self._buffer)
            if not await self._fill():
                return None


def _announced(field: bytes, before: int | None) -> int | None:
    """The length after one header field, given the length known before it."""
    name, colon, value = field.partition(b":")
    if not colon:
        raise Garbage("a header line without a colon")
    if name.strip().lower() != b"content-length":
        return before
    value = value.strip()
    if not _LENGTH.fullmatch(value):
        raise Garbage("a Content-Length that is no length")
    length = int(value)
    if before is not None and before != length:
        raise Garbage("two different Content-Length fields")
    return length


class Writer:
    """Bytes to one sink, in order. Belongs to the loop's thread; `pump` must run while it is used."""

    def __init__(self, descriptor: int, on_lost: Callable[[], None]) -> None:
        """`on_lost` is called once when the peer has gone or takes nothing for too long."""
        mode = os.fstat(descriptor).st_mode
        self._waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._descriptor = descriptor
        if self._waitable:
            os.set_blocking(descriptor, False)
        elif os.isatty(descriptor):
            self._descriptor, self._waitable = _reopened_terminal(descriptor)
        self._on_lost = on_lost
        self._unsent = bytearray()
        self._news = anyio.Event()  # there is something to send
        self._room = anyio.Event()  # something was sent
        self.lost = False

    def write(self, frame: bytes) -> None:
        """Send now what can be sent now and keep the rest. After a loss nothing happens."""
        if self.lost:
            return
        sent = 0 if self._unsent else self._send(frame)
        if sent == len(frame):
            return
        self._unsent += memoryview(frame)[sent:]
        if len(self._unsent) > unsent_bytes_max:
            self._lose()
        self._news.set()

    async def drain(self) -> None:
        """Wait until the peer has taken enough for more to be produced, or is lost."""
        await anyio.lowlevel.checkpoint()
        while len(self._unsent) > high_water_bytes and not self.lost:
            await self._room.wait()

    async def flush(self, limit_s: float) -> None:
        """Wait until everything is sent, the peer is lost, or the limit is over."""
        with anyio.move_on_after(limit_s):
            while self._unsent and not self.lost:
                await self._room.wait()

    async def pump(self) -> None:
        """Send what is kept whenever the peer can take it. Runs until it is cancelled."""
        while True:
            while self._unsent:
                await self._writable()
                with memoryview(self._unsent) as kept, kept[:write_bytes_max] as piece:
                    sent = self._send(piece)
                del self._unsent[:sent]
                self._tell_room()
            self._news = anyio.Event()
            await self._news.wait()

    def look(self) -> None:
        """Notice a peer that has closed its end although nothing is being sent."""
        if self.lost:
            return
        poll = select.poll()
        poll.register(self._descriptor, 0)
        if any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0)):
            self._lose()

    async def _writable(self) -> None:
        if self._waitable:
            await anyio.wait_writable(self._descriptor)
        else:
            await anyio.lowlevel.checkpoint()

    def _send(self, piece: bytes | memoryview) -> int:
        """Bytes that need no more sending: 0 when the system takes none now, all after a loss."""
        try:
            return os.write(self._descriptor, piece)
        except BlockingIOError:
            return 0
        except OSError:
            self._lose()
            return len(piece)

    def _lose(self) -> None:
        self.lost = True
        self._on_lost()
        self._news.set()
        self._tell_room()

    def _tell_room(self) -> None:
        self._room.set()
        self._room = anyio.Event()


def _reopened_terminal(descriptor: int) -> tuple[int, bool]:
    """A terminal opened anew, so that making it non-blocking does not reach stderr and the shell."""
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), True
    except OSError:
        return descriptor, False


__all__ = ["Garbage", "Oversized", "Reader", "Source", "Stdio", "Writer", "claim_stdio", "source_of"]
