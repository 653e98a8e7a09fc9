"""A client that sends whatever it is told to, one thread for each stream of the server.

It has no opinion on what is valid: `send_raw` takes any bytes. Everything that comes back is kept in its order in
`messages`. Every wait has a limit; when it is over, `LimitReached` shows what the server wrote to stderr. A request
of the server is answered by the hook set with `answer_with`, else it waits in `server_requests`.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]
UNANSWERED = object()
"""What a hook of `answer_with` returns to leave a request unanswered."""


class LimitReached(AssertionError):
    """A wait is over and what was waited for is not there."""


class ErrorAnswer(Exception):
    """The server answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


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
        """`env` is added to ours. `reading=False`: nothing is read before `start_reading`."""
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
        """Any bytes."""
        assert self.process.stdin is not None
        with self._sending:
            view = memoryview(sent)
            while view:
                view = view[self.process.stdin.write(view) or 0 :]

    def send(self, message: Any) -> None:
        """Any JSON, with a right header."""
        self.send_raw(framed(json.dumps(message).encode()))

    def notify(self, method: str, params: Any = None) -> None:
        """A notification; without `params` where they are None."""
        self.send(_message(method, params))

    def ask(self, method: str, params: Any = None) -> int:
        """A request that is not waited for; its id."""
        id = next(self._ids)
        self.send({**_message(method, params), "id": id})
        return id

    def request(self, method: str, params: Any = None, limit_s: float = 10) -> Any:
        """The result of a request. Raises ErrorAnswer."""
        return self.result(self.ask(method, params), limit_s)

    def result(self, id: Any, limit_s: float = 10) -> Any:
        """The result of a request that was sent. Raises ErrorAnswer."""
        answer = self.answer(id, limit_s)
        if "error" in answer:
            raise ErrorAnswer(answer["error"])
        return answer["result"]

    def initialize(self, params: Json | None = None, limit_s: float = 30) -> Any:
        """The usual opening; `params` are laid over empty ones. The result of `initialize`."""
        given = {"processId": None, "rootUri": None, "capabilities": {}, **(params or {})}
        result = self.request("initialize", given, limit_s)
        self.notify("initialized", {})
        return result

    def shut_down(self, limit_s: float = 15) -> int:
        """The usual end; the exit code."""
        self.request("shutdown", limit_s=limit_s)
        self.notify("exit")
        return self.wait_exit(limit_s)

    # Receiving

    def answers(self, id: Any) -> list[Json]:
        """All answers so far that carry this id."""
        with self._news:
            return [each for each in self.messages if _is_answer(each) and _same(each.get("id"), id)]

    def answer(self, id: Any, limit_s: float = 10) -> Json:
        """The first answer with this id."""
        found: Json = self.wait_for(lambda: next(iter(self.answers(id)), None), limit_s, f"an answer to {id!r}")
        return found

    def notifications(self, method: str) -> list[Any]:
        """The params of all notifications of a method so far."""
        with self._news:
            told = [each for each in self.messages if each.get("method") == method and "id" not in each]
        return [each.get("params") for each in told]

    def notification(self, method: str, limit_s: float = 10, that: Callable[[Any], bool] = lambda _: True) -> Any:
        """The params of the first notification of a method that fulfils `that`."""

        def found() -> Any:
            return next((params for params in self.notifications(method) if that(params)), None)

        return self.wait_for(found, limit_s, f"a notification {method}")

    def answer_with(self, method: str, hook: Callable[[Any], Any]) -> None:
        """Answer the server's requests of a method with what the hook makes of the params.

        An ErrorAnswer raised by the hook is sent as an error. `UNANSWERED` leaves it without an answer."""
        self._hooks[method] = hook

    def server_request(self, method: str, limit_s: float = 10) -> Json:
        """The first request of a method that no hook answered; it is taken out of the queue."""

        def found() -> Json | None:
            for each in self.server_requests:
                if each["method"] == method:
                    self.server_requests.remove(each)
                    return each
            return None

        asked: Json = self.wait_for(found, limit_s, f"a request {method}")
        return asked

    def wait_for(self, look: Callable[[], Any], limit_s: float, what: str = "it") -> Any:
        """What `look` gives as soon as it is not None; looked for whenever something arrives."""
        end = time.monotonic() + limit_s
        with self._news:
            while (found := look()) is None:
                left = end - time.monotonic()
                if left <= 0:
                    raise LimitReached(self._report(f"{what} did not come within {limit_s} s"))
                if not any(thread.is_alive() for thread in self._threads):
                    end = 0  # nothing can come any more: look once again, then give up
                    continue
                self._news.wait(min(left, 0.2))
        return found

    def start_reading(self) -> None:
        """Begin to read what the server sends."""
        thread = threading.Thread(target=self._collect_messages, daemon=True)
        self._threads.append(thread)
        thread.start()

    # The end

    def close_input(self) -> None:
        """The server sees the end of its input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def wait_exit(self, limit_s: float = 15) -> int:
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
        self.process.wait(10)
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

    def wait_stderr(self, text: str, limit_s: float = 10.0) -> None:
        """Wait until the server wrote this to stderr, which comes by a pipe of its own, perhaps after an answer."""
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
        """Take all whole messages; what is left of the bytes."""
        while b"\r\n\r\n" in buffer:
            header, _, rest = buffer.partition(b"\r\n\r\n")
            if not header.startswith(b"Content-Length: ") or not header[16:].isdigit():
                self.broken = repr(header[:200])
                return b""
            length = int(header[16:])
            if len(rest) < length:
                break
            self._take(json.loads(rest[:length]))
            buffer = rest[length:]
        return buffer

    def _take(self, message: Json) -> None:
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
        self.send(answer)


def framed(body: bytes) -> bytes:
    """A body with a right header."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _message(method: str, params: Any) -> Json:
    message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else {**message, "params": params}


def _is_answer(message: Json) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other
