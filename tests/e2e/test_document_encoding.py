"""`steadyhand/document/encoding` over the protocol: the editor says how it reads an open document (row W10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json

TEXT = "größe = 1\n"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        servers.root.joinpath("a.txt").write_bytes(TEXT.encode("cp1252"))
        servers.root.joinpath("b.txt").write_bytes(TEXT.encode("cp1252"))
        yield servers


def client_of(servers: ServerProcesses, able: Json) -> tuple[CheckedClient, Json, str]:
    """A client that has `a.txt` open as it is on disk: the client, a session, the URI of the document."""
    client = servers.start_checked(capabilities={"experimental": {"steadyhand": able}})
    client.answer_with("steadyhand/permission/ask", lambda _: {"option": "once"})
    uri = (servers.root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": TEXT}
    client.notify("textDocument/didOpen", {"textDocument": document})
    return client, client.ours("session/create"), uri


def outcome(client: CheckedClient, session: Json, text: str) -> Json:
    turn_id = client.send_prompt(session, text)["turnId"]
    client.ended(turn_id)
    (call,) = client.calls(turn_id)
    found: Json = call
    return found


def test_editor_s_encoding_is_asked_for_and_kept(servers: ServerProcesses) -> None:
    """W10, rule 2: only of the open document; the question names the encoding, and the file is written in it."""
    client, session, uri = client_of(servers, {"permission": True, "encoding": True})

    def encoding(params: Json) -> Json:
        assert params == {"uri": uri}
        return {"encoding": "windows1252"}

    client.answer_with("steadyhand/document/encoding", encoding)
    assert outcome(client, session, "replace 1 with € in a.txt")["state"] == "returned"
    assert "Its text is written as windows-1252." in client.asked("steadyhand/permission/ask")["params"]["text"]
    assert (servers.root / "a.txt").read_bytes() == "größe = €\n".encode("cp1252")
    refused = outcome(client, session, "replace größe with Ж in a.txt")
    assert (refused["state"], refused["reason"]) == ("refused", "encoding")
    assert (servers.root / "a.txt").read_bytes() == "größe = €\n".encode("cp1252")


def unable(_: object) -> Json:
    raise ErrorAnswer({"code": -32603, "message": "no"})


@pytest.mark.parametrize("answer", [lambda _: {}, lambda _: {"encoding": "cp437"}, lambda _: {"encoding": 7}, unable])
def test_answer_that_names_no_encoding_counts_as_none(
    servers: ServerProcesses, answer: Callable[[object], Json]
) -> None:
    """W10: another rule decides then; here the bytes may be in several encodings, so nothing is written."""
    client, session, _ = client_of(servers, {"permission": True, "encoding": True})
    client.answer_with("steadyhand/document/encoding", answer)
    refused = outcome(client, session, "replace 1 with 2 in a.txt")
    assert (refused["state"], refused["reason"]) == ("refused", "encoding")
    assert (servers.root / "a.txt").read_bytes() == TEXT.encode("cp1252")


def test_client_that_does_not_declare_it_is_not_asked(servers: ServerProcesses) -> None:
    """W10: and no client is asked about a file that is not open."""
    client, session, _ = client_of(servers, {"permission": True})
    assert outcome(client, session, "replace 1 with 2 in a.txt")["reason"] == "encoding"
    assert outcome(client, session, "replace 1 with 2 in b.txt")["reason"] == "encoding"
    assert not any(message.get("method") == "steadyhand/document/encoding" for message in client.messages)
