"""Answer `initialize` before anything is imported that takes time.

`greet` waits a moment for the editor's first message. If it is an `initialize` whose params fit, `greet` answers it at
once, and the server is imported while the editor reads the answer. All bytes that were read stay in `stdio.received`:
`rpc.transport` reads them again, and `rpc.dispatcher` takes the first message as usual but does not answer it. An
unusual or wrong first message gets its answer from the server.

Signals that ask the process to end are blocked until the server follows them (`rpc.liveness`), because an editor that
has its answer may rely on the exit code.
"""

from __future__ import annotations

import os
import select
import signal
from time import monotonic

from steadyhand.lsp.lsp_types import INITIALIZE
from steadyhand.lsp.rpc.capabilities import initialize_result, position_encoding
from steadyhand.lsp.rpc.lsp_converter import Misfits, structure
from steadyhand.lsp.rpc.messages import Request, frame, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from steadyhand.lsp.rpc.stdio import Stdio

WAIT_S_MAX = 0.5
"""For the first message; without one the server starts and goes on waiting."""
HEADER_BYTES_MAX = 1_000
BODY_BYTES_MAX = 4 << 20
CHUNK_BYTES_MAX = 64 << 10
ANSWER_BYTES_MAX = 4_096
"""A writable pipe takes as much as this at once."""
END = b"\r\n\r\n"


def greet(stdio: Stdio) -> None:
    """Answer `initialize` if it comes within `WAIT_S_MAX`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
    body = _first_body(stdio)
    answer = None if body is None else _answer(body)
    if answer is not None and len(answer) <= ANSWER_BYTES_MAX and _is_ready(stdio.sink, select.POLLOUT, 0):
        stdio.is_greeted = True
        try:  # noqa: SIM105  # contextlib takes longer to import than all of this
            os.write(stdio.sink, answer)
        except OSError:  # the editor has ended; the server will notice it too
            pass


def _first_body(stdio: Stdio) -> bytes | None:
    """The body of the first frame; None if it does not come in time or is unusual."""
    received = bytearray()
    begins = ends = 0  # of the body, in bytes; 0 while they are not known
    until = monotonic() + WAIT_S_MAX
    while not ends or len(received) < ends:
        if not _is_ready(stdio.source, select.POLLIN, until - monotonic()) or not _receive(stdio, received):
            break
        if not ends and END in received:
            begins = received.index(END) + len(END)
            length = _parse_length(bytes(received[: begins - len(END)]))
            if length is None:
                break
            ends = begins + length
        elif not ends and len(received) > HEADER_BYTES_MAX:
            break
    stdio.received = bytes(received)
    return bytes(received[begins:ends]) if 0 < ends <= len(received) else None


def _receive(stdio: Stdio, received: bytearray) -> bool:
    """Read what has come and return whether it is more than nothing; set `stdio.ended` at the end of input."""
    try:
        chunk = os.read(stdio.source, CHUNK_BYTES_MAX)
    except BlockingIOError:
        return False
    except OSError:  # counts as the end of input, as in transport
        chunk = b""
    received += chunk
    stdio.set_ended(not chunk)
    return bool(chunk)


def _parse_length(header: bytes) -> int | None:
    """Return the length that a plain header announces; None for any other header."""
    lengths = []
    for line in header.split(b"\r\n"):
        name, colon, value = line.partition(b":")
        if not colon:
            return None
        if name.strip().lower() == b"content-length":
            lengths.append(value.strip())
    if len(lengths) != 1 or not lengths[0].isdigit() or len(lengths[0]) > 9:
        return None
    length = int(lengths[0])
    return length if length <= BODY_BYTES_MAX else None


def _answer(body: bytes) -> bytes | None:
    message = read(body)
    if not isinstance(message, Request) or message.method != INITIALIZE or type(message.params) is not dict:
        return None
    try:
        params = structure("InitializeParams", message.params)
    except Misfits:
        return None
    return frame({"jsonrpc": "2.0", "id": message.id, "result": initialize_result(position_encoding(params))})


def _is_ready(descriptor: int, event: int, limit_s: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return any(found & (event | select.POLLHUP) for _, found in poll.poll(max(0.0, limit_s) * 1e3))
