"""Several windows, folders and sessions: who owns what, and what one's trouble does to the others (rows S, J11)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_client import CheckedClient, Desk
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json

INVALID = -32602


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A place whose servers are ended and checked."""
    made = Desk.under(tmp_path)
    yield made
    made.close()


def is_parked(told: Json) -> bool:
    return bool(told["parked"])


# --- two windows on one state directory ---------------------------------------------------------------------------


def test_a_session_open_in_another_window(desk: Desk) -> None:
    """Row J11: read-only with its owner named, nothing classified; told once when free; opened again it is ours."""
    first = desk.server(permission=lambda _: UNANSWERED)
    session = first.ours("session/create")
    asked = {"sessionId": session["sessionId"]}
    first.send_prompt(session, "write a.txt with hello", "c1")
    first.notification("steadyhand/session/changed", that=is_parked)
    before = desk.journal(session["sessionId"])

    second = desk.server()
    opened = second.ours("session/open", **asked)
    shown = opened["session"]["readOnly"]
    assert shown["reason"] == "owned"
    assert shown["owner"]["pid"] == first.process.pid
    assert "epoch" not in opened["session"]
    assert opened["messages"][1]["calls"][0]["state"] == "waiting", "it runs there"
    assert desk.journal(session["sessionId"]) == before
    good = {**asked, "epoch": session["epoch"], "clientMessageId": "c2", "text": "say two"}
    with pytest.raises(ErrorAnswer) as refused:
        second.ours("turn/start", **good)
    assert (refused.value.code, refused.value.data["kind"]) == (-32058, "notOwner")
    assert refused.value.data["owner"] == shown["owner"]
    assert second.ours("turn/start", **{**good, "clientMessageId": "c1", "text": "write a.txt with hello"})["duplicate"]

    first.kill()
    free = second.notification("steadyhand/session/changed", that=lambda told: "readOnly" not in told)
    assert free["sessionId"] == session["sessionId"]
    assert "epoch" not in free
    told = second.notification("window/showMessage", that=lambda message: "is free now" in message["message"])
    assert told["type"] == 3
    again = second.ours("session/open", **asked)
    assert again["session"]["epoch"] not in (None, session["epoch"])
    assert again["messages"][1]["calls"][0]["state"] == "notRun"
    assert second.say(again["session"], "say three")["reason"] == "done"
    assert sum("is free now" in text for text in second.shown()) == 1


def test_a_window_that_reloads(desk: Desk) -> None:
    """Row J11: the new window waits for the old one's lock, and its session is writable at once."""
    first = desk.server()
    session = first.ours("session/create")
    second = desk.server()
    waiting = second.ask("steadyhand/session/open", {"sessionId": session["sessionId"]})
    second.ours("session/list")
    assert second.answers(waiting) == []
    assert first.shut_down() == 0
    assert "readOnly" not in second.result(waiting)["session"]


def test_both_windows_list_everything(desk: Desk) -> None:
    """Rows S3, J11: all sessions of the state directory, newest first, whoever has them open; one that another process
    has says so and who it is."""
    first, second = desk.server(), desk.server()
    ids = [window.ours("session/create", title=name)["sessionId"] for window, name in ((first, "a"), (second, "b"))]
    for window in (first, second):
        listed = window.ours("session/list")["sessions"]
        assert {view["sessionId"] for view in listed} == set(ids)
        assert [("epoch" in view) for view in listed].count(True) == 1
        (elsewhere,) = [view for view in listed if "epoch" not in view]
        other = second if window is first else first
        assert elsewhere["readOnly"]["reason"] == "owned"
        assert elsewhere["readOnly"]["owner"]["pid"] == other.process.pid
        assert [view["updated"] for view in listed] == sorted((view["updated"] for view in listed), reverse=True)
    assert second.shut_down() == 0
    assert all("readOnly" not in view for view in first.ours("session/list")["sessions"])


# --- several sessions in one window -------------------------------------------------------------------------------


def test_two_sessions_at_once(desk: Desk) -> None:
    """Row S2: one waits for its question while the other's turn runs to its end; closing one leaves the other."""
    client = desk.server(permission=lambda _: UNANSWERED)
    slow, quick = client.ours("session/create"), client.ours("session/create")
    turn_id = client.send_prompt(slow, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=is_parked)
    assert client.say(quick, "say hello")["reason"] == "done"
    assert client.ours("session/close", sessionId=slow["sessionId"]) == {}
    assert client.ended(turn_id)["reason"] == "closed"
    assert client.say(quick, "say again")["reason"] == "done"


def test_a_bad_session_fails_alone(desk: Desk) -> None:
    """Row S6, case 5: a journal that cannot be read is one session's trouble; another's turn runs on meanwhile."""
    client = desk.server(permission=lambda _: UNANSWERED)
    bad, good = client.ours("session/create"), client.ours("session/create")
    client.ours("session/close", sessionId=bad["sessionId"])
    turn_id = client.send_prompt(good, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=is_parked)
    path = Path(bad["path"]) / "journal.jsonl"
    path.rename(path.with_name("elsewhere"))
    path.mkdir()
    opened = client.ours("session/open", sessionId=bad["sessionId"])
    assert opened["session"]["readOnly"]["reason"] == "disk"
    good_one = {"sessionId": bad["sessionId"], "epoch": "0" * 32, "clientMessageId": "c9", "text": "say x"}
    assert client.refusal("turn/start", **good_one) == (-32059, "journalBroken")
    question = client.asked("steadyhand/permission/ask")
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"option": "once"}})
    assert client.ended(turn_id)["reason"] == "done"
    path.rmdir()
    path.with_name("elsewhere").rename(path)
    mended = client.ours("session/open", sessionId=bad["sessionId"])["session"]
    assert "readOnly" not in mended
    assert client.say(mended, "say back")["reason"] == "done"


def test_the_end_of_the_server_ends_its_turns(desk: Desk) -> None:
    """Rows S2, E5: shut down while a question is open, the turn ends `closed` and nothing is uncertain later."""
    client = desk.server(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    client.send_prompt(session, "write a.txt with hello", "c1")
    client.notification("steadyhand/session/changed", that=is_parked)
    assert client.shut_down() == 0
    assert [r["reason"] for r in desk.journal(session["sessionId"]) if r["kind"] == "ended"] == ["closed"]
    client = desk.server()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["snapshot"]["calls"] == []
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c1")
    assert (status["state"], status["reason"]) == ("ended", "closed")


def test_what_a_session_is_created_with(desk: Desk) -> None:
    """S3, S7: a title on one line, bounded as in a rename; a folder however its URI is spelled, and no other."""
    client = desk.server()
    folder = desk.root.as_uri()
    session = client.ours("session/create", title=" two\nlines\0 ", workspace=f"{folder}/")
    assert (session["title"], session["titleSource"], session["workspace"]) == ("two lines", "user", folder)
    assert client.refusal("session/create", title="x" * 201) == (-32602, "invalidParams")
    assert client.refusal("session/create", workspace=f"{folder}-other") == (-32602, "invalidParams")


def test_sessions_nobody_knows(desk: Desk) -> None:
    """wire.md: every request that names a session answers unknownSession for one that does not exist."""
    client = desk.server()
    session = {"sessionId": "a" * 32}
    for method, more in (
        ("session/open", {}),
        ("session/close", {}),
        ("session/setMode", {"mode": "ask"}),
        ("turn/status", {"clientMessageId": "c"}),
        ("turn/cancel", {"turnId": "b" * 32}),
        ("turn/events", {"epoch": "c" * 32, "after": 0}),
        ("queue/resume", {"epoch": "c" * 32}),
        ("recovery/snapshot", {}),
    ):
        assert client.refusal(method, **session, **more) == (-32050, "unknownSession"), method


# --- folders (row S7) ---------------------------------------------------------------------------------------------


def bound_to(client: CheckedClient, session: Json) -> str:
    """The folder a command of that session runs in."""
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    turn_id = client.send_prompt(session, "run pwd; true")["turnId"]
    client.ended(turn_id)
    text: str = client.calls(turn_id)[0]["reply"]["text"]
    return text.split("\n")[0]


def test_no_folder_is_open(desk: Desk) -> None:
    """Row S7: the agent talks and says that it has no files."""
    client = desk.server(folders=[])
    session = client.ours("session/create")
    assert "workspace" not in session
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    ended = client.ended(turn_id)
    assert ended["reason"] == "done"
    assert ended["changed"] == []
    assert list(desk.root.iterdir()) == []


def test_several_folders(desk: Desk) -> None:
    """Row S7: bound to the first or to the chosen one; one that is none of the client's is refused."""
    folders = [desk.root / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    client = desk.server(folders=folders)
    first = client.ours("session/create")
    chosen = client.ours("session/create", workspace=folders[1].as_uri())
    assert [view["workspace"] for view in (first, chosen)] == [folder.as_uri() for folder in folders]
    assert [bound_to(client, view) for view in (first, chosen)] == [str(folder) for folder in folders]
    same = client.ours("session/create", workspace=folders[1].as_uri() + "/")
    assert same["workspace"] == chosen["workspace"]
    for stranger in (desk.root.as_uri(), "file:///", "untitled:x"):
        assert client.refusal("session/create", workspace=stranger) == (INVALID, "invalidParams")


def test_folders_that_come_later(desk: Desk) -> None:
    """Row S7: a folder that is added is one of the client's from then on; one that was removed is none."""
    for name in ("one", "two"):
        (desk.root / name).mkdir()
    one, two = (desk.root / name for name in ("one", "two"))
    client = desk.server(folders=[one])
    client.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": [{"uri": one.as_uri(), "name": "one"}]}},
    )
    assert client.ours("session/create")["workspace"] == two.as_uri()
    assert client.refusal("session/create", workspace=one.as_uri()) == (INVALID, "invalidParams")
