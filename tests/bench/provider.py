"""A provider for measurements: chat completions over HTTP on 127.0.0.1, in threads of the measuring process.

Each request gets what `answering` makes of it: pieces of an event stream, and seconds to wait before each. The threads
belong to the measuring process, so nothing of the provider counts as the server's.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Pieces = Iterable["tuple[bytes, float]"]
Answering = Callable[["dict[str, Any]"], Pieces]


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One event of a stream."""
    payload = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def words(count: int, per_s: float | None) -> Pieces:
    """An answer of `count` pieces of nine bytes; `per_s` None: as fast as the connection takes them."""
    pause_s = 1 / per_s if per_s else 0.0
    for number in range(count):
        yield event({"content": f"word{number % 10_000:04d} "}), pause_s
    yield event({}, "stop") + b"data: [DONE]\n\n", 0.0


def calls(tool: str, arguments: dict[str, Any]) -> Pieces:
    """An answer with one call."""
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
    yield event({"tool_calls": [call]}) + event({}, "tool_calls") + b"data: [DONE]\n\n", 0.0


def says(text: str = "done") -> Pieces:
    """An answer of one piece."""
    yield event({"content": text}) + event({}, "stop") + b"data: [DONE]\n\n", 0.0


@contextmanager
def provider(answering: Answering) -> Iterator[dict[str, str]]:
    """Serve, and give the environment of a server that asks here."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            due = time.monotonic()
            try:
                for piece, pause_s in answering(body):
                    due += pause_s
                    if pause_s:
                        time.sleep(max(0.0, due - time.monotonic()))
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                self.close_connection = True  # the server went away

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield {
            "STEADYHAND_MODEL_PROVIDER": "compatible",
            "STEADYHAND_MODEL_NAME": "measured",
            "STEADYHAND_MODEL_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}/v1",
            "NO_PROXY": "127.0.0.1",
        }
    finally:
        server.shutdown()
        server.server_close()
