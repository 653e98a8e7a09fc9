"""`initialize` is answered before the server is imported; a client can notice only the shorter time.

The program is the whole server as it is installed. The first message comes in one piece, in several, late, with errors
or in an unusual frame; the same conversation follows.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from steadyhand.lsp.rpc import greeting
from tests.support.raw_client import RawClient, framed

ROOT = Path(__file__).resolve().parents[2]
PATHS = {"PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'protocol'}"}
VALID = "steadyhand/session/list"
LATE = {"anyio", "asyncio", "attr", "attrs", "cattrs", "concurrent", "filelock", "logging", "pathlib", "platformdirs"}
LATE |= {"socket", "subprocess", "tempfile", "threading", "typing", "typing_extensions", "urllib", "uuid"}
LATE |= {"steadyhand_protocol"}
NEVER = {"lsprotocol", "pygls", "httpx2", "httpcore2", "psutil"}
conversation_s_max = 60

Start = Callable[..., RawClient]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start servers that share a state directory."""
    started: list[RawClient] = []

    def begin(**more: Any) -> RawClient:
        environment = {**PATHS, "STEADYHAND_STATE_DIR": str(tmp_path / "state")}
        client = RawClient([sys.executable, "-m", "steadyhand"], environment, tmp_path, **more)
        started.append(client)
        return client

    yield begin
    for client in started:
        client.kill()


def initialize(id: int = 101, **params: Any) -> bytes:
    """The body of an `initialize` request."""
    params = {"processId": None, "rootUri": None, "capabilities": {}, **params}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": params}).encode()


def message(method: str, id: int | None = None, params: Any = None) -> bytes:
    """A framed request, or a notification if `id` is None."""
    body = {"jsonrpc": "2.0", "method": method, **({} if id is None else {"id": id})}
    return framed(json.dumps({**body, **({} if params is None else {"params": params})}).encode())


def run_with_input(tmp_path: Path, stdin: bytes) -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr of a server that gets all its input at once."""
    done = subprocess.run(
        [sys.executable, "-m", "steadyhand", "--state-dir", str(tmp_path / "state")],
        input=stdin, capture_output=True, env={**os.environ, **PATHS}, timeout=conversation_s_max, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


GOODBYE = message("shutdown", 108) + message("exit")


# The early answer.


def test_initialize_is_answered_before_slow_imports(tmp_path: Path) -> None:
    """The answer comes before the first import of a library or of a package of the server other than `lsp`; only the
    interpreter itself is looked at before (case 127)."""
    output = tmp_path / "output"
    with output.open("wb") as both:
        server = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "steadyhand", "--state-dir", str(tmp_path / "state")],
            input=framed(initialize()) + GOODBYE, stdout=both, stderr=both, env={**os.environ, **PATHS},
            timeout=conversation_s_max, check=False,
        )  # fmt: skip
    lines = output.read_text().splitlines()
    assert server.returncode == 0
    answered = next(number for number, line in enumerate(lines) if '"capabilities"' in line)
    before, after = (
        {line.rpartition("|")[2].strip() for line in part if line.startswith("import time:")}
        for part in (lines[:answered], lines[answered:])
    )
    assert {name for name in before if name.partition(".")[0] in LATE} == set()
    assert {name for name in before if name.startswith("steadyhand.") and not name.startswith("steadyhand.lsp")} == {
        "steadyhand.adapters",
        "steadyhand.adapters.interpreter",
    }
    assert {name for name in before | after if name.partition(".")[0] in NEVER} == set()
    assert {"anyio", "steadyhand.session"} <= after


@pytest.mark.parametrize("encodings", [None, ["utf-8"], ["utf-32", "utf-8"], ["utf-7"]])
def test_early_answer_equals_the_answer_of_the_server(tmp_path: Path, encodings: Any) -> None:
    """The bytes equal the answer to the same request in an unusual frame, which the server answers itself."""
    body = initialize(capabilities={"general": {"positionEncodings": encodings}})
    unusual = b"Content-Length: %d\n\n" % len(body) + body
    found = [run_with_input(tmp_path, frame + GOODBYE) for frame in (framed(body), unusual)]
    assert found[0] == found[1]
    assert found[0][0] == 0
    assert b'"id":101,"result":{"capabilities"' in found[0][1]


# Everything else is unchanged.


def test_requests_in_the_first_piece_are_answered_in_order(start: Start) -> None:
    """Requests in one piece with `initialize` are answered once each, in their order."""
    client = start()
    count = 500
    rest = b"".join(message(VALID, number, {"surprise": "x" * 200}) for number in range(102, 101 + count))
    client.send_raw(framed(initialize()) + rest)
    client.wait_for(lambda: len(client.messages) >= count or None, conversation_s_max, "all answers")
    assert [each["id"] for each in client.messages] == list(range(101, 101 + count))
    assert client.shut_down() == 0


@pytest.mark.parametrize("pause_s", [0.02, greeting.WAIT_S_MAX * 1.5])
@pytest.mark.parametrize("cut", [1, 15, 25, 60, -1])
def test_initialize_in_pieces_is_answered_once(start: Start, cut: int, pause_s: float) -> None:
    """The message may be cut anywhere; the rest may come before or after the server itself waits for it."""
    client = start()
    frame = framed(initialize())
    client.send_raw(frame[:cut])
    time.sleep(pause_s)
    client.send_raw(frame[cut:] + message(VALID, 102, {}))
    assert client.result(102) == {"sessions": []}
    assert [each["id"] for each in client.messages] == [101, 102]
    assert client.shut_down() == 0


def test_late_initialize_is_answered_by_the_server(start: Start) -> None:
    """The server answers an `initialize` that comes after `greeting.WAIT_S_MAX`."""
    client = start()
    time.sleep(greeting.WAIT_S_MAX * 2)
    assert client.initialize()["serverInfo"]["name"] == "steadyhand"
    assert client.shut_down() == 0


BAD_PARAMS: list[tuple[Any, list[tuple[str, str]]]] = [
    ({}, [("$.capabilities", "required field missing")]),
    ({"capabilities": 5, "rootUri": 5}, [("$.capabilities", "expected an object"), ("$.rootUri", "expected str")]),
    ({"capabilities": {"window": {"showMessage": []}}}, [("$.capabilities.window.showMessage", "expected an object")]),
    ({"capabilities": {}, "workspaceFolders": [{"uri": 5}]}, [
        ("$.workspaceFolders[0].uri", "expected str"), ("$.workspaceFolders[0].name", "required field missing"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("params", "errors"), BAD_PARAMS)
def test_invalid_params_are_refused_by_the_server(start: Start, params: Any, errors: Any) -> None:
    """The error has the path and the words of each wrong param, and the next `initialize` counts as the first."""
    client = start()
    client.send_raw(message("initialize", 101, params))
    error = client.answer(101)["error"]
    assert error["code"] == -32602
    assert [(each["path"], each["message"]) for each in error["data"]["errors"]] == errors
    client.send_raw(framed(initialize(102)) + framed(initialize(103)))
    assert "capabilities" in client.result(102)
    assert client.answer(103)["error"]["message"] == "initialize may be sent only once"
    assert client.shut_down() == 0


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (message(VALID, 7, {}), -32002),
        (message("shutdown", 7), -32002),
        (framed(b"{"), -32700),
        (framed(b'{"jsonrpc":"2.0","id":7.5,"method":"initialize","params":{"capabilities":{}}}'), -32602),
        (framed(b'{"jsonrpc":"1.0","id":7,"method":"initialize","params":{"capabilities":{}}}'), -32600),
        (framed(b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":[]}'), -32602),
        (framed(b""), -32700),
        (message("initialize", None, {"capabilities": {}}), 0),
    ],
)
def test_other_first_message_is_answered_by_the_server(start: Start, first: bytes, code: int) -> None:
    """A message before `initialize` gets its usual answer, and the `initialize` after it is answered once."""
    client = start()
    client.send_raw(first + framed(initialize()))
    assert "capabilities" in client.result(101)
    assert [each.get("error", {}).get("code") for each in client.messages] == ([code, None] if code else [None])
    assert client.shut_down() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_right_after_the_answer_has_its_exit_code(start: Start, number: int) -> None:
    """A client that has the answer may rely on the exit code, although the server is not imported yet (row E4)."""
    client = start()
    client.send_raw(framed(initialize()))
    client.result(101)
    client.process.send_signal(number)
    assert client.wait_exit() == 128 + number
    assert "Traceback" not in client.stderr()


def test_no_signal_stays_blocked_in_the_server(start: Start) -> None:
    """No signal stays blocked when the server serves, because its children would inherit the block."""
    client = start()
    client.initialize()
    assert client.request(VALID, {}) == {"sessions": []}
    status = Path(f"/proc/{client.process.pid}/status")
    if not status.exists():
        pytest.skip("no /proc on this system")
    blocked = int(next(line for line in status.read_text().splitlines() if line.startswith("SigBlk")).split()[1], 16)
    assert blocked == 0


@pytest.mark.parametrize(
    ("after", "code"), [(b"", 1), (message("exit"), 1), (message(VALID, 102, {}) + message("exit"), 1), (GOODBYE, 0)]
)
def test_end_right_after_initialize_has_its_exit_code(tmp_path: Path, after: bytes, code: int) -> None:
    """End of input, `exit` or `shutdown` right after `initialize` ends the server as at any other time."""
    ended, output, errors = run_with_input(tmp_path, framed(initialize()) + after)
    assert (ended, output.count(b'"capabilities"')) == (code, 1)
    assert "Traceback" not in errors


def test_closed_stdout_ends_the_server_with_1(tmp_path: Path) -> None:
    """If the answer cannot be written, the server ends with 1 and writes nothing to stderr."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "steadyhand", "--state-dir", str(tmp_path / "state")],
            input=framed(initialize()), stdout=writes, stderr=subprocess.PIPE, env={**os.environ, **PATHS},
            timeout=conversation_s_max, check=False,
        )  # fmt: skip
    finally:
        os.close(writes)
    assert (done.returncode, done.stderr) == (1, b"")
