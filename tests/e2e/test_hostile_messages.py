"""Valid and invalid messages of a client: each gets its one correct answer, and the server handles the next message.

The rows of the tables are (name, what is sent, what must come back). Most messages share one server; a message that
ends the connection has a server of its own. Every row runs against each program in `PROGRAMS`, which include the whole
server; so a row tests what the protocol layer promises, and nothing behind it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steadyhand_protocol import methods
from tests.support.raw_client import RawClient, framed

ROOT = Path(__file__).resolve().parents[2]
PROBE = (sys.executable, str(ROOT / "tests" / "support" / "edge_probe.py"))
WHOLE = (sys.executable, "-m", "steadyhand")
PROGRAMS: dict[str, tuple[str, ...]] = {"edge": PROBE}
if (ROOT / "server" / "steadyhand" / "__main__.py").exists():
    PROGRAMS["whole"] = WHOLE

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002

SILENCE = 0
"""The code of a message that must not be answered."""

id_max = 1 << 40
ID = "0" * 32
VALID = "steadyhand/session/list"

Row = tuple[str, bytes, int]  # name, body (ID stands for the id of the request), code
ID_MARK = b"@ID@"


def request(name: str, code: int, method: Any, params: Any = None, **more: Any) -> Row:
    """A row for a request with its own id."""
    message = {"jsonrpc": "2.0", "id": "@ID@", "method": method, **more}
    if params is not None:
        message["params"] = params
    return name, json.dumps(message).encode().replace(b'"@ID@"', ID_MARK), code


def notice(name: str, method: Any, params: Any = None) -> Row:
    """A row for a notification, which is never answered."""
    message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
    return name, json.dumps(message).encode(), SILENCE


def raw(name: str, code: int, body: bytes | str) -> Row:
    """A row for any body."""
    return name, body.encode() if isinstance(body, str) else body, code


VERSIONS: tuple[Any, ...] = ("1.0", 2, 2.0, None, "", [], {"jsonrpc": "2.0"})
TAILS: tuple[Any, ...] = (-1, 1.0, True, "1", None, [], 10**30)
COMMAND_NAMES: tuple[Any, ...] = (5, None, True, [], {}, "", "nothing", "exit")
ARGUMENTS: tuple[Any, ...] = ({}, 5, "x", [5], [[]], [None], [{"surprise": 1}], [{}, {}])
CHANGES: tuple[Any, ...] = (5, {}, [5], [{"text": 5}], [{"range": 5, "text": ""}], [{"range": None}], [{"text": "x"}])
NO_OBJECT: tuple[Any, ...] = (5, "text", True, [], [5], 1.5)
PROMPT = {"sessionId": ID, "epoch": ID, "clientMessageId": "c"}
WRONG_VALUES: tuple[Any, ...] = (5, -1, 1.5, True, None, "", [], {}, [[]], {"jsonrpc": "2.0", "id": 1})

BROKEN_JSON = [
    raw("empty body", PARSE_ERROR, b""),
    raw("blank body", PARSE_ERROR, b"  \n"),
    raw("word", PARSE_ERROR, b"hello"),
    raw("open object", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1'),
    raw("two values", PARSE_ERROR, b"{}{}"),
    raw("trailing comma", PARSE_ERROR, b'{"jsonrpc": "2.0",}'),
    raw("single quotes", PARSE_ERROR, b"{'jsonrpc': '2.0'}"),
    raw("NUL bytes", PARSE_ERROR, b"\0" * 100),
    raw("control character in a string", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "a\nb"}'),
    raw("invalid UTF-8", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}'),
    raw("cut UTF-8", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "\xe2\x82"}'),
    raw("surrogate as UTF-8", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "\xed\xa0\x80"}'),
    raw("UTF-16", PARSE_ERROR, '{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}'.encode("utf-16")),
    raw("byte order mark", PARSE_ERROR, b"\xef\xbb\xbf{}"),
    raw("NaN", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": {"a": NaN}}'),
    raw("infinity", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": [-Infinity]}'),
    raw("number out of range", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": 1, "method": "a", "params": [1e999]}'),
    raw("integer of 5,000 digits", PARSE_ERROR, b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b"}"),
    raw("100,000 arrays deep", PARSE_ERROR, b"[" * 100_000),
    raw("100,000 closed arrays deep", PARSE_ERROR, b"[" * 100_000 + b"]" * 100_000),
    raw("100,000 objects deep", PARSE_ERROR, b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    raw("bad escape", PARSE_ERROR, rb'{"jsonrpc": "2.0", "id": 1, "method": "\x"}'),
    raw("half an escape", PARSE_ERROR, rb'{"jsonrpc": "2.0", "id": 1, "method": "\ud8"}'),
]

NO_REQUEST = [
    *(raw(f"no object: {body}", INVALID_REQUEST, body) for body in ("null", "true", "5", '"shutdown"', "[]")),
    raw("batch", INVALID_REQUEST, json.dumps([{"jsonrpc": "2.0", "id": 1, "method": VALID}] * 2)),
    raw("batch of notifications", INVALID_REQUEST, json.dumps([{"jsonrpc": "2.0", "method": "initialized"}])),
    raw("empty object", INVALID_REQUEST, "{}"),
    raw("no jsonrpc", INVALID_REQUEST, b'{"id": @ID@, "method": "steadyhand/session/list"}'),
    *(request(f"jsonrpc is {version!r}", INVALID_REQUEST, VALID, {}, jsonrpc=version) for version in VERSIONS),
    raw("no method", INVALID_REQUEST, b'{"jsonrpc": "2.0", "id": @ID@}'),
    *(
        request(f"method is {method!r}", INVALID_REQUEST, method, {})
        for method in (None, 5, True, [], {}, [VALID], {"method": VALID})
    ),
    request(
        "second initialize", INVALID_REQUEST, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}
    ),
]

BAD_IDS = [
    raw(f"id is {id}", INVALID_PARAMS, f'{{"jsonrpc": "2.0", "id": {id}, "method": "{VALID}", "params": {{}}}}')
    for id in ("null", "true", "false", "1.0", "1.5", "1e3", "[]", "[1]", "{}", '{"id": 1}')
]

UNKNOWN_METHODS = [
    request(f"unknown method {method[:30]!r}", METHOD_NOT_FOUND, method, {})
    for method in (
        *("", " ", "nothing", "steadyhand", "steadyhand/", "steadyhand/nothing", "Steadyhand/session/list"),
        *("$/unknown", "$/cancelRequest", "textDocument/hover", "textDocument/didOpen", "initialized", "exit"),
        *("__init__", "lsp_shutdown", "x" * 100_000, "\U0001f600", "\0", "a\nb", "workspace/applyEdit"),
        *(row.name for row in methods.METHODS if row.direction == "to_editor" or not row.built),
    )
]

REQUESTS = [row for row in methods.METHODS if row.direction == "to_server" and row.built]
COMMANDS = [row for row in methods.COMMANDS if row.built]

NO_PARAMS_OBJECT = [
    request(f"{method}: params are {json.dumps(params)}", INVALID_PARAMS, method, params)
    for method in (VALID, "workspace/executeCommand", "textDocument/codeAction", "shutdown")
    for params in NO_OBJECT
]

OWN_PARAMS = [
    *(request(f"{row.name}: unknown field", INVALID_PARAMS, row.name, {"surprise": 1}) for row in REQUESTS),
    *(request(f"{row.name}: nested jsonrpc", INVALID_PARAMS, row.name, {"jsonrpc": "2.0"}) for row in REQUESTS),
    *(
        request(f"{row.name}: {field} is {json.dumps(value)}", INVALID_PARAMS, row.name, {field: value})
        for row in REQUESTS
        for field, value in (("sessionId", 5), ("sessionId", None), ("sessionId", "A" * 32), ("epoch", []))
    ),
    *(
        request(f"text is {json.dumps(value)}", INVALID_PARAMS, "steadyhand/turn/start", {**PROMPT, "text": value})
        for value in WRONG_VALUES
        if value != ""
    ),
    *(
        request(
            f"tail is {json.dumps(value)}", INVALID_PARAMS, "steadyhand/session/open", {"sessionId": ID, "tail": value}
        )
        for value in TAILS
    ),
    request(
        "params 900 objects deep",
        INVALID_PARAMS,
        VALID,
        json.loads('{"a":' * 900 + "1" + "}" * 900),
    ),
    raw("params null", INVALID_PARAMS, f'{{"jsonrpc": "2.0", "id": @ID@, "method": "{VALID}", "params": null}}'),
]


def command(name: str, params: Any) -> Row:
    """A row for `workspace/executeCommand`."""
    return request(f"command: {name}", INVALID_PARAMS, "workspace/executeCommand", params)


COMMAND_PARAMS = [
    command("none", {}),
    *(command(f"is {value!r}", {"command": value}) for value in COMMAND_NAMES),
    *(command(f"{row.name} not built", {"command": row.name}) for row in methods.COMMANDS if not row.built),
    *(
        command(f"{row.name}: arguments are {json.dumps(given)}", {"command": row.name, "arguments": given})
        for row in COMMANDS
        for given in ARGUMENTS
    ),
]

STANDARD_PARAMS = [
    request(f"codeAction: {name}", INVALID_PARAMS, "textDocument/codeAction", params)
    for name, params in {
        "empty": {},
        "document is a number": {"textDocument": 5, "range": {}, "context": {"diagnostics": []}},
        "line is text": {
            "textDocument": {"uri": "file:///a"},
            "range": {"start": {"line": "0", "character": 0}, "end": {"line": 0, "character": 0}},
            "context": {"diagnostics": []},
        },
        "line is negative": {
            "textDocument": {"uri": "file:///a"},
            "range": {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}},
            "context": {"diagnostics": []},
        },
        "diagnostics are an object": {
            "textDocument": {"uri": "file:///a"},
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
            "context": {"diagnostics": {}},
        },
        "only holds a number": {
            "textDocument": {"uri": "file:///a"},
            "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
            "context": {"diagnostics": [], "only": [5]},
        },
    }.items()
]

NOTICES = [
    notice("unknown", "nothing"),
    notice("unknown optional", "$/nothing", {"a": 1}),
    notice("empty method", ""),
    *(notice(f"didOpen {json.dumps(p)}", "textDocument/didOpen", p) for p in (*NO_OBJECT, {}, {"textDocument": []})),
    *(
        notice(f"didChange {json.dumps(changes)[:50]}", "textDocument/didChange", changed)
        for changes in CHANGES
        for changed in ({"textDocument": {"uri": "file:///not-open", "version": 1}, "contentChanges": changes},)
    ),
    notice("didClose of what is not open", "textDocument/didClose", {"textDocument": {"uri": "file:///no"}}),
    notice("didSave of what is not open", "textDocument/didSave", {"textDocument": {"uri": "nonsense"}}),
    *(notice(f"cancel {json.dumps(p)}", "$/cancelRequest", p) for p in (*NO_OBJECT, {}, {"id": None}, {"id": [1]})),
    notice("cancel of nothing", "$/cancelRequest", {"id": id_max}),
    notice("folders", "workspace/didChangeWorkspaceFolders", {"event": {"added": 5, "removed": []}}),
    notice("a request without an id", VALID, {}),
    notice("initialize without an id", "initialize", {"capabilities": {}}),
    notice("shutdown without an id", "shutdown"),
    notice("initialized again", "initialized", {}),
    raw("an answer to nothing", SILENCE, '{"jsonrpc": "2.0", "id": 99, "result": null}'),
    raw("an error to nothing", SILENCE, '{"jsonrpc": "2.0", "id": "steadyhand-1", "error": 5}'),
    raw("an answer with a strange id", SILENCE, '{"jsonrpc": "2.0", "id": [], "result": {}, "error": {}}'),
    raw("an error without an id", SILENCE, '{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": ""}}'),
]

ROWS = [
    *BROKEN_JSON,
    *NO_REQUEST,
    *BAD_IDS,
    *UNKNOWN_METHODS,
    *NO_PARAMS_OBJECT,
    *OWN_PARAMS,
    *COMMAND_PARAMS,
    *STANDARD_PARAMS,
    *NOTICES,
]

ENDS_THE_CONNECTION = {
    "no colon": b"hello\r\n\r\n",
    "http": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "negative length": b"Content-Length: -1\r\n\r\n",
    "length is a word": b"Content-Length: many\r\n\r\n",
    "length with a sign": b"Content-Length: +10\r\n\r\n",
    "length with an underscore": b"Content-Length: 1_0\r\n\r\n",
    "length in hex": b"Content-Length: 0x10\r\n\r\n",
    "length of 30 digits": b"Content-Length: " + b"9" * 30 + b"\r\n\r\n",
    "length in other digits": "Content-Length: ١٢\r\n\r\n".encode(),
    "empty length": b"Content-Length:\r\n\r\n",
    "no length": b"Content-Type: application/json\r\n\r\n{}",
    "two lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "endless header": b"x" * 70_000,
    "endless fields": b"X: y\r\n" * 20_000,
    "binary": bytes(range(256)) * 300,
}

ODD_BUT_RIGHT = {
    "lower case": lambda size: b"content-length: %d\r\n\r\n" % size,
    "upper case": lambda size: b"CONTENT-LENGTH: %d\r\n\r\n" % size,
    "bare line feeds": lambda size: b"Content-Length: %d\n\n" % size,
    "no blank": lambda size: b"Content-Length:%d\r\n\r\n" % size,
    "many blanks": lambda size: b"Content-Length:    %d   \r\n\r\n" % size,
    "leading zeros": lambda size: b"Content-Length: 000%d\r\n\r\n" % size,
    "the same twice": lambda size: b"Content-Length: %d\r\n" % size * 2 + b"\r\n",
    "content type first": lambda size: b"Content-Type: a/b; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % size,
    "unknown field": lambda size: b"Content-Length: %d\r\nX-Trace: 1:2\r\n\r\n" % size,
    "empty lines before": lambda size: b"\r\n\n\r\nContent-Length: %d\r\n\r\n" % size,
}


@pytest.fixture(scope="module", params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The command line of the server under test."""
    command: tuple[str, ...] = PROGRAMS[request.param]
    return command


def start(program: tuple[str, ...], folder: Path) -> RawClient:
    """A server whose state and files are in a folder of its own."""
    path = f"{ROOT / 'server'}:{ROOT / 'protocol'}"
    return RawClient(program, {"STEADYHAND_STATE_DIR": str(folder / "state"), "PYTHONPATH": path}, folder)


@pytest.fixture(scope="module")
def shared(program: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawClient]:
    """One initialized server for all messages that must not end it."""
    with start(program, tmp_path_factory.mktemp("hostile")) as client:
        client.initialize()
        yield client


def still_serves(client: RawClient) -> None:
    """Assert that a valid request is answered; so the server has handled everything before it."""
    assert client.request(VALID, {}) == {"sessions": []}
    assert client.broken is None


def test_tables_have_at_least_200_uniquely_named_messages() -> None:
    """The tables hold at least 200 messages, each with its own name."""
    names = [name for name, _, _ in ROWS]
    assert len(names) >= 200
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("row", ROWS, ids=[name[:60] for name, _, _ in ROWS])
def test_hostile_message_gets_exactly_one_correct_answer(shared: RawClient, row: Row) -> None:
    """Each message gets the correct answer once, with its id or null; a notification gets none; the next request is
    served [I14] (E4)."""
    _, body, code = row
    before = len(shared.messages)
    id = shared.ask(VALID, {})  # also makes the id of this row unique
    shared.result(id)
    own = id + id_max
    shared.send_raw(framed(body.replace(ID_MARK, str(own).encode())))
    still_serves(shared)
    new = [each for each in shared.messages[before:] if "method" not in each and "error" in each]
    if code == SILENCE:
        assert new == []
        return
    (answer,) = new
    assert answer["id"] == (own if ID_MARK in body else None)
    assert answer["error"]["code"] == code, answer
    assert len(answer["error"]["message"]) <= 1_000
    assert "Traceback" not in json.dumps(answer)
    if code == INVALID_PARAMS and ID_MARK in body:
        data = answer["error"]["data"]
        assert data["kind"] == "invalidParams"
        assert 1 <= len(data["errors"]) <= 10
        assert all(set(each) == {"path", "message"} and each["path"][0] == "$" for each in data["errors"])


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        (VALID, {"surprise": 1}, "$.surprise"),
        ("steadyhand/session/open", {"sessionId": ID, "tail": "5"}, "$.tail"),
        ("steadyhand/session/open", {}, "$.sessionId"),
        ("workspace/executeCommand", {"command": "nothing"}, "$.command"),
        ("workspace/executeCommand", {"command": "steadyhand.ask", "arguments": {}}, "$.arguments"),
        ("workspace/executeCommand", {"command": "steadyhand.doctor", "arguments": [{}]}, "$.arguments"),
        ("workspace/executeCommand", {"command": "steadyhand.cancel", "arguments": [{}, {}]}, "$.arguments"),
        (
            "workspace/executeCommand",
            {"command": "steadyhand.ask", "arguments": [{"text": 5}]},
            "$.arguments[0].text",
        ),
        ("textDocument/codeLens", {"textDocument": {"uri": 5}}, "$.textDocument.uri"),
        ("textDocument/codeLens", 5, "$"),
    ],
)
def test_invalid_params_error_names_the_position(shared: RawClient, method: str, params: Any, path: str) -> None:
    """`data.errors` names the position: relative to the params, for commands below `$.arguments`."""
    error = shared.answer(shared.ask(method, params))["error"]
    assert error["code"] == INVALID_PARAMS
    assert [each["path"] for each in error["data"]["errors"]] == [path]


@pytest.mark.parametrize("method", ["nothing", "textDocument/didSave", "$/cancelRequest"])
def test_invalid_notification_is_dropped_and_logged(shared: RawClient, method: str) -> None:
    """`window/logMessage` has the name of a dropped notification and the reason."""
    shared.notify(method, {"id": None})
    told = shared.notification("window/logMessage", that=lambda p: method in p["message"])
    assert told["message"].startswith(f"Steadyhand dropped {method}: ")


@pytest.mark.parametrize("header", ODD_BUT_RIGHT.values(), ids=list(ODD_BUT_RIGHT))
def test_header_variants_are_accepted(shared: RawClient, header: Any) -> None:
    """Field names in any case, bare line feeds, other fields and leading empty lines are accepted."""
    body = b'{"jsonrpc": "2.0", "id": "odd-%d", "method": "%b"}' % (id(header), VALID.encode())
    shared.send_raw(header(len(body)) + body)
    assert "result" in shared.answer(f"odd-{id(header)}")


def test_frames_may_arrive_in_pieces_or_together(shared: RawClient) -> None:
    """A frame that arrives byte by byte, and many frames that arrive at once, are the same to the server."""
    one = framed(b'{"jsonrpc": "2.0", "id": "pieces", "method": "%b"}' % VALID.encode())
    for byte in one:
        shared.send_raw(bytes([byte]))
    assert "result" in shared.answer("pieces")
    shared.send_raw(b"".join(one.replace(b"pieces", b"many%02d" % number) for number in range(50)))
    for number in range(50):
        assert "result" in shared.answer(f"many{number:02}")


def test_nested_jsonrpc_member_is_plain_data(shared: RawClient) -> None:
    """A member `jsonrpc` inside free JSON is a member like any other."""
    inner = {"jsonrpc": "2.0", "id": 5, "method": "exit", "params": {"jsonrpc": "2.0", "result": 1}}
    params = {
        "textDocument": {"uri": "file:///a", "jsonrpc": "2.0"},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
        "context": {"diagnostics": [], "unknown": inner},
        "unknown": inner,
    }
    assert shared.request("textDocument/codeAction", params) in ([], None)


@pytest.mark.parametrize("escape", [r"\ud800", r"\uDFFF", r"\udc00\ud800", r"\\\ud83d", r"\ud83dx"])
def test_lone_surrogate_is_read_as_replacement_character(shared: RawClient, escape: str) -> None:
    """Half a surrogate pair in an id, a key, a text or a document is read as U+FFFD."""
    bodies = [
        f'{{"jsonrpc": "2.0", "id": @, "method": "{VALID}", "params": {{"{escape}": "{escape}"}}}}',
        f'{{"jsonrpc": "2.0", "id": @, "method": "{escape}"}}',
        f'{{"jsonrpc": "2.0", "id": @, "method": "steadyhand/session/open", "params": {{"sessionId": "{escape}"}}}}',
    ]
    for body in bodies:
        id = shared.ask(VALID) + id_max
        shared.send_raw(framed(body.replace("@", str(id)).encode()))
        assert shared.answer(id)["error"]["code"] in (INVALID_PARAMS, METHOD_NOT_FOUND)
    shared.send_raw(framed(f'{{"jsonrpc": "2.0", "id": "{escape}", "method": "{VALID}"}}'.encode()))
    text = json.loads(f'"{escape}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert "result" in shared.answer(text)


@pytest.mark.parametrize("id", [0, -1, 2**53, 10**100, "", "x" * 10_000, "\U0001f600\0", "null"])
def test_any_integer_or_string_id_is_returned_unchanged(shared: RawClient, id: int | str) -> None:
    """Any integer and any string is a valid id; the answer has the same."""
    shared.send({"jsonrpc": "2.0", "id": id, "method": VALID, "params": {}})
    assert shared.answer(id)["result"] == {"sessions": []}


def test_missing_params_equal_an_empty_object(shared: RawClient) -> None:
    """No params are the same as an empty object."""
    assert shared.request(VALID) == {"sessions": []}


def test_body_above_the_limit_is_skipped_with_an_error(shared: RawClient) -> None:
    """The server skips a body of 65 MiB and answers "message too large" with id null; it reads a body below the limit
    [I13]."""
    before = len(shared.answers(None))
    size = 65 << 20
    shared.send_raw(b"Content-Length: %d\r\n\r\n" % size)
    for _ in range(65):
        shared.send_raw(b" " * (1 << 20))
    still_serves(shared)
    (answer,) = shared.answers(None)[before:]
    assert answer["error"] == {"code": INVALID_REQUEST, "message": "message too large"}
    large = json.dumps({"jsonrpc": "2.0", "id": "large", "method": VALID, "params": {"a": "x" * (8 << 20)}})
    shared.send_raw(framed(large.encode()))
    assert shared.answer("large", 30)["error"]["code"] == INVALID_PARAMS


def test_announced_body_of_ten_gigabytes_is_answered_at_once(program: tuple[str, ...], tmp_path: Path) -> None:
    """The server answers a length of 10 GB when it is announced, and allocates no memory for it; the end of input ends
    the server."""
    with start(program, tmp_path) as client:
        client.initialize()
        client.send_raw(b"Content-Length: 10000000000\r\n\r\n")
        assert client.answer(None)["error"]["message"] == "message too large"
        client.send_raw(b"x" * 1_000_000)
        client.close_input()
        assert client.wait_exit() == 1


@pytest.mark.parametrize("sent", ENDS_THE_CONNECTION.values(), ids=list(ENDS_THE_CONNECTION))
def test_unframed_garbage_ends_the_server_with_1(program: tuple[str, ...], tmp_path: Path, sent: bytes) -> None:
    """If the server cannot find the start of the next message, it ends by itself with 1, and says why on stderr."""
    with start(program, tmp_path) as client:
        client.send_raw(sent)
        assert client.wait_exit() == 1
        client.wait_stderr("the connection ends: ")
        assert "Traceback" not in client.stderr()


EARLY: list[tuple[str, Any, int]] = [
    (VALID, {}, NOT_INITIALIZED),
    ("nothing", {}, NOT_INITIALIZED),
    ("shutdown", None, NOT_INITIALIZED),
    ("workspace/executeCommand", 5, NOT_INITIALIZED),
    ("initialize", None, INVALID_PARAMS),
    ("initialize", 5, INVALID_PARAMS),
    ("initialize", [], INVALID_PARAMS),
    ("initialize", {"capabilities": 5}, INVALID_PARAMS),
    ("initialize", {"capabilities": {}, "processId": "1"}, INVALID_PARAMS),
    ("initialize", {"capabilities": {}, "workspaceFolders": {}}, INVALID_PARAMS),
    ("initialize", {"capabilities": {"workspace": []}}, INVALID_PARAMS),
]


def test_requests_before_initialize_and_after_shutdown_are_refused(program: tuple[str, ...], tmp_path: Path) -> None:
    """Before `initialize` requests get -32002 and notifications nothing; an invalid `initialize` may be repeated; after
    `shutdown` requests get -32600."""
    with start(program, tmp_path) as client:
        for method in ("textDocument/didOpen", "nothing", "initialized", "$/cancelRequest"):
            client.notify(method, {})
        for method, params, code in EARLY:
            assert client.answer(client.ask(method, params))["error"]["code"] == code, method
        assert client.notifications("window/logMessage") == []
        client.initialize({"unknown": {"jsonrpc": "2.0"}})
        still_serves(client)
        assert client.request("shutdown") is None
        for method in (VALID, "nothing", "shutdown", "initialize", "textDocument/codeLens"):
            assert client.answer(client.ask(method))["error"]["code"] == INVALID_REQUEST
        client.notify("nothing")
        client.notify("exit")
        assert client.wait_exit() == 0
        assert client.broken is None
