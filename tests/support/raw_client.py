"""A client that sends whatever the test wants, with one thread for each stream of the server.

It does not judge what is valid: `send_raw` sends any bytes. It keeps every message of the server in its order in
`messages`. Every wait has a limit; after it `LimitReached` shows what the server wrote to stderr. The hook that
`answer_with` sets answers a request of the server; without a hook the request waits in `server_requests`.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

Json = dict[str, Any]
UNANSWERED = object()
"""A hook of `answer_with` returns this to leave a request unanswered."""


class LimitReached(AssertionError):
    """A wait has reached its limit."""


class ErrorAnswer(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


ANSWER_S_MAX = 60.0
"""For what comes within a second on an idle machine; at a load of 20 the start of a server alone takes 20 s."""


class RawClient:
    """A server as a child process, and the raw connection to it."""

    def __init__(
        self,
        cmd: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        *,
        reading: bool = True,
        stdin: Any = subprocess.PIPE,
        stdout: Any = subprocess.PIPE,
    ) -> None:
        """`env` is added to our environment. `reading=False`: nothing is read before `start_reading`."""
        self.process = subprocess.Popen(
            list(cmd),
            env={**os.environ, **(env or {})},
            cwd=cwd,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.messages: list[Json] = []
        self.server_requests: list[Json] = []
        self.broken: str | None = None  # what was wrong with the server's framing
        self._hooks: dict[str, Callable[[Any], Any]] = {}
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._ids = itertools.count(1)
        self._errors: list[bytes] = []
        self._threads = [threading.Thread(target=self._collect_errors, daemon=True)]
        self._threads[0].start()
        if reading and self.process.stdout is not None:
            self.start_reading()

    # Sending

    def send_raw(self, sent: bytes) -> None:
        """Send any bytes."""
        assert self.process.stdin is not None
        with self._sending:
            view = memoryview(sent)
            while view:
                view = view[self.process.stdin.write(view) or 0 :]

    def send(self, message: Any) -> None:
        """Send any JSON, with a valid header."""
        self.send_raw(framed(json.dumps(message).encode()))

    def notify(self, method: str, params: Any = None) -> None:
        """Send a notification; without `params` if they are None."""
        self.send(_message(method, params))

    def ask(self, method: str, params: Any = None) -> int:
        """Send a request and do not wait for it; its id."""
        id = next(self._ids)
        self.send({**_message(method, params), "id": id})
        return id

    def request(self, method: str, params: Any = None, limit_s: float = ANSWER_S_MAX) -> Any:
        """Send a request; its result. Raises ErrorAnswer."""
        return self.result(self.ask(method, params), limit_s)

    def result(self, id: Any, limit_s: float = ANSWER_S_MAX) -> Any:
        """Wait for the result of a request that was sent. Raises ErrorAnswer."""
        answer = self.answer(id, limit_s)
        if "error" in answer:
            raise ErrorAnswer(answer["error"])
        return answer["result"]

    def initialize(self, params: Json | None = None, limit_s: float = ANSWER_S_MAX) -> Any:
        """Initialize the connection with `params`, added to empty ones; the result of `initialize`."""
        given = {"processId": None, "rootUri": None, "capabilities": {}, **(params or {})}
        result = self.request("initialize", given, limit_s)
        self.notify("initialized", {})
        return result

    def shut_down(self, limit_s: float = ANSWER_S_MAX) -> int:
        """End the connection in order; the exit code."""
        self.request("shutdown", limit_s=limit_s)
        self.notify("exit")
        return self.wait_exit(limit_s)

    # Receiving

    def answers(self, id: Any) -> list[Json]:
        """All answers so far with this id."""
        with self._news:
            return [each for each in self.messages if _is_answer(each) and _same(each.get("id"), id)]

    def answer(self, id: Any, limit_s: float = ANSWER_S_MAX) -> Json:
        """Wait for the first answer with this id."""
        found: Json = self.wait_for(lambda: next(iter(self.answers(id)), None), limit_s, f"an answer to {id!r}")
        return found

    def notifications(self, method: str) -> list[Any]:
        """The params of all notifications of a method so far."""
        with self._news:
            told = [each for each in self.messages if each.get("method") == method and "id" not in each]
        return [each.get("params") for each in told]

    def notification(
        self, method: str, limit_s: float = ANSWER_S_MAX, that: Callable[[Any], bool] = lambda _: True
    ) -> Any:
        """Wait for a notification of a method for which `that` returns true; its params."""

        def found() -> Any:
            return next((params for params in self.notifications(method) if that(params)), None)

        return self.wait_for(found, limit_s, f"a notification {method}")

    def answer_with(self, method: str, hook: Callable[[Any], Any]) -> None:
        """Answer the server's requests of a method with what the hook returns for the params.

        An ErrorAnswer raised by the hook is sent as an error. `UNANSWERED` leaves the request without an answer.
        """
        self._hooks[method] = hook

    def server_request(self, method: str, limit_s: float = ANSWER_S_MAX) -> Json:
        """Wait for a request of a method that no hook answered, and remove it from the queue."""

        def found() -> Json | None:
            for each in self.server_requests:
                if each["method"] == method:
                    self.server_requests.remove(each)
                    return each
            return None

        asked: Json = self.wait_for(found, limit_s, f"a request {method}")
        return asked

    def wait_for(self, look: Callable[[], Any], limit_s: float, what: str = "it") -> Any:
        """Wait until `look` returns a value; it is called again whenever a message arrives."""
        end = time.monotonic() + limit_s
        with self._news:
            while (found := look()) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise LimitReached(self._report(f"{what} did not come within {limit_s} s"))
                if not any(thread.is_alive() for thread in self._threads):
                    end = 0  # no message can come any more: check once more, then give up
                    continue
                self._news.wait(min(left, 0.2))
        return found

    def start_reading(self) -> None:
        """Begin to read what the server sends."""
        thread = threading.Thread(target=self._collect_messages, daemon=True)
        self._threads.append(thread)
        thread.start()

    def forget(self) -> None:
        """Drop the hooks and everything that came so far, for the next test with this connection."""
        with self._news:
            self._hooks.clear()
            self.messages.clear()
            self.server_requests.clear()
            self._errors.clear()

    # The end

    def close_input(self) -> None:
        """The server sees the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait_exit(self, limit_s: float = ANSWER_S_MAX) -> int:
        """The exit code (negative: killed by a signal), after all output is read."""
        try:
            code = self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise LimitReached(self._report(f"the server did not end within {limit_s} s")) from None
        for thread in self._threads:
            thread.join(5)
        return code

    def kill(self) -> None:
        """End the server at once, if it still runs, and close everything."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(ANSWER_S_MAX)
        for thread in self._threads:
            thread.join(5)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def stderr(self) -> str:
        """What the server wrote to stderr so far."""
        return b"".join(self._errors).decode(errors="replace")

    def wait_stderr(self, text: str, limit_s: float = ANSWER_S_MAX) -> None:
        """Wait until the server wrote this to stderr, which is a separate pipe and may come after an answer."""
        self.wait_for(lambda: True if text in self.stderr() else None, limit_s, f"“{text}” on stderr")

    # Threads

    def _report(self, text: str) -> str:
        state = self.process.poll()
        last = json.dumps(self.messages[-3:])[-2000:]
        return (
            f"{text}; exit code: {state}; framing: {self.broken}\nlast messages: {last}\n"
            f"stderr:\n{self.stderr()[-4000:]}"
        )

    def _collect_errors(self) -> None:
        assert self.process.stderr is not None
        while piece := os.read(self.process.stderr.fileno(), 65536):
            self._errors.append(piece)

    def _collect_messages(self) -> None:
        assert self.process.stdout is not None
        buffer = b""
        descriptor = self.process.stdout.fileno()
        while True:
            try:
                piece = os.read(descriptor, 1 << 20)
            except OSError:
                return
            if not piece:
                return
            buffer = self._take_frames(buffer + piece)

    def _take_frames(self, buffer: bytes) -> bytes:
        """Take all whole messages from the buffer; the rest of its bytes."""
        while b"\r\n\r\n" in buffer:
            header, _, rest = buffer.partition(b"\r\n\r\n")
            if not header.startswith(b"Content-Length: ") or not header[16:].isdigit():
                self.broken = repr(header[:200])
                return b""
            length = int(header[16:])
            if len(rest) < length:
                break
            self._take_record(json.loads(rest[:length]))
            buffer = rest[length:]
        return buffer

    def _take_record(self, message: Json) -> None:
        hook = self._hooks.get(message.get("method", ""))
        asked = "method" in message and "id" in message
        with self._news:
            self.messages.append(message)
            if asked and hook is None:
                self.server_requests.append(message)
            self._news.notify_all()
        if asked and hook is not None:
            self._answer(message, hook)

    def _answer(self, message: Json, hook: Callable[[Any], Any]) -> None:
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = hook(message.get("params"))
        except ErrorAnswer as error:
            answer["error"] = {"code": error.code, "message": error.message}
        else:
            answer["result"] = result
            if result is UNANSWERED:
                return
        # The server may have ended since it asked; a test that waits for something then sees its exit code.
        with suppress(OSError, ValueError):
            self.send(answer)


def framed(body: bytes) -> bytes:
    """A body with a valid header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _message(method: str, params: Any) -> Json:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def _is_answer(message: Json) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
