"""Several windows, folders and sessions: which window owns a session, and how a failure in one affects the others (rows
S, J11).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.lsp_clients import CheckedClient, opened_calls
from tests.support.process_server import ServerProcesses, server_processes
from tests.support.raw_client import UNANSWERED, ErrorAnswer, Json

INVALID = -32602


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[ServerProcesses]:
    with server_processes(tmp_path) as servers:
        yield servers


def is_parked(told: Json) -> bool:
    return bool(told["parked"])


def states(opened: Json) -> list[tuple[str, str]]:
    """(tool, state) of all calls of an opened session. A file is read before it is written (V3); here there is none."""
    return [(call["tool"], call["state"]) for call in opened_calls(opened)]


# --- two windows on one state directory ---------------------------------------------------------------------------


def test_session_of_another_window_is_read_only_until_it_is_free(servers: ServerProcesses) -> None:
    """Row J11: the session is read-only, names its lock holder, and nothing in it is classified. The server says once
    that it is free; opened again, it is writable."""
    first = servers.start_checked(permission=lambda _: UNANSWERED)
    session = first.ours("session/create")
    asked = {"sessionId": session["sessionId"]}
    first.send_prompt(session, "write a.txt with hello", "c1")
    first.notification("steadyhand/session/changed", that=is_parked)
    before = servers.records(session["sessionId"])

    second = servers.start_checked()
    opened = second.ours("session/open", **asked)
    shown = opened["session"]["readOnly"]
    assert shown["reason"] == "owned"
    assert shown["owner"]["pid"] == first.process.pid
    assert "epoch" not in opened["session"]
    assert states(opened) == [("read_file", "failed"), ("write_file", "waiting")], "it runs there"
    assert servers.records(session["sessionId"]) == before
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
    assert states(again) == [("read_file", "failed"), ("write_file", "notRun")]
    assert second.say(again["session"], "say three")["reason"] == "done"
    assert sum("is free now" in text for text in second.shown()) == 1


def test_reloaded_window_waits_for_the_lock_and_can_write(servers: ServerProcesses) -> None:
    """Row J11: the new window waits for the lock of the old one; then its session is writable at once."""
    first = servers.start_checked()
    session = first.ours("session/create")
    second = servers.start_checked()
    waiting = second.ask("steadyhand/session/open", {"sessionId": session["sessionId"]})
    second.ours("session/list")
    assert second.answers(waiting) == []
    assert first.shut_down() == 0
    assert "readOnly" not in second.result(waiting)["session"]


def test_session_list_names_sessions_of_all_windows_and_their_holders(servers: ServerProcesses) -> None:
    """Rows S3, J11: both windows list all sessions of the state directory, newest first. A session that another process
    holds says so and names it."""
    first, second = servers.start_checked(), servers.start_checked()
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


def test_two_sessions_run_independently_in_one_window(servers: ServerProcesses) -> None:
    """Row S2: one session waits for an answer while the turn of the other runs to its end; closing one does not affect
    the other."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    slow, quick = client.ours("session/create"), client.ours("session/create")
    turn_id = client.send_prompt(slow, "write a.txt with hello")["turnId"]
    client.notification("steadyhand/session/changed", that=is_parked)
    assert client.say(quick, "say hello")["reason"] == "done"
    assert client.ours("session/close", sessionId=slow["sessionId"]) == {}
    assert client.ended(turn_id)["reason"] == "closed"
    assert client.say(quick, "say again")["reason"] == "done"


def test_unreadable_session_does_not_disturb_another_session(servers: ServerProcesses) -> None:
    """Row S6, case 5: a journal that cannot be read fails one session; the turn of another session goes on."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
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


def test_shutdown_with_an_open_question_closes_the_turn(servers: ServerProcesses) -> None:
    """Rows S2, E5: at shutdown with an open question the turn ends with `closed`, and nothing is uncertain later."""
    client = servers.start_checked(permission=lambda _: UNANSWERED)
    session = client.ours("session/create")
    client.send_prompt(session, "write a.txt with hello", "c1")
    client.notification("steadyhand/session/changed", that=is_parked)
    assert client.shut_down() == 0
    assert [r["reason"] for r in servers.records(session["sessionId"]) if r["kind"] == "ended"] == ["closed"]
    client = servers.start_checked()
    opened = client.ours("session/open", sessionId=session["sessionId"])
    assert opened["snapshot"]["calls"] == []
    status = client.ours("turn/status", sessionId=session["sessionId"], clientMessageId="c1")
    assert (status["state"], status["reason"]) == ("ended", "closed")


def test_create_normalizes_the_title_and_checks_the_folder(servers: ServerProcesses) -> None:
    """S3, S7: the title becomes one line with the bound of a rename; the folder matches however its URI is spelled, and
    no other folder does."""
    client = servers.start_checked()
    folder = servers.root.as_uri()
    session = client.ours("session/create", title=" two\nlines\0 ", workspace=f"{folder}/")
    assert (session["title"], session["titleSource"], session["workspace"]) == ("two lines", "user", folder)
    assert client.refusal("session/create", title="x" * 201) == (-32602, "invalidParams")
    assert client.refusal("session/create", workspace=f"{folder}-other") == (-32602, "invalidParams")


def test_requests_for_an_unknown_session_answer_unknown_session(servers: ServerProcesses) -> None:
    """docs/protocol.md: every request that names a session answers unknownSession if there is no such session."""
    client = servers.start_checked()
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
    """The folder that a command of this session runs in."""
    client.ours("session/setMode", sessionId=session["sessionId"], mode="auto")
    turn_id = client.send_prompt(session, "run pwd; true")["turnId"]
    client.ended(turn_id)
    text: str = client.calls(turn_id)[0]["reply"]["text"]
    return text.split("\n")[0]


def test_session_without_a_folder_says_that_it_has_no_files(servers: ServerProcesses) -> None:
    """Row S7: the agent answers and says that it has no files."""
    client = servers.start_checked(folders=[])
    session = client.ours("session/create")
    assert "workspace" not in session
    turn_id = client.send_prompt(session, "write a.txt with hello")["turnId"]
    ended = client.ended(turn_id)
    assert ended["reason"] == "done"
    assert ended["changed"] == []
    assert list(servers.root.iterdir()) == []


def test_session_is_bound_to_the_first_or_the_chosen_folder(servers: ServerProcesses) -> None:
    """Row S7: a session gets the first folder or the chosen one; a folder that is not the client's is refused."""
    folders = [servers.root / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    client = servers.start_checked(folders=folders)
    first = client.ours("session/create")
    chosen = client.ours("session/create", workspace=folders[1].as_uri())
    assert [view["workspace"] for view in (first, chosen)] == [folder.as_uri() for folder in folders]
    assert [bound_to(client, view) for view in (first, chosen)] == [str(folder) for folder in folders]
    same = client.ours("session/create", workspace=folders[1].as_uri() + "/")
    assert same["workspace"] == chosen["workspace"]
    for stranger in (servers.root.as_uri(), "file:///", "untitled:x"):
        assert client.refusal("session/create", workspace=stranger) == (INVALID, "invalidParams")


def test_added_and_removed_folders_count_from_then_on(servers: ServerProcesses) -> None:
    """Row S7: an added folder is one of the client's from then on; a removed folder is not."""
    for name in ("one", "two"):
        (servers.root / name).mkdir()
    one, two = (servers.root / name for name in ("one", "two"))
    client = servers.start_checked(folders=[one])
    client.notify(
        "workspace/didChangeWorkspaceFolders",
        {"event": {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": [{"uri": one.as_uri(), "name": "one"}]}},
    )
    assert client.ours("session/create")["workspace"] == two.as_uri()
    assert client.refusal("session/create", workspace=one.as_uri()) == (INVALID, "invalidParams")


def test_second_folder_of_a_window_is_inside_and_a_moved_one_is_bound_anew(servers: ServerProcesses) -> None:
    """Cases 130 and 131, rows S10, S11, over the wire: the rules of each folder count, the second folder asks nobody,
    and a session whose folder was moved goes on in the new one under a new epoch."""
    one, two, three = (servers.root / name for name in ("one", "two", "three"))
    one.mkdir()
    two.mkdir()
    rules = {two.as_uri(): {"permissions": {"deny": ["write_file(shut.txt)"]}}}
    client = servers.start_checked(
        folders=[one, two],
        options={"mode": "auto"},
        capabilities={"workspace": {"configuration": True}},
        permission=lambda _: pytest.fail("nobody is asked"),
        initialize=False,
    )
    client.answer_with(
        "workspace/configuration", lambda params: [rules.get(item.get("scopeUri")) for item in params["items"]]
    )
    client.initialize(
        {
            "workspaceFolders": [{"uri": path.as_uri(), "name": path.name} for path in (one, two)],
            "capabilities": {
                "workspace": {"configuration": True},
                "experimental": {"steadyhand": {"permission": True}},
            },
            "initializationOptions": {"mode": "auto"},
        }
    )
    session = client.ours("session/create")
    client.say(session, "write @two/a.txt with a")
    client.say(session, "write @two/shut.txt with a")
    assert (two / "a.txt").read_text() == "a"
    assert not (two / "shut.txt").exists()

    wanted = {"sessionId": session["sessionId"], "workspace": three.as_uri()}
    assert client.refusal("session/rebind", **wanted) == (INVALID, "invalidParams")
    one.rename(three)
    client.notify(
        "workspace/didChangeWorkspaceFolders",
        {
            "event": {
                "added": [{"uri": three.as_uri(), "name": "three"}],
                "removed": [{"uri": one.as_uri(), "name": "one"}],
            }
        },
    )
    bound = client.ours("session/rebind", **wanted)
    assert bound["workspace"] == three.as_uri()
    assert bound["epoch"] != session["epoch"]
    client.say(bound, "write b.txt with b")
    assert (three / "b.txt").read_text() == "b"
