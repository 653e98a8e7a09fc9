"""Messages that want to stop, confuse or overload the server (rows E4, G8; [I13], [I14]).

All attempts share one server. After each of them it answers the next request, its stdout carries the protocol alone,
and nothing was made in its state directory. `tests/e2e/test_hostile_messages.py` has the exact answer to many more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from steadyhand_protocol import methods
from tests.hostile.attempts import rows
from tests.support.process_server import PYTHON_PATH
from tests.support.raw_client import RawClient, framed

CLASS = "JSON-RPC"
ID = "5" * 32
VALID = "steadyhand/session/list"
ANSWER_S_MAX = 60.0
REQUESTS = [row.name for row in methods.METHODS if row.direction == "to_server" and row.built]
STANDARD = [
    "textDocument/codeAction",
    "textDocument/codeLens",
    "workspace/executeCommand",
    "workspace/textDocumentContent",
]
DEEP: dict[str, Any] = {}
for _ in range(500):
    DEEP = {"sessionId": DEEP}


@attrs.frozen
class Message:
    """Bytes that are sent as they are. `answers`: how many answers they must get, none of them a result."""

    name: str
    bytes: bytes
    answers: int | None = None
    pending: str | None = None


def request(name: str, method: str, params: Any, id: Any = "x") -> Message:
    body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return Message(name, framed(json.dumps(body).encode()), 1)


def body(name: str, text: bytes, answers: int | None = None) -> Message:
    return Message(name, framed(text), answers)


def storm(name: str, messages: list[dict[str, Any]]) -> Message:
    return Message(name, b"".join(framed(json.dumps({"jsonrpc": "2.0", **each}).encode()) for each in messages))


WRONG: dict[str, Any] = {
    "a list": [{"sessionId": ID}],
    "an unknown member": {"sessionId": ID, "surprise": 1},
    "500 objects deep": DEEP,
    "members of other types": {
        "sessionId": 5,
        "epoch": [],
        "turnId": {},
        "text": None,
        "title": 1,
        "mode": 0,
        "provider": 0,
    },
    "an id that is a path": {"sessionId": "../" * 10 + "a", "epoch": ID, "turnId": "/etc/passwd", "name": "\0"},
}
NO_CANCELS: tuple[Any, ...] = (None, [], {}, {"id": []}, {"id": {}}, 5)
NO_FOLDERS: tuple[Any, ...] = (
    5,
    [5],
    [{"uri": "x"}],
    [{"uri": "file:///", "name": 5}],
    [{"uri": "file:///%00", "name": "x"}],
)
NO_SETTINGS: tuple[Any, ...] = (
    5,
    [],
    "x",
    None,
    {"steadyhand": 5},
    {"steadyhand": {"machine": 5}},
    {"steadyhand": {"machine": DEEP}},
)
TABLE = [
    *(
        request(f"{method}: {what}", method, params)
        for method in (*REQUESTS, *STANDARD)
        for what, params in WRONG.items()
    ),
    body("no JSON", b"hello", 1),
    body("an open string", b'{"jsonrpc": "2.0", "id": "', 1),
    body("100,000 lists", b"[" * 100_000, 1),
    body("100,000 objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 1),
    body("a number of 5,000 digits", b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b"}", 1),
    body("a number beyond all bounds", b'{"jsonrpc": "2.0", "id": 1e999}', 1),
    body(
        "an id of 1,000,000 characters",
        json.dumps({"jsonrpc": "2.0", "id": "i" * 1_000_000, "method": "x"}).encode(),
        1,
    ),
    body(
        "a method of 1,000,000 characters",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m" * 1_000_000}).encode(),
        1,
    ),
    body("half a surrogate pair", b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', 1),
    body("bytes that are no UTF-8", b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', 1),
    body("a batch of 10,000", json.dumps([{"jsonrpc": "2.0", "id": 1, "method": VALID}] * 10_000).encode(), 1),
    body("100,000 members", json.dumps({f"m{n}": n for n in range(100_000)}).encode(), 1),
    body("the same member often", b"{" + b'"id": 1, ' * 50_000 + b'"jsonrpc": "2.0", "method": "x"}', 1),
    body("an answer to nothing", b'{"jsonrpc": "2.0", "id": 99, "result": {}}', 0),
    body("an error to nothing", b'{"jsonrpc": "2.0", "id": "steadyhand-1", "error": 5}', 0),
    body("an answer with both", b'{"jsonrpc": "2.0", "id": 1, "result": 1, "error": {"code": 1, "message": ""}}', 0),
    body(
        "a second initialize",
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}).encode(),
        1,
    ),
    storm("one id in 100 requests", [{"id": "same", "method": VALID, "params": {}}] * 100),
    storm("1,000 cancels of nothing", [{"method": "$/cancelRequest", "params": {"id": n}} for n in range(1_000)]),
    storm(
        "cancels without an id",
        [{"method": "$/cancelRequest", "params": p} for p in NO_CANCELS],
    ),
    storm(
        "requests and cancels by turns",
        [
            each
            for n in range(300)
            for each in (
                {"id": f"c{n}", "method": VALID, "params": {}},
                {"method": "$/cancelRequest", "params": {"id": f"c{n}"}},
            )
        ],
    ),
    storm(
        "a cancel before its request",
        [
            {"method": "$/cancelRequest", "params": {"id": "late"}},
            {"id": "late", "method": VALID, "params": {}},
        ],
    ),
    storm("1,000 unknown requests", [{"id": f"u{n}", "method": f"x/{n}", "params": {}} for n in range(1_000)]),
    storm("1,000 unknown notices", [{"method": f"x/{n}", "params": {}} for n in range(1_000)]),
    storm(
        "500 documents",
        [
            {
                "method": "textDocument/didOpen",
                "params": {
                    "textDocument": {"uri": f"file:///d/{n}", "languageId": "x", "version": 1, "text": "x" * 1_000}
                },
            }
            for n in range(500)
        ],
    ),
    storm(
        "changes of no document",
        [
            {
                "method": "textDocument/didChange",
                "params": {"textDocument": {"uri": "file:///no", "version": n}, "contentChanges": [{"text": "x"}]},
            }
            for n in range(300)
        ],
    ),
    storm(
        "positions beyond all bounds",
        [
            {
                "method": "textDocument/didOpen",
                "params": {"textDocument": {"uri": "file:///p", "languageId": "x", "version": 1, "text": "a\n"}},
            },
            *(
                {
                    "method": "textDocument/didChange",
                    "params": {
                        "textDocument": {"uri": "file:///p", "version": 2},
                        "contentChanges": [
                            {
                                "range": {
                                    "start": {"line": line, "character": 2**31 - 1},
                                    "end": {"line": line, "character": 0},
                                },
                                "text": "x",
                            },
                        ],
                    },
                }
                for line in (0, 1, 2**31 - 1)
            ),
        ],
    ),
    storm(
        "URIs that are none",
        [
            {
                "method": "textDocument/didOpen",
                "params": {"textDocument": {"uri": uri, "languageId": "x", "version": 1, "text": ""}},
            }
            for uri in (
                "",
                "x",
                "file:",
                "file://evil/x",
                "file:///%00",
                "file:///%ff",
                "file:///..",
                "javascript:x",
                "\0",
                "file:///" + "x" * 10_000,
            )
        ],
    ),
    storm(
        "folders that are none",
        [
            {"method": "workspace/didChangeWorkspaceFolders", "params": {"event": {"added": added, "removed": []}}}
            for added in NO_FOLDERS
        ],
    ),
    storm(
        "settings that are none",
        [{"method": "workspace/didChangeConfiguration", "params": {"settings": value}} for value in NO_SETTINGS],
    ),
]
BROKEN = [
    Message(name, text)
    for name, text in {
        "no header": b"hello\r\n\r\n",
        "a header without an end": b"x" * 70_000,
        "fields without an end": b"X: y\r\n" * 20_000,
        "a negative length": b"Content-Length: -1\r\n\r\n",
        "a length that is a word": b"Content-Length: many\r\n\r\n",
        "a length of 30 digits": b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
        "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        "a request of HTTP": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "bytes": bytes(range(256)) * 300,
    }.items()
]


def start(folder: Path) -> RawClient:
    client = RawClient(
        (sys.executable, "-m", "steadyhand"), {**PYTHON_PATH, "STEADYHAND_STATE_DIR": str(folder / "state")}, folder
    )
    client.initialize()
    return client


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One server for all messages that must not end it."""
    with start(tmp_path_factory.mktemp("rpc")) as client:
        yield client


@pytest.mark.parametrize("attempt", rows(TABLE))
def test_message_gets_no_result_and_the_server_goes_on(shared: RawClient, attempt: Message) -> None:
    """Rows E4, G8, [I13], [I14]: a wrong request gets one error, a storm ends, and the next request is answered. No
    session is made by any of it."""
    before = len(shared.messages)
    shared.send_raw(attempt.bytes)
    assert shared.request(VALID, {}, ANSWER_S_MAX) == {"sessions": []}
    assert shared.broken is None
    told = [each for each in shared.messages[before:-1] if "method" not in each]
    if attempt.answers is not None:
        assert len(told) == attempt.answers
        assert all("error" in each for each in told)
        assert all(each["error"]["code"] != -32603 for each in told), "no defect is met"


@pytest.mark.parametrize("attempt", rows(BROKEN))
def test_broken_framing_ends_the_connection_alone(tmp_path: Path, attempt: Message) -> None:
    """Row E4: the server says what is wrong on stderr and ends; it hangs never, and writes nothing but the protocol."""
    with start(tmp_path) as client:
        client.send_raw(attempt.bytes)
        client.close_input()
        assert client.wait_exit(ANSWER_S_MAX) == 1
        assert client.broken is None
