"""One connection from start to end: every way to end it, cancelling, a client that does not read, stray output on
stdout.

The server is the probe (tests/support/edge_probe.py): the real protocol layer with nothing behind it. A test that ends
its connection or starts it in its own way starts its own probe; the others use one probe after another (`client`).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from lsprotocol.converters import get_converter
from pytest_lsp import client_capabilities

from steadyhand.lsp.rpc import pending_requests, transport
from tests.support.raw_client import UNANSWERED, ErrorAnswer, RawClient, framed

ROOT = Path(__file__).resolve().parents[2]
PROBE = (sys.executable, str(ROOT / "tests" / "support" / "edge_probe.py"))
PATHS = {"PYTHONPATH": f"{ROOT / 'server'}:{ROOT / 'protocol'}"}

CANCELLED = -32800
ID = "0" * 32
prompt_exit_s_max = 5.0  # a server with nothing to wait for ends well below
unread_bytes_max = 32 << 20

Start = Callable[..., RawClient]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start probes: `start(*arguments, **of RawClient)`."""
    started: list[RawClient] = []

    def begin(*arguments: str, **more: Any) -> RawClient:
        client = RawClient([*PROBE, *arguments], PATHS, **more)
        started.append(client)
        return client

    yield begin
    for client in started:
        client.kill()


@pytest.fixture(scope="module")
def serving() -> Iterator[list[RawClient]]:
    """The probe that the tests share, if there is one."""
    found: list[RawClient] = []
    yield found
    for client in found:
        client.kill()


@pytest.fixture
def client(serving: list[RawClient], request: pytest.FixtureRequest) -> Iterator[RawClient]:
    """An initialized probe that remembers no other test. After a test that failed the next one gets a new probe."""
    if not serving:
        serving.append(RawClient(PROBE, PATHS))
        serving[0].initialize()
    (client,) = serving
    client.forget()
    failures = request.session.testsfailed
    healthy = False
    try:
        yield client
        healthy = request.session.testsfailed == failures and play(client, "served") == "served"
    finally:
        if not healthy:
            serving.remove(client)
            client.kill()


def turn(text: str) -> dict[str, Any]:
    """The params of a turn that plays a text."""
    return {"sessionId": ID, "epoch": ID, "clientMessageId": "c", "text": text}


def command(text: str) -> dict[str, Any]:
    """The params of the command that plays a text."""
    return {"command": "steadyhand.ask", "arguments": [{"text": text}]}


def play(client: RawClient, text: str, limit_s: float = 60) -> str:
    """The text that the command answers."""
    result = client.request("workspace/executeCommand", command(text), limit_s)
    return str(result["text"])


def told(client: RawClient, text: str) -> None:
    """Wait until the probe has logged this text."""
    client.notification("window/logMessage", that=lambda params: params["message"] == text)


WORK = [("steadyhand/turn/start", turn), ("workspace/executeCommand", command)]


# --- initialize -----------------------------------------------------------------------------------------------


def test_initialize_reports_name_versions_and_capabilities(start: Start) -> None:
    """Name, version, protocol version and capabilities; `initialized` starts the work (docs/protocol.md)."""
    client = start()
    result = client.initialize()
    assert result["serverInfo"]["name"] == "steadyhand"
    found = result["capabilities"]
    assert found["experimental"] == {"steadyhand": {"protocolVersion": 1}}
    assert found["textDocumentSync"] == {"openClose": True, "change": 2, "save": {"includeText": False}}
    assert found["codeActionProvider"]["codeActionKinds"] == ["quickfix"]
    assert "codeLensProvider" in found
    assert "steadyhand.recovery.list" in found["executeCommandProvider"]["commands"]
    assert found["workspace"]["workspaceFolders"] == {"supported": True, "changeNotifications": True}
    told(client, "ready")
    assert client.shut_down() == 0


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [[False] * 4, [], "utf-16"]),
        ({"rootUri": "file:///w/a"}, [[False] * 4, ["/w/a"], "utf-16"]),
        ({"rootPath": "/w/b c"}, [[False] * 4, ["/w/b c"], "utf-16"]),
        ({"rootUri": "file:///w/a", "workspaceFolders": []}, [[False] * 4, [], "utf-16"]),
        (
            {
                "rootUri": "file:///x",
                "workspaceFolders": [{"uri": uri, "name": "n"} for uri in ("file:///y", "vsc:z")],
            },
            [[False] * 4, ["/y", None], "utf-16"],
        ),
        (
            {"capabilities": {"general": {"positionEncodings": ["utf-7", "utf-32", "utf-8"]}}},
            [[False] * 4, [], "utf-32"],
        ),
        (
            {"capabilities": {"experimental": {"steadyhand": {"permission": True, "userAsk": 1, "secret": "true"}}}},
            [[True, False, False, False], [], "utf-16"],
        ),
        ({"capabilities": {"experimental": {"steadyhand": [True]}}}, [[False] * 4, [], "utf-16"]),
        ({"capabilities": {"experimental": 5}}, [[False] * 4, [], "utf-16"]),
    ],
)
def test_initialize_keeps_folders_encoding_and_abilities(
    start: Start, params: dict[str, Any], expected: list[Any]
) -> None:
    """The folders with their fallbacks, the encoding that the client prefers, and its abilities: only a literal true
    counts."""
    client = start()
    client.initialize(params)
    assert json.loads(play(client, "client")) == expected


def test_folder_changes_apply_to_the_next_request(start: Start) -> None:
    """The request that follows already sees added and removed folders."""
    client = start()
    client.initialize({"workspaceFolders": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b", "name": "b"}]})
    event = {"added": [{"uri": "file:///c", "name": "c"}], "removed": [{"uri": "file:///a", "name": "a"}]}
    client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert json.loads(play(client, "client"))[1] == ["/b", "/c"]


def test_document_changes_apply_to_the_next_request(start: Start) -> None:
    """Open, change in the negotiated encoding, save and close: the request right behind each sees it."""
    client = start()
    client.initialize({"capabilities": {"general": {"positionEncodings": ["utf-8"]}}})
    uri = "file:///w/a.py"
    document = {"uri": uri, "languageId": "python", "version": 1, "text": "é1\nb"}
    client.notify("textDocument/didOpen", {"textDocument": document})
    assert json.loads(play(client, f"document {uri}")) == ["/w/a.py", 1, "é1\nb", False]
    where = {"start": {"line": 0, "character": 2}, "end": {"line": 0, "character": 99}}
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"range": where, "text": "2"}]}
    client.notify("textDocument/didChange", change)
    assert json.loads(play(client, f"document {uri}")) == ["/w/a.py", 2, "é2\nb", True]
    client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
    assert json.loads(play(client, f"document {uri}"))[3] is False
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert play(client, f"document {uri}") == "null"


# --- ends of a connection ---------------------------------------------------------------------------------------------


def ends_input(client: RawClient) -> None:
    """Close the server's input."""
    client.close_input()


def closes_output(client: RawClient) -> None:
    """Close the client's end of stdout; its end of stdin stays open."""
    assert client.process.stdout is not None
    descriptor = client.process.stdout.fileno()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, descriptor)  # closes the pipe, though a thread is reading from it
    os.close(nothing)


def sends(signal_number: int) -> Callable[[RawClient], None]:
    """Send a signal."""
    return lambda client: client.process.send_signal(signal_number)


def shuts_down_and(then: Callable[[RawClient], None]) -> Callable[[RawClient], None]:
    """Request the shutdown before something else."""

    def act(client: RawClient) -> None:
        client.request("shutdown")
        then(client)

    return act


WAYS_OUT: dict[str, tuple[Callable[[RawClient], Any], int]] = {
    "shutdown and exit": (shuts_down_and(lambda client: client.notify("exit")), 0),
    "exit alone": (lambda client: client.notify("exit"), 1),
    "end of input": (ends_input, 1),
    "shutdown and end of input": (shuts_down_and(ends_input), 1),
    "SIGTERM": (sends(signal.SIGTERM), 143),
    "SIGINT": (sends(signal.SIGINT), 130),
    "SIGHUP": (sends(signal.SIGHUP), 129),
    "garbage": (lambda client: client.send_raw(b"garbage\r\n\r\n"), 1),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_every_end_of_the_connection_has_its_exit_code(start: Start, tmp_path: Path, way: str, busy: bool) -> None:
    """Each way to end the connection stops the server once, unwinds what is running, and ends soon, without output,
    with its own exit code."""
    mark = tmp_path / "mark"
    client = start(f"mark={mark}")
    client.initialize()
    asked = []
    if busy:
        asked = [client.ask(method, params("sleep")) for method, params in WORK]
        client.wait_for(lambda: client.notifications("window/logMessage")[2:] or None, 10, "both began")
    act, code = WAYS_OUT[way]
    begun = time.monotonic()
    act(client)
    assert client.wait_exit() == code
    assert time.monotonic() - begun < prompt_exit_s_max
    assert mark.read_text() == "stopped\n"
    assert "Traceback" not in client.stderr()
    for id in asked:
        assert client.answers(id)[0]["error"]["code"] == CANCELLED


@pytest.mark.parametrize("before", ["nothing", "initialize"])
def test_stdout_closed_by_the_client_ends_the_server(start: Start, tmp_path: Path, before: str) -> None:
    """A client that only closes its end of stdout is gone; the server notices within a second or two, without a write
    (row E4)."""
    mark = tmp_path / "mark"
    client = RawClient([*PROBE, f"mark={mark}"], PATHS, reading=False)
    try:
        if before == "initialize":
            client.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}})
        closes_output(client)
        assert client.wait_exit() == 1
        assert mark.read_text() == "stopped\n"
        assert "Traceback" not in client.stderr()
    finally:
        client.kill()


@pytest.mark.parametrize("named", ["processId", "--clientProcessId"])
def test_dead_client_process_ends_the_server(start: Start, named: str) -> None:
    """The process that the client names, in either way, has ended: the server ends too, though its pipes are open."""
    editor = subprocess.Popen(["sleep", "300"])
    try:
        client = start() if named == "processId" else start(f"--clientProcessId={editor.pid}")
        client.initialize({"processId": editor.pid} if named == "processId" else None)
        assert play(client, "alive") == "alive"
        editor.kill()  # not waited for: it stays a zombie, which counts as gone
        assert client.wait_exit() == 1
    finally:
        editor.kill()
        editor.wait(10)


@pytest.mark.parametrize("pid", [0, -1, 1 << 30, (1 << 31) - 1])
def test_invalid_client_process_id_is_harmless(start: Start, pid: int) -> None:
    """A process id that no process has ends the server with 1, or is ignored; it never breaks the server."""
    client = start()
    client.initialize({"processId": pid})
    if pid > 0:
        assert client.wait_exit() == 1
    else:
        assert client.shut_down() == 0
    assert "Traceback" not in client.stderr()


@pytest.mark.parametrize(("how", "said"), [("slow", "broken off"), ("raise", "the stop failed")])
def test_failing_or_hanging_stop_does_not_delay_the_exit(start: Start, tmp_path: Path, how: str, said: str) -> None:
    """A stop that hangs is cut off at its limit, a stop that fails is logged; the exit code stays the same [I13]."""
    mark = tmp_path / "mark"
    client = start(f"stop={how}", f"mark={mark}")
    client.initialize()
    assert client.shut_down() == 0
    assert mark.read_text() == "stopped\n"
    client.wait_stderr(said)


def test_second_signal_does_not_change_stop_or_exit_code(start: Start, tmp_path: Path) -> None:
    """While the server stops, more signals neither shorten the stop nor change the exit code."""
    mark = tmp_path / "mark"
    client = start("stop=slow", f"mark={mark}")
    client.initialize()
    client.process.send_signal(signal.SIGTERM)
    client.wait_for(lambda: mark.exists() or None, 10, "the stop")
    client.process.send_signal(signal.SIGINT)
    assert client.wait_exit() == 143
    client.wait_stderr("broken off")


def test_task_that_never_ends_is_abandoned_at_the_limit(start: Start) -> None:
    """Work that shields itself forever is abandoned after the last limit, and the exit code is still correct [I13]."""
    client = start("stop=hard")
    client.initialize()
    client.ask("workspace/executeCommand", command("hang"))
    assert play(client, "next") == "next"
    client.process.send_signal(signal.SIGTERM)
    assert client.wait_exit() == 143


def test_requests_in_flight_have_a_limit(start: Start) -> None:
    """One request too many is refused, the others are not affected; when one has ended, the next is accepted [I13]."""
    client = start("flights=2")
    client.initialize()
    first, _ = (client.ask("workspace/executeCommand", command("sleep")) for _ in range(2))
    refused = client.answer(client.ask("steadyhand/session/list"))
    assert refused["error"] == {"code": -32600, "message": "too many requests in flight"}
    client.notify("$/cancelRequest", {"id": first})
    assert client.answer(first)["error"]["code"] == CANCELLED
    assert client.request("steadyhand/session/list") == {"sessions": []}


@pytest.mark.anyio
async def test_unsent_output_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server gives up a client that never reads when too much is unsent: one message says so, and no task waits for
    it [I13]."""
    monkeypatch.setattr(transport, "UNSENT_BYTES_MAX", 300_000)
    reads, writes = os.pipe()
    losses: list[bool] = []
    writer = transport.FrameWriter(writes, lambda: losses.append(True))
    try:
        for _ in range(4):
            writer.write(b"x" * 90_000)
        assert (writer.lost, losses) == (False, [])
        for _ in range(3):
            writer.write(b"x" * 90_000)
        assert (writer.lost, losses) == (True, [True])
        with anyio.fail_after(60):
            await writer.drain()
            await writer.flush(5)
    finally:
        os.close(reads)
        os.close(writes)


@pytest.mark.anyio
async def test_open_questions_have_a_limit_and_end_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """One question too many is refused; a lost connection ends the open questions, and later ones at once [I13]."""
    monkeypatch.setattr(pending_requests, "OPEN_QUESTIONS_MAX", 2)
    sent: list[Any] = []
    questions = pending_requests.PendingRequests(sent.append)
    ends: list[str] = []

    async def ask() -> None:
        try:
            await questions.request("m", {}, 60)
        except pending_requests.EditorError as error:
            ends.append(str(error))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await ask()
            assert ends == ["too many questions are open"]
            questions.fail_all("lost")
        await ask()
    assert ends[1:] == ["lost"] * 3
    assert [each["method"] for each in sent] == ["m", "m"]


@pytest.mark.parametrize("editor", ["neovim", "emacs", "visual_studio_code"])
def test_capabilities_of_real_editors_are_accepted(start: Start, editor: str) -> None:
    """What real editors declare passes our strict reading of standard objects."""
    declared = get_converter().unstructure(client_capabilities(editor))
    client = start()
    client.initialize({"capabilities": json.loads(json.dumps(declared)), "trace": "off", "locale": "de"})
    assert play(client, "next") == "next"


# --- cancelling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "params"), WORK, ids=["request", "command"])
def test_cancel_is_answered_after_the_work_has_ended(
    client: RawClient, method: str, params: Callable[[str], Any]
) -> None:
    """-32800 comes once, and not before the work has really ended, for requests and commands alike."""
    id = client.ask(method, params("sleep"))
    told(client, "begun")
    client.notify("$/cancelRequest", {"id": id})
    assert client.answer(id)["error"]["code"] == CANCELLED
    order = [each.get("params", {}).get("message") or each.get("id") for each in client.messages]
    assert order.index("unwound") < order.index(id)
    client.notify("$/cancelRequest", {"id": id})
    assert play(client, "next") == "next"
    assert len(client.answers(id)) == 1


@pytest.mark.parametrize(("method", "params"), WORK, ids=["request", "command"])
def test_cancel_in_the_same_packet_as_its_request_counts(
    client: RawClient, method: str, params: Callable[[str], Any]
) -> None:
    """Request and cancel arrive in one packet: the work begins and ends, and the answer is -32800."""
    parts = [
        {"jsonrpc": "2.0", "id": "both", "method": method, "params": params("sleep")},
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "both"}},
    ]
    client.send_raw(b"".join(framed(json.dumps(part).encode()) for part in parts))
    assert client.answer("both")["error"]["code"] == CANCELLED


@pytest.mark.parametrize(("method", "params"), WORK, ids=["request", "command"])
def test_cancelled_request_that_finished_returns_its_result(
    client: RawClient, method: str, params: Callable[[str], Any]
) -> None:
    """Work that completed in spite of a cancel has happened: its result is the answer [I2]."""
    id = client.ask(method, params("stubborn"))
    told(client, "begun")
    client.notify("$/cancelRequest", {"id": id})
    assert client.result(id)["turnId"] == ID


def test_duplicate_request_id_in_flight_is_refused(client: RawClient) -> None:
    """A second request with the id of one in flight is refused; the first is not affected; later the id is free."""
    client.send({"jsonrpc": "2.0", "id": "twice", "method": "steadyhand/turn/start", "params": turn("stubborn")})
    client.send({"jsonrpc": "2.0", "id": "twice", "method": "steadyhand/session/list", "params": {}})
    client.wait_for(lambda: client.answers("twice")[1:] or None, 10, "two answers")
    answers = client.answers("twice")
    assert answers[0]["error"]["code"] == -32600
    assert answers[1]["result"]["turnId"] == ID
    client.send({"jsonrpc": "2.0", "id": "twice", "method": "steadyhand/session/list", "params": {}})
    client.wait_for(lambda: client.answers("twice")[2:] or None, 10, "a third answer")


def test_shutdown_cancels_a_command_in_flight(start: Start) -> None:
    """`shutdown` is answered at once, before the commands in flight have unwound; they get -32800."""
    client = start()
    client.initialize()
    id = client.ask("workspace/executeCommand", command("sleep"))
    told(client, "begun")
    down = client.ask("shutdown")
    assert client.answer(id)["error"]["code"] == CANCELLED
    order = [each.get("id") for each in client.messages]
    assert order.index(down) < order.index(id)
    assert client.result(down) is None
    client.notify("exit")
    assert client.wait_exit() == 0


# --- refusals and defects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["refuse", "group"])
def test_refusal_has_its_code_and_data(client: RawClient, text: str) -> None:
    """A refusal, alone or out of a task group, becomes its code and `data` (docs/protocol.md, "Errors")."""
    with pytest.raises(ErrorAnswer) as caught:
        play(client, text)
    assert (caught.value.code, caught.value.data) == (-32051, {"kind": "staleEpoch", "epoch": ID})
    assert caught.value.message == "The session was bound anew."


@pytest.mark.parametrize("text", ["boom", "unshaped"])
def test_defect_is_answered_without_trace_and_path(client: RawClient, text: str) -> None:
    """The answer to a defect has no trace and no path; stderr has both, and the server goes on (row E2)."""
    with pytest.raises(ErrorAnswer) as caught:
        play(client, text)
    assert (caught.value.code, caught.value.message, caught.value.data) == (-32603, "internal error", None)
    client.wait_stderr("Traceback")
    assert play(client, "next") == "next"


# --- asking the editor ----------------------------------------------------------------------------------------


def test_answers_of_the_editor_are_typed(client: RawClient) -> None:
    """Answers come in their types: those of lsprotocol for a standard request, those of our table for our own."""
    client.answer_with("window/showMessageRequest", lambda params: params["actions"][0])
    client.answer_with("steadyhand/user/ask", lambda params: {"answer": params["question"]})
    assert play(client, "ask") == "'Yes'"
    assert play(client, "user") == "UserAnswered(answer='Which?')"
    client.answer_with("window/showMessageRequest", lambda _: None)
    assert play(client, "ask") == "None"


@pytest.mark.parametrize(
    ("method", "text", "answer"),
    [
        ("window/showMessageRequest", "ask", {"title": 5}),
        ("window/showMessageRequest", "ask", "Yes"),
        ("steadyhand/user/ask", "user", {"answer": 5}),
        ("steadyhand/user/ask", "user", {"answer": "a", "more": 1}),
        ("steadyhand/user/ask", "user", None),
    ],
)
def test_answer_of_a_wrong_shape_is_an_editor_error(client: RawClient, method: str, text: str, answer: Any) -> None:
    """An answer that does not fit is an EditorError, and no defect."""
    client.answer_with(method, lambda _: answer)
    assert play(client, text) == f"no answer: the editor's answer to {method} does not fit (None)"


def test_error_answer_or_empty_answer_is_an_editor_error(client: RawClient) -> None:
    """An error becomes an EditorError with its code; so does an answer with neither result nor error."""

    def refuse(_: Any) -> Any:
        raise ErrorAnswer({"code": -32601, "message": "no such thing"})

    client.answer_with("window/showMessageRequest", refuse)
    assert play(client, "ask") == "no answer: the editor answered: no such thing (-32601)"
    id = client.ask("workspace/executeCommand", command("user"))
    asked = client.server_request("steadyhand/user/ask")
    client.send({"jsonrpc": "2.0", "id": asked["id"], "error": "strange"})
    assert client.result(id)["text"] == "no answer: the editor answered with an error (None)"


def test_late_answer_of_the_editor_is_ignored(client: RawClient) -> None:
    """The server withdraws a question that it gives up; a late or repeated answer changes nothing."""
    client.answer_with("window/showMessageRequest", lambda _: UNANSWERED)
    assert play(client, "ask 0.2").startswith("no answer: the editor did not answer")
    asked = next(each for each in client.messages if each.get("method") == "window/showMessageRequest")
    assert client.notification("$/cancelRequest") == {"id": asked["id"]}
    for _ in range(2):
        client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"title": "Yes"}})
    assert play(client, "next") == "next"
    assert "Traceback" not in client.stderr()


def test_cancel_withdraws_the_question_to_the_editor(client: RawClient) -> None:
    """The cancel of a request that waits for the editor reaches the editor."""
    id = client.ask("workspace/executeCommand", command("user 60"))
    asked = client.server_request("steadyhand/user/ask")
    client.notify("$/cancelRequest", {"id": id})
    assert client.answer(id)["error"]["code"] == CANCELLED
    assert client.notification("$/cancelRequest") == {"id": asked["id"]}


# --- a client that does not read, and kinds of streams -------------------------------------------------


def test_slow_reader_gets_two_thousand_answers(start: Start) -> None:
    """A client that sends without reading is not blocked, and finds all answers when it reads later."""
    client = start(reading=False)
    params = {"a" * 100: "x"}  # each answer says so, which makes them long
    client.send({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {"capabilities": {}}})
    names = [f"unread-{number}" for number in range(2000)]
    for name in names:
        client.send({"jsonrpc": "2.0", "id": name, "method": "steadyhand/session/list", "params": params})
    client.start_reading()
    client.answer(names[-1])
    assert [each["id"] for each in client.messages if "error" in each] == names
    assert client.shut_down() == 0


def test_output_flood_waits_for_the_reader_in_bounded_memory(start: Start) -> None:
    """`drain` bounds the memory of a stream of 60 MB to a client that does not read; nothing of it is lost [I13]."""
    client = start(reading=False)
    client.send({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {"capabilities": {}}})
    client.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
    count = 60_000
    id = client.ask("workspace/executeCommand", command(f"flood {count}"))
    settled = resident_at_rest(client)
    assert settled < (80 << 20) + unread_bytes_max
    client.start_reading()
    assert client.result(id, 60)["text"] == "flooded"
    numbers = [params["message"].split()[0] for params in client.notifications("window/logMessage")]
    assert numbers == ["ready", *(str(number) for number in range(count))]


def resident_at_rest(client: RawClient) -> int:
    """The resident memory of the server in bytes, once its processor time does not grow any more."""
    seen = -1
    end = time.monotonic() + 30
    while time.monotonic() < end:
        fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
        used = int(fields[11]) + int(fields[12])
        if used == seen and used > 0:
            break
        seen = used
        time.sleep(0.5)  # a sample, not a synchronisation
    return int(Path(f"/proc/{client.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def whole_conversation() -> bytes:
    """Everything that a client sends, from the first to the last message."""
    said: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"id": 2, "method": "shutdown"},
        {"method": "exit"},
    ]
    return b"".join(framed(json.dumps({"jsonrpc": "2.0", **each}).encode()) for each in said)


def test_null_device_as_stdin_ends_the_server_with_1(start: Start) -> None:
    """With nothing to read the server ends with 1, and does not hang."""
    client = start(stdin=subprocess.DEVNULL)
    assert client.wait_exit() == 1
    assert "Traceback" not in client.stderr()


def test_conversation_from_file_to_file_works(start: Start, tmp_path: Path) -> None:
    """The server reads a conversation from a file and writes its answers into a file."""
    (tmp_path / "in").write_bytes(whole_conversation())
    with open(tmp_path / "in", "rb") as said, open(tmp_path / "out", "wb") as heard:
        client = start(stdin=said, stdout=heard)
        assert client.wait_exit() == 0
    out = (tmp_path / "out").read_bytes()
    assert b'"id":1,"result":{"capabilities"' in out
    assert b'"id":2,"result":null' in out
    assert "Traceback" not in client.stderr()


def test_conversation_over_one_socket_works(start: Start) -> None:
    """The same over a socket, as some editors use it."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            client = start(stdin=theirs, stdout=theirs)
        ours.settimeout(15)
        ours.sendall(whole_conversation())
        heard = b""
        while piece := ours.recv(65536):
            heard += piece
        assert b'"id":2,"result":null' in heard
        assert client.wait_exit() == 0


def test_conversation_over_a_terminal_keeps_it_blocking(start: Start) -> None:
    """The same in a terminal. The terminal stays as it was: later output is not cut by a non-blocking descriptor."""
    pty = pytest.importorskip("pty")
    tty = pytest.importorskip("tty")
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    client = start(stdin=theirs, stdout=theirs)
    os.write(ours, whole_conversation())
    assert client.wait_exit() == 0
    assert os.get_blocking(theirs)
    heard = os.read(ours, 65536)
    assert heard.startswith(b"Content-Length: ")
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptor_ends_the_server_with_1(closed: str) -> None:
    """Started with closed standard descriptors the server ends by itself, and writes to no file that got the number by
    chance."""
    line = f"exec {' '.join(PROBE)} {closed}"
    ended = subprocess.run(["/bin/sh", "-c", line], input=b"", env={**os.environ, **PATHS}, timeout=20, check=False)
    assert ended.returncode == 1


def test_stray_output_does_not_break_the_framing(start: Start) -> None:
    """A print, a raw write to descriptor 1 and a child that writes and reads reach stderr and the null device. The
    child has neither of the protocol's descriptors, and the session goes on (row E4, case 100) [I14]."""
    client = start()
    client.initialize()
    assert play(client, "print") == "inherited: "
    assert play(client, "next") == "next"
    assert client.broken is None
    assert client.shut_down() == 0
    for stray in ("a stray print", "a stray write", "a child"):
        client.wait_stderr(stray)
