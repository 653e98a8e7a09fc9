"""Frames on descriptors: `Content-Length` headers and bodies, in and out.

`FrameReader.next` returns one body, an `Oversized` (the next call skips its bytes, and the connection goes on) or None
at the end of input. It raises FramingError if no later frame can be found. `FrameWriter.write` never blocks and never
raises. It keeps up to `UNSENT_BYTES_MAX` that the peer has not taken; above that the connection is lost. A stream waits
for the peer in `FrameWriter.drain`. This module does not know JSON.

The loop's selector waits for descriptors. They keep their flags, except the sink: a pipe or a socket there is set
non-blocking, because no other process shares it.
"""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import anyio.to_thread

from steadyhand.lsp.rpc.stdio import Stdio, claim_stdio
from steadyhand_values import frozen, pattern

BODY_BYTES_MAX = 64 << 20
HEADER_BYTES_MAX = 64 << 10
CHUNK_BYTES_MAX = 64 << 10
UNSENT_BYTES_MAX = 256 << 20
HIGH_WATER_BYTES = 256 << 10  # above it `drain` waits
WRITE_BYTES_MAX = 1 << 20  # passed to one `write`

_LENGTH = pattern(rb"[0-9]{1,18}")

Source = Callable[[], Awaitable[bytes]]
"""The next bytes of the peer, at most `CHUNK_BYTES_MAX`; empty at the end."""


class FramingError(Exception):
    """The peer's framing is broken: the beginning of the next message cannot be found."""


@frozen
class Oversized:
    """A body above `BODY_BYTES_MAX`. The next call of `next` skips its bytes."""

    size: int  # bytes, as announced


def source_of(stdio: Stdio) -> Source:
    """Return how to read: first the bytes that were read already, then with the selector if it can wait for the
    descriptor, else in a thread."""
    descriptor, received = stdio.source, stdio.received
    mode = os.fstat(descriptor).st_mode
    waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)

    async def read_when_ready() -> bytes:
        while True:
            await anyio.wait_readable(descriptor)
            try:
                return _read(descriptor)
            except BlockingIOError:  # a false wake-up; the sink may have made a socket non-blocking
                continue

    async def read_in_thread() -> bytes:
        return await anyio.to_thread.run_sync(_read, descriptor, abandon_on_cancel=True)

    read_more = read_when_ready if waitable else read_in_thread

    async def read_received_first() -> bytes:
        nonlocal received
        if received:
            chunk, received = received, b""
            return chunk
        return b"" if stdio.ended else await read_more()

    return read_received_first


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK_BYTES_MAX)
    except BlockingIOError:
        raise
    except OSError:  # the peer reset it or the terminal hung up: the end of input
        return b""


class FrameReader:
    """Frames of one source, one at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._buffer = bytearray()
        self._skip_bytes = 0  # bytes of an oversized body that are not skipped yet

    async def next(self) -> bytes | Oversized | None:
        """Return the next body; None at the end of input. Raises FramingError."""
        if not await self._skip():
            return None
        length = await self._read_header()
        if length is None:
            return None
        if length > BODY_BYTES_MAX:
            self._skip_bytes = length
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

    async def _skip(self) -> bool:
        while self._skip_bytes:
            if not self._buffer and not await self._fill():
                return False
            skipped = min(self._skip_bytes, len(self._buffer))
            del self._buffer[:skipped]
            self._skip_bytes -= skipped
        return True

    async def _read_header(self) -> int | None:
        """Read a header and return the length that it announces; None at the end of input."""
        length: int | None = None
        header_bytes = 0
        fields = 0
        while True:
            line = await self._read_line(HEADER_BYTES_MAX - header_bytes)
            if line is None:
                return None
            header_bytes += len(line)
            text = line.strip()
            if text:
                fields += 1
                length = _length_after(text, length)
            elif length is not None:
                return length
            elif fields:
                raise FramingError("a header without Content-Length")
            # else: an empty line between messages, which some clients send

    async def _read_line(self, bytes_max: int) -> bytes | None:
        """Read a line with its end (a bare line feed is one too); None at the end of input."""
        searched = 0
        while True:
            found = self._buffer.find(b"\n", searched)
            if found > bytes_max or (found < 0 and len(self._buffer) > bytes_max):
                raise FramingError("a header of more than 64 KiB")
            if found >= 0:
                line = bytes(self._buffer[: found + 1])
                del self._buffer[: found + 1]
                return line
            searched = len(self._buffer)
            if not await self._fill():
                return None


def _length_after(field: bytes, before: int | None) -> int | None:
    """Return the length after one header field; `before`: the length that earlier fields announce."""
    name, colon, value = field.partition(b":")
    if not colon:
        raise FramingError("a header line without a colon")
    if name.strip().lower() != b"content-length":
        return before
    value = value.strip()
    if not _LENGTH.fullmatch(value):
        raise FramingError("a Content-Length that is not a length")
    length = int(value)
    if before is not None and before != length:
        raise FramingError("two different Content-Length fields")
    return length


class FrameWriter:
    """Writes to one sink, in order. Only the loop's thread may use it; `pump` must run meanwhile."""

    def __init__(self, descriptor: int, on_lost: Callable[[], None]) -> None:
        """`on_lost` is called once, when the peer has closed its end or too much is unsent."""
        mode = os.fstat(descriptor).st_mode
        self._waitable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._descriptor = descriptor
        if self._waitable:
            os.set_blocking(descriptor, False)
        elif os.isatty(descriptor):
            self._descriptor, self._waitable = _reopen_terminal(descriptor)
        self._on_lost = on_lost
        self._unsent = bytearray()
        self._has_unsent = anyio.Event()
        self._has_progress = anyio.Event()  # something was sent
        self.lost = False

    def write(self, frame: bytes) -> None:
        """Send what the sink takes now and keep the rest. Does nothing after a loss."""
        if self.lost:
            return
        sent = 0 if self._unsent else self._send(frame)
        if sent == len(frame):
            return
        self._unsent += memoryview(frame)[sent:]
        if len(self._unsent) > UNSENT_BYTES_MAX:
            self._mark_lost()
        self._has_unsent.set()

    async def drain(self) -> None:
        """Wait until at most `HIGH_WATER_BYTES` are unsent or the peer is lost."""
        await anyio.lowlevel.checkpoint()
        while len(self._unsent) > HIGH_WATER_BYTES and not self.lost:
            await self._has_progress.wait()

    async def flush(self, limit_s: float) -> None:
        """Wait until everything is sent, the peer is lost, or the limit is reached."""
        with anyio.move_on_after(limit_s):
            while self._unsent and not self.lost:
                await self._has_progress.wait()

    async def pump(self) -> None:
        """Send unsent bytes whenever the peer can take them. Runs until it is cancelled."""
        while True:
            while self._unsent:
                await self._wait_writable()
                with memoryview(self._unsent) as unsent, unsent[:WRITE_BYTES_MAX] as piece:
                    sent = self._send(piece)
                del self._unsent[:sent]
                self._signal_progress()
            self._has_unsent = anyio.Event()
            await self._has_unsent.wait()

    def check_peer(self) -> None:
        """Notice a peer that has closed its end although nothing is being sent."""
        if self.lost:
            return
        poll = select.poll()
        poll.register(self._descriptor, 0)
        if any(event & (select.POLLERR | select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0)):
            self._mark_lost()

    async def _wait_writable(self) -> None:
        if self._waitable:
            await anyio.wait_writable(self._descriptor)
        else:
            await anyio.lowlevel.checkpoint()

    def _send(self, piece: bytes | memoryview) -> int:
        """Return how many bytes need no more sending: 0 if the system takes none now, all after a loss."""
        try:
            return os.write(self._descriptor, piece)
        except BlockingIOError:
            return 0
        except OSError:
            self._mark_lost()
            return len(piece)

    def _mark_lost(self) -> None:
        self.lost = True
        self._on_lost()
        self._has_unsent.set()
        self._signal_progress()

    def _signal_progress(self) -> None:
        self._has_progress.set()
        self._has_progress = anyio.Event()


def _reopen_terminal(descriptor: int) -> tuple[int, bool]:
    """Open a terminal again, so that the non-blocking flag does not affect stderr and the shell."""
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), True
    except OSError:
        return descriptor, False


__all__ = ["FrameReader", "FrameWriter", "FramingError", "Oversized", "Source", "Stdio", "claim_stdio", "source_of"]
