"""After a restart the doubt shows itself, though nobody opens a session (row A8).

The clients here send `initialize` and `initialized` and then only listen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.raw_client import UNANSWERED
from tests.support.recovered import PRESENT, Client, Lives, lives_in, never
from tests.support.systems import linux_only

pytestmark = linux_only

MESSAGE = "window/showMessage"
free_s_max = 10.0


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    with lives_in(tmp_path) as found:
        found.place.write("a.txt", "old\n")
        found.place.write("b.txt", "old\n")
        yield found


def doubtful(lives: Lives, name: str = "a.txt") -> str:
    """A session whose write is uncertain for good, seen by no server yet."""
    session_id = lives.die(f"write {name} with new", PRESENT)
    lives.place.write(name, "somebody's\n")
    return session_id


def two_doubts(lives: Lives) -> tuple[str, str]:
    """Two such sessions; the first has its verdict already."""
    first = doubtful(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    assert client.shut_down() == 0
    return first, doubtful(lives, "b.txt")


def test_two_sessions_one_notification(lives: Lives) -> None:
    """A8: diagnostics at both files, one notification in all, the sessions told as open here; nothing is repeated."""
    first, second = two_doubts(lives)
    client = lives.start()
    client.squiggle("a.txt", "uncertain-write")
    client.squiggle("b.txt", "uncertain-write")
    (told,) = client.notifications(MESSAGE) or [client.notification(MESSAGE)]
    assert told["type"] == 2
    assert "2 earlier effects are uncertain" in told["message"]
    assert "write_file: a.txt" in told["message"]
    assert "write_file: b.txt" in told["message"]
    assert {told["sessionId"] for told in client.notifications("steadyhand/session/changed")} == {first, second}
    never(lambda: client.notifications(MESSAGE)[1:] or None, client)
    assert (lives.place.workspace / "a.txt").read_text() == "somebody's\n"


def test_nothing_to_say(lives: Lives) -> None:
    """A8: sessions without a doubt are neither opened nor spoken of."""
    client = lives.start()
    assert client.say("write c.txt with c")["reason"] == "done"
    assert client.shut_down() == 0
    client = lives.start()
    never(lambda: [told for told in client.messages if told.get("method") != "window/logMessage"][1:] or None, client)


def test_only_the_open_folders(lives: Lives) -> None:
    """A8: a session of another folder is left alone, and so are all without a folder."""
    session_id = doubtful(lives)
    journal = lives.place.journal(session_id)
    for folders in ([], [(lives.place.base / "elsewhere").as_uri()]):
        client = lives.start(folders=folders)
        never(lambda here=client: here.notifications(MESSAGE) or here.diagnostics("a.txt"), client, 1)
    assert lives.place.journal(session_id) == journal


def test_a_window_that_reloads(lives: Lives) -> None:
    """A8, J11: the old process still owns the session when the new one starts; it is taken as soon as it is free."""
    session_id = doubtful(lives)
    old = lives.start()
    old.squiggle("a.txt", "uncertain-write")
    new = lives.start()
    never(lambda: new.diagnostics("a.txt"), new, 1)
    assert new.notifications(MESSAGE) == [], "of a session owned elsewhere nothing is said"
    old.process.kill()
    new.squiggle("a.txt", "uncertain-write", free_s_max)
    assert new.snapshot(session_id)["calls"]
    assert len(lives.having(session_id, "result")) == 1, "the verdict stands once (C4)"


def test_owned_elsewhere_is_left_alone(lives: Lives) -> None:
    """A8, J11: a second window says nothing and writes nothing, for as long as the first lives."""
    session_id = doubtful(lives)
    first = lives.start()
    first.squiggle("a.txt", "uncertain-write")
    journal = lives.place.journal(session_id)
    second = lives.start()
    never(lambda: second.notifications(MESSAGE) or second.diagnostics("a.txt"), second, free_s_max + 1)
    assert second.notifications("steadyhand/session/changed") == []
    assert lives.place.journal(session_id) == journal
    assert first.snapshot(session_id)["runtimeEpoch"]


def test_a_session_with_nothing_left_is_let_go(lives: Lives) -> None:
    """A8: opened for its open call alone, which did not run; then another process can own it at once."""
    session_id = lives.die("write a.txt with new", {"verb": "write", "carries": "started"})
    first = lives.start()
    first.wait_for(lambda: lives.having(session_id, "result") or None, 20)
    second = lives.start(folders=[])
    opened = second.opened(session_id)["session"]
    assert "readOnly" not in opened
    assert opened["epoch"]
    assert first.notifications(MESSAGE) == []
    assert first.diagnostics("a.txt") is None


def test_a_session_with_something_settled_is_kept(lives: Lives) -> None:
    """A8, B3: what is shown as settled keeps its session here."""
    session_id = lives.die("write a.txt with new", PRESENT)
    first = lives.start()
    first.squiggle("a.txt", "checked-write")
    second = lives.start(folders=[])
    assert second.opened(session_id)["session"]["readOnly"]["reason"] == "owned"


def test_after_the_settings(lives: Lives) -> None:
    """A8: the look begins with the first answer to `workspace/configuration`."""
    doubtful(lives)
    able = {"workspace": {"configuration": True}}
    client = lives.start(capabilities=able)
    asked = client.question("workspace/configuration")
    assert client.diagnostics("a.txt") is None
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": [None]})
    client.squiggle("a.txt", "uncertain-write")


@pytest.mark.parametrize(
    "silent", ["workspace/configuration", "client/registerCapability", "workspace/codeLens/refresh"]
)
def test_a_client_that_never_answers(lives: Lives, silent: str) -> None:
    """A8: settings that do not come are waited for 2 s; nothing else that is asked aside holds the doubt up."""
    doubtful(lives)
    able = {
        "workspace": {
            "configuration": True,
            "textDocumentContent": {"dynamicRegistration": True},
            "codeLens": {"refreshSupport": True},
        }
    }
    client = lives.start(capabilities=able)
    for method in ("workspace/configuration", "client/registerCapability", "workspace/codeLens/refresh"):
        answer = UNANSWERED if method == silent else [None] if method.endswith("configuration") else None
        client.answer_with(method, lambda _, answer=answer: answer)
    waiting = [each for each in client.server_requests if each["method"] != silent]
    for each in waiting:
        result = [None] if each["method"].endswith("configuration") else None
        client.send({"jsonrpc": "2.0", "id": each["id"], "result": result})
    client.squiggle("a.txt", "uncertain-write", 6)
    assert client.command("recovery.list")["uncertain"]
    _moves(client, 6)


def _moves(client: Client, limit_s: float) -> None:
    """A later change is published as soon."""
    (call,) = client.command("recovery.list")["uncertain"]
    looked = client.inspected(call["sessionId"], call["attemptId"])
    client.resolve(looked["snapshot"], call["attemptId"], "waive", looked["inspection"]["inspectionId"])
    client.squiggle("a.txt", None, limit_s)


@pytest.mark.parametrize("summary", ["missing", "garbage", "another version", "stale", "wrong types", "a folder"])
def test_whatever_stands_in_the_summary(lives: Lives, summary: str) -> None:
    """A8: the summary is a cache: missing, wrong or of another journal, the session is folded, the doubt is there."""
    session_id = doubtful(lives)
    path = lives.place.session(session_id) / "summary.json"
    stale = path.read_bytes() if path.exists() else b"{}"
    path.unlink(missing_ok=True)
    contents = {
        "garbage": b"\x00\xff" * 100,
        "another version": stale.replace(b'"v":1', b'"v":2'),
        "stale": stale,
        "wrong types": b'{"v":1,"bytes":"x","sum":[],"model":7}',
    }
    if summary in contents:
        path.write_bytes(contents[summary])
    elif summary == "a folder":
        path.mkdir()
    lives.start().squiggle("a.txt", "uncertain-write")


def test_a_session_that_cannot_be_read_fails_alone(lives: Lives) -> None:
    """S6, A8: beside one whose journal is a folder, another is shown as ever."""
    doubtful(lives)
    broken = lives.place.state / "sessions" / ("0" * 32)
    (broken / "journal.jsonl").mkdir(parents=True)
    lives.start().squiggle("a.txt", "uncertain-write")
