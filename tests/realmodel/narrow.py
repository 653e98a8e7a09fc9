"""A proxy in front of the real model that lets a model of 135 million parameters act as an agent.

It keeps the product's requests whole in `asked`, and sends a smaller version of the conversation to llama.cpp: a system
text of two words, one tool with a narrow schema, few tokens. The first request of a turn must call: the grammar of the
server restricts the arguments to the schema, and the answer begins as its template begins a call. Later requests of the
turn must not call. The answer comes back byte for byte as the model's server streams it.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

answer_s_max = 60
call_tokens_max = 100
word_tokens_max = 10

TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "edit_file",
        "description": "Replaces a text in a file.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"enum": ["notes.txt"]},
                "edits": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 1,
                    "items": {
                        "type": "object",
                        "properties": {"old": {"enum": ["one"]}, "new": {"type": "string", "pattern": "^[a-z]{3,8}$"}},
                        "required": ["old", "new"],
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["path", "edits"],
            "additionalProperties": False,
        },
    },
}


class Narrow:
    """`with Narrow(address) as proxy`: its `address`, and the bodies that came."""

    def __init__(self, behind: str) -> None:
        self.behind = urlsplit(behind).netloc
        self.asked: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handling(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Narrow:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def narrowed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request that goes to the model."""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    begins = messages[-1]["role"] == "user"
    kept = [{"role": "system", "content": "Be brief."}, *messages[-3 if not begins else -1 :]]
    if begins:
        kept.append({"role": "assistant", "content": "<tool_call>\n"})
    return {
        **{name: body[name] for name in ("model", "stream", "stream_options")},
        "messages": kept,
        "tools": [TOOL],
        "tool_choice": "required" if begins else "none",
        "parallel_tool_calls": False,
        "max_tokens": call_tokens_max if begins else word_tokens_max,
        "temperature": 0,
        "seed": 1,
    }


def _handling(proxy: Narrow) -> type[BaseHTTPRequestHandler]:
    class Handling(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            self._pass_on("GET", None)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            proxy.asked.append(body)
            self._pass_on("POST", json.dumps(narrowed(body)).encode())

        def _pass_on(self, method: str, body: bytes | None) -> None:
            onward = http.client.HTTPConnection(proxy.behind, timeout=answer_s_max)
            try:
                onward.request(method, self.path, body, {"content-type": "application/json"})
                answer = onward.getresponse()
                self.send_response(answer.status)
                self.send_header("content-type", answer.headers.get("content-type", "application/json"))
                self.end_headers()
                while piece := answer.read1(65536):
                    self.wfile.write(piece)
                    self.wfile.flush()
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client is gone: killed, or cancelled
            finally:
                onward.close()

    return Handling
