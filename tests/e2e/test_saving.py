"""Save first over the protocol: the question, `document/save`, and what an editor may answer (row V2,
docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import ErrorAnswer, Json

ABLE: Json = {"permission": True, "userAsk": True, "save": True}
DISK, TYPED = "one\ntwo\n", "one\ntwo and more\n"
EDIT = "replace two with TWO in a.txt"


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        servers.root.joinpath("a.txt").write_text(DISK)
        yield servers


def typing(servers: ServerProcesses, able: Json, answer: str = "Save and go on") -> tuple[CheckedClient, Json, str]:
    """A client that has `a.txt` open with unsaved text: the client, a session, the URI of the document."""
    client = servers.start_checked(capabilities={"experimental": {"steadyhand": able}})
    client.answer_with("steadyhand/permission/ask", lambda _: {"option": "once"})
    client.answer_with("steadyhand/user/ask", lambda _: {"answer": answer})
    uri = (servers.root / "a.txt").as_uri()
    document = {"uri": uri, "languageId": "plaintext", "version": 1, "text": DISK}
    client.notify("textDocument/didOpen", {"textDocument": document})
    change(client, uri, 2, TYPED)
    return client, client.ours("session/create"), uri


def change(client: CheckedClient, uri: str, version: int, text: str) -> None:
    changes = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
    client.notify("textDocument/didChange", changes)


def outcome(client: CheckedClient, session: Json, text: str) -> Json:
    turn_id = client.send_prompt(session, text)["turnId"]
    client.ended(turn_id)
    *_, call = client.calls(turn_id)
    found: Json = call
    return found


def test_save_first_saves_and_continues_in_the_same_turn(servers: ServerProcesses) -> None:
    """V2: the server asks by `user/ask`, saves by `document/save` with the version, then asks for permission; `didSave`
    may come late."""
    client, session, uri = typing(servers, ABLE)

    def save(params: Json) -> Json:
        assert params == {"uri": uri, "version": 2}
        (servers.root / "a.txt").write_text(TYPED)
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    question = client.asked("steadyhand/user/ask")["params"]
    assert question["question"].startswith("a.txt has unsaved changes")
    assert question["options"] == ["Save and go on", "Leave it as it is"]
    assert "+one" not in client.asked("steadyhand/permission/ask")["params"]["diff"]
    assert "+TWO and more" in client.asked("steadyhand/permission/ask")["params"]["diff"]
    assert servers.content("a.txt") == "one\nTWO and more\n"


def test_save_that_formats_the_text_continues_with_the_new_version(servers: ServerProcesses) -> None:
    """V2: a formatter makes a new version, which is on disk; its notifications may come after the answer."""
    client, session, uri = typing(servers, ABLE)
    formatted = "one\ntwo, formatted\n"

    def save(params: Json) -> Json:
        change(client, uri, 3, formatted)
        (servers.root / "a.txt").write_text(formatted)
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    assert servers.content("a.txt") == "one\nTWO, formatted\n"


def failed(_: object) -> Json:
    return {"saved": False}


def dead(_: object) -> Json:
    raise ErrorAnswer({"code": -32603, "message": "no"})


def garbage(_: object) -> Json:
    return {"saved": "yes"}


@pytest.mark.parametrize("answer", [failed, garbage, dead])
def test_failed_save_refuses_the_call_as_unsaved(servers: ServerProcesses, answer: Callable[[object], Json]) -> None:
    """V2: the call is refused as `unsaved` with a sentence; nothing started and nothing was overwritten."""
    client, session, _ = typing(servers, ABLE)
    client.answer_with("steadyhand/document/save", answer)
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert "could not save it" in call["reply"]["text"]
    assert "started" not in servers.kinds(session["sessionId"])
    assert servers.content("a.txt") == DISK


def test_declined_save_sends_no_save_request(servers: ServerProcesses) -> None:
    """V2: the server does not ask the editor to save."""
    client, session, _ = typing(servers, ABLE, "Leave it as it is")
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert not any(message.get("method") == "steadyhand/document/save" for message in client.messages)


def test_save_first_without_user_ask_is_asked_by_message(servers: ServerProcesses) -> None:
    """docs/protocol.md: the question is a message with the two titles."""
    client, session, _ = typing(servers, {"save": True})
    client.answer_with("window/showMessageRequest", lambda asked: asked["actions"][0])

    def save(params: Json) -> Json:
        (servers.root / "a.txt").write_text(TYPED)
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    asked = [m["params"] for m in client.messages if m.get("method") == "window/showMessageRequest"]
    assert [action["title"] for action in asked[0]["actions"]] == ["Save and go on", "Leave it as it is"]
    assert [action["title"] for action in asked[1]["actions"]] == ["Allow once", "Allow in this session", "Reject"]


def test_client_without_the_save_request_is_refused_with_a_sentence(servers: ServerProcesses) -> None:
    """docs/protocol.md: a client that did not declare the request gets none; the call is refused with a sentence."""
    client, session, _ = typing(servers, {"permission": True, "userAsk": True})
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert "save it first" in call["reply"]["text"]
    assert not any(message.get("method") == "steadyhand/user/ask" for message in client.messages)
