"""Save first over the wire: the question, `document/save`, and what an editor may answer to it (row V2, wire.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.raw_client import ErrorAnswer, Json

ABLE: Json = {"permission": True, "userAsk": True, "save": True}
DISK, TYPED = "one\ntwo\n", "one\ntwo and more\n"
EDIT = "replace two with TWO in a.txt"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    made.root.joinpath("a.txt").write_text(DISK)
    yield made
    made.close()


def typing(desk: Desk, able: Json, answer: str = "Save and go on") -> tuple[CheckedClient, Json, str]:
    """A client in which `a.txt` is open with unsaved text: it, a session, the document's URI."""
    client = desk.server(capabilities={"experimental": {"steadyhand": able}})
    client.answer_with("steadyhand/permission/ask", lambda _: {"option": "once"})
    client.answer_with("steadyhand/user/ask", lambda _: {"answer": answer})
    uri = (desk.root / "a.txt").as_uri()
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
    (call,) = client.calls(turn_id)
    found: Json = call
    return found


def test_saved_and_gone_on_in_the_same_turn(desk: Desk) -> None:
    """V2: asked by `user/ask`, saved by `document/save` with the version, then permitted; `didSave` may be late."""
    client, session, uri = typing(desk, ABLE)

    def save(params: Json) -> Json:
        assert params == {"uri": uri, "version": 2}
        (desk.root / "a.txt").write_text(TYPED)
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    question = client.asked("steadyhand/user/ask")["params"]
    assert question["question"].startswith("a.txt has unsaved changes")
    assert question["options"] == ["Save and go on", "Leave it as it is"]
    assert "+one" not in client.asked("steadyhand/permission/ask")["params"]["diff"]
    assert "+TWO and more" in client.asked("steadyhand/permission/ask")["params"]["diff"]
    assert desk.content("a.txt") == "one\nTWO and more\n"


def test_an_editor_that_changes_the_text_while_saving(desk: Desk) -> None:
    """V2: a formatter makes a new version, which is on disk; its notifications may come after the answer."""
    client, session, uri = typing(desk, ABLE)
    formatted = "one\ntwo, formatted\n"

    def save(params: Json) -> Json:
        change(client, uri, 3, formatted)
        (desk.root / "a.txt").write_text(formatted)
        client.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    assert desk.content("a.txt") == "one\nTWO, formatted\n"


def failed(_: object) -> Json:
    return {"saved": False}


def dead(_: object) -> Json:
    raise ErrorAnswer({"code": -32603, "message": "no"})


def garbage(_: object) -> Json:
    return {"saved": "yes"}


@pytest.mark.parametrize("answer", [failed, garbage, dead])
def test_a_save_that_does_not_come_about(desk: Desk, answer: Callable[[object], Json]) -> None:
    """V2: refused as `unsaved` with a sentence; nothing started, nothing overwritten."""
    client, session, _ = typing(desk, ABLE)
    client.answer_with("steadyhand/document/save", answer)
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert "could not be saved" in call["reply"]["text"]
    assert "started" not in desk.kinds(session["sessionId"])
    assert desk.content("a.txt") == DISK


def test_a_no(desk: Desk) -> None:
    """V2: then the editor is not asked to save."""
    client, session, _ = typing(desk, ABLE, "Leave it as it is")
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert not any(message.get("method") == "steadyhand/document/save" for message in client.messages)


def test_a_client_without_user_ask(desk: Desk) -> None:
    """wire.md: the question is a message with the two titles."""
    client, session, _ = typing(desk, {"save": True})
    client.answer_with("window/showMessageRequest", lambda asked: asked["actions"][0])

    def save(params: Json) -> Json:
        (desk.root / "a.txt").write_text(TYPED)
        return {"saved": True}

    client.answer_with("steadyhand/document/save", save)
    assert outcome(client, session, EDIT)["state"] == "returned"
    asked = [m["params"] for m in client.messages if m.get("method") == "window/showMessageRequest"]
    assert [action["title"] for action in asked[0]["actions"]] == ["Save and go on", "Leave it as it is"]
    assert [action["title"] for action in asked[1]["actions"]] == ["Allow once", "Allow in this session", "Reject"]


def test_a_client_without_save(desk: Desk) -> None:
    """wire.md: to a client that did not declare it nothing is sent; the call is refused with a sentence."""
    client, session, _ = typing(desk, {"permission": True, "userAsk": True})
    call = outcome(client, session, EDIT)
    assert (call["state"], call["reason"]) == ("refused", "unsaved")
    assert "must be saved first" in call["reply"]["text"]
    assert not any(message.get("method") == "steadyhand/user/ask" for message in client.messages)
